"""How models get the whole text of an edit wrong: line ends, numbers, escapes, newlines at the ends."""

import json
import re
from random import Random

from edits.draft import Draft, loose
from edits.slips import indent_of

_NUMBERED = re.compile(r"^\s*\d+\s*[\t:|]")


def other_line_ends(draft: Draft, random: Random) -> bool:
    """Write plain line ends for a file with Windows ones, or the other way."""
    if draft.line_end == "\n" and random.random() < 0.3:
        old, new = (text.replace("\n", "\r\n") for text in (draft.old, draft.new))
        draft.told = (old, new)
        return True
    draft.line_end = "\r\n"
    if random.random() < 0.4:
        draft.mark = "\ufeff"
    return True


def line_numbers(draft: Draft, random: Random) -> bool:
    """Copy the line numbers along, into the old text and sometimes into the new one."""
    if any(_NUMBERED.match(line) for line in (*draft.block, *draft.real("add"))):
        return False
    style = random.choice(("{}\t", "{}: ", "{:>5}\t", " {} | ", "{:>4}| "))
    new = draft.new
    if random.random() < 0.5:
        new = _numbered(new, style, draft.start + 1)
    draft.told = (_numbered(draft.old, style, draft.start + 1), new)
    return True


def _numbered(text: str, style: str, first: int) -> str:
    lines = text.removesuffix("\n").split("\n")
    if not text:
        return text
    numbered = "\n".join(style.format(first + i) + line for i, line in enumerate(lines))
    return numbered + ("\n" if text.endswith("\n") else "")


def escapes(draft: Draft, random: Random) -> bool:
    """Escape the whole text once more, or its quotes only."""
    old, new = draft.old, draft.new
    can_be_quotes = '"' in old and "\\" not in old + new
    if can_be_quotes and random.random() < 0.4:
        draft.told = (old.replace('"', '\\"'), new.replace('"', '\\"'))
        return True
    draft.told = (_escaped(old), _escaped(new))
    return old.count("\n") > old.endswith("\n")


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def extra_newline(draft: Draft, random: Random) -> bool:
    """Put one or two newlines too many at an end, into the old text or into both."""
    file, old, new = draft.edit.before, draft.old, draft.new
    extra = "\n" * random.randint(1, 2)
    is_at_end = random.random() < 0.7
    beside = draft.stop if is_at_end else draft.start - 1
    if not 0 <= beside < len(file) or not file[beside].strip():
        return False  # beside a blank line it is not clear whether that one is meant
    olds, news = draft.said("keep", "cut", "ghost"), draft.said("keep", "add", "ghost")
    edge = -1 if is_at_end else 0
    if not all(lines and lines[edge].strip() for lines in (olds, news)):
        return False
    in_both = random.random() < 0.5
    draft.told = (
        (old + extra, new + extra * in_both) if is_at_end else (extra + old, extra * in_both + new)
    )
    return True


def first_indentation(draft: Draft, random: Random) -> bool:
    """Lose the indentation of the first line, as when a text was stripped."""
    old, new = draft.old, draft.new
    if not indent_of(old) or indent_of(old) != indent_of(new) or not new.strip():
        return False
    if old not in draft.before and len(loose(old.split("\n"))) < 2:
        return False  # one line that is wrong otherwise too may as well be shifted with all that is new
    if any(text != text.strip("\n") + "\n" * draft.has_final_newline for text in (old, new)):
        return False
    if random.random() < 0.5:
        draft.told = (old.strip(), new.strip())
    else:
        draft.told = (old.lstrip(" \t"), new.lstrip(" \t"))
    return True
