"""Lines left out of both texts of an edit, as models leave them out: at the start, in between, at the end, several times."""

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
    for _ in range(_MOST_TRIES):
        draft = draft_of(edit, random, 3, 8)
        if draft is None or draft.line_end != "\n" or is_ambiguous(draft):
            return None
        sign = _sign(edit, random)
        if any(line.strip() == sign for line in (*edit.before, *draft.said("add"))):
            return None
        how = _leave_out(draft, sign, random)
        if how and all(_is_clear(part, edit) for part in _parts(draft, sign)):
            return case_of("elisions", draft, draft.after, f"{sign!r} {how}")
    return None


def _is_clear(part: list[str], edit: Edit) -> bool:
    return bool(loose(part)) and occurs(part, edit.before) == 1


def _parts(draft: Draft, sign: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for line in draft.lines:
        if line.said is not None and line.said.strip() == sign and line.kind in ("keep", "ghost"):
            parts.append([])
        elif line.kind in ("keep", "cut") and line.said is not None:
            parts[-1].append(line.real)
    return [part for part in parts if part]


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
