"""What a text is made of, counted at the speed of bytes: from this a tokenizer's number of tokens is estimated."""

from collections.abc import Callable
from operator import mul
from typing import Final

from ybs.providers.tokens.rates import rates_of


def _classes() -> bytes:
    """Make the table from a byte to its class; a lead byte of UTF-8 stands for the script that it begins."""
    table = bytearray(b"c" * 256)

    def put(sign: bytes, members: bytes) -> None:
        for member in members:
            table[member] = sign[0]

    put(b"a", bytes(range(ord("a"), ord("z") + 1)))
    put(b"A", bytes(range(ord("A"), ord("Z") + 1)))
    put(b"0", b"0123456789")
    put(b"q", b"\"'`")
    put(b"b", b"()[]{}<>")
    put(b"p", b",;:")
    put(b"/", b"/\\")
    put(b"o", b"=+*#|&%!?@$^~")
    for plain in b" \n\t_.-":
        table[plain] = plain
    for sign, first, last in (
        (b"L", 0xC2, 0xC2),  # signs of Latin texts
        (b"a", 0xC3, 0xCD),  # letters with marks
        (b"Y", 0xCE, 0xD3),  # Greek, Cyrillic
        (b"S", 0xD4, 0xDF),  # Hebrew, Arabic and their neighbours
        (b"I", 0xE0, 0xE1),  # the scripts of India and beyond
        (b"U", 0xE2, 0xE2),  # signs, lines of boxes
        (b"J", 0xE3, 0xE3),  # kana, and the punctuation of Chinese and Japanese
        (b"C", 0xE4, 0xE9),  # ideographs
        (b"K", 0xEA, 0xED),  # hangul
        (b"W", 0xEE, 0xEF),  # full-width signs
        (b"F", 0xF0, 0xF4),  # pictures of faces, rare ideographs
    ):
        put(sign, bytes(range(first, last + 1)))
    return bytes(table)


_CLASSES: Final = _classes()
#: The bytes of a character behind its first say nothing that is counted.
_REST: Final = bytes(range(0x80, 0xC0))
#: What is counted in the classes of a text: single ones, and neighbours, which tokenizers join or part.
_PLAIN: Final = (
    *(bytes((sign,)) for sign in b"aA0 \n\t_qbp./-oc"),
    *b" A|aA|a_|_a|a0|A0|AA|00|  |    |                |\n\n|\t\t|qp| q|bb|bq|qb|pb".split(b"|"),
    *b"oo|oooo|--|--------|..|/a|.a| b| 0|aaa|aaaa|aaaaaa|aaaaaaaaaaaa".split(b"|"),
)
#: Frequent in some language: the words of English are mostly one token each, those of others are not.
_WORDS: Final = (b" the ", b" of ", b" to ", b"en ", b"sch", b"que ", b" de ")
#: What only a text beyond ASCII has, in its classes and in its bytes (letters of western and of eastern Europe).
_BEYOND: Final = tuple(b"L|Y|S|I|U|J|C|K|W|F|YY|YYYY|SS|II|UU|UUUU|JJ|CC|CCCC|KK|FF|CW".split(b"|"))
_MARKED: Final = (b"\xc3", b"\xc4", b"\xc5")
NAMES: Final = (*_PLAIN, *_WORDS, *_BEYOND, *_MARKED)
#: No text is less than a token, and none has fewer for a character than long lines of one sign.
_LEAST: Final = 1.0
_THINNEST: Final = 1 / 32


def features(text: str) -> list[int]:
    """Count all these in a text. Takes half a millisecond for ten thousand characters."""
    raw = text.encode("utf-8", "surrogatepass")
    classes = raw.translate(_CLASSES, _REST)
    counts = [*map(classes.count, _PLAIN), *map(raw.count, _WORDS)]
    if not text.isascii():
        counts += [*map(classes.count, _BEYOND), *map(raw.count, _MARKED)]
    return counts


def estimator(family: str) -> Callable[[str], float]:
    """Return the way to estimate a text's tokens for a family of models."""
    rates = rates_of(family)

    def estimate(text: str) -> float:
        return (
            max(_LEAST + len(text) * _THINNEST, sum(map(mul, rates, features(text))))
            if text
            else 0.0
        )

    return estimate
