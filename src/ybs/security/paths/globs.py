"""Glob patterns as regular expressions: `*`, `?`, `[a-z]`, `{a,b}`, and `**` for any folders."""

import re
from functools import lru_cache

from ybs.core.lazy import lazy

_TOKEN = lazy(
    r"(?P<deep>(?:^|(?<=[/{,]))\*\*(?:/|(?=[,}]|$)))"
    r"|(?P<group>\[[!^]?\]?[^\]/]*\])"
    r"|\\(?P<literal>.)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_BRACES = {"{": "(?:", ",": "|", "}": ")"}
_WILD = {"*": "[^/]*", "?": "[^/]"}


@lru_cache(maxsize=256)
def compiled(pattern: str, *, names_too: bool = False) -> re.Pattern[str]:
    """Return a regular expression for whole relative paths, written with `/` (use `fullmatch`).

    With `names_too`, brackets and braces also stand for themselves: there are folders named `[id]` and `{{name}}`.
    Raises re.error where braces or a range make no sense.
    """
    pieces: list[str] = []
    opened: list[int] = []
    has_braces = pattern.count("{") == pattern.count("}")
    for token in _TOKEN().finditer(pattern):
        other = token["other"]
        if has_braces and other is not None and other in _BRACES and (opened or other == "{"):
            if other == "{":
                opened.append(len(pieces))
            pieces.append(_BRACES[other])
            if other == "}":
                start = opened.pop()
                pieces[start:] = [_choice(pieces[start:], names_too=names_too)]
        elif names_too and token["group"]:
            pieces.append(_class_or_name(token))
        else:
            pieces.append(_translated(token))
    return re.compile("".join(pieces), re.DOTALL)


def _choice(pieces: list[str], *, names_too: bool) -> str:
    """Return what matches one of the texts in braces; one text alone stands for a name in braces as well."""
    if "|" in pieces or not names_too:
        return "".join(pieces)
    inner = "".join(pieces[1:-1])
    return rf"(?:{inner}|\{{{inner}\}})"


def _class_or_name(token: re.Match[str]) -> str:
    """Return what matches one character of the brackets, and the brackets themselves."""
    name = re.escape(token["group"])
    try:
        return f"(?:{re.compile(_translated(token)).pattern}|{name})"
    except re.error:  # `[user-id]` is not a range
        return name


def _translated(token: re.Match[str]) -> str:
    if deep := token["deep"]:
        return "(?:[^/]+/)*" if deep.endswith("/") else ".*"
    if group := token["group"]:
        body = group[1:-1].replace("\\", r"\\").replace("[", r"\[")
        return f"[^/{body[1:]}]" if body.startswith(("!", "^")) else f"(?!/)[{body}]"
    if literal := token["literal"]:
        return re.escape(literal)
    return _WILD.get(token["other"]) or re.escape(token["other"])
