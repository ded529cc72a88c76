"""Finds the place that an edit means, and fits the new text to it. It never guesses between places.

The text is looked for as it is, then with ever more overlooked: white space, the looks of punctuation,
indentation, blank lines, copied line numbers, escapes, `...` for lines left out, one word of a sentence.
What is overlooked is never code. A place found in another shape counts only if no other place looks like it.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, pairwise

from msgspec import Struct

from ybs.core.cutting import whole_words
from ybs.core.lazy import lazy
from ybs.tools.editing.adapting import (
    Edit,
    EditMatch,
    Found,
    Refusal,
    Replacement,
    Side,
    fitted,
    laid_out,
    numbers_of,
)
from ybs.tools.editing.diff import shared
from ybs.tools.editing.lines import (
    Lines,
    indent_of,
    is_recognisable,
    plain_in_place,
    says_enough,
    says_something,
)
from ybs.tools.editing.numbers import LINE_NUMBERS, UnnumberedEdit, has_numbers, without_numbers
from ybs.tools.editing.one_word import one_word_off
from ybs.tools.editing.placeholders import is_elision, placeholder_in

_CLOSING = lazy(r"(?:</\w+>|end\w*|fi|done|esac|[\W_])*", re.IGNORECASE)
_MOST_INDENT = 1000


def find(text: str, old: str, new: str, *, replace_all: bool = False) -> EditMatch | Refusal:
    r"""Find where `old` is meant and what `new` becomes there; line ends of `text` are `\n`.

    `old` must not be empty.
    """
    edit = Edit(text, _plain_ends(old), _plain_ends(new), replace_all)
    if edit.old == edit.new:
        return Refusal(reason="unchanged")
    left_out = placeholder_in(edit.new, old=edit.old, text=text)
    if left_out:
        return Refusal(reason="placeholder", placeholder=left_out)
    if has_numbers(edit.new, edit.old, text):
        return Refusal(reason="numbers")
    found = _exact(edit) or _fuzzy(edit)
    if isinstance(found, EditMatch) and all(
        text[place.start : place.stop] == place.new for place in found.places
    ):
        return Refusal(reason="unchanged")
    return found


def _lines_of(text: str, places: list[int]) -> tuple[int, ...]:
    """Return the numbers of the lines that these places, in order, are in."""
    steps = (text.count("\n", one, two) for one, two in pairwise([0, *places]))
    return tuple(count + 1 for count in accumulate(steps))


def _before(text: str, place: int) -> str:
    """Return the text before the place in its line, only its end if it is long."""
    return text[max(place - _MOST_INDENT, 0) : place].rpartition("\n")[2]


def _plain_ends(text: str) -> str:
    return text.replace("\r\n", "\n").removeprefix("\ufeff")


def _places_of(text: str, wanted: str, *, apart: bool) -> list[int]:
    found: list[int] = []
    place = text.find(wanted)
    while place >= 0:
        found.append(place)
        place = text.find(wanted, place + (len(wanted) if apart else 1))
    return found


def _exact(edit: Edit, how: tuple[str, ...] = ()) -> Found:
    text, old = edit.text, edit.old
    starts = _places_of(text, old, apart=edit.is_for_all)
    if not starts:
        return None
    if len(starts) > 1 and not edit.is_for_all:
        numbers = _lines_of(text, starts)
        return Refusal(reason="ambiguous", lines=numbers, is_exact=not how)
    if done := [start for start in starts if _is_there(edit, start)]:
        return Refusal(reason="applied", lines=_lines_of(text, done))
    tidied = [_tidy(edit, start) for start in starts]
    places = tuple(place for place in tidied if place)
    if len(places) < len(tidied):
        return Refusal(reason="indentation", lines=_lines_of(text, starts))
    is_tidied = any(
        place != Replacement(start, start + len(old), edit.new)
        for place, start in zip(places, starts, strict=True)
    )
    slips = ("indentation",) if is_tidied else ()
    return EditMatch(places=places, how=how + slips, count=len(places))


def _is_there(edit: Edit, start: int) -> bool:
    """Return whether the place already has what the edit adds around the old text."""
    at = edit.new.find(edit.old)
    if at < 0 or start < at:
        return False
    added = edit.new[:at] + edit.new[at + len(edit.old) :]
    return _is_telling(added, edit.old) and edit.text.startswith(edit.new, start - at)


def _is_telling(added: str, old: str) -> bool:
    """Return whether nobody would add this twice: it does not end a block, and is not more of the same."""
    if says_enough(added):
        return True
    said = added.strip(" \t\n,;")
    return says_something(said) and said not in old and not _CLOSING().fullmatch(said)


def _tidy(edit: Edit, start: int) -> Replacement | None:
    """Fix the slips that break code in an exact match: an indentation doubled or left out, a joined line.

    None where it is not certain how the new lines are indented.
    """
    text, old, new = edit.text, edit.old, edit.new
    stop = start + len(old)
    indent = _before(text, start)
    is_doubled = indent and not old[0].isspace() and indent_of(new.partition("\n")[0]) == indent
    is_told_short = old.partition("\n")[0] in new.split("\n")[1:]
    if is_doubled and not is_told_short and old.strip() != new.strip():
        new = new.removeprefix(indent)
    else:
        laid = laid_out(new, old, indent)
        if laid is None:
            return None
        new = laid
    is_whole = not indent or indent.isspace()
    if is_whole and old.strip() and old[-1] == "\n" and not new.strip():
        start -= len(indent)  # the line goes, and its indentation with it
    is_joined = old[-1] == "\n" != new[-1:] and text[stop : stop + 1] not in {"", "\n"}
    if is_whole and is_joined and new.strip():
        new += "\n"
    return Replacement(start, stop, new)


def _fuzzy(edit: Edit) -> EditMatch | Refusal:
    lines = Lines(edit.text)
    found = _alike(lines, edit) or _in_plain_signs(edit) or _read_otherwise(lines, edit)
    found = found or elided(lines, edit) or _one_word(lines, edit)
    return found or _has_new(lines, edit) or _absent(lines, edit)


def _absent(lines: Lines, edit: Edit) -> Refusal:
    dots = next((line.strip() for line in edit.old.split("\n") if is_elision(line)), "")
    shown = nearest(lines, edit.old)
    for bare in () if shown else without_numbers(lines, edit.old, edit.new):
        shown = shown or nearest(lines, bare.old)
    return Refusal(reason="absent", nearest=shown, placeholder=dots)


def _alike(lines: Lines, edit: Edit, how: tuple[str, ...] = ()) -> Found:
    """Look for whole lines that are equal but for white space and the looks of punctuation."""
    if not is_recognisable(edit.old):
        return None
    old, new = Side(edit.old), Side(edit.new)
    runs = lines.runs(old.lines)
    if len(runs) > 1 and not (edit.is_for_all and _are_apart(runs, len(old.lines))):
        return Refusal(reason="ambiguous", lines=numbers_of(lines, runs))
    if not runs:
        return None
    if any(_surrounds(lines, run, old, new) for run in runs) or _is_elsewhere(
        lines, runs[0], old, new
    ):
        return Refusal(reason="applied", lines=numbers_of(lines, runs))
    fits = [fitted(lines, run, old, new) for run in runs]
    known = [fit for fit in fits if fit]
    if len(known) < len(fits) or len({fit.how for fit in known}) != 1:
        return _absent(lines, edit)
    return EditMatch(
        places=tuple(fit.place for fit in known), how=how + known[0].how, count=len(known)
    )


def _are_apart(runs: list[int], length: int) -> bool:
    return all(later - run >= length for run, later in pairwise(runs))


def _surrounds(lines: Lines, run: int, old: Side, new: Side) -> bool:
    """Return whether the lines which the edit adds around the old ones are already there."""
    one, two = lines.coded(old.lines), lines.coded(new.lines)
    if len(two) <= len(one) or not all(two):
        return False
    return any(
        two[at : at + len(one)] == one
        and _is_telling("".join(new.lines[:at] + new.lines[at + len(one) :]), "".join(old.lines))
        and all(sign == lines.sign(run - at + step) for step, sign in enumerate(two))
        for at in range(len(two) - len(one) + 1)
    )


def _is_elsewhere(lines: Lines, run: int, old: Side, new: Side) -> bool:
    """Return whether the new lines stand at another place, and the old ones only come near at this one."""
    if len(new.lines) < 2 or not says_enough("".join(new.lines)):  # one line may be anywhere
        return False
    if lines.coded(old.lines) == lines.coded(new.lines):
        return False
    return any(
        other >= run + len(old.lines) or other + len(new.lines) <= run
        for other in lines.runs(new.lines)
    )


def _has_new(lines: Lines, edit: Edit) -> Refusal | None:
    if not says_enough(edit.new) or edit.new in edit.old:
        return None
    new = Side(edit.new).lines
    numbers = numbers_of(lines, lines.runs(new)) or _lines_of(
        edit.text, _places_of(edit.text, edit.new, apart=True)
    )
    is_common = len(new) == 1 and len(numbers) > 1  # it says nothing about this edit
    return Refusal(reason="applied", lines=numbers) if numbers and not is_common else None


def _in_plain_signs(edit: Edit) -> Found:
    """Look for a part of a line, or lines cut off at an end, that differs in the looks of punctuation."""
    text, old = plain_in_place(edit.text), plain_in_place(edit.old)
    if (text is edit.text and old is edit.old) or not says_enough(old):
        return None
    starts = _places_of(text, old, apart=edit.is_for_all)
    if not starts:
        return None
    if len(starts) > 1:
        return Refusal(reason="ambiguous", lines=_lines_of(text, starts))
    start, stop = starts[0], starts[0] + len(old)
    own = edit.text[start:stop]
    place = Replacement(start, stop, _respelled(edit.old, own, edit.new))
    return EditMatch(places=(place,), how=("punctuation",))


def _respelled(old: str, own: str, new: str) -> str:
    """Keep the file's own ends where the new text has those of the old one."""
    head = shared(old, new)
    tail = min(shared(old[::-1], new[::-1]), len(old) - head, len(new) - head)
    slips = {
        ord(mine): theirs
        for mine, theirs in zip(old, own, strict=True)
        if mine != theirs and theirs.isascii()
    }
    middle = new[head : len(new) - tail].translate(slips)
    return own[:head] + middle + own[len(own) - tail :]


