"""One word of a comment, a message or a text remembered wrongly: in what an edit removes, or in what it keeps."""

import re
from random import Random

from edits.cases import Case, case_of, is_ambiguous
from edits.draft import Draft, draft_of, has_near_twin, loose
from edits.language import COMMENT, STRING, is_code, masks
from edits.mining import Edit
from edits.slips import other_word

_WORD = re.compile(r"(?<![\w.$@/\\<{(\[`'-])[A-Za-z][a-z]{2,}(?=[,.:;!?)]?(?:\s|$|[\"']))")
_ORDER = re.compile(
    r"TODO|-\*-|^#!|\bimport\b|\bcopyright\b|noqa|eslint|@ts-|go:|nolint|type:", re.I
)
_TEXTS = (".md", ".rst", ".txt", ".adoc")
_FEWEST_WORDS = 3


def _prose(line: str, mask: str | None) -> list[tuple[int, int]]:
    """Return where the words of sentences stand in a line; no mask: all of the line is text."""
    if _ORDER.search(line):
        return []
    if mask is None:
        is_text = not re.match(r"\s*(?:[|`<#=:.]|\S+:\s|\s{4}|\t)", line)
        found = list(_WORD.finditer(line)) if is_text else []
        return [word.span() for word in found] if len(found) >= _FEWEST_WORDS else []
    spots: list[tuple[int, int]] = []
    for run in re.finditer(rf"{COMMENT}+|{STRING}+", mask):
        found = list(_WORD.finditer(line, run.start(), run.end()))
        if len(found) >= _FEWEST_WORDS:
            spots += [word.span() for word in found]
    return spots


def _spots(draft: Draft, kind: str) -> list[tuple[int, int, int]]:
    """Return index of the line in the draft, beginning and end of every word that may be told wrong."""
    edit = draft.edit
    if is_code(edit.suffix):
        signs: list[str | None] = [*masks(edit.before, edit.suffix)]
    elif edit.suffix in _TEXTS:
        signs = [None] * len(edit.before)
    else:
        return []
    number = draft.start - 1
    spots: list[tuple[int, int, int]] = []
    for index, line in enumerate(draft.lines):
        number += line.kind != "add"
        if line.kind == kind:
            spots += [(index, *span) for span in _prose(line.real, signs[number])]
    return spots


def _told(edit: Edit, random: Random, kind: str, name: str) -> Case | None:
    draft = draft_of(edit, random)
    if draft is None or is_ambiguous(draft) or has_near_twin(draft.block, edit.before):
        return None
    if not loose(draft.block):
        return None
    spots = _spots(draft, kind)
    if not spots:
        return None
    index, start, end = random.choice(spots)
    line = draft.lines[index]
    word = line.real[start:end]
    ways = [other_word(word, random), _typo(word, random), word + "s"]
    said = random.choice([way for way in ways if way != word])
    line.said = line.real[:start] + said + line.real[end:]
    if draft.old in "\n".join(edit.before) or draft.old == draft.new:
        return None
    return case_of(name, draft, draft.after, f"{word} > {said}")


def _typo(word: str, random: Random) -> str:
    at = random.randrange(len(word) - 1)
    return random.choice(
        (word[:at] + word[at + 1 :], word[:at] + word[at + 1] + word[at] + word[at + 2 :])
    )


def word_removed(edit: Edit, random: Random) -> Case | None:
    """Tell a word wrong in a line that goes."""
    return _told(edit, random, "cut", "word removed")


def word_around(edit: Edit, random: Random) -> Case | None:
    """Tell a word wrong in a line that stays."""
    return _told(edit, random, "keep", "word around")
