"""What of a project a text of the person's names by whole paths: a startup file of their shell, or a variable.

Texts are not parsed: every word of them that may be a whole path counts.
"""

import os
import re
from collections.abc import Iterator
from itertools import islice

from ybs.core.lazy import lazy
from ybs.security.paths.path_text import lies_in
from ybs.security.paths.steps import steps

_COMMENT = lazy(r"^\s*#.*", re.MULTILINE)
_SET = lazy(r"\b([A-Za-z_]\w*)=[\"']?([^\s\"';]+)")
_VARIABLE = lazy(r"\$(?:(\w+)|\{(\w+)\})")
#: Variables may stand in the values of others, so deep.
_DEEPEST = 3
_HOME = lazy(r"(?<![\w/.~$-])~(?=/)")
_QUOTES = lazy(r"[\"']")
_QUOTED = lazy(r"\"([^\"\n]*)\"|'([^'\n]*)'")
_BETWEEN = lazy(r"(?<!\\)[\s;|&()<>=:,`]+")
#: Where a whole path begins in a word: also behind a sign (`@/etc/x`) or an option of one letter (`-r/etc/x`).
_BEGINS = lazy(r"(?<![\w.*})~$-])/|(?<=\A-\w)/")
#: Lines that load files, `{a,b}` for several words, which counts as `*` does, and words that are patterns.
_LOADING = lazy(r"^.*(?:\bfor|\bsource\S*|(?<![^\s;&|({])\.)\s.*", re.MULTILINE)
_BRACES = lazy(r"\{[^{}\s]*,[^{}\s]*\}")
_PATTERN = lazy(r"[*?\[]")
_MOST_MATCHES = 100


def spelled_out(script: str) -> str:
    """Return a startup file without comments, and with what it sets in place of its variables."""
    text = _COMMENT().sub("", script.replace("\\\n", " "))
    values = dict(_SET().findall(text))
    values.pop("HOME", "")
    for _ in range(_DEEPEST):
        text = _VARIABLE().sub(lambda found: values.get(found[1] or found[2], found[0]), text)
    return text


def ways_named(text: str, home: str, root: str) -> Iterator[tuple[str, ...]]:
    """Yield for each whole path in a text that leads into a root the links on its way, and its end, which need not exist."""
    for word in _words(text, home):
        way = () if _PATTERN().search(word) else tuple(steps(word, has_turns=False))
        if any(step != root and lies_in(step, root) for step in way):
            yield way


def loaded_in(script: str, home: str, root: str) -> Iterator[str]:
    """Yield the folders in a root of which a startup file loads what a pattern matches (`for file in ~/bash/*.sh`), and of the root itself what it matches."""
    for word in _words("\n".join(_LOADING().findall(script)), home):
        if not (pattern := _PATTERN().search(word)):
            continue
        folder = os.path.realpath(word[: pattern.start()].rpartition("/")[0] or "/")
        if folder != root and lies_in(folder, root):
            yield folder
        elif folder != "/" and lies_in(root, folder):
            yield from _matches(word, root)


def _matches(pattern: str, root: str) -> Iterator[str]:
    from glob import iglob  # with the first pattern

    for match in islice(iglob(pattern), _MOST_MATCHES):  # noqa: PTH207 - a text
        path = os.path.realpath(match)
        if path != root and lies_in(path, root):
            yield path


def _words(text: str, home: str) -> set[str]:
    """Return the whole paths and patterns in a text, those that stand in quotes with their spaces."""
    text = _VARIABLE().sub(lambda found: home if "HOME" in found.groups() else found[0], text)
    text = _HOME().sub(lambda _: home, _BRACES().sub("*", text))
    words = _BETWEEN().split(_QUOTES().sub("", text))
    whole = {word[begin.start() :] for word in words if (begin := _BEGINS().search(word))}
    whole.update(path for each in _QUOTED().findall(text) for path in each if path.startswith("/"))
    return {path.replace("\\", "") for path in whole if "\0" not in path and "$" not in path}
