"""Decoded views of a text: encodings and disguises undone, with the origin of each part."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator

from ybs.core.lazy import lazy

#: Stands between parts that have nothing to do with each other; no rule reaches across it.
SEPARATOR = b"\n\x01\n"
#: How much is read along with what was undone, in bytes, before and behind.
_BEFORE, _BEHIND = 200, 400
#: What is undone counts where it makes a part of a long word, which may be encoded itself, or where there is much of it.
_LONG, _LEAST_LONG, _MANY = 64, 16, 8
_WORD = lazy(rb"[0-9A-Za-z_.:/~|$%&#;\\+=@!^*?-]{0,64}")
_WORD_BEFORE = lazy(rb"[0-9A-Za-z_.:/~|$%&#;\\+=@!^*?-]{0,64}\Z")
_PLAIN = b"abcdefghijklmnopqrstuvwxyz_.:/=;#-"


class TextView:
    """A text made of parts of another. `layer` says what was undone."""

    def __init__(self, layer: str) -> None:
        self.layer = layer
        self._parts: list[bytes] = []
        #: Where each part begins here; where it is from; whether it is as it was, so that places within correspond.
        self._places: list[int] = []
        self._sources: list[tuple[int, int, bool]] = []
        self._size = 0

    @property
    def data(self) -> bytes:
        """The text."""
        return b"".join(self._parts)

    def __len__(self) -> int:
        return self._size

    def add(self, start: int, end: int, part: bytes, *, is_same: bool = False) -> None:
        """Append a part that `start` to `end` of the source says."""
        self._places.append(self._size)
        self._sources.append((start, end, is_same))
        self._parts.append(part)
        self._size += len(part)

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Return the part of the source that `start` to `end` of this text came from."""
        first = bisect_right(self._places, start) - 1
        last = bisect_right(self._places, max(start, end - 1)) - 1
        begin, _, is_same = self._sources[first]
        if is_same:
            begin += start - self._places[first]
        origin, stop, is_same = self._sources[last]
        if is_same:
            stop = origin + end - self._places[last]
        return begin, stop

    def joints(self, start: int = -1, end: int | None = None) -> list[int]:
        """Return the places between `start` and `end` of this text at which something was undone."""
        first = bisect_right(self._places, start)
        last = bisect_right(self._places, self._size if end is None else end)
        parts = zip(self._places[first:last], self._sources[first:last], strict=True)
        return [place for place, (_, _, is_same) in parts if not is_same]

    def is_changed(self, start: int, end: int) -> bool:
        """Return whether something was undone between `start` and `end` of this text."""
        first = bisect_right(self._places, start) - 1
        last = bisect_right(self._places, max(start, end - 1)) - 1
        return first != last or not self._sources[first][2]


def view_of(layer: str, found: Iterable[tuple[int, int, bytes]]) -> TextView:
    """Return the view of encoded runs, each on a line of its own; a finding in one is all of it."""
    view = TextView(layer)
    for start, end, decoded in found:
        view.add(start, end, decoded)
        view.add(end, end, SEPARATOR)
    return view


def substituted(
    layer: str,
    data: bytes,
    matches: Iterator[re.Match[bytes]],
    replace: Callable[[re.Match[bytes]], bytes],
    is_kept: Callable[[bytes], bool] = lambda _text: False,
) -> TextView:
    """Return the text around the matches with them replaced, where a match is a part of a long word or that text `is_kept`."""
    view = TextView(layer)
    window: list[tuple[int, int, bytes]] = []
    reach = 0
    for match in matches:
        start, end = match.span()
        if window and start < window[-1][1]:
            continue
        if window and start > window[-1][1] + _BEHIND:
            reach = _add(view, data, window, reach, is_kept)
            window = []
        window.append((start, end, replace(match)))
    if window:
        _add(view, data, window, reach, is_kept)
    return view


def _add(
    view: TextView,
    data: bytes,
    window: list[tuple[int, int, bytes]],
    reach: int,
    is_kept: Callable[[bytes], bool],
) -> int:
    """Append a window unless nothing in it became a part of a long word; return where it ends."""
    done = max(reach, window[0][0] - _BEFORE)
    parts: list[tuple[int, int, bytes, bool]] = []
    changed: list[tuple[int, int]] = []
    size = 0
    for start, end, part in window:
        parts += ((done, start, data[done:start], True), (start, end, part, False))
        size += start - done
        changed.append((size, size + len(part)))
        size += len(part)
        done = end
    stop = min(done + _BEHIND, len(data))
    parts.append((done, stop, data[done:stop], True))
    text = b"".join(part for _, _, part, _ in parts)
    is_many = len(changed) >= _MANY
    if is_many or any(_is_in_long_word(text, *place) for place in changed) or is_kept(text):
        for start, end, part, is_same in parts:
            view.add(start, end, part, is_same=is_same)
        view.add(stop, stop, SEPARATOR)
    return stop


def _is_in_long_word(text: bytes, start: int, end: int) -> bool:
    """Return whether what stands around the place is long and has more than small letters in it.

    What was undone there may be no part of a word itself, as a character without a width.
    """
    before, behind = (
        _WORD_BEFORE().search(text, max(0, start - _LONG), start),
        _WORD().match(text, end),
    )
    word = (before[0] if before else b"") + (behind[0] if behind else b"")
    return len(word) >= _LEAST_LONG and bool(word.translate(None, _PLAIN))
