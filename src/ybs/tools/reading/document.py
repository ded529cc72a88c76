"""A text file as it is on disk: encoding, byte order mark and line ends survive every change."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from ybs.core.errors import ToolError
from ybs.core.lazy import lazy

#: So much of a file tells what is in it.
PROBE_BYTES = 8192
#: The longer marks come first: UTF-32's begins as UTF-16's.
MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


_HIGH_BYTES = bytes(range(128, 256))
_STRAY = lazy("[\udc80-\udcff]")  # bytes that are not UTF-8, as Python carries them in text


def printable(text: str) -> str:
    """Return the text with a question mark sign for each byte that its encoding does not have."""
    return text if text.isascii() else _STRAY().sub("\ufffd", text)


def wide_encoding(beginning: bytes) -> str:
    """Return the encoding of two or four bytes a character that a file begins in, or nothing."""
    if b"\0" not in beginning[:PROBE_BYTES] and not beginning.startswith(
        (b"\xff\xfe", b"\xfe\xff")
    ):
        return ""
    return _wide_encoding(beginning[:PROBE_BYTES])


def text_of_part(part: bytes, beginning: bytes) -> str:
    r"""Decode whole lines from within a file as the file's beginning says; line ends become `\n`.

    A part of a file in UTF-16 or UTF-32 has been turned into UTF-8 before.
    """
    head = beginning[: beginning.rfind(b"\n") + 1] or beginning.rstrip(_HIGH_BYTES)
    if wide_encoding(beginning):
        encoding = "utf-8"
    else:
        encoding = _encoding_of_beginning(part if head.isascii() else head)
    text = part.decode(encoding, "surrogateescape" if encoding == "utf-8" else "replace")
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def is_binary(data: bytes) -> bool:
    """Return whether the beginning of a file says that it is not text."""
    return b"\0" in data[:PROBE_BYTES] and not wide_encoding(data)


@lru_cache(maxsize=4)  # a file's beginning is asked about for each of its parts
def _encoding_of_beginning(head: bytes) -> str:
    return TextFile(head).encoding


class TextFile:
    r"""A decoded file. `text` has `\n` line ends only; `raw` is the text as it is on disk.

    UTF-8, UTF-16 and UTF-32 are told by their marks, UTF-16 without one by its zeros; other bytes are in the
    likeliest of the East Asian encodings, in cp1252, or in Latin-1, which loses nothing. A few stray bytes do
    not make a text in UTF-8 another one: they survive as they are.
    """

    def __init__(self, data: bytes) -> None:
        self.mark, self.encoding = _mark_of(data)
        self._errors = "strict"
        body = data[len(self.mark) :]
        try:
            self.raw = body.decode(self.encoding)
        except UnicodeDecodeError:
            self._decode_broken(data)
        self.text = self.raw.replace("\r\n", "\n")

    def _decode_broken(self, data: bytes) -> None:
        if self.encoding == "utf-8":
            text = data[len(self.mark) :].decode("utf-8", "surrogateescape")
            stray = len(_STRAY().findall(text))
            wide = sum(not character.isascii() for character in text) - stray
            if wide >= stray:
                self.raw, self._errors = text, "surrogateescape"
                return

        is_marked = bool(self.mark) or b"\0" in data
        self.mark, self.encoding = b"", "latin-1" if is_marked else narrow_encoding(data)
        self.raw = data.decode(self.encoding)

    @property
    def has_crlf(self) -> bool:
        """Whether most line ends are of the Windows kind."""
        crlf = len(self.raw) - len(self.text)
        return crlf * 2 > self.text.count("\n")

    def replaced(self, edits: Sequence[tuple[int, int, str]]) -> str:
        """Return `raw` with pieces of `text` replaced: (start, stop, new), in order and apart.

        New lines get the line ends of what they replace, else those of most of the file.
        """
        places = self._crlf_places()
        pieces: list[str] = []
        end = 0
        for start, stop, new in edits:
            raw_start, raw_stop = _raw(start, places), _raw(stop, places)
            old = self.raw[raw_start:raw_stop]
            is_crlf = old.count("\r\n") * 2 > old.count("\n") if "\n" in old else self.has_crlf
            pieces += (self.raw[end:raw_start], _with_ends(new, is_crlf=is_crlf))
            end = raw_stop
        return "".join((*pieces, self.raw[end:]))

    def rewritten(self, content: str) -> str:
        """Return new content for the whole file: with the line ends of now, unless it has Windows ones."""
        return content if "\r\n" in content else _with_ends(content, is_crlf=self.has_crlf)

    def keeps(self, raw: str) -> bool:
        """Return whether the text, written in the file's encoding, would be read as what it is."""
        try:
            data = self.mark + raw.encode(self.encoding, self._errors)
        except UnicodeEncodeError:
            return False
        return TextFile(data).raw == raw

    def encoded(self, raw: str, shown: str) -> bytes:
        """Return the bytes for the file. Raises ToolError for text that its encoding cannot hold."""
        try:
            return self.mark + raw.encode(self.encoding, self._errors)
        except UnicodeEncodeError as error:
            character = raw[error.start]
            raise ToolError(
                f"{shown} is encoded as {self.encoding}, which has no {character!r}; nothing was written. "
                "Use other characters, or write_file with the whole text, which then becomes UTF-8."
            ) from error

    def _crlf_places(self) -> list[int]:
        r"""List the places in `text` of the line ends that are `\r\n` on disk."""
        if len(self.raw) == len(self.text):
            return []
        ends = [0]
        for piece in self.raw.split("\r\n"):
            ends.append(ends[-1] + len(piece) + 1)
        return [stop - 1 for _, stop in pairwise(ends)][:-1]