def _read_otherwise(lines: Lines, edit: Edit) -> Found:
    """Look for what the model may have meant before numbers and escapes came into its text."""
    found: Found = None
    for bare in without_numbers(lines, edit.old, edit.new):
        found = found or _without_numbers(lines, edit, bare)
    return found or _unescaped(lines, edit)


def _without_numbers(lines: Lines, edit: Edit, bare: UnnumberedEdit) -> Found:
    meant = Edit(edit.text, bare.old, bare.new, edit.is_for_all)
    side = Side(bare.old)
    runs = lines.runs(side.lines)
    if not is_recognisable(bare.old) and numbers_of(lines, runs) != (bare.first,):
        return None
    if bare.old == bare.new:
        return Refusal(reason="unchanged") if runs else None
    if runs and not bare.is_certain:
        shown = numbered_run(lines, runs[0], len(side.lines))
        return Refusal(reason="numbers", lines=numbers_of(lines, runs), nearest=shown)
    how = (LINE_NUMBERS,)
    found = _exact(meant, how) if _is_whole(edit.text, bare.old) else None
    found = found or _alike(lines, meant, how)
    return found or (_unescaped(lines, meant, LINE_NUMBERS) if bare.is_certain else None)


def _is_whole(text: str, old: str) -> bool:
    """Return whether it stands in whole lines only; elsewhere a number before it is the file's own."""
    ended, size = f"\n{text}\n", len(old)
    return all(
        ended[start] == "\n" and (old[-1:] == "\n" or ended[start + size + 1] == "\n")
        for start in _places_of(text, old, apart=True)
    )


