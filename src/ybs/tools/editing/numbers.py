"""Takes line numbers off a copied text, as `cat -n`, `grep -n` and the tools here show them.

They are taken off where the file has the rest exactly: of `3:  x` and `3: x` that tells which space is the file's own.
"""

import re
from itertools import pairwise

from msgspec import Struct

from ybs.core.lazy import lazy

LINE_NUMBERS = "line numbers"
_ROW = lazy(
    r"[ \t]*(?P<before>[^\s:\d][^\s:]{0,200}?[:-]|L|[Ll]ine )??(?P<number>\d{1,7})"
    r"(?P<mark> *[|\u2502\u2192]|[:-]?\t|[:-]|$)(?P<body>.*)"
)
_SAME = str.maketrans("-", ":")  # grep marks lines around a match with `-`
_GAPS = ("", " ", "\t")


class Bare(Struct, frozen=True):
    """An edit without line numbers. `new` is None where it can be read in two ways."""

    old: str
    new: str | None


class _Copy(Struct, frozen=True):
    """The lines of a text, all numbered in one style but for blank ones: the numbers, which rise, and the rest of each line."""

    style: tuple[str, str]
    numbers: list[int]
    bodies: list[str]

    def text(self, gap: str = "") -> str:
        """Return the lines without numbers and what stands between the two."""
        return "\n".join(body.removeprefix(gap) for body in self.bodies)


def without_numbers(text: str, old: str, new: str) -> Bare | None:
    """Return an edit without line numbers; None where its old text has none, or the file does not have the rest."""
    copy = _copy_of(old)
    heading, _, rest = old.partition("\n")
    if copy is None and not _ROW().fullmatch(heading):  # as search_files names the file
        copy, new = _copy_of(rest), new.removeprefix(f"{heading}\n")
    if copy is None:
        return None
    for gap in _GAPS:
        bare = copy.text(gap)
        whole = bare.removesuffix("\n")
        if bare.strip() and f"\n{whole}\n" in f"\n{text}\n":
            return Bare(bare, _new_of(copy, gap, new))
    return None


def unnumbered(text: str) -> str:
    """Return a text without line numbers, if it has some."""
    copy = _copy_of(text)
    return copy.text() if copy else text


def has_numbers(new: str, old: str, text: str) -> bool:
    """Return whether only the new text has line numbers: they begin with the place's, or go on from one line to the next."""
    copy = _copy_of(new)
    if copy is None or _copy_of(old):
        return False
    kept = {line.strip() for line in old.split("\n") if line.strip()}
    first = copy.numbers[0]
    own = "".join(text.split("\n", first)[first - 1 : first]).strip() if first else ""
    if own and (own in kept or old.strip() in own):
        return True
    return first > 1 and any(body.strip() in kept for body in copy.bodies)


def _copy_of(text: str) -> _Copy | None:
    numbers, bodies, styles = list[int](), list[str](), set[tuple[str, str]]()
    for line in text.split("\n"):
        hit = _ROW().fullmatch(line)
        if hit is None and line.strip():
            return None
        bodies.append(hit["body"] if hit else line)
        numbers += [int(hit["number"])] if hit else []
        styles |= {_style_of(hit)} if hit and hit["mark"] else set()
    is_rising = all(one < two for one, two in pairwise(numbers))
    return _Copy(styles.pop(), numbers, bodies) if is_rising and len(styles) == 1 else None


def _style_of(hit: re.Match[str]) -> tuple[str, str]:
    return (hit["before"] or "").translate(_SAME), hit["mark"].strip(" ").translate(_SAME)


def _new_of(copy: _Copy, gap: str, new: str) -> str | None:
    """Return the new text without numbers like those of the old one; None where only some lines may have them."""
    first, last = copy.numbers[0], copy.numbers[-1]
    told = _copy_of(new)
    is_told = told and told.style == copy.style and first <= told.numbers[0] <= last + 1
    if told and is_told and all(body.startswith(gap) for body in told.bodies if body.strip()):
        is_own = _copy_of(copy.text(gap)) and not _copy_of(told.text(gap))
        return None if is_own else told.text(gap)
    near = range(first, last + len(copy.bodies) + 1)
    rows = (_ROW().fullmatch(line) for line in new.split("\n"))
    return None if any(row and int(row["number"]) in near for row in rows) else new
