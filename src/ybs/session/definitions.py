"""Functions and classes that differ between two versions of a file, found by their first lines in most languages."""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from ybs.core.lazy import lazy

_MODIFIERS = r"(?:(?:export|default|pub(?:\([^)]*\))?|public|private|protected|internal|static|async|abstract|final|open|override)\s+)*"
_CALLED = r"(?:def|function\*?|func|fn|fun|sub)"
_OTHERS = r"(?:class|struct|interface|trait|enum|record|module|protocol)"
_DEFINITION = lazy(
    rf"(?P<indent>\s*){_MODIFIERS}(?:(?P<called>{_CALLED})|{_OTHERS})\s+(?:\([^)]*\)\s*)?(?P<name>[A-Za-z_$][\w$]*)"
)
_MOST_LINES = 5_000


def changed_definitions(old: str, new: str) -> list[tuple[str, str]]:
    """Return the names of what was `added`, `removed` or `changed`, in the order of the file: `parse()`, `Cart`.

    Of a change outside of all definitions nothing is said where there are others; of one in two of them, the inner one.
    """
    before, after = old.splitlines(), new.splitlines()
    if max(len(before), len(after)) > _MOST_LINES:
        return []
    had, has = _names(before), _names(after)
    found: dict[str, str] = {}
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        fresh = [name for name in _names(after[j1:j2]) if name not in had]
        gone = [name for name in _names(before[i1:i2]) if name not in has]
        found |= dict.fromkeys(fresh, "added") | dict.fromkeys(gone, "removed")
        if not fresh and not gone:
            lines, place = (after, range(j1, j2)) if j2 > j1 else (before, range(i1, i2))
            if name := _around(lines, place):
                found.setdefault(name, "changed")
    return list(found.items())


def _names(lines: Iterable[str]) -> list[str]:
    return [_name(match) for line in lines if (match := _DEFINITION().match(line))]


def _name(match: "re.Match[str]") -> str:
    return f"{match['name']}()" if match["called"] else match["name"]


def _around(lines: Sequence[str], place: range) -> str:
    """Return the innermost definition that the first changed line with words stands in; empty for none."""
    first = next((n for n in place if lines[n].strip()), None)
    if first is None:
        return ""
    if match := _DEFINITION().match(lines[first]):
        return _name(match)
    room = _indent(lines[first])
    for line in reversed(lines[:first]):
        match = _DEFINITION().match(line)
        if match and len(match["indent"].expandtabs()) < room:
            return _name(match)
        if line.strip():
            room = min(room, max(_indent(line), 1))
    return ""


def _indent(line: str) -> int:
    line = line.expandtabs()
    return len(line) - len(line.lstrip())
