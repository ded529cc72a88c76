"""Lines left out of both texts of an edit, as models leave them out: at the start, in between, at the end, several times."""

from dataclasses import replace
from random import Random

from edits.cases import Case, case_of, is_ambiguous
from edits.draft import Draft, Line, draft_of, loose, occurs
from edits.language import comment_of, is_code
from edits.mining import Edit
from edits.slips import indent_of

_WORDS = (
    "...",
    "... existing code ...",
    "... (rest of the code) ...",
    "... rest of the function ...",
)
_MOST_TRIES = 12


def _sign(edit: Edit, random: Random) -> str:
    words = random.choice(_WORDS)
    if not is_code(edit.suffix):
        return "<!-- ... -->" if edit.suffix == ".md" and random.random() < 0.3 else "..."
    way = random.random()
    if way < 0.35:
        return "..."
    sign = comment_of(edit.suffix, words)
    return f"/* {words} */" if sign.startswith("//") and way > 0.9 else sign


def elided(edit: Edit, random: Random) -> Case | None:
    """Leave kept lines out, so that every part which is left is found once."""
    found = _elided(edit, random)
    if found is None:
        return None
    draft, how = found
    return case_of("elisions", draft, draft.after, how)


def elided_twice(edit: Edit, random: Random) -> Case | None:
    """Leave lines out of an edit one part of which stands twice in a row."""
    found = _elided(edit, random)
    if found is None:
        return None
    draft, how = found
    sign = how.partition(" : ")[0]
    changed = [part for part in _parts(draft, sign, only_changed=True) if loose(part)]
    if not changed:
        return None
    part, file = random.choice(changed), edit.before
    at = next(n for n in range(len(file)) if file[n : n + len(part)] == part)
    lines = [*file[:at], *part, *file[at:]]
    case = case_of("elided twice", draft, None, how)
    return replace(case, before=draft.file(lines).encode())


def _elided(edit: Edit, random: Random) -> tuple[Draft, str] | None:
    for _ in range(_MOST_TRIES):
        draft = draft_of(edit, random, 3, 8)
        if draft is None or draft.line_end != "\n" or is_ambiguous(draft):
            return None
        sign = _sign(edit, random)
        if any(line.strip() == sign for line in (*edit.before, *draft.said("add"))):
            return None
        how = _leave_out(draft, sign, random)
        if how and all(_is_clear(part, edit) for part in _parts(draft, sign)):
            return draft, f"{sign} : {how}"
    return None


def _is_clear(part: list[str], edit: Edit) -> bool:
    return bool(loose(part)) and occurs(part, edit.before) == 1


def _parts(draft: Draft, sign: str, *, only_changed: bool = False) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    changed: set[int] = set()
    for line in draft.lines:
        if line.said is not None and line.said.strip() == sign and line.kind in ("keep", "ghost"):
            parts.append([])
            continue
        if line.kind in ("keep", "cut") and line.said is not None:
            parts[-1].append(line.real)
        if line.kind in ("add", "cut"):
            changed.add(len(parts) - 1)
    return [part for at, part in enumerate(parts) if part and (at in changed or not only_changed)]


def _leave_out(draft: Draft, sign: str, random: Random) -> str:
    runs = _kept_runs(draft)
    random.shuffle(runs)
    how: list[str] = []
    for first, stop in runs[: random.choice((0, 1, 1, 2))]:
        begin = random.randint(first + 1, stop - 3)
        end = random.randint(begin + 2, stop - 1)
        if end < stop and draft.lines[begin].real.strip():
            _cut(draft, begin, end, sign, random)
            how.append("between")
    lines = draft.lines
    if random.random() < 0.3 and lines[0].kind == "keep" and lines[0].real.strip():
        lines.insert(0, Line("ghost", "", _at(lines[0].real, sign, random)))
        how.append("start")
    if random.random() < 0.3 and lines[-1].kind == "keep" and lines[-1].real.strip():
        lines.append(Line("ghost", "", _at(lines[-1].real, sign, random)))
        how.append("end")
    return " ".join(how)


def _at(line: str, sign: str, random: Random) -> str:
    return random.choice(("", indent_of(line), indent_of(line))) + sign


def _cut(draft: Draft, begin: int, end: int, sign: str, random: Random) -> None:
    draft.lines[begin].said = _at(draft.lines[begin].real, sign, random)
    for line in draft.lines[begin + 1 : end]:
        line.said = None


def _kept_runs(draft: Draft) -> list[tuple[int, int]]:
    """Return where at least four kept lines stand together."""
    runs: list[tuple[int, int]] = []
    first = 0
    for index, line in enumerate([*draft.lines, Line("cut", "", "")]):
        if line.kind != "keep":
            if index - first >= 4:
                runs.append((first, index))
            first = index + 1
    return runs