def _unescaped(lines: Lines, edit: Edit, how: str = "") -> Found:
    for old, new in unescaped(edit.old, edit.new):
        if not is_recognisable(old):
            continue
        meant, kinds = Edit(edit.text, old, new, edit.is_for_all), (f"{how}, escapes".lstrip(", "),)
        if old == new:
            found: Found = Refusal(reason="unchanged") if old in edit.text else None
        else:
            found = _exact(meant, kinds) or _alike(lines, meant, kinds)
        if found:
            return found
    return None


def _one_word(lines: Lines, edit: Edit) -> Found:
    old, new = Side(edit.old), Side(edit.new)
    runs, index = one_word_off(lines, old.lines)
    if len(runs) > 1:
        return Refusal(reason="ambiguous", lines=numbers_of(lines, runs))
    if not runs or _is_elsewhere(lines, runs[0], old, new):
        return None
    fit = fitted(lines, runs[0], old, new, spared=index)
    return fit and EditMatch(places=(fit.place,), how=(*fit.how, "one word of a comment or string"))


_ESCAPE = lazy(r"\\(.)", re.DOTALL)
_SINGLE_QUOTE = lazy(r"(?<![\w\\])'|(?<!\\)'(?!\w)")  # not the one within a word
_MEANT = {"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\", "r": "", "`": "`", "/": "/"}
_SETS = ("nt\"\\r'", '"\\', '"', "nt", "'", "n", "`", "\\")


def unescaped(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Yield the two texts with fewer backslashes, the likeliest first."""
    if "\\" not in old:
        return
    seen = {old}
    for characters in _SETS:
        read = _read(old, characters)
        if read in seen:
            continue
        seen.add(read)
        meant = _read(new, characters)
        if not _breaks_a_string(meant, read):
            yield read, meant


def _read(text: str, characters: str) -> str:
    return _ESCAPE().sub(lambda hit: _MEANT[hit[1]] if hit[1] in characters else hit[0], text)


def _breaks_a_string(new: str, old: str) -> bool:
    r"""Return whether a line that only the new text has holds half a string: its `\n` was meant as such."""
    known = set(old.split("\n"))
    added = [line for line in new.split("\n") if line not in known]
    if any(line.replace('"""', "").replace('\\"', "").count('"') % 2 for line in added):
        return True
    halves = [line for line in added if len(_SINGLE_QUOTE().findall(line.replace("'''", ""))) % 2]
    return len(halves) > 1  # one alone may be an apostrophe


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
    return "\n".join(
        f"{number + 1}\t{whole_words(lines.all[number], _LONGEST)}" for number in numbers
    )


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
    return EditMatch(places=changes, how=("lines left out as ...",))


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
