"""What looking for the place of an edit comes to: a match, or why there is none."""

from typing import Literal, TypeAlias

from msgspec import Struct

from ybs.tools.editing.adapting import Replacement
from ybs.tools.editing.lines import Lines

Reason: TypeAlias = Literal[
    "absent", "ambiguous", "applied", "unchanged", "placeholder", "indentation", "numbers"
]


class Match(Struct, frozen=True, kw_only=True):
    """Where the edit goes: `places` in order and apart. `how` names what was overlooked; empty if exact."""

    places: tuple[Replacement, ...]
    how: tuple[str, ...] = ()
    count: int = 1


class Refusal(Struct, frozen=True, kw_only=True):
    """Why there is no place. `lines` are the numbers of the places found; `is_exact`: they have the very text.

    `nearest` shows the closest lines of a text that is absent, `placeholder` the line that stands for others,
    be it in the new text or in one that is absent.
    """

    reason: Reason
    lines: tuple[int, ...] = ()
    is_exact: bool = False
    nearest: str = ""
    placeholder: str = ""


class Edit(Struct, frozen=True):
    r"""The two texts of an edit and the file's; line ends are `\n` in all of them."""

    text: str
    old: str
    new: str
    is_for_all: bool


Found: TypeAlias = Match | Refusal | None


def numbers_of(lines: Lines, runs: list[int]) -> tuple[int, ...]:
    """Return the numbers, from 1, of the lines that these runs begin with."""
    return tuple(lines.solid[run] + 1 for run in runs)
