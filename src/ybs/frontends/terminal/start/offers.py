"""The lines of the first choice: what was found, in words, and in which order it is shown."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from ybs.commands.figures import number_in
from ybs.commands.model_choices import ModelChoice, Settings, whose

#: Asks for a line; raises EOFError when there is none.
Read: TypeAlias = Callable[[str], str]
STARTER = "the starter model"
#: So many lines are shown at once.
PAGE = 12
_FEWEST_LOCAL = 4
#: Fewer letters do not mean a word within a name.
_FEWEST_LETTERS = 3


class StartOffer(Struct, frozen=True, kw_only=True):
    """One line of the choice, and what it leads to: settings, or a question that ends in some (None: back)."""

    name: str
    detail: str = ""
    settings: Settings | None = None
    ask: "Callable[[Read], Settings | None] | None" = None

    @property
    def is_ready(self) -> bool:
        """Whether taking it asks and fetches nothing more."""
        return self.settings is not None


def order(local: Sequence[StartOffer], others: Sequence[StartOffer]) -> list[StartOffer]:
    """Put the best local models first, the rest behind what must not be overlooked."""
    room = max(_FEWEST_LOCAL, PAGE - len(others))
    return [*local[:room], *others, *local[room:]]


def offer_of(choice: ModelChoice) -> StartOffer:
    """Offer what was found."""
    return StartOffer(
        name=choice.model or f"a model of {choice.place}\u2026",
        detail=detail_of(choice),
        settings=choice.settings,
    )


def detail_of(choice: ModelChoice) -> str:
    """Say of what was found where it is and what speaks for or against it."""
    match choice.kind:
        case "server":
            return f"{choice.place}, {_facts(choice)}"
        case "starter":
            return f"{STARTER}, on this machine"
        case "file":
            return f"a file on this machine, {_gigabytes(choice.size_bytes)}"
        case "key":
            return f"{choice.place}, {f'key found in {choice.variable}' if choice.variable else 'key saved'}"


def _facts(choice: ModelChoice) -> str:
    if choice.owner:
        return whose(choice.owner)
    if choice.is_far:
        return "runs in its cloud, not on this machine"
    if not choice.size_bytes:
        return "running here"
    size = _gigabytes(choice.size_bytes)
    return f"{size}, too large for this machine" if choice.is_large else f"running here, {size}"


def _gigabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 5e7 else f"{size_bytes / 1e6:.1f} MB"


def meant(word: str, names: Sequence[str], details: Sequence[str] = ()) -> int | None:
    """Return the place of what a person typed: a number from 1 on, a name, or the beginning of one.

    Where none fits, the beginning of a word in a name counts, then a word of the details; it has a few letters (`m` is
    for more). None where several fit, or none does.
    """
    if word.isdecimal():
        number = number_in(word)
        return number - 1 if 1 <= number <= len(names) else None
    wanted = f" {word}".casefold()
    lines = [f" {name}".casefold() for name in names]
    if wanted in lines:
        return lines.index(wanted)
    is_long = len(word) >= _FEWEST_LETTERS
    for fits in (
        [line.startswith(wanted) for line in lines],
        [is_long and wanted in line for line in lines],
        [is_long and wanted[1:] in _words_of(detail) for detail in details],
    ):
        if any(fits):
            return fits.index(True) if sum(fits) == 1 else None
    return None


def _words_of(text: str) -> list[str]:
    return text.casefold().replace(",", " ").split()
