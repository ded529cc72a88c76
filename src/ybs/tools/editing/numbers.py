"""Takes line numbers off a copied text, as editors, `grep -n`, `cat -n` and the tools here show them.

The file says where a number ends and the line begins: of `3:  x` and `3: x` only one is the file's indentation.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from ybs.core.lazy import lazy
from ybs.tools.editing.lines import Lines, indent_of

LINE_NUMBERS = "line numbers"
_ROW = lazy(
    r"[ \t]*(?:(?P<path>[^\s:\d][^\s:]{0,200}?)(?P<sep>[:-]))??(?P<label>L|[Ll]ine )?(?P<number>\d{1,7})"
    r"(?P<mark>(?(sep)(?P=sep)|(?: *[|\u2502\u2192]|[\t:-]|$)))(?P<body>.*)"
)
_HEADING = lazy(r"\S*[./]\S*|(?:\S+[: ])?(?:L|[Ll]ines? )?\d+ ?[-\u2013] ?L?\d+:?")
_SAME = str.maketrans("-", ":")  # grep marks lines around a match with `-`


class Copy(Struct, frozen=True):
    """The lines of a text that was copied with numbers: the number of each, None for one without, and the rest of it."""

    style: tuple[str, str, str]
    numbers: tuple[int | None, ...]
    bodies: tuple[str, ...]

    @property
    def known(self) -> list[int]:
        """The numbers that are there."""
        return [number for number in self.numbers if number is not None]

    @property
    def is_whole(self) -> bool:
        """Whether every line has a number, but for blank ones."""
        return all(number is not None or not body.strip() for number, body in self.rows())

    @property
    def gaps(self) -> tuple[str, ...]:
        """What may stand between a number and its line, the likelier first."""
        rows = [body for number, body in self.rows() if number is not None and body.strip()]
        wide = {body[:1] for body in rows}
        return (*wide, "") if wide in ({" "}, {"\t"}) and self.style[2] != "\t" else ("",)

    def lines(self, gap: str) -> list[str]:
        """Return the lines without numbers and gap."""
        return [body if number is None else body.removeprefix(gap) for number, body in self.rows()]

    def rows(self) -> Iterator[tuple[int | None, str]]:
        """Yield the number and the rest of each line."""
        return zip(self.numbers, self.bodies, strict=True)


class UnnumberedEdit(Struct, frozen=True):
    """An edit without the numbers, the first of which is `first`. `is_certain`: the new text can be read in one way only."""

    old: str
    new: str
    first: int
    is_certain: bool = True


def without_numbers(lines: Lines, old: str, new: str) -> Iterator[UnnumberedEdit]:
    """Yield the edit without line numbers, if its old text has them."""
    whole = old.split("\n")
    first = next((at for at, line in enumerate(whole) if line.strip()), 0)
    if (copy := _copy_of(whole)) and not _is_own(copy, lines.text):
        yield _bare(lines, copy, new)
        if copy.numbers[first] is not None:
            return  # `area.py:2:` is an empty line of what was copied, and not a heading
    if _HEADING().fullmatch(whole[first].strip()) and (copy := _copy_of(whole[first + 1 :])):
        yield _bare(lines, copy, new.removeprefix(f"{whole[first]}\n"))


def has_numbers(new: str, old: str, text: str) -> bool:
    """Return whether only the new text has line numbers: they begin with the place's, or go on from one line to the next."""
    rows = [line for line in new.split("\n") if line.strip()]
    if not rows or not _may_begin(rows[0]) or not _ROW().match(rows[0]) or rows[0] in old:
        return False
    copy = _copy_of(rows)
    kept = {line.strip() for line in old.split("\n") if line.strip()}
    if copy is None or not copy.is_whole or _copy_of(old.split("\n")):
        return False
    first = next((n for n, body in copy.rows() if n and body.strip()), 0)
    own = "".join(text.split("\n", first)[first - 1 : first]).strip() if first else ""
    if own and (own in kept or old.strip() in own):
        return True
    return copy.known[0] > 1 and any(body.strip() in kept for body in copy.bodies)


def _may_begin(row: str) -> bool:
    """Take a quick look before the expression, which few edits need: a number stands in the first word, or behind `line`."""
    word = row.split(maxsplit=1)[0]
    return word in ("Line", "line") or any(map(str.isdigit, word))


def _copy_of(lines: Sequence[str], *, rises: bool = True) -> Copy | None:
    """Return the lines apart from their numbers; None unless all have some, or all but the first."""
    hits = [_ROW().fullmatch(line) for line in lines]
    solid = [at for at, line in enumerate(lines) if line.strip()]
    if len(solid) > 2 and hits[solid[0]] is None:  # a first line and two more
        solid = solid[1:]
    known = [hit for at in solid if (hit := hits[at])]
    styles = {_style_of(hit) for hit in known if hit["mark"]}
    if len(known) < len(solid) or len(styles) != 1:
        return None
    numbers = [int(hit["number"]) for hit in known]
    if rises and any(later <= earlier for earlier, later in pairwise(numbers)):
        return None
    return Copy(
        styles.pop(),
        tuple(int(hit["number"]) if hit and at in solid else None for at, hit in enumerate(hits)),
        tuple(hit["body"] if hit and at in solid else lines[at] for at, hit in enumerate(hits)),
    )


