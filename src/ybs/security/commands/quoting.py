"""Quotes and escapes of the shell: what a quoted text stands for."""

import re

from ybs.core.lazy import lazy

_WITHOUT_QUOTES = str.maketrans("", "", "\\'\"")
_ESCAPE = lazy(r"\\(\n|.)", re.DOTALL)
_QUOTED_ESCAPE = lazy(r"\\(\n|[$`\"\\])")
_ANSI = lazy(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))",
    re.DOTALL,
)
_ANSI_LETTERS = dict(zip("abefnrtvE", "\a\b\x1b\f\n\r\t\v\x1b", strict=True))


def unescaped(text: str) -> str:
    """Return what a word outside of quotes stands for."""
    return _ESCAPE().sub(_plain, text) if "\\" in text else text


def unquoted(text: str) -> str:
    """Return what stands between double quotes."""
    return _QUOTED_ESCAPE().sub(_plain, text) if "\\" in text else text


def decoded(text: str) -> str:
    """Return what stands between the quotes of `$'…'`."""
    return _ANSI().sub(_decoded, text)


def without_quotes(text: str) -> str:
    """Return a text without any quotes and backslashes."""
    return text.translate(_WITHOUT_QUOTES)


def _plain(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else match[1]


def _decoded(match: re.Match[str]) -> str:
    *codes, control, letter = match.groups()
    for code, base in zip(codes, (16, 16, 16, 8), strict=True):
        if code is not None:
            return chr(min(int(code, base), 0x10FFFF))
    return chr(ord(control) & 0x1F) if control else _ANSI_LETTERS.get(letter, letter)
