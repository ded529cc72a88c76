"""Finds the parts of an edit whose lines in between were left out as `...`; the lines left out stay."""

import re

from ybs.tools.editing.adapting import Place, Side, fitted
from ybs.tools.editing.found import Edit, Found, Match, Refusal, numbers_of
from ybs.tools.editing.lines import Lines
from ybs.tools.editing.placeholders import is_elision
from ybs.tools.editing.spelling import indent_of

_INSIDE = re.compile(r"#|[)\]}].*[{:(>]\s*\Z")  # what may stand further left within a block
_FEW_LINES = 2


def elided(lines: Lines, edit: Edit) -> Found:
    """Look for the parts between `...` lines; the lines left out stay."""
    old, new = _parts(edit.old), _parts(edit.new)
    if len(old) < 2 or len(new) != len(old):  # one part: nothing is left out
        return None
    places: list[Place] = []
    end = -1
    for one, two in zip(old, new, strict=True):
        if not one.strip():
            if two.strip():
                return None
            continue
        part = Edit(edit.text, one, two, is_for_all=False)
        found = _part_place(lines, part)
        if not isinstance(found, Match):
            return found
        place = found.places[0]
        if place.start < end or (places and not _is_inside(edit.text, places[-1], place)):
            return None
        end = place.stop
        places.append(place)
    changes = tuple(p for p in places if edit.text[p.start : p.stop] != p.new)
    if not changes:
        return Refusal(reason="unchanged") if places else None
    return Match(places=changes, how=("lines left out as ...",))


def _is_inside(text: str, before: Place, after: Place) -> bool:
    """Tell whether the lines left out between two places lie in the block of both, as far as one can see.

    A few lines that are found once may still belong to another block than the one that is meant.
    """
    above, below = (
        [line for line in text[place.start : place.stop].split("\n") if line.strip()]
        for place in (before, after)
    )
    if not above or not below or min(len(above), len(below)) > _FEW_LINES:
        return True
    last, first = _depth(above[-1]), _depth(below[0])
    rest = text[before.stop : after.start].split("\n")
    depths = [_depth(line) for line in rest if line.strip() and not _INSIDE.match(line.strip())]
    is_opened = last < first and bool(depths) and depths[0] > last
    return all(depth >= min(last, first) + is_opened for depth in depths)


def _depth(line: str) -> int:
    return len(indent_of(line).expandtabs())


def _part_place(lines: Lines, part: Edit) -> Found:
    side = Side(part.old)
    runs = lines.runs(side.lines)
    if len(runs) > 1:
        return Refusal(reason="ambiguous", lines=numbers_of(lines, runs))
    if not runs:
        return None
    fit = fitted(lines, runs[0], side, Side(part.new))
    return fit and Match(places=(fit.place,), how=fit.how)


def _parts(text: str) -> list[str]:
    parts: list[list[str]] = [[]]
    for line in text.split("\n"):
        if is_elision(line):
            parts.append([])
        else:
            parts[-1].append(line)
    return ["\n".join(part) for part in parts]