def _is_own(copy: Copy, text: str) -> bool:
    """Return whether the file has the first line behind another number: the numbers are the file's then."""
    body = next(
        body.strip() for body, number in zip(copy.bodies, copy.numbers, strict=True) if number
    )
    mark = re.escape(copy.style[2])
    own = rf"^[ \t]*\d+ *{mark}[ \t]*{re.escape(body)}[ \t]*$"
    return bool(body) and re.search(own, text, re.MULTILINE) is not None


def _style_of(hit: re.Match[str]) -> tuple[str, str, str]:
    return hit["path"] or "", hit["label"] or "", hit["mark"].strip(" ").translate(_SAME)


def _bare(lines: Lines, copy: Copy, new: str) -> UnnumberedEdit:
    said = new.split("\n")
    told = _copy_of(said, rises=False)
    is_own = (
        _copy_of(copy.bodies) is not None
    )  # numbers of the file's own behind those of its lines
    gap = _gap_of(lines, copy)
    if told and told.style == copy.style and told.is_whole and not (is_own and _is_far(told, copy)):
        gap = copy.gaps[0] if gap is None else gap
        has_gap = gap in told.gaps or not any(body.strip() for body in told.bodies)
        is_certain = not _is_far(told, copy) and has_gap
        is_certain = is_certain and (not is_own or _copy_of(told.bodies) is not None)
        is_shifted = len(told.gaps) > len(copy.gaps) and not set(told.bodies) & set(copy.bodies)
        return _made(copy, gap, told.lines(gap), is_certain=is_certain and not is_shifted)
    if gap is None:
        gap = _gap_by(copy, said)
    if gap is None:
        return _made(copy, copy.gaps[0], said, is_certain=False)
    return _in_part(copy, gap, said, is_own=is_own)


def _made(copy: Copy, gap: str, new: Sequence[str], *, is_certain: bool = True) -> UnnumberedEdit:
    return UnnumberedEdit("\n".join(copy.lines(gap)), "\n".join(new), copy.known[0], is_certain)


def _is_far(told: Copy, copy: Copy) -> bool:
    """Return whether the numbers of the new text cannot be those of the old one's lines."""
    numbers = told.known
    is_rising = all(later >= earlier for earlier, later in pairwise(numbers))
    return not is_rising or not copy.known[0] <= numbers[0] <= copy.known[-1] + 1


def _gap_of(lines: Lines, copy: Copy) -> str | None:
    """Return the gap with which the text has the file's indentation; None where none has."""
    if len(copy.gaps) == 1:
        return copy.gaps[0]
    runs = lines.runs([line for line in copy.bodies if line.strip()])
    for gap in copy.gaps if runs else ():
        solid = [
            (number, line)
            for number, line in zip(copy.numbers, copy.lines(gap), strict=True)
            if line.strip()
        ]
        file = [lines.all[at] for at in lines.solid[runs[0] : runs[0] + len(solid)]]
        if all(
            number is None or indent_of(line) == indent_of(own)
            for (number, line), own in zip(solid, file, strict=True)
        ):
            return gap
    return None


def _gap_by(copy: Copy, new: Sequence[str]) -> str | None:
    """Return the one gap with which the old text has lines of the new one."""
    kept = {line.rstrip() for line in new if line.strip()}
    fits = [
        gap for gap in copy.gaps if kept.intersection(line.rstrip() for line in copy.lines(gap))
    ]
    return fits[0] if len(fits) == 1 else None


def _in_part(copy: Copy, gap: str, new: Sequence[str], *, is_own: bool) -> UnnumberedEdit:
    """Read a new text that is not numbered as the old one is: numbers of kept lines go, others cast doubt."""
    bodies = copy.lines(gap)
    kept = {
        (number, line.rstrip()) for number, line in zip(copy.numbers, bodies, strict=True) if number
    }
    known = {indent_of(line) for line in bodies}
    made: list[str] = []
    is_mixed = is_odd = False
    is_certain = is_placed = is_after_kept = True
    for line in new:
        hit = _ROW().fullmatch(line)
        body = hit["body"].removeprefix(gap) if hit else ""
        is_same = hit is not None and _style_of(hit) == copy.style
        if hit and is_same and (int(hit["number"]), body.rstrip()) in kept:
            is_mixed = is_after_kept = True
            made.append(body)
            continue
        is_odd = is_odd or is_same
        if hit and hit["mark"] and not is_own and _is_near(int(hit["number"]), copy):
            is_certain = False
        is_known = not line.strip() or not is_after_kept or indent_of(line) in known
        is_placed = is_placed and is_known
        is_after_kept = is_after_kept and not line.strip()
        made.append(line)
    is_certain = is_certain and not (is_mixed and (is_odd or not is_placed))
    return _made(copy, gap, made, is_certain=is_certain)


def _is_near(number: int, copy: Copy) -> bool:
    return copy.known[0] <= number <= copy.known[-1] + len(copy.numbers)
