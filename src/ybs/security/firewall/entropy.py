"""How random a value looks, and whether it only stands for a secret."""

import re
from itertools import pairwise
from math import log2

from ybs.core.lazy import lazy

#: What people write where a secret would stand, anywhere in a value (lower case).
_STANDS_IN = lazy(
    rb"example|changeme|change[_-]?it|change[_-]me|placeholder|your[_-]?|redacted|dummy|sample|insert[_-]|"
    rb"[xX*.#_-]{8}|\*{3}|\.\.\.|1234567890abc|abcdefghij|<[^>]*>|\$\{|\$\(|\{\{|%\(|0{12}|lorem|goes[_-]?here|my[_-]?secret"
)
_REPEATED = lazy(rb"(.{1,4}?)\1{5,}", re.DOTALL)
#: What no word has, so that a text with it and with digits was drawn.
_HARD = lazy(rb"[bcdfghjklmnpqrstvwxz]{6}|q[b-hj-tv-z]|[jvx][bcdfghjkmnpqrstvwxz]{2}|[a-z]q\b")
_RUN = lazy(rb"[A-Z]?[a-z]{3,}|[A-Z]{4,}")
_CLASS = bytes.maketrans(
    bytes(range(256)),
    bytes(
        ord("d") if chr(c).isdigit() and c < 128
        else ord("l") if 97 <= c <= 122
        else ord("u") if 65 <= c <= 90
        else ord("s")
        for c in range(256)
    ),
)  # fmt: skip


def entropy(value: bytes) -> float:
    """Return Shannon's entropy in bits for each byte."""
    size = len(value)
    counts = [value.count(code) for code in set(value)]
    return -sum(count / size * log2(count / size) for count in counts)


def stands_in(value: bytes) -> bool:
    """Return whether the value only shows where a secret would stand, as in documentation."""
    return _STANDS_IN().search(value.lower()) is not None or _is_repeated(value)


def _is_repeated(value: bytes) -> bool:
    match = _REPEATED().search(value)
    return match is not None and 2 * (match.end() - match.start()) > len(value)


def changes(value: bytes) -> int:
    """Count how often the class of characters (digit, lower case, upper case, sign) changes along the value."""
    kinds = value.translate(_CLASS)
    return sum(one != other for one, other in pairwise(kinds))


def is_random(value: bytes) -> bool:
    """Return whether the value looks drawn at random: letters and digits mixed, not words joined with numbers."""
    kinds = value.translate(_CLASS)
    digits, size = kinds.count(b"d"), len(value)
    letters = kinds.count(b"l") + kinds.count(b"u")
    if not letters:
        return digits == size >= 15
    if not digits:
        return size >= 24 and _is_mixed(kinds) and not _is_wordy(value)
    if entropy(value) < (2.6 if size < 20 else 3.0):
        return False
    if b"s" not in kinds and _groups(kinds) >= 3:
        return True  # no name has digits in three places and no sign between its words
    # Of two neighbours in a random text of letters and digits about four in ten differ in class; in names few do.
    is_drawn = changes(value) >= max(3, size * 0.2) or _HARD().search(value.lower()) is not None
    return is_drawn and not _is_wordy(value)


def _groups(kinds: bytes) -> int:
    """Count the groups of digits."""
    return len([group for group in kinds.replace(b"u", b"l").split(b"l") if group])


def _is_wordy(value: bytes) -> bool:
    """Return whether three fifths of the value stand in runs of letters that could be words."""
    runs = _RUN().findall(value)
    return sum(len(run) for run in runs if _is_word(run.lower())) * 5 >= len(value) * 3


def _is_word(run: bytes) -> bool:
    vowels = sum(run.count(vowel) for vowel in (b"a", b"e", b"i", b"o", b"u", b"y"))
    return vowels * 4 >= len(run) and _HARD().search(run) is None


def _is_mixed(kinds: bytes) -> bool:
    """Return whether letters alone change case as no name does."""
    return b"s" not in kinds and kinds.count(b"ul") >= len(kinds) // 6 and b"uu" in kinds
