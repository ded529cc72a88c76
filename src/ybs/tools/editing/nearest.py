"""Shows the lines of a file that come nearest to a text which is not in it."""

from collections import Counter

from ybs.tools.editing.lines import Lines

_MOST_SHOWN = 12
_MOST_LINES = 2000  # beyond this no line is compared letter by letter
_MOST_PLACES = 50  # a line that occurs more often says nothing about the place
_SIMILAR = 3
_LONGEST = 300


def nearest(lines: Lines, old: str) -> str:
    """Return the nearest lines with their numbers, empty if nothing comes near."""
    wanted = [line for line in old.split("\n") if line.strip()]
    run = _best_run(lines, wanted)
    if run is None:
        return _similar(lines, wanted)
    return numbered_run(lines, run, len(wanted))


def numbered_run(lines: Lines, run: int, size: int) -> str:
    """Return the lines of a run of so many solid lines, the first ones if there are many, with their numbers."""
    first, last = max(run, 0), min(run + size, len(lines.solid)) - 1
    begin, end = lines.solid[first], lines.solid[last]
    return _numbered(lines, list(range(begin, min(end + 1, begin + _MOST_SHOWN))))


def _best_run(lines: Lines, wanted: list[str]) -> int | None:
    """Let every line that is in the file vote for where the text would begin."""
    votes: Counter[int] = Counter()
    for index, sign in enumerate(lines.coded(wanted[:_MOST_PLACES])):
        places = lines.coded_runs(sign) if sign else []
        if len(places) <= _MOST_PLACES and any(letter.isalnum() for letter in wanted[index]):
            votes.update(place - index for place in places)
    best = max(votes.items(), key=lambda vote: (vote[1], -vote[0]), default=None)
    return None if best is None else best[0]


def _similar(lines: Lines, wanted: list[str]) -> str:
    first = next((line.strip() for line in wanted if any(sign.isalnum() for sign in line)), "")
    if not first or len(first) > _LONGEST or len(lines.solid) > _MOST_LINES:
        return ""
    from difflib import get_close_matches  # only a failed edit needs it

    bodies = {number: lines.all[number].strip()[:_LONGEST] for number in lines.solid}
    close = get_close_matches(first, set(bodies.values()), n=_SIMILAR)
    return _numbered(lines, [number for number, body in bodies.items() if body in close][:_SIMILAR])


def _numbered(lines: Lines, numbers: list[int]) -> str:
    return "\n".join(f"{number + 1}\t{lines.all[number][:_LONGEST]}" for number in numbers)
