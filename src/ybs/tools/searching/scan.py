"""Counts the lines of files that a pattern matches, in a process of its own, and tells where the first ones are.

A match in `re` holds every thread of its process: so it works in one that can be killed, where an alarm ends what
takes too long on one file. The process gets one marshalled dictionary, and writes a line for each file about which
there is something to say: a kind, the file's number, and for `hit` the count of its matching lines and places
`line:byte`. It loads little, to start quickly.
"""

import marshal
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ybs.tools.reading.charsets import narrow_encoding
from ybs.tools.searching.blocks import Binary, Files, blocks

_CPU_SECONDS = 60  # nobody is left to stop it after that
_MOST_MEMORY = 4_000_000_000  # bytes; a match of a very long line may want any amount
_BLOCK_SECONDS = 1.0  # of CPU time for one block of a file, however short it is ...
_BYTES_PER_SECOND = 2_000_000  # ... and more for a long one
_WESTERN = ("cp1252", "latin-1")

Write = Callable[[str], None]


class Slow(Exception):
    """The pattern takes too long on a file."""


class Alarm:
    """Ends a match after a time. `re` looks for signals while it matches; it does so in a main thread only."""

    def __init__(self) -> None:
        self._is_set = False
        signal.signal(signal.SIGPROF, self._ring)

    def set(self, seconds: float) -> None:
        """Raise Slow after so much CPU time."""
        self._is_set = True
        signal.setitimer(signal.ITIMER_PROF, seconds)

    def stop(self) -> None:
        """Raise nothing any more."""
        self._is_set = False
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _ring(self, *_: object) -> None:
        if self._is_set:
            raise Slow


class Tally:
    """What was found in one file so far: matching lines, and the places of the first `most`."""

    def __init__(self, most: int) -> None:
        self.most, self.lines, self.count = most, 0, 0
        self.places: list[str] = []

    def add(self, line: int, byte: int) -> None:
        """Count a line, from 0 within the block, with the byte in it where the match is."""
        self.count += 1
        self.places.append(f"{self.lines + line}:{byte}")


class Scan:
    """A pattern and what is left to be told. `request` is what the engine made."""

    def __init__(self, request: dict[str, Any], write: Write, alarm: Alarm) -> None:
        self._data = _Matcher(request, request["data"].encode())
        self._request = request
        self._text: _Matcher | None = None  # most files need none
        self._seeds = tuple(seed.encode() for seed in request["seeds"])
        self._folds = bool(request["folds"])
        self._left: int = request["most"]
        self._write, self._alarm = write, alarm

    def look_into(self, number: int, files: Files, path: str) -> None:
        """Report what is found in one file."""
        tally = Tally(self._left)
        was_short = is_slow = False
        try:
            for data, was_cut in blocks(files.open(path), reads_wide=self._request["named"]):
                was_short |= was_cut
                if self._may_match(data) and (is_slow := self._is_slow(data, tally)):
                    break
                tally.lines += data.count(b"\n")
        except Binary:
            self._write(f"binary {number}")
            return
        except OSError:
            self._write(f"skipped {number}")
        if was_short:
            self._write(f"shortened {number}")
        if is_slow:
            self._write(f"slow {number}")
        if tally.count:
            self._left -= len(tally.places)
            self._write(f"hit {number} {tally.count} {' '.join(tally.places)}")

    def _may_match(self, data: bytes) -> bool:
        if not self._seeds:
            return bool(data)
        searched = data.lower() if self._folds else data
        return any(seed in searched for seed in self._seeds)

    def _is_slow(self, data: bytes, tally: Tally) -> bool:
        """Count what is in a block; return whether that took too long, so that only its beginning counts."""
        matcher, subject = self._data, data
        if not data.isascii():
            if self._text is None:
                self._text = _Matcher(self._request, self._request["text"])
            matcher, subject = self._text, self._decoded(data, self._text)
        try:
            self._alarm.set(_BLOCK_SECONDS + len(data) / _BYTES_PER_SECOND)
            matcher.count(subject, tally)
            self._alarm.stop()
        except (Slow, MemoryError):
            self._alarm.stop()
            return True
        return False

    def _decoded(self, data: bytes, matcher: "_Matcher") -> str:
        """Decode as UTF-8, or in the East Asian encoding it is in, if the pattern names characters."""
        matcher.encoding = "utf-8"
        try:
            return data.decode()
        except UnicodeDecodeError:
            if self._request["wide"]:
                name = narrow_encoding(data)
                if name not in _WESTERN:  # of these each byte can be told by itself
                    matcher.encoding = name
        return data.decode(matcher.encoding, "surrogateescape")


