"""Edits that must be refused, because their place is not certain or their text is not there."""

import re
from collections.abc import Callable
from dataclasses import replace
from random import Random

from edits.cases import Case, case_of
from edits.draft import Draft, Line, draft_of, loose, occurs
from edits.language import CODE, code_words, comment_of, is_code, masks
from edits.mining import Edit
from edits.slips import indent_of, indentation, other_word, prose_spots, trailing_space, unit_of
from edits.tellings import line_numbers

Trap = Callable[[Edit, Random], Case | None]

_OPERATORS = {"==": "!=", "!=": "==", "&&": "||", "||": "&&", "<=": "<", ">=": ">", "+=": "-="}
_WORDS = {"true": "false", "false": "true", "True": "False", "False": "True", "and": "or"}
_CODE_WORD = re.compile(r"(?<![\w$@])[A-Za-z_]\w{2,}|(?<![\w.])\d+(?![\w.])|[=!<>+&|]{2}")


def _in_file(draft: Draft, lines: list[str], name: str, how: str = "") -> Case:
    """Return a case that must be refused, on a file of other lines."""
    case = case_of(name, draft, None, how)
    return replace(case, before=draft.file(lines).encode())


def _with_copy(draft: Draft, copy: list[str], random: Random) -> list[str]:
    """Return the file with another block somewhere outside of the draft's own."""
    file = draft.edit.before
    end = len(file) - (file[-1] == "")
    place = random.choice([*range(draft.start), *range(draft.stop, end + 1)] or [end])
    return [*file[:place], *copy, *file[place:]]


def twice(edit: Edit, random: Random) -> Case | None:
    """Give a block that occurs twice exactly."""
    draft = draft_of(edit, random)
    if draft is None:
        return None
    lines = _with_copy(draft, draft.block, random)
    return _in_file(draft, lines, "twice") if draft.file(lines).count(draft.old) > 1 else None


def twice_nearly(edit: Edit, random: Random) -> Case | None:
    """Give a block whose two places differ from it and from each other only in what may be overlooked."""
    way = random.choice((_twin_by_indentation, _twin_by_trailing_space, _twin_by_word))
    draft = draft_of(edit, random, 3 if way is _twin_by_word else 1)
    copy = None if draft is None else way(draft, random)
    if draft is None or copy is None or draft.old == draft.new:
        return None
    lines = _with_copy(draft, copy, random)
    return (
        None
        if draft.old in "\n".join(lines)
        else _in_file(draft, lines, "twice nearly", way.__name__)
    )


def _twin_by_indentation(draft: Draft, random: Random) -> list[str] | None:
    block = draft.block
    if any(not line.strip() for line in (*block, *draft.real("add"))):
        return None
    unit = unit_of(draft.edit.before)
    can_dedent = all(line.real.startswith(unit) for line in draft.lines)
    for line in draft.lines:
        dedented = line.real[len(unit) :]
        line.said = dedented if can_dedent else unit * 2 + line.real
    return [unit + line for line in block]


def _twin_by_trailing_space(draft: Draft, random: Random) -> list[str] | None:
    copy = draft.block
    if any(line != line.rstrip() for line in copy):
        return None
    number = random.randrange(len(copy))
    copy[number] += " "
    olds = [line for line in draft.lines if line.kind != "add" and line.real.strip()]
    chosen = random.choice(olds)
    chosen.said = chosen.real + "   "
    return copy


def _twin_by_word(draft: Draft, random: Random) -> list[str] | None:
    if not is_code(draft.edit.suffix) or len(loose(draft.block)) < 3:
        return None
    spots = prose_spots(draft.edit.before, draft.edit.suffix)
    spots = [spot for spot in spots if draft.start <= spot[0] < draft.stop]
    if not spots:
        return None
    number, start, end = random.choice(spots)
    real = draft.edit.before[number]
    copied, said = real[start:end], real[start:end]
    while said == copied or said == real[start:end] or copied == real[start:end]:
        copied, said = other_word(real[start:end], random), other_word(real[start:end], random)
    copy = draft.block
    copy[number - draft.start] = real[:start] + copied + real[end:]
    line = [line for line in draft.lines if line.kind != "add"][number - draft.start]
    line.said = real[:start] + said + real[end:]
    return copy


def stale(edit: Edit, random: Random) -> Case | None:
    """Give a block as it was in an older revision; since then its code has changed."""
    draft = draft_of(edit, random)
    if draft is None or not is_code(edit.suffix) or occurs(draft.block, edit.after):
        return None
    if _code_of(edit.before, draft.start, draft.stop, edit) == _code_of(
        edit.after, draft.start, draft.stop + len(edit.after) - len(edit.before), edit
    ):
        return None
    olds = [replace(line, kind="keep") for line in draft.lines if line.kind != "add"]
    text = random.choice([line for line in edit.before if line.strip()])
    olds.insert(random.randrange(1, len(olds) + 1), Line("add", text, text))
    draft.lines = olds
    return _in_file(draft, edit.after, "stale")


def _code_of(lines: list[str], start: int, stop: int, edit: Edit) -> list[str]:
    return code_words(lines[start:stop], masks(lines, edit.suffix)[start:stop])