def _mark_of(data: bytes) -> tuple[bytes, str]:
    wide = wide_encoding(data)
    for mark, name in MARKS:
        if data.startswith(mark) and wide in ("", name):
            return mark, name
    return b"", wide or "utf-8"


def _raw(place: int, crlf_places: list[int]) -> int:
    return place + bisect_left(crlf_places, place)


def _with_ends(text: str, *, is_crlf: bool) -> str:
    plain = text.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if is_crlf else plain


_EVIDENCE_BYTES = 200_000  # of those outside of ASCII; more do not change a guess
_LEAST_PAIRS = 2
_HIGH_RUN = lazy(rb"[\x80-\xff]+")
_BIG5_PAIR = lazy(rb"[\x81-\xfe][\x40-\x7e\xa1-\xfe]")
_C1 = lazy(rb"[\x80-\x9f]")
_CONTROL = lazy("[\0-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffe\uffff]")
_KANA = lazy("[\u3040-\u30ff]")
_WIDE_MARKS = "[\u3000-\u3002\uff01-\uff5e\u2014\u2018-\u201d\u2026\u300a-\u3011]"
_FITTING = lazy(f"[\u3040-\u30ff\uac00-\ud7a3\u4e00-\u9fff]|{_WIDE_MARKS}")
_FIT_SHARE = 0.9


@lru_cache(maxsize=8)  # a file's beginning is asked about for each of its parts
def _wide_encoding(beginning: bytes) -> str:
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
    return name if is_text and not _CONTROL().search(text) else ""


def narrow_encoding(data: bytes) -> str:
    """Return the encoding of bytes that are not UTF-8: East Asian, cp1252, or Latin-1, which fits everything."""
    for name in _east_asian(data):
        if _keeps(data, name):
            return name
    return "cp1252" if _C1().search(data) and _keeps(data, "cp1252") else "latin-1"


def _east_asian(data: bytes) -> list[str]:
    """List the East Asian encodings that the bytes may be in, the likeliest first."""
    runs = [found[0] for found in _HIGH_RUN().finditer(data[:_EVIDENCE_BYTES])]
    pairs = sum(len(run) // 2 for run in runs)
    odd = sum(len(run) % 2 for run in runs)
    names: list[str] = []
    if pairs >= _LEAST_PAIRS and odd * 10 <= pairs:
        names += _of_pairs(runs)
    if any(run[0] < 0xA0 for run in runs):
        names.append("cp932")
    big5 = [pair[0] for pair in _BIG5_PAIR().findall(data[:_EVIDENCE_BYTES])]
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
    fitting = len(_FITTING().findall(wide))
    if name == "cp932" and not _KANA().search(wide):
        return False  # Western letters with a following one make rare Han characters here
    return fitting >= max(_LEAST_PAIRS, len(wide) * _FIT_SHARE)


def _keeps(data: bytes, name: str) -> bool:
    try:
        return data.decode(name).encode(name) == data
    except UnicodeError:
        return False
