"""Finds the text that an edit wants to replace. For now it must be there exactly."""

from msgspec import Struct

_MOST_LINES = 2000  # beyond this no near miss is looked for
_SHOWN = 3


class Match(Struct, frozen=True, kw_only=True):
    """Where the text is: `spans` in order and apart. `nearest` shows the closest lines when it is nowhere.

    `how` names what had to be overlooked; it is empty for an exact match.
    """

    spans: tuple[tuple[int, int], ...] = ()
    how: str = ""
    nearest: str = ""


def find(text: str, old: str) -> Match:
    r"""Find every place of `old` in `text`; both have `\n` line ends and `old` is not empty."""
    spans: list[tuple[int, int]] = []
    start = text.find(old)
    while start >= 0:
        spans.append((start, start + len(old)))
        start = text.find(old, start + len(old))
    return Match(spans=tuple(spans), nearest="" if spans else _nearest(text, old))


def line_of(text: str, place: int) -> int:
    """Return the number of the line, from 1, that the place is in."""
    return text.count("\n", 0, place) + 1


def _nearest(text: str, old: str) -> str:
    wanted = next((line.strip() for line in old.split("\n") if line.strip()), "")
    lines = text.split("\n")
    if not wanted or len(lines) > _MOST_LINES:
        return ""
    numbers = [number for number, line in enumerate(lines, 1) if line.strip() == wanted]
    if not numbers:
        from difflib import get_close_matches  # only a failed edit needs it

        close = get_close_matches(
            wanted, {line.strip() for line in lines if line.strip()}, n=_SHOWN
        )
        numbers = [number for number, line in enumerate(lines, 1) if line.strip() in close]
    return "\n".join(f"{number}\t{lines[number - 1]}" for number in numbers[:_SHOWN])