class _Matcher:
    """The pattern for text or for bytes: `Any` stands for either."""

    def __init__(self, request: dict[str, Any], pattern: Any) -> None:
        is_text = isinstance(pattern, str)
        self._is_text = is_text
        self.encoding = "utf-8"  # of the text, as it is in the file
        self._regex: Any = re.compile(pattern, re.MULTILINE)
        # It takes the rest of the line with it, so that each line is counted once, by one call.
        rest: Any = r"(?:%s)[^\n]*\n" if is_text else rb"(?:%s)[^\n]*\n"
        self._counter: Any = re.compile(rest % pattern, re.MULTILINE)
        self._end: Any = "\n" if is_text else b"\n"
        seeds: Sequence[str] = () if request["literal"] else request["seeds"]
        self._seeds: tuple[Any, ...] = (
            tuple(seeds) if is_text else tuple(seed.encode() for seed in seeds)
        )
        self._folds = bool(request["folds"])
        if is_text and self._folds:
            self._seeds = ()  # text may get longer when its letters get small

    def count(self, subject: Any, tally: Tally) -> None:
        """Count the lines that match, and note the first of them."""
        if subject[-1:] != self._end:
            subject += self._end
        number = last = rest = 0
        hits = self._hits(subject)
        while len(tally.places) < tally.most:
            hit = next(hits, None)
            if hit is None:
                return
            start, place = hit
            number += subject.count(self._end, last, start)
            last = start
            tally.add(number, len(self._bytes(subject[start:place])))
            rest = subject.find(self._end, place) + 1
        for _ in hits if self._seeds else self._counter.finditer(subject, rest):
            tally.count += 1

    def _bytes(self, head: Any) -> bytes:
        return head.encode(self.encoding, "surrogateescape") if self._is_text else head

    def _hits(self, subject: Any) -> Iterator[tuple[int, int]]:
        """Yield for each matching line where it starts, and where the match does."""
        if not self._seeds:
            for found in self._counter.finditer(subject):
                yield subject.rfind(self._end, 0, found.start()) + 1, found.start()
            return
        for start, end in self._candidates(subject):
            if found := self._regex.search(subject, start, end):
                yield start, found.start()

    def _candidates(self, subject: Any) -> Iterator[tuple[int, int]]:
        """Yield start and end of each line that holds a seed."""
        searched = subject.lower() if self._folds else subject
        find = searched.find
        places = {seed: find(seed) for seed in self._seeds}
        places = {seed: place for seed, place in places.items() if place >= 0}
        while places:
            place = min(places.values())
            start = searched.rfind(self._end, 0, place) + 1
            end = searched.find(self._end, place)
            yield start, end
            for seed, old in list(places.items()):
                if old < end:
                    places[seed] = find(seed, end)
                    if places[seed] < 0:
                        del places[seed]


def run(request: dict[str, Any], write: Write) -> None:
    """Look into every file of the request; what is found is written as it is found."""
    scan = Scan(request, write, Alarm())
    first: int = request["first"]
    step: int = request["step"]
    try:
        files = Files(request["folder"])
    except OSError:  # it has gone, or is a link by now
        for place in range(len(request["paths"])):
            write(f"skipped {first + place * step}")
        return
    for place, path in enumerate(request["paths"]):
        scan.look_into(first + place * step, files, path)
    files.close()


def main() -> None:
    """Answer the request on standard input."""
    import resource  # only the own process has limits

    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))

    def write(line: str) -> None:
        data = f"{line}\n".encode()
        while data:  # it may be killed at any time, so nothing is held back
            data = data[os.write(1, data) :]

    request = marshal.loads(sys.stdin.buffer.read())  # noqa: S302 - ybs itself wrote it, a moment ago
    run(request, write)
