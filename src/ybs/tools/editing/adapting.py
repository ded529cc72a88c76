"""Fits an edit to the lines that it was matched with: kept lines stay the file's own, new ones take its indentation."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

from msgspec import Struct

from ybs.tools.editing.diff import shared
from ybs.tools.editing.lines import Lines, indent_of, plain, plain_in_place, spaced

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


_MOST_PAIRS = 4_000_000  # beyond this the middle of an edit counts as one change
_KINDS = ("trailing spaces", "punctuation", "indentation", "spacing", "blank lines")


class Replacement(Struct, frozen=True):
    """A piece of the file, from `start` to `stop`, and what comes there."""

    start: int
    stop: int
    new: str


class Fit(Struct, frozen=True):
    """An edit fitted to one place; `how` names what was overlooked."""

    place: Replacement
    how: tuple[str, ...]


class Side:
    """The solid lines of one text, and how many blank ones stand before each and after the last."""

    def __init__(self, text: str) -> None:
        self.lines: list[str] = []
        self.blanks: list[list[str]] = [[]]
        for line in text.split("\n"):
            if line.strip():
                self.lines.append(line)
                self.blanks.append([])
            else:
                self.blanks[-1].append(line)
        self.gaps = [len(blanks) for blanks in self.blanks]

    @property
    def tail(self) -> int:
        """Blank lines after the last line end; a missing last line end counts like one that is there."""
        return max(self.gaps[-1] - 1, 0)


def fitted(lines: Lines, run: int, old: Side, new: Side, *, spared: int = -1) -> Fit | None:
    """Fit an edit to the run of solid lines that begins at `run`; None where its sense is in doubt.

    `spared` is the line that differs in a word, which is then not compared.
    """
    fitting = _Fitting(lines, run, old, new)
    if not fitting.is_alike(spared) or fitting.rule is None:
        return None
    pairs = _pairs(old.lines, new.lines)
    if spared >= 0 and _is_told_wrong(pairs, spared, fitting.file[spared], old, new):
        return None
    place = fitting.place(pairs, fitting.rule)
    return None if place is None else Fit(place, fitting.how())


def _is_told_wrong(pairs: list[int], index: int, own: str, old: Side, new: Side) -> bool:
    """Return whether the new text would bring the model's word in place of the file's."""
    if index not in pairs:
        return False
    line = new.lines[pairs.index(index)]
    wrong = set(spaced(old.lines[index]).split()) - set(spaced(own).split())
    return line.rstrip() != old.lines[index].rstrip() and not wrong.isdisjoint(line.split())


def _pairs(old: list[str], new: list[str]) -> list[int]:
    """Return for each new line the old one that it keeps or changes, -1 for a line that is added."""
    one, two = [line.rstrip() for line in old], [line.rstrip() for line in new]
    pairs = [-1] * len(two)
    head = 0
    while head < min(len(one), len(two)) and one[head] == two[head]:
        pairs[head] = head
        head += 1
    tail = 0
    while tail < min(len(one), len(two)) - head and one[-1 - tail] == two[-1 - tail]:
        tail += 1
        pairs[-tail] = len(one) - tail
    middle = one[head : len(one) - tail], two[head : len(two) - tail]
    for low, high, first, last in _blocks(*middle):
        if high - low == last - first:
            for step in range(last - first):
                pairs[head + first + step] = head + low + step
    return pairs


def _blocks(one: list[str], two: list[str]) -> list[tuple[int, int, int, int]]:
    if not one or not two:
        return []
    if len(one) * len(two) > _MOST_PAIRS:
        return [(0, len(one), 0, len(two))]
    from difflib import SequenceMatcher  # only an edit that was not exact needs it

    return [block[1:] for block in SequenceMatcher(None, one, two, autojunk=False).get_opcodes()]


class _Fitting:
    """One edit at one place."""

    def __init__(self, lines: Lines, run: int, old: Side, new: Side) -> None:
        self.lines, self.old, self.new = lines, old, new
        self.numbers = lines.solid[run : run + len(old.lines)]
        self.file = [lines.all[number] for number in self.numbers]
        self.rule = indentation_of(old.lines, self.file, new.lines)
        first, last = self.numbers[0], self.numbers[-1]
        self.gaps = [
            min(old.gaps[0], lines.blanks_before(first)),
            *(b - a - 1 for a, b in pairwise(self.numbers)),
            min(old.tail, lines.blanks_after(last)),
        ]
        self.first, self.stop = first - self.gaps[0], last + 1 + self.gaps[-1]
        self.slips = self._slips()

    def is_alike(self, spared: int) -> bool:
        """Return whether every line has the same words as the file's."""
        return all(
            index == spared or spaced(one) == spaced(two)
            for index, (one, two) in enumerate(zip(self.old.lines, self.file, strict=True))
        )

    def how(self) -> tuple[str, ...]:
        """Name what is different between the text asked for and the file's."""
        pairs = list(zip(self.old.lines, self.file, strict=True))
        found = (
            any(_tail_of(one) != _tail_of(two) for one, two in pairs) or self._blanks_look_other(),
            any(
                one != two and plain(one).split() == plain(two).split() and _fancy(one, two)
                for one, two in pairs
            ),
            self.rule is not None and self.rule.is_changed,
            any(
                " ".join(plain(one).split(" ")).strip() != plain(two).strip() for one, two in pairs
            ),
            [*self.old.gaps[:-1], self.old.tail] != self.gaps,
        )
        return tuple(kind for kind, is_found in zip(_KINDS, found, strict=True) if is_found)

    def _blanks_look_other(self) -> bool:
        inner = range(1, len(self.old.lines))
        return any(
            self.old.blanks[at] != self._blanks(at, self.gaps[at], ())
            for at in inner
            if self.old.gaps[at] == self.gaps[at]
        )

    def place(self, pairs: list[int], rule: Indentation) -> Replacement | None:
        """Build the new lines; None where blank lines or indentation leave room for doubt."""
        start, end = self.lines.starts[self.first], self.lines.starts[self.stop] - 1
        if not self.new.lines:
            return self._deleted(start, end)
        made: list[str] = []
        for index, line in enumerate(self.new.lines):
            gap = self._gap(pairs, index) if index else self._gap_at_end(0)
            body = self._line(pairs[index], line, rule, is_first=index == 0)
            if gap is None or body is None:
                return None
            made += (*gap, body)
        tail = self._gap_at_end(-1)
        eats = (
            self.old.gaps[-1] == 1 and not self.new.gaps[-1]
        )  # a line end, where a blank line follows
        is_eaten = eats and self.lines.text[end : end + 2] == "\n\n"
        return Replacement(start, end + is_eaten, "\n".join((*made, *tail)))

    def _deleted(self, start: int, end: int) -> Replacement:
        blanks = "\n" * (self.new.gaps[0] - 1)
        if end < len(self.lines.text):
            return Replacement(start, end + 1, blanks)
        return Replacement(max(start - 1, 0), end, blanks)

    def _gap_at_end(self, side: int) -> Sequence[str]:
        """Return the blank lines before the first line (0) or after the last (-1)."""
        wanted, had = self.new.gaps[0], self.old.gaps[0]
        if side:
            wanted, had = self.new.tail, self.old.tail
        return self._blanks(side, max(self.gaps[side] + wanted - had, 0), self.new.blanks[side])

    def _gap(self, pairs: list[int], index: int) -> Sequence[str] | None:
        """Return the blank lines between a new line and the one before; None if they are in doubt."""
        before, here = pairs[index - 1], pairs[index]
        if here != before + 1 or before < 0:
            return self._gap_of_change(pairs, index)
        wanted, said = self.new.gaps[index], self.new.blanks[index]
        had, there = self.old.gaps[here], self.gaps[here]
        if wanted == had:
            return self._blanks(here, there, said)
        return self._blanks(here, wanted, said) if there in {had, wanted} else None

    def _gap_of_change(self, pairs: list[int], index: int) -> Sequence[str] | None:
        """Judge a gap beside added or removed lines: the model's own, if what it overlooked is not in it."""
        low = next((pairs[at] for at in range(index - 1, -1, -1) if pairs[at] >= 0), -1)
        high = next(
            (pairs[at] for at in range(index, len(pairs)) if pairs[at] >= 0), len(self.old.lines)
        )
        inner = range(low + 1, min(high, len(self.old.lines) - 1) + 1)
        had = sum(self.old.gaps[at] for at in inner if at)
        there = sum(self.gaps[at] for at in inner if at)
        if had == there:
            return self._own_looks(self.new.blanks[index], inner)
        if had and there and high == low + 1 and self.new.gaps[index] == had:
            return self._blanks(high, there, ())  # a gap like the one that the new lines went into
        start = max((at for at in range(index) if pairs[at] >= 0), default=-1)
        stop = next((at for at in range(index, len(pairs)) if pairs[at] >= 0), len(pairs) - 1)
        total = sum(self.new.gaps[at] for at in range(start + 1, stop + 1) if at)
        is_clear = total >= there if had < there else total <= there
        return self.new.blanks[index] if is_clear else None

    def _own_looks(self, blanks: Sequence[str], inner: Sequence[int]) -> Sequence[str]:
        """Give blank lines the file's white space, where its blank lines at the place all look alike."""
        said = {line for at in inner for line in self.old.blanks[at]}
        own = {line for at in inner for line in self._blanks(at, self.gaps[at], ())}
        if len(own) != 1 or len(said) != 1:
            return blanks
        (look,) = own
        return [look if line in said else line for line in blanks]

    def _blanks(self, gap: int, count: int, said: Sequence[str]) -> Sequence[str]:
        """Return blank lines, the file's own as far as it has them."""
        at = self.numbers[-1] + 1 if gap == -1 else self.numbers[gap] - self.gaps[gap]
        own = self.lines.all[at : at + min(count, self.gaps[gap])]
        more = [*said[len(own) :], *[""] * count]
        return [*own, *more[: count - len(own)]]

    def _line(self, pair: int, line: str, rule: Indentation, *, is_first: bool) -> str | None:
        own = self.file[pair] if pair >= 0 else ""
        model = self.old.lines[pair] if pair >= 0 else ""
        if pair >= 0 and line.rstrip() == model.rstrip():
            return line if model == own else own
        body = line[len(indent_of(line)) :]
        indent = indent_of(line)
        is_cut_off = rule.first is not None and indent == indent_of(self.old.lines[0])
        if is_cut_off and not is_first and not rule.knows(indent):
            return None  # it may lack as much as the first line does
        meant = rule.first if is_cut_off and is_first else rule.of(indent)
        if meant is None or self._is_odd(indent, meant, rule):
            return None
        if _tail_of(model) and _tail_of(line) == _tail_of(model) and not _tail_of(own):
            body = body.rstrip()
        return meant + self._spelled(body, model.lstrip(), own.lstrip())

    def _is_odd(self, indent: str, meant: str, rule: Indentation) -> bool:
        """Return whether a line that goes out of the block would come to stand where no line of the file does."""
        if not rule.is_changed or any(len(indent_of(one)) <= len(indent) for one in self.old.lines):
            return False
        return all(indent_of(line) != meant for line in self.lines.all if line.strip())

    def _slips(self) -> dict[int, str]:
        """Find signs that the model wrote where the file has plain ones, the same in every place."""
        slips: dict[int, str] = {}
        kept: set[str] = set()
        for one, two in zip(self.old.lines, self.file, strict=True):
            one_body, two_body = one.strip(), two.strip()
            if one_body.isascii() or len(one_body) != len(two_body):
                continue
            for mine, theirs in zip(one_body, two_body, strict=True):
                if mine == theirs:
                    kept.add(mine)
                elif theirs.isascii() and not mine.isascii():
                    slips[ord(mine)] = theirs
        return {sign: plain_sign for sign, plain_sign in slips.items() if chr(sign) not in kept}

    def _spelled(self, body: str, model: str, own: str) -> str:
        """Keep the file's signs in those ends of a changed line that the edit leaves as they were."""
        if model and len(model) == len(own) and model != own:
            head = shared(body, model)
            tail = min(shared(body[::-1], model[::-1]), len(body) - head, len(model) - head)
            if plain_in_place(model) == plain_in_place(own):
                middle = body[head : len(body) - tail].translate(self.slips)
                return own[:head] + middle + own[len(own) - tail :]
        return body.translate(self.slips) if self.slips else body


def _tail_of(line: str) -> str:
    return line[len(line.rstrip()) :]


def _fancy(one: str, two: str) -> bool:
    return "".join(one.split()) != "".join(two.split())


Reason: TypeAlias = Literal[
    "absent", "ambiguous", "applied", "unchanged", "placeholder", "indentation", "numbers"
]


class EditMatch(Struct, frozen=True, kw_only=True):
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


Found: TypeAlias = EditMatch | Refusal | None


def numbers_of(lines: Lines, runs: list[int]) -> tuple[int, ...]:
    """Return the numbers, from 1, of the lines that these runs begin with."""
    return tuple(lines.solid[run] + 1 for run in runs)
