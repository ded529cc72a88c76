"""How models tell single lines wrong, in ways that leave no doubt what is meant.

A slip changes what a draft says and returns True, or False where the draft gives no occasion or the meaning would
become unclear. New lines are told as they are, unless the slip is one of the whole block.
"""

import re
from collections.abc import Callable, Mapping
from random import Random

from edits.draft import PUNCTUATION, Draft, Line, loose, occurs
from edits.language import COMMENT, masks

Slip = Callable[[Draft, Random], bool]

_WORDS = ("really", "simple", "current", "given", "value", "other", "usual", "proper", "inner")
_NOT_PROSE = re.compile(r"TODO|-\*-|^#!|\bimport\b|\bcopyright\b", re.IGNORECASE)
_PROSE_WORD = re.compile(r"(?<= )[a-z]{4,}(?=,? |$)")


def _old(draft: Draft) -> list[Line]:
    return [line for line in draft.lines if line.kind in ("keep", "cut") and line.said is not None]


def _mentioned(draft: Draft) -> list[Line]:
    return [line for line in draft.lines if line.said]


def indent_of(text: str) -> str:
    """Return the white space at the beginning of a line."""
    return text[: len(text) - len(text.lstrip(" \t"))]


def _common(indents: list[str]) -> str:
    """Return what all of them begin with."""
    shortest = min(indents, key=len)
    while not all(indent.startswith(shortest) for indent in indents):
        shortest = shortest[:-1]
    return shortest


def unit_of(lines: list[str]) -> str:
    """Return one level of indentation of a file."""
    indents = [indent_of(line) for line in lines if line.strip()]
    if sum(indent.startswith("\t") for indent in indents) * 2 > sum(map(bool, indents)):
        return "\t"
    widths = [len(indent) for indent in indents if indent.strip("\t")]
    return " " * (4 if sum(width % 4 == 0 for width in widths) >= 0.9 * len(widths) else 2)


def trailing_space(draft: Draft, random: Random) -> bool:
    """Drop the trailing space of kept and cut lines or, where there is none, add some."""
    if any(text != text.rstrip() for text in draft.real("add")):
        return False  # new lines are told as they are, which would not fit
    found = [line for line in _old(draft) if line.said != (line.said or "").rstrip()]
    for line in found:
        line.said = (line.said or "").rstrip()
    if not found:
        candidates = [line for line in _old(draft) if (line.said or "").strip()]
        for line in random.sample(candidates, min(len(candidates), random.randint(1, 3))):
            line.said = f"{line.said}{' ' * random.randint(1, 4)}"
    return True


def punctuation(draft: Draft, random: Random) -> bool:
    """Write ASCII for the file's unicode punctuation, or the other way where it has none."""
    known = "".join(PUNCTUATION)
    new = "".join(draft.said("add"))
    fancy = [line for line in _old(draft) if any(c in known for c in line.said or "")]
    if any(c in known for c in new):
        return False
    if fancy:
        cut = {
            PUNCTUATION[c] for line in fancy if line.kind == "cut" for c in line.real if c in known
        }
        if any(text in new for text in cut):
            return False  # the commit may have changed the very characters
        for line in fancy:
            line.said = _swapped(line.said or "", PUNCTUATION)
        return True
    swaps = {'"': "\u201c", "'": "\u2019", "...": "\u2026", "-": "\u2013"}
    swaps |= {" ": "\u00a0"} if random.random() < 0.1 else {}
    candidates = [line for line in _old(draft) if any(c in line.real for c in swaps)]
    for line in random.sample(candidates, min(len(candidates), random.randint(1, 2))):
        line.said = _OPENED.sub("\\1\u201d", _swapped(line.said or "", swaps))
    return bool(candidates)


_OPENED = re.compile("(\u201c[^\u201c]*)\u201c")  # every second quote is one that closes


def _swapped(line: str, swaps: Mapping[str, str]) -> str:
    indent = indent_of(line)
    rest = line[len(indent) :]
    for found, said in swaps.items():
        rest = rest.replace(found, said)
    return indent + rest


def indentation(draft: Draft, random: Random) -> bool:
    """Shift the whole block: to the margin, or by one level."""
    lines = _mentioned(draft)
    if not any(line.kind != "add" for line in lines) or any(
        not (line.said or "").strip() for line in lines
    ):
        return False
    common = _common([indent_of(line.said or "") for line in lines])
    unit = unit_of(draft.edit.before)
    ways = ["more"] + ["dedent"] * (2 if common else 0) + ["less"] * common.startswith(unit)
    way = random.choice(ways)
    for line in lines:
        said = line.said or ""
        if way == "more":
            line.said = unit + said
        else:
            line.said = said[len(common if way == "dedent" else unit) :]
    return True


