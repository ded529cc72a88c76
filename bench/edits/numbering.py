"""How models copy line numbers: in every spelling that editors, `grep`, `cat -n` and agents show them in."""

from collections.abc import Callable
from random import Random

from edits.cases import Case, case_of
from edits.draft import Draft, Line, draft_of, occurs
from edits.mining import Edit

Style = Callable[[int, str, bool], str]  # number, path, is it a line that was searched for

STYLES: dict[str, Style] = {
    "3:": lambda n, _path, _hit: f"{n}:",
    "3: ": lambda n, _path, _hit: f"{n}: ",
    "  3: ": lambda n, _path, _hit: f"{n:>4}: ",
    "3|": lambda n, _path, _hit: f"{n}|",
    "3| ": lambda n, _path, _hit: f"{n}| ",
    "3 |": lambda n, _path, _hit: f"{n} |",
    "3 | ": lambda n, _path, _hit: f"{n} | ",
    "  3 | ": lambda n, _path, _hit: f"{n:>5} | ",
    "003| ": lambda n, _path, _hit: f"{n:05}| ",
    "  3→": lambda n, _path, _hit: f"{n:>6}\u2192",
    "3→": lambda n, _path, _hit: f"{n}\u2192",
    "3 │ ": lambda n, _path, _hit: f"{n:>4} \u2502 ",
    "3\t": lambda n, _path, _hit: f"{n}\t",
    "   3\t": lambda n, _path, _hit: f"{n:>6}\t",
    "L3:": lambda n, _path, _hit: f"L{n}:",
    "L3: ": lambda n, _path, _hit: f"L{n}: ",
    "Line 3: ": lambda n, _path, _hit: f"Line {n}: ",
    "3- or 3:": lambda n, _path, hit: f"{n}{':' if hit else '-'}",
    "3-\t or 3:\t": lambda n, _path, hit: f"{n}{':' if hit else '-'}\t",
    "path:3:": lambda n, path, _hit: f"{path}:{n}:",
    "path-3- or path:3:": lambda n, path, hit: f"{path}:{n}:" if hit else f"{path}-{n}-",
    "path:3: ": lambda n, path, _hit: f"{path}:{n}: ",
}


def _told(text: str, label: Callable[[int, str], str]) -> str:
    lines = text.removesuffix("\n").split("\n")
    if not text:
        return text
    told = "\n".join(label(at, line) + line for at, line in enumerate(lines))
    return told + ("\n" if text.endswith("\n") else "")


def _number(draft: Draft, name: str, random: Random) -> str:
    """Give the old text numbers, and of the new one everything, nothing or what is kept. Return how."""
    style, first = STYLES[name], draft.start + 1
    hits = {random.randrange(len(draft.old.split("\n"))), 0 if " or " not in name else -1}
    draft_old, draft_new = draft.old, draft.new

    def label(at: int, _line: str) -> str:
        return style(first + at, draft.edit.path, at in hits)

    old = _told(draft_old, label)
    ways = ["plain", "numbered", "plain", "numbered", "kept"]
    way = random.choice(ways)
    header = f"{draft.edit.path}\n" if "\t or" in name and random.random() < 0.4 else ""
    if way == "numbered":
        new = _told(draft_new, label)
    elif way == "kept":
        new = _kept_numbered(draft, style)
    else:
        new, header = draft_new, header
    is_named_too = way == "numbered" and random.random() < 0.5
    draft.told = (header + old, (header if is_named_too else "") + new)
    return f"{name!r} {way}"


def _kept_numbered(draft: Draft, style: Style) -> str:
    number = draft.start
    lines: list[str] = []
    for line in draft.lines:
        number += line.kind != "add"
        if line.kind != "cut" and line.said is not None:
            label = style(number, draft.edit.path, False) if line.kind == "keep" else ""
            lines.append(label + line.said)
    return "\n".join(lines) + ("\n" if draft.has_final_newline and lines else "")


def numbered_block(edit: Edit, random: Random) -> Case | None:
    """Copy a block with its numbers."""
    draft = draft_of(edit, random)
    if draft is None or draft.line_end != "\n" or draft.old == draft.new:
        return None
    how = _number(draft, random.choice(list(STYLES)), random)
    return case_of("numbers of all kinds", draft, draft.after, how)


def numbered_line(edit: Edit, random: Random) -> Case | None:
    """Copy one line with its number."""
    draft = _one_line(edit, random)
    if draft is None:
        return None
    how = _number(draft, random.choice(list(STYLES)), random)
    return case_of("one numbered line", draft, draft.after, how)


def _one_line(edit: Edit, random: Random) -> Draft | None:
    draft = draft_of(edit, random)
    if draft is None or draft.line_end != "\n":
        return None
    olds = [line for line in draft.lines if line.kind != "add"]
    changed = [line for line in draft.lines if line.kind != "keep"]
    if sum(line.kind == "cut" for line in olds) != 1 or len(changed) < 2:
        return None
    at = next(at for at, line in enumerate(olds) if line.kind == "cut")
    first, last = draft.lines.index(changed[0]), draft.lines.index(changed[-1])
    lines: list[Line] = draft.lines[first : last + 1]
    if any(line.kind == "keep" for line in lines) or not olds[at].real.strip():
        return None
    if occurs([olds[at].real], edit.before) != 1 or len(olds[at].real.strip()) < 8:
        return None
    draft.lines, draft.start = lines, draft.start + at
    draft.stop = draft.start + 1
    if not (lines[-1].real.strip() and lines[0].real.strip()):
        return None
    return draft
