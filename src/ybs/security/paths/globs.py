"""Glob patterns as regular expressions: `*`, `?`, `[a-z]`, `{a,b}`, and `**` for any folders."""

import re
from functools import lru_cache

_TOKEN = re.compile(
    r"(?P<deep>(?:^|(?<=[/{,]))\*\*(?:/|(?=[,}]|$)))"
    r"|(?P<group>\[[!^]?\]?[^\]/]*\])"
    r"|\\(?P<literal>.)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_BRACES = {"{": "(?:", ",": "|", "}": ")"}
_WILD = {"*": "[^/]*", "?": "[^/]"}


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a regular expression for whole relative paths, written with `/` (use `fullmatch`).

    Raises re.error where braces or a range make no sense.
    """
    pieces: list[str] = []
    depth = 0
    has_braces = pattern.count("{") == pattern.count("}")
    for token in _TOKEN.finditer(pattern):
        other = token["other"]
        if has_braces and other is not None and other in _BRACES and (depth or other == "{"):
            depth += {"{": 1, "}": -1}.get(other, 0)
            pieces.append(_BRACES[other])
        else:
            pieces.append(_translated(token))
    return re.compile("".join(pieces), re.DOTALL)


def _translated(token: re.Match[str]) -> str:
    if deep := token["deep"]:
        return "(?:[^/]+/)*" if deep.endswith("/") else ".*"
    if group := token["group"]:
        body = group[1:-1].replace("\\", r"\\").replace("[", r"\[")
        return f"[^/{body[1:]}]" if body.startswith(("!", "^")) else f"(?!/)[{body}]"
    if literal := token["literal"]:
        return re.escape(literal)
    return _WILD.get(token["other"]) or re.escape(token["other"])