def absent_word(edit: Edit, random: Random) -> Case | None:
    """Give a block with one name, number or operator that the file does not have there."""
    draft = draft_of(edit, random, 2)
    if draft is None or not is_code(edit.suffix):
        return None
    signs = masks(edit.before, edit.suffix)
    spots = [
        (number, found)
        for number in range(draft.start, draft.stop)
        if re.search(r"[=(){};]", edit.before[number])
        for found in _CODE_WORD.finditer(edit.before[number])
        if set(signs[number][found.start() : found.end()]) == {CODE}
    ]
    if not spots:
        return None
    number, found = random.choice(spots)
    other = _other_code(found[0], random)
    line = [line for line in draft.lines if line.kind != "add"][number - draft.start]
    line.said = line.real[: found.start()] + other + line.real[found.end() :]
    said = draft.said("keep", "cut")
    is_there = occurs(said, edit.before) > 0
    return (
        None if is_there or draft.old == draft.new else _in_file(draft, edit.before, "absent word")
    )


def _other_code(word: str, random: Random) -> str:
    if word in _OPERATORS or word in _WORDS:
        return (_OPERATORS | _WORDS)[word]
    if word.isdigit():
        return str(int(word) + random.choice((1, 2, 10)))
    if not word[0].isalpha() and word[0] != "_":
        return word + "="
    ways = (word + "_", word + "2", word[:-1], word[0].swapcase() + word[1:], "new_" + word)
    return random.choice(ways)


def absent_block(edit: Edit, random: Random, others: list[Edit]) -> Case | None:
    """Give a block of another file."""
    other = random.choice(others)
    draft = draft_of(other, random, 2)
    if draft is None or edit.path == other.path or occurs(draft.block, edit.before):
        return None
    case = _in_file(draft, edit.before, "absent block")
    return replace(case, path=edit.path, origin=f"{edit.origin} < {other.origin}")


def applied(edit: Edit, random: Random) -> Case | None:
    """Ask again for what was done already; half of the time told a little wrong as well."""
    draft = draft_of(edit, random)
    if draft is None or occurs(draft.block, edit.after):
        return None
    if random.random() < 0.5:
        random.choice((indentation, trailing_space))(draft, random)
    return _in_file(draft, edit.after, "already applied")


def no_change(edit: Edit, random: Random) -> Case | None:
    """Ask for what is there: the same text twice, or one told wrong and then as it stands."""
    draft = draft_of(edit, random)
    if draft is None:
        return None
    draft.lines = [replace(line, kind="keep") for line in draft.lines if line.kind != "add"]
    if not draft.has_final_newline and draft.stop < len(edit.before):
        draft.has_final_newline = random.random() < 0.5
    real = draft.new
    slip = random.choice((None, trailing_space, indentation, line_numbers))
    if slip is None:
        return _in_file(draft, edit.before, "no change", "same")
    if not slip(draft, random) or draft.old in "\n".join(edit.before):
        return None
    new = random.choice((draft.old, real)) if slip is trailing_space else draft.old
    draft.told = (draft.old, new)
    return _in_file(draft, edit.before, "no change", slip.__name__)


_PLACEHOLDERS = (
    "... rest of the code ...",
    "... existing code ...",
    "unchanged",
    "... rest of the function remains unchanged ...",
    "existing code",
)


def placeholder(edit: Edit, random: Random) -> Case | None:
    """Write a placeholder into the new text for lines that the old text has."""
    draft = draft_of(edit, random, 3, 2)
    if draft is None or not is_code(edit.suffix) or draft.line_end != "\n":
        return None
    lines = [line for line in draft.lines if line.kind != "cut"]
    if len(lines) < 3 or not any(line.kind == "add" for line in lines):
        return None
    size = random.randint(1, len(lines) // 2)
    first = random.choice([0, len(lines) - size, random.randint(0, len(lines) - size)])
    kept = lines[first : first + size]
    if not any(line.kind == "keep" and line.real.strip() for line in kept):
        return None
    words = random.choice(_PLACEHOLDERS)
    sign = comment_of(edit.suffix, words)
    if sign.startswith("//") and random.random() < 0.3:
        sign = f"/* {words} */"
    indent = next(indent_of(line.real) for line in kept if line.real.strip())
    news = [line.real for line in lines]
    news[first : first + size] = [indent + sign]
    final = "\n" * draft.has_final_newline
    draft.told = (draft.old, "\n".join(news) + final)
    return _in_file(draft, edit.before, "placeholder")


def changed_since_read(edit: Edit, random: Random) -> Case | None:
    """Change the file elsewhere after it was read."""
    draft = draft_of(edit, random)
    if draft is None or draft.line_end != "\n":
        return None
    case = case_of("changed since read", draft, None)
    at = random.choice([0, len(draft.before)])
    disturbed = f"{draft.before[:at]}another line\n{draft.before[at:]}"
    return replace(case, disturbed=disturbed.encode()) if draft.old in disturbed else None


TRAPS: dict[str, Trap] = {
    "twice": twice,
    "twice nearly": twice_nearly,
    "stale": stale,
    "absent word": absent_word,
    "already applied": applied,
    "no change": no_change,
    "placeholder": placeholder,
    "changed since read": changed_since_read,
}
