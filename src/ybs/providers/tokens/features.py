"""What a text is made of, counted at the speed of bytes: from this a tokenizer's number of tokens is estimated."""

from collections.abc import Mapping
from operator import mul
from typing import Final


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
#: Tokens for each thing that is counted, fitted on the tokenizers of eight families (`bench/tokens.py` measures them). In the
#: classes of a text: single ones, and neighbours, which tokenizers join or part.
_PLAIN: Final = {
    b"a": 0.4, b"A": 0.77, b"0": 1.31, b" ": 0.28, b"\n": 0.61, b"\t": 0.87, b"_": 0.05, b"q": 0.48, b"b": 0.77,
    b"p": 0.91, b".": 0.75, b"/": 0.5, b"-": 0.82, b"o": 0.68, b"c": 1.71, b" A": -0.83, b"aA": -0.6, b"a_": -0.42,
    b"_a": 0.76, b"a0": 0.4, b"A0": 1.5, b"AA": -0.89, b"00": -1.5, b"  ": 0.31, b"    ": -1.35,
    b"                ": -1.32, b"\n\n": -1.02, b"\t\t": -1.5, b"qp": -0.65, b" q": 0.42, b"bb": -0.92, b"bq": 0.45,
    b"qb": -1.5, b"pb": -1.5, b"oo": -0.29, b"oooo": -2.02, b"--": -0.78, b"--------": -3.3, b"..": -1.45,
    b"/a": 0.47, b".a": -0.05, b" b": -0.29, b" 0": 0.82, b"aaa": -0.31, b"aaaa": -0.57, b"aaaaaa": -0.39,
    b"aaaaaaaaaaaa": 1.5,
}  # fmt: skip
#: Frequent in some language: the words of English are mostly one token each, those of others are not.
_WORDS: Final = {
    b" the ": -1.2, b" of ": -1.06, b" to ": -0.84, b"en ": 1.2, b"sch": 1.2, b"que ": -1.2, b" de ": -0.62,
}  # fmt: skip
#: What only a text beyond ASCII has, in its classes and in its bytes (letters of western and of eastern Europe).
_BEYOND: Final = {
    b"L": 1.45, b"Y": 0.59, b"S": 0.05, b"I": 0.05, b"U": 0.94, b"J": 0.7, b"C": 0.94, b"K": 0.71, b"W": 0.99,
    b"F": 2.42, b"YY": 0.69, b"YYYY": -3, b"SS": 1.03, b"II": 1.4, b"UU": -0.97, b"UUUU": -0.55, b"JJ": -0.11,
    b"CC": 0.19, b"CCCC": -0.97, b"KK": 0.16, b"FF": 0.83, b"CW": -0.19,
}  # fmt: skip
_MARKED: Final = {b"\xc3": 1.32, b"\xc4": 0.89, b"\xc5": 2.96}
#: No text is less than a token, and none has fewer for a character than long lines of one sign.
_LEAST: Final = 1.0
_THINNEST: Final = 1 / 32


def estimate(text: str) -> float:
    """Return how many tokens a text has, about. Takes half a millisecond for ten thousand characters."""
    if not text:
        return 0.0
    raw = text.encode("utf-8", "surrogatepass")
    classes = raw.translate(_CLASSES, _REST)
    size = _sum(classes, _PLAIN) + _sum(raw, _WORDS)
    if not text.isascii():
        size += _sum(classes, _BEYOND) + _sum(raw, _MARKED)
    return max(_LEAST + len(text) * _THINNEST, size)


def _sum(raw: bytes, rates: Mapping[bytes, float]) -> float:
    return sum(map(mul, map(raw.count, rates), rates.values()))
