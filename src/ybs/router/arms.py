"""Arms: the models that a router chooses from, and what is known of them before they are used."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ybs.router.classifier import TaskKind

#: Where nothing says how good a model is.
UNKNOWN_PRIOR: Final = 0.5


class Arm(Struct, frozen=True, kw_only=True):
    """A provider's model that requests can go to.

    A `window` of 0 is unknown and fits everything; a price of None is unknown and counts as the dearest one known.
    `seconds` is how long a typical answer takes, `answer_tokens` how many tokens it has (0: not known). `prior` is the chance of success (0 to 1) that the catalogue gives it,
    for all tasks or by kind. `version` changes when the provider exchanges the model behind the name.
    """

    name: str
    provider: str
    model: str
    window: int = 0
    has_tools: bool = True
    sees_images: bool = False
    is_local: bool = False
    input_usd_per_million: float | None = None
    output_usd_per_million: float | None = None
    cached_usd_per_million: float | None = None
    seconds: float = 0.0
    answer_tokens: float = 0.0
    prior: float | Mapping[TaskKind, float] = UNKNOWN_PRIOR
    version: str = ""

    def prior_of(self, kind: TaskKind) -> float:
        """Return the catalogue's chance of success at a kind of task."""
        if isinstance(self.prior, float | int):
            return self.prior
        return self.prior.get(kind, self.prior.get("other", UNKNOWN_PRIOR))

    def cost_usd(self, fresh: int, cached: int, written: float) -> float | None:
        """Return what a request costs, by its tokens: read anew, read from the cache, written. None: not known."""
        read, write = self.input_usd_per_million, self.output_usd_per_million
        if read is None or write is None:
            return 0.0 if self.is_local else None
        hit = read if self.cached_usd_per_million is None else self.cached_usd_per_million
        return (fresh * read + cached * hit + written * write) / 1_000_000
