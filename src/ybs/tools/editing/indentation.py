"""From a model's indentation to the file's: one rule that fits every line of a block, or none."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

from ybs.tools.editing.spelling import indent_of

Pair: TypeAlias = tuple[str, str]
Shift: TypeAlias = Callable[[str], str | None]
_TAB_WIDTHS = (4, 8, 2, 3)
_SCALES = ((2, 1), (1, 2))


_OPENING = (":", "{", "(", "[", "=>", " then", " do")


def laid_out(new: str, old: str, missing: str) -> str | None:
    """Lay out new lines for an old text that begins behind some of its line's indentation, the `missing`.

    The other lines of the new text may have theirs whole, or lack as much. None where both may be.
    """
    lines = [line for line in new.split("\n") if line.strip()]
    first, *rest = old.split("\n")
    if not missing or not missing.isspace() or not first.strip() or not lines:
        return new
    if not new.partition("\n")[0].strip() or begins_below(lines, [first, *rest]):
        return None
    if len(lines) < 2:
        return new
    own = indent_of(first)
    if any(line.strip() for line in rest):  # they tell that only the first line lacks something
        is_known = any(indent_of(line) == own for line in rest if line.strip())
        depths = [len(indent_of(line)) for line in lines[1:]]
        steps = pairwise([*depths, 0])
        deep = len(missing) + len(own)
        is_short = any(one == len(own) and after > deep for one, after in steps)
        return None if is_short and not is_known else new
    is_moved = _is_moved(lines, own, missing + own)
    if not is_moved:
        return None if is_moved is None else new
    return "\n".join(missing + line if line.strip() else line for line in new.split("\n"))[
        len(missing) :
    ]


def begins_below(new: Sequence[str], old: Sequence[str]) -> bool:
    """Return whether a new text begins with a later line of the old one, whose indentation is another."""
    bodies = [line.strip() for line in old]
    return new[0].strip() in bodies[1:] and new[0].strip() != bodies[0]


def _is_moved(lines: Sequence[str], own: str, whole: str) -> bool | None:
    """Return whether all new lines lack what the only old one does (`own` is there of the `whole`), or the first only.

    There are two at least. None: it is not certain.
    """
    others = [indent_of(line) for line in lines[1:]]
    is_one_kind = len({*whole, *"".join(others)}) == 1
    if indent_of(lines[0]) != own or not all(indent.startswith(own) for indent in others):
        return None
    if lines[0].rstrip().endswith(_OPENING) and len(others[0]) <= len(whole):
        return True if is_one_kind else None
    are_whole = all(indent.startswith(whole) for indent in others)
    if own:
        return None if are_whole or not is_one_kind else True
    return False if are_whole else None


class Indentation:
    """The rule of one block. `is_changed` tells whether it does anything.

    `first` is the indentation of the file's first line where the model dropped it there and nowhere else.
    """

    def __init__(self, pairs: Sequence[Pair], shift: Shift, *, first: str | None = None) -> None:
        self._known = dict(pairs)
        self._shift = shift
        self.first = first
        self.is_changed = first is not None or any(model != file for model, file in pairs)

    def knows(self, indent: str) -> bool:
        """Return whether a line of the old text has this indentation."""
        return indent in self._known

    def of(self, indent: str) -> str | None:
        """Return the file's form of a model's indentation, None where the rule has no answer."""
        known = self._known.get(indent)
        return self._shift(indent) if known is None else known


def indentation_of(
    model: Sequence[str], file: Sequence[str], others: Sequence[str]
) -> Indentation | None:
    """Find the rule from pairs of lines that are equal otherwise; `others` is the model's new text.

    None: the lines are not indented alike, so it is unknown what the edit means.
    """
    pairs = [(indent_of(one), indent_of(two)) for one, two in zip(model, file, strict=True)]
    own, whole = pairs[0]
    if len(pairs) == 1 and len(others) > 1 and own != whole and whole.endswith(own):
        is_moved = _is_moved(others, own, whole)
        if not is_moved:
            return None if is_moved is None else Indentation((), lambda indent: indent, first=whole)
    if shift := _shift_of(pairs, others):
        return Indentation(pairs, shift)
    rest = pairs[1:]
    if others and begins_below(others, model):
        return None
    if rest and len(pairs[0][0]) < len(pairs[0][1]) and (shift := _shift_of(rest, others)):
        return Indentation(rest, shift, first=pairs[0][1])
    return None


def _shift_of(pairs: Sequence[Pair], others: Sequence[str]) -> Shift | None:
    if all(model == file for model, file in pairs):
        return lambda indent: indent
    indents = [model for model, _ in pairs] + [indent_of(line) for line in others if line.strip()]
    if shift := _prefixed(pairs, indents):
        return shift
    is_tabbed = any("\t" in file for _, file in pairs)
    if not is_tabbed and not any("\t" in indent for indent in indents):
        return _scaled(pairs)
    for width, is_moved in _widths(pairs, indents):
        shift = _by_columns(pairs, width, is_tabbed=is_tabbed, is_moved=is_moved)
        if shift:
            return shift
    return None


def _widths(pairs: Sequence[Pair], indents: Sequence[str]) -> Iterator[tuple[int, bool]]:
    """Yield the tab widths to try, and whether the block may be shifted besides."""
    from math import gcd  # only tabs against spaces need it

    step = gcd(*(len(indent) for indent in indents if "\t" not in indent))
    if step in _TAB_WIDTHS:
        yield step, False
        yield step, True
    yield from ((width, False) for width in _TAB_WIDTHS)
    if len(dict(pairs)) > 1:  # two depths tell the width, one leaves it open
        yield from ((width, True) for width in _TAB_WIDTHS)


def _prefixed(pairs: Sequence[Pair], indents: Sequence[str]) -> Shift | None:
    model, file = pairs[0]
    more = file[: len(file) - len(model)] if file.endswith(model) else ""
    less = model[: len(model) - len(file)] if model.endswith(file) else ""
    known = {one for one, _ in pairs}
    is_clear = len({*more, *"".join(indents)}) == 1 or known.issuperset(indents)
    if more and is_clear and all(two == more + one for one, two in pairs):
        return lambda indent: more + indent
    is_everywhere = all(indent.startswith(less) for indent in indents)
    if less and is_everywhere and all(one == less + two for one, two in pairs):
        return lambda indent: indent.removeprefix(less)
    return None


def _by_columns(
    pairs: Sequence[Pair], width: int, *, is_tabbed: bool, is_moved: bool
) -> Shift | None:
    moves = {_columns(file, width) - _columns(model, width) for model, file in pairs}
    if len(moves) != 1:
        return None
    move = moves.pop()
    if bool(move) != is_moved:
        return None

    def shift(indent: str) -> str | None:
        columns = _columns(indent, width) + move
        if columns < 0:
            return None
        return "\t" * (columns // width) + " " * (columns % width) if is_tabbed else " " * columns

    return shift


def _columns(indent: str, width: int) -> int:
    return len(indent.expandtabs(width))


def _scaled(pairs: Sequence[Pair]) -> Shift | None:
    """Find a step of two against one of four spaces; only two depths can tell that from a shift."""
    if len({model for model, _ in pairs}) < len(_SCALES):
        return None
    for times, parts in _SCALES:
        if all(len(file) * parts == len(model) * times for model, file in pairs):
            return lambda indent: (
                None if len(indent) * times % parts else " " * (len(indent) * times // parts)
            )
    return None
