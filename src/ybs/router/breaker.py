"""The breaker: an arm whose requests fail on the way rests for a while, which says nothing about how good it is."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

#: In seconds: the first rest and the longest one that is not the server's wish.
FIRST_SECONDS: Final = 5.0
MOST_SECONDS: Final = 300.0


class Rest(Struct):
    """How many times in a row an arm has failed, until when it rests, and how fast that is forgotten afterwards."""

    failures: int = 0
    until: float = 0.0
    half_life: float = 1.0


class Breaker:
    """Lets an arm rest after an outage (429, 5xx, a timeout, a refused key): `first`, doubled with each failure in a row.

    `clock` may count seconds or decisions; `first` and `most` are in its unit.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        first: float = FIRST_SECONDS,
        most: float = MOST_SECONDS,
    ) -> None:
        self._clock = clock
        self._first = first
        self._most = most
        self._rests: dict[str, Rest] = {}

    def fail(self, arm: str, retry_after: float | None = None) -> float:
        """Let an arm rest, at least as long as its server says; return for how long."""
        rest = self._rests.setdefault(arm, Rest())
        rest.half_life = min(self._first * 2**rest.failures, self._most)
        rest.failures = min(rest.failures + 1, 30)
        rest.until = max(rest.until, self._clock() + max(rest.half_life, retry_after or 0.0))
        return rest.until - self._clock()

    def succeed(self, arm: str) -> None:
        """Forget the failures of an arm that has answered."""
        self._rests.pop(arm, None)

    def rest_of(self, arm: str) -> float:
        """Return how long an arm still rests; 0 where it can be used."""
        rest = self._rests.get(arm)
        return 0.0 if rest is None else max(0.0, rest.until - self._clock())

    def suspicion(self, arm: str) -> float:
        """Return how much a failure still says of an arm that has not answered since: from 1, as its rest ends, to 0."""
        rest = self._rests.get(arm)
        if rest is None:
            return 0.0
        return 0.5 ** (max(0.0, self._clock() - rest.until) / rest.half_life)
