"""Cuts of a text that go through no word.

What is left of a password or token would not be known as one, and go unmasked: masks see what was cut already. So what tools and commands
read, and what was said to them, is cut here alone, and no constant slices it elsewhere (`tests/test_architecture.py`). Frontends get texts
that were masked, and cut them as their screens need it.
"""

import re

from ybs.core.lazy import lazy
from ybs.core.wording import end_within

#: What is longer, such as data in base64, is no token or password.
LONGEST_WORD = 4_096
#: Scripts without spaces have no words here.
_NO_WORD = r"\s\"'`,;<>(){}\[\]|\u2e80-\ud7ff\uff00-\uffef\U00020000-\U0003ffff"
#: A word, and what is taken for one in a longer run: a part of what is asked with an address, then anything between signs.
_WORDS = tuple(lazy(f"[^{_NO_WORD}{signs}]+") for signs in ("", "&?#", "&?#=:/@%+$!*~^\\\\"))


def whole_words(text: str, limit: int) -> str:
    """Return the beginning of a text within `limit` characters."""
    return text if len(text) <= limit else up_to_word(text, limit)


def last_words(text: str, limit: int) -> str:
    """Return the end of a text within `limit` characters."""
    return text if len(text) <= limit else from_word(text, len(text) - limit)


def shortened(text: str, limit: int) -> str:
    """Return a text of at most so many characters, with `…` for the words that it has more."""
    if len(text) <= limit:
        return text
    return up_to_word(text, limit - 1).rstrip(",;:. \n") + "…"


def first_words(text: str, most: int) -> str:
    """Return the beginning of a text in one line of at most so many columns."""
    beginning = whole_words(text, 8 * most)
    line = " ".join(beginning.split()) + "…" * (len(beginning) < len(text))
    end = end_within(line, most)
    return line if end == len(line) else f"{up_to_word(line, end).rstrip()}…"


def up_to_word(text: str, end: int | None = None) -> str:
    """Return the text up to a place without a word that is cut there. Where nothing is known of what follows, half stays."""
    if end is None:
        cut_off = _cut_word(text[: -LONGEST_WORD - 1 : -1], "")
        return text[: max(len(text) - cut_off, len(text) // 2)]
    return text[
        : end - _cut_word(text[:end][: -LONGEST_WORD - 1 : -1], text[end : end + LONGEST_WORD])
    ]


def from_word(text: str, start: int | None = None) -> str:
    """Return the text from a place on without a word that is cut there. Where nothing is known of what precedes, half stays."""
    if start is None:
        return text[min(_cut_word(text[:LONGEST_WORD], ""), len(text) // 2) :]
    before = text[:start][: -LONGEST_WORD - 1 : -1]
    return text[start + _cut_word(text[start : start + LONGEST_WORD], before) :]


def _cut_word(side: str, other: str) -> int:
    """Return how many characters beside a cut belong to a word that it goes through; both sides read away from the cut."""
    for word in _WORDS:
        beside, beyond = (_length(word(), text) for text in (side, other))
        if beside + beyond < LONGEST_WORD:
            return beside if beyond > 0 or not other else 0
    return 0


def _length(word: "re.Pattern[str]", text: str) -> int:
    """Return the length of the word that a text begins with."""
    found = word.match(text, 0, LONGEST_WORD)
    return found.end() if found else 0
