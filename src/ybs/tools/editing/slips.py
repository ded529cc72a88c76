r"""Undoes what models add to a text on the way: `\n` for a line end, a backslash before a quote."""

import re
from collections.abc import Iterator

from ybs.core.lazy import lazy

_ESCAPE = lazy(r"\\(.)", re.DOTALL)
_SINGLE_QUOTE = lazy(r"(?<![\w\\])'|(?<!\\)'(?!\w)")  # not the one within a word
_MEANT = {"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\", "r": "", "`": "`", "/": "/"}
_SETS = ("nt\"\\r'", '"\\', '"', "nt", "'", "n", "`", "\\")


def unescaped(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Yield the two texts with fewer backslashes, the likeliest first."""
    if "\\" not in old:
        return
    seen = {old}
    for characters in _SETS:
        read = _read(old, characters)
        if read in seen:
            continue
        seen.add(read)
        meant = _read(new, characters)
        if not _breaks_a_string(meant, read):
            yield read, meant


def _read(text: str, characters: str) -> str:
    return _ESCAPE().sub(lambda hit: _MEANT[hit[1]] if hit[1] in characters else hit[0], text)


def _breaks_a_string(new: str, old: str) -> bool:
    r"""Return whether a line that only the new text has holds half a string: its `\n` was meant as such."""
    known = set(old.split("\n"))
    added = [line for line in new.split("\n") if line not in known]
    if any(line.replace('"""', "").replace('\\"', "").count('"') % 2 for line in added):
        return True
    halves = [line for line in added if len(_SINGLE_QUOTE().findall(line.replace("'''", ""))) % 2]
    return len(halves) > 1  # one alone may be an apostrophe
