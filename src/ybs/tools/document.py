"""A text file as it is on disk: encoding, byte order mark and line ends survive every change."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from ybs.core.errors import ToolError

PROBE_BYTES = 8192
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


def is_binary(data: bytes) -> bool:
    """Tell whether the beginning of a file says that it is no text."""
    return b"\0" in data[:PROBE_BYTES] and not data.startswith((b"\xff\xfe", b"\xfe\xff"))


class Document:
    r"""A decoded file. `text` has `\n` line ends only; `raw` is the text as it is on disk.

    UTF-8 with or without mark, UTF-16 with mark; anything else is read as Latin-1, which loses nothing.
    """

    def __init__(self, data: bytes) -> None:
        self.mark, self.encoding = next(
            ((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8")
        )
        body = data[len(self.mark) :]
        try:
            self.raw = body.decode(self.encoding)
        except UnicodeDecodeError:
            self.mark, self.encoding = b"", "latin-1"
            self.raw = data.decode("latin-1")
        self.text = self.raw.replace("\r\n", "\n")

    @property
    def has_crlf(self) -> bool:
        """Tell whether most line ends are of the Windows kind."""
        crlf = len(self.raw) - len(self.text)
        return crlf * 2 > self.text.count("\n")

    def replaced(self, spans: Sequence[tuple[int, int]], new: str) -> str:
        """Return `raw` with `new` in place of each span of `text`; the spans are in order, apart.

        New lines get the line ends of what they replace, else those of most of the file.
        """
        places = self._crlf_places()
        pieces: list[str] = []
        end = 0
        for start, stop in spans:
            raw_start, raw_stop = _raw(start, places), _raw(stop, places)
            old = self.raw[raw_start:raw_stop]
            is_crlf = old.count("\r\n") * 2 > old.count("\n") if "\n" in old else self.has_crlf
            pieces += (self.raw[end:raw_start], _with_ends(new, is_crlf=is_crlf))
            end = raw_stop
        return "".join((*pieces, self.raw[end:]))

    def rewritten(self, content: str) -> str:
        """Return new content for the whole file: with the line ends of now, unless it has Windows ones."""
        return content if "\r\n" in content else _with_ends(content, is_crlf=self.has_crlf)

    def encoded(self, raw: str, shown: str) -> bytes:
        """Return the bytes for the file. Raises ToolError for text that its encoding cannot hold."""
        try:
            return self.mark + raw.encode(self.encoding)
        except UnicodeEncodeError as error:
            character = raw[error.start]
            raise ToolError(
                f"{shown} is encoded as {self.encoding}, which has no {character!r}; nothing was written"
            ) from error

    def _crlf_places(self) -> list[int]:
        r"""List the places in `text` of the line ends that are `\r\n` on disk."""
        if len(self.raw) == len(self.text):
            return []
        ends = [0]
        for piece in self.raw.split("\r\n"):
            ends.append(ends[-1] + len(piece) + 1)
        return [stop - 1 for _, stop in pairwise(ends)][:-1]


def _raw(place: int, crlf_places: list[int]) -> int:
    return place + bisect_left(crlf_places, place)


def _with_ends(text: str, *, is_crlf: bool) -> str:
    plain = text.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if is_crlf else plain
