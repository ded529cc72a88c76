"""Detect the encoding of bytes that are not UTF-8, with the standard library's codecs.

A guess is taken only if encoding the text again gives the very same bytes, so that an edit can lose nothing.
"""

import re
from functools import lru_cache

from ybs.tools.reading.marks import MARKS, PROBE_BYTES

_EVIDENCE_BYTES = 200_000  # of those outside of ASCII; more do not change a guess
_LEAST_PAIRS = 2
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_BIG5_PAIR = re.compile(rb"[\x81-\xfe][\x40-\x7e\xa1-\xfe]")
_C1 = re.compile(rb"[\x80-\x9f]")
_CONTROL = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffe\uffff]")
_KANA = re.compile("[\u3040-\u30ff]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_HAN = re.compile("[\u4e00-\u9fff]")
_WIDE_MARKS = "[\u3000-\u3002\uff01-\uff5e\u2014\u2018-\u201d\u2026\u300a-\u3011]"
_FITTING = re.compile(f"{_KANA.pattern}|{_HANGUL.pattern}|{_HAN.pattern}|{_WIDE_MARKS}|\u30fb")
_FIT_SHARE = 0.9


@lru_cache(maxsize=8)  # a file's beginning is asked about for each of its parts
def wide_encoding(beginning: bytes) -> str:
    """Return the encoding of two or four bytes a character that a file begins in, or nothing.

    Without a mark, UTF-16 is told by its zeros, which stand in every second place, nearly all.
    """
    for mark, name in MARKS[1:]:
        if beginning.startswith(mark):
            return name
    probe = beginning[:PROBE_BYTES]
    probe = probe[: len(probe) // 2 * 2]
    if b"\0" not in probe:
        return ""
    even, odd = probe[::2].count(0), probe[1::2].count(0)
    name = "utf-16-le" if odd > even else "utf-16-be"
    most = max(even, odd)
    is_one_sided = min(even, odd) * 4 <= most  # not none: U+4E00 and U+3000 end in a zero
    if not is_one_sided or most * 5 < len(probe):  # two of five in Western text and code
        return ""
    try:
        text = probe.decode(name)
    except UnicodeDecodeError as error:
        if error.end < len(probe):
            return ""
        text = probe[: error.start].decode(name)
    is_text = " " in text or "\n" in text
    return name if is_text and not _CONTROL.search(text) else ""


def narrow_encoding(data: bytes) -> str:
    """Return the encoding of bytes that are not UTF-8: East Asian, cp1252, or Latin-1, which fits everything."""
    for name in _east_asian(data):
        if _keeps(data, name):
            return name
    return "cp1252" if _C1.search(data) and _keeps(data, "cp1252") else "latin-1"


def _east_asian(data: bytes) -> list[str]:
    """List the East Asian encodings that the bytes may be in, the likeliest first."""
    runs = [found[0] for found in _HIGH_RUN.finditer(data[:_EVIDENCE_BYTES])]
    pairs = sum(len(run) // 2 for run in runs)
    odd = sum(len(run) % 2 for run in runs)
    names: list[str] = []
    if pairs >= _LEAST_PAIRS and odd * 10 <= pairs:
        names += _of_pairs(runs)
    if any(run[0] < 0xA0 for run in runs):
        names.append("cp932")
    big5 = [pair[0] for pair in _BIG5_PAIR.findall(data[:_EVIDENCE_BYTES])]
    usual = sum(lead <= 0xC6 for lead in big5)  # Western small letters lie above
    if len(big5) >= _LEAST_PAIRS and usual * 10 >= len(big5) * 9:
        names.append("big5")
    return [name for name in names if _looks_right(data[:_EVIDENCE_BYTES], name)]


def _of_pairs(runs: list[bytes]) -> list[str]:
    """Tell the encodings apart in which both bytes of a character are high, by the rows that are used."""
    leads = b"".join(run[:-1:2] if len(run) % 2 else run[::2] for run in runs)
    kana = leads.count(0xA4) + leads.count(0xA5)
    hangul = sum(0xB0 <= lead <= 0xC8 for lead in leads)
    higher = sum(lead > 0xC8 for lead in leads)
    if kana * 8 >= len(leads):
        return ["euc-jp", "gb18030"]
    if hangul >= higher * 9 and hangul * 2 >= len(leads):
        return ["cp949", "gb18030"]
    rare = sum(
        lead >= 0xD8 for lead in leads
    )  # the rows of rare characters; Western small letters lie there
    return ["gb18030"] if rare * 3 <= len(leads) else []


def _looks_right(data: bytes, name: str) -> bool:
    """Return whether what is not ASCII is nearly all kana, hangul, Han characters and their punctuation."""
    wide = re.sub("[\0-\x7f]+", "", data.decode(name, "ignore"))
    fitting = len(_FITTING.findall(wide))
    if name == "cp932" and not _KANA.search(wide):
        return False  # Western letters with a following one make rare Han characters here
    return fitting >= max(_LEAST_PAIRS, len(wide) * _FIT_SHARE)


def _keeps(data: bytes, name: str) -> bool:
    try:
        return data.decode(name).encode(name) == data
    except UnicodeError:
        return False
