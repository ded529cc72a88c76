"""Normalise lines for inexact edits: punctuation as in ASCII, white space ignored."""

import re

_ALIKE = {
    "'": "\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4\uff07",
    '"': "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\uff0d",
    " ": "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
}
#: One character for one, so that a place in the plain text is the same place in the text.
_ONE_FOR_ONE = {
    **{0xFF01 + step: chr(0x21 + step) for step in range(0x5E)},  # full-width forms
    **{ord(fancy): plain for plain, all_fancy in _ALIKE.items() for fancy in all_fancy},
}
_ALL = {
    **_ONE_FOR_ONE,
    0x2026: "...",
    **dict.fromkeys((0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF), ""),
}
_WORDLIKE = re.compile(r"[^\W_]")
_FEWEST_SIGNS = 6  # what whole lines must have to be found by anything but themselves
_FEWEST_LETTERS = 3
_ENOUGH_LETTERS = 8  # what a part of a line must have, or a line that counts as added


def plain(text: str) -> str:
    """Return the text in plain punctuation and composed letters; its length may change."""
    if text.isascii():
        return text
    from unicodedata import normalize  # only a text beyond ASCII needs it

    return normalize("NFC", text.translate(_ALL))


def plain_in_place(text: str) -> str:
    """Return the text in plain punctuation, every character where it was."""
    return text if text.isascii() else text.translate(_ONE_FOR_ONE)


def key_of(line: str) -> str:
    """Return a line without white space, its punctuation as in ASCII."""
    return "".join(plain(line).split())


def spaced(line: str) -> str:
    """Return the line in plain punctuation with single spaces: equal where all words are."""
    return " ".join(plain(line).split())


def indent_of(line: str) -> str:
    """Return the white space that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def says_something(text: str) -> bool:
    """Return whether a text has a letter or a digit."""
    return _WORDLIKE.search(text) is not None


def says_enough(text: str) -> bool:
    """Return whether a text has enough letters and digits to be recognised anywhere."""
    return letters(text) >= _ENOUGH_LETTERS


def is_recognisable(text: str) -> bool:
    """Return whether whole lines hold enough to be recognised in another shape."""
    return letters(text) >= _FEWEST_LETTERS and len("".join(text.split())) >= _FEWEST_SIGNS


def letters(text: str) -> int:
    """Count the letters and digits."""
    return sum(1 for _ in _WORDLIKE.finditer(text))
