"""Finds the parts of an edit whose lines in between were left out as `...`; the lines left out stay."""

from msgspec import Struct

from ybs.core.lazy import lazy
from ybs.tools.editing.adapting import Side, fitted
from ybs.tools.editing.found import Edit, Found, Match, Refusal, numbers_of
from ybs.tools.editing.lines import Lines
from ybs.tools.editing.placeholders import is_elision
from ybs.tools.editing.spelling import indent_of

_INSIDE = lazy(r"#|[)\]}].*[{:(>]\s*\Z")  # what may stand further left within a block
_FEW_LINES = 2
_MOST_WAYS = 10


class _Part(Struct, frozen=True, kw_only=True):
    old: Side
    new: Side
    runs: list[int]
    is_kept: bool

    @property
    def is_certain(self) -> bool:
        """Whether it may lie anywhere: a few lines that change may belong to another block than is meant."""
        return self.is_kept or len(self.old.lines) > _FEW_LINES


def elided(lines: Lines, edit: Edit) -> Found:
    """Look for the parts between `...` lines, in their order; the lines left out stay."""
    old, new = _parts(edit.old), _parts(edit.new)
    if len(old) < 2 or len(new) != len(old):  # one part: nothing is left out
        return None
    parts = [
        _Part(old=Side(one), new=Side(two), runs=lines.runs(Side(one).lines), is_kept=one == two)
        for one, two in zip(old, new, strict=True)
        if one.strip()
    ]
    adds = any(two.strip() and not one.strip() for one, two in zip(old, new, strict=True))
    if adds or not all(part.runs for part in parts):
        return None
    if many := [part.runs for part in parts if not part.is_kept and len(part.runs) > 1]:
        return Refusal(reason="ambiguous", lines=numbers_of(lines, many[0]))
    way = _way(lines, parts)
    fits = [
        fitted(lines, run, part.old, part.new)
        for run, part in zip(way, parts, strict=False)
        if not part.is_kept
    ]
    places = tuple(fit.place for fit in fits if fit)
    if not way or len(places) < len(fits):
        return None
    changes = tuple(p for p in places if edit.text[p.start : p.stop] != p.new)
    return Match(places=changes, how=("lines left out as ...",))


def _way(lines: Lines, parts: list[_Part]) -> tuple[int, ...]:
    """Return a place for every part, one after the other; empty if there is none.

    What changes is found once. What stays may be found in several places: it is all the same which one is meant.
    """
    ways: list[tuple[int, ...]] = [()]
    for at, part in enumerate(parts):
        ways = [
            (*way, run)
            for way in ways
            for run in part.runs
            if not way or _follows(lines, (way[-1], parts[at - 1]), (run, part))
        ][:_MOST_WAYS]
    return ways[0] if ways else ()


def _follows(lines: Lines, before: tuple[int, _Part], after: tuple[int, _Part]) -> bool:
    """Return whether a part stands after another one, in the same block as far as one can see."""
    last, first = before[0] + len(before[1].old.lines) - 1, after[0]
    if first <= last:
        return False
    if before[1].is_certain and after[1].is_certain:
        return True
    solid = [lines.all[number] for number in lines.solid[last : first + 1]]
    above, below = _depth(solid[0]), _depth(solid[-1])
    depths = [_depth(line) for line in solid[1:-1] if not _INSIDE().match(line.strip())]
    is_opened = above < below and bool(depths) and depths[0] > above
    return all(depth >= min(above, below) + is_opened for depth in depths)


def _depth(line: str) -> int:
    return len(indent_of(line).expandtabs())


def _parts(text: str) -> list[str]:
    parts: list[list[str]] = [[]]
    for line in text.split("\n"):
        if is_elision(line):
            parts.append([])
        else:
            parts[-1].append(line)
    return ["\n".join(part) for part in parts]
