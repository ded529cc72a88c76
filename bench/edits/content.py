"""Numbers that are the file's own: they stay, and a text with other ones is not there."""

from dataclasses import replace
from random import Random

from edits.cases import Case, case_of
from edits.draft import Draft, draft_of
from edits.mining import Edit
from edits.numbering import STYLES
from edits.slips import indent_of

_NAMES = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh")
_SHAPES = (
    "{n}: {w} value here",
    '{n}: "{w} value here",',
    "{n}. The {w} value here",
    "{n}) the {w} value here",
    "| {n} | {w} value here |",
    "{n} | {w} value here",
    "case {n}: return {w}_value();",
    "{n}\t{w} value here",
    "- {n}: {w} value here",
    "rows[{n}:{m}] = {w}_values",
    "{n}-{w}-value-here",
    "{n}:{w}:value:here",
)
_UNLIKE = ("3:", "3| ", "  3→", "3\t", "path:3:")


def _with_table(edit: Edit, random: Random) -> tuple[Draft, list[str], int] | None:
    """Put numbered lines into the file; return the draft, they and the line they begin at."""
    draft = draft_of(edit, random)
    if draft is None or draft.line_end != "\n":
        return None
    shape, first = random.choice(_SHAPES), random.choice((1, 1, 3, 10, draft.start + 2))
    at = random.choice([n for n, line in enumerate(edit.before[:-1]) if line.strip()] or [0])
    indent = indent_of(edit.before[at])
    rows = [
        indent + shape.format(n=first + step, m=first + step + 4, w=name)
        for step, name in enumerate(_NAMES)
    ]
    return draft, rows, at


def _case(name: str, draft: Draft, rows: list[str], at: int, after: list[str] | None) -> Case:
    before = draft.edit.before
    text = draft.file([*before[:at], *rows, *before[at:]]).encode()
    done = None if after is None else draft.file([*before[:at], *after, *before[at:]]).encode()
    return replace(case_of(name, draft, None), before=text, after=done)


def _changed(rows: list[str], random: Random) -> tuple[int, int, list[str]]:
    start = random.randrange(len(rows) - 2)
    stop = start + random.randint(1, 2)
    new = [row.replace("value", "price") for row in rows[start:stop]]
    return start, stop, new


def own_numbers(edit: Edit, random: Random) -> Case | None:
    """Change lines that begin with numbers of their own, told right or with line numbers besides."""
    found = _with_table(edit, random)
    if found is None:
        return None
    draft, rows, at = found
    start, stop, new = _changed(rows, random)
    old = rows[start:stop]
    after = [*rows[:start], *new, *rows[stop:]]
    way = random.choice(("plain", "both", "old"))
    style = STYLES[random.choice(list(STYLES))]

    def numbered(lines: list[str]) -> list[str]:
        return [style(at + start + 1 + n, edit.path, True) + line for n, line in enumerate(lines)]

    told = numbered(old) if way != "plain" else old
    said = numbered(new) if way == "both" else new
    draft.told = ("\n".join(told), "\n".join(said))
    case = _case("own numbers", draft, rows, at, after)
    return case if case.before.decode().count("\n".join(old)) == 1 else None


def other_numbers(edit: Edit, random: Random) -> Case | None:
    """Ask for numbered lines that are not there: the words are, with other numbers."""
    found = _with_table(edit, random)
    if found is None:
        return None
    draft, rows, at = found
    start, stop, _ = _changed(rows, random)
    shown = rows[start:stop]
    number = next(word for word in _numbers(shown[0]))
    shift = random.choice((1, 2, 7))
    old = [_shifted(row, int(number) + step, shift) for step, row in enumerate(shown)]
    new = [row.replace("value", "price") for row in old]
    draft.told = ("\n".join(old), "\n".join(new))
    case = _case("other numbers", draft, rows, at, None)
    return None if "\n".join(old) in case.before.decode() else case


def _numbers(row: str) -> list[str]:
    return "".join(sign if sign.isdigit() else " " for sign in row).split()


def _shifted(row: str, number: int, shift: int) -> str:
    return row.replace(str(number), str(number + shift), 1)


def other_style(edit: Edit, random: Random) -> Case | None:
    """Tell the old text numbered in one way and the new one in another, or the new one only."""
    draft = draft_of(edit, random)
    if draft is None or draft.line_end != "\n" or not draft.new.strip():
        return None
    one, two = random.sample(_UNLIKE, 2)
    is_plain = random.random() < 0.5
    first = draft.start + 1
    old = draft.old if is_plain else _labelled(draft.old, one, first, edit.path)
    draft.told = (old, _labelled(draft.new, two, first, edit.path))
    return case_of("other numbering", draft, None, f"{one if old != draft.old else ''!r} {two!r}")


def _labelled(text: str, name: str, first: int, path: str) -> str:
    lines = text.removesuffix("\n").split("\n")
    told = [STYLES[name](first + n, path, True) + line for n, line in enumerate(lines)]
    return "\n".join(told) + ("\n" if text.endswith("\n") else "")