def tabs(draft: Draft, random: Random) -> bool:
    """Write spaces for tabs, or tabs for spaces, at the beginning of each line."""
    lines = _mentioned(draft)
    indents = [indent_of(line.said or "") for line in lines]
    unit = unit_of(draft.edit.before)
    if any(indent.strip(unit[0]) or len(indent) % len(unit) for indent in indents):
        return False
    if any(line.said == indent for line, indent in zip(lines, indents, strict=True)):
        return False  # a line of white space only
    if not any(indent_of(line.said or "") for line in _old(draft)):
        return False  # nothing would tell how wide a tab is
    other = " " * random.choice((2, 4, 4, 8)) if unit == "\t" else "\t"
    for line, indent in zip(lines, indents, strict=True):
        line.said = other * (len(indent) // len(unit)) + (line.said or "")[len(indent) :]
    return True


def _is_kept_text(draft: Draft, index: int) -> bool:
    if not 0 <= index < len(draft.lines):
        return False
    line = draft.lines[index]
    return line.kind == "keep" and bool(line.real.strip())


def _is_text(lines: list[str], index: int) -> bool:
    return 0 <= index < len(lines) and bool(lines[index].strip())


def blank_lines(draft: Draft, random: Random) -> bool:
    """Forget blank lines between kept ones, or imagine some there or at the edges."""
    lines = draft.lines
    forgotten = [
        i
        for i, line in enumerate(lines)
        if line.kind == "keep"
        and not line.real.strip()
        and _is_kept_text(draft, i - 1)
        and _is_kept_text(draft, i + 1)
    ]
    if forgotten and random.random() < 0.7:
        for i in random.sample(forgotten, random.randint(1, len(forgotten))):
            lines[i].said = None
        return True
    ends = [Line("ghost", "", "") for _ in range(random.randint(1, 2))]
    places = [
        i for i in range(1, len(lines)) if _is_kept_text(draft, i - 1) and _is_kept_text(draft, i)
    ]
    file = draft.edit.before
    if _is_kept_text(draft, 0) and _is_text(file, draft.start - 1):
        places.append(0)
    if _is_kept_text(draft, len(lines) - 1) and _is_text(file, draft.stop):
        places.append(len(lines))
    if not places:
        return False
    place = random.choice(places)
    lines[place:place] = ends
    return True


def elision(draft: Draft, random: Random) -> bool:
    """Write `...` for kept lines whose ends are unique, in both texts."""
    lines, file = draft.lines, draft.edit.before
    if any(line.strip() in ("...", "\u2026") for line in (*file, *draft.said("add"))):
        return False
    runs: list[tuple[int, int]] = []
    for first in range(1, len(lines) - 2):
        last = first
        while last < len(lines) - 2 and lines[last].kind == "keep":
            last += 1
            whole = all(lines[i].kind == "keep" for i in (first - 1, *range(first, last), last))
            if last - first >= 2 and whole and lines[first].real.strip():
                runs.append((first, last))
    random.shuffle(runs)
    for first, last in runs[:10]:
        above = [line.real for line in lines[:first] if line.kind in ("keep", "cut")]
        below = [line.real for line in lines[last:] if line.kind in ("keep", "cut")]
        if all(loose(part) and occurs(part, file) == 1 for part in (above, below)):
            lines[first].said = random.choice(("", indent_of(lines[first].real))) + "..."
            for line in lines[first + 1 : last]:
                line.said = None
            return True
    return False


def prose_spots(lines: list[str], suffix: str) -> list[tuple[int, int, int]]:
    """Return line, beginning and end of the words that stand in a comment or in a string of several words."""
    spots: list[tuple[int, int, int]] = []
    for number, (line, mask) in enumerate(zip(lines, masks(lines, suffix), strict=True)):
        if _NOT_PROSE.search(line):
            continue
        for run in re.finditer(rf"{COMMENT}+|s+", mask):
            words = list(_PROSE_WORD.finditer(line, run.start(), run.end()))
            if len(words) >= 3 and run[0].count("s") != 1:
                spots += [(number, word.start(), word.end()) for word in words]
    return spots


def other_word(word: str, random: Random) -> str:
    """Return a word that one could remember instead."""
    ways = [word[:-1] if word.endswith("s") else word + "s", *random.sample(_WORDS, 2)]
    return random.choice([way for way in ways if way != word])
