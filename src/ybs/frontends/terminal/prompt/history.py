"""The input history of each project: read after the first drawing, written beside the work, never in incognito."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from time import sleep, time

import msgspec
from msgspec import Struct
from prompt_toolkit.history import History

from ybs.config import private_file
from ybs.config.host import Host
from ybs.core.decoding import decodable
from ybs.core.errors import YbsError
from ybs.frontends.terminal.session import TerminalSession

#: A file beyond one of these is cut to its newest half.
MOST_ENTRIES, MOST_BYTES = 1_000, 1_000_000
#: A longer text is remembered until the end only.
MOST_CHARACTERS = 20_000
#: How often, and how long each time, it is waited for another ybs that writes.
_TRIES, _WAIT_SECONDS = 50, 0.02


class _Entry(Struct, frozen=True):
    """A line of the file: when, and what."""

    at: float
    text: str


class LineHistory(History):
    """What was typed. Without a `path` it lasts as long as the process.

    What is written down the session says, with the line that it takes: that may be meant for the incognito session that begins
    before. What was typed or taken in one (`is_incognito`) is forgotten when it has ended.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        is_incognito: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__()
        self._path, self._is_incognito = path, is_incognito
        self._unwritten: list[str] = []
        self._due: dict[str, str] = {}
        self._pending: deque[_Entry] = deque()
        self._writing = threading.Lock()
        self._count = 0

    async def load(self) -> AsyncGenerator[str]:
        """Yield earlier inputs, the newest first."""
        if not self._loaded:
            older = await asyncio.to_thread(lambda: list(self.load_history_strings()))
            self._loaded = True
            sent = set(self._loaded_strings)  # before the file was read, and perhaps in it
            self._loaded_strings += [text for text in older if text not in sent]
        for text in tuple(self._loaded_strings):
            yield text

    def load_history_strings(self) -> Iterable[str]:
        """Read the file, the newest first; what cannot be read is left out."""
        entries = read_entries(self._path) if self._path is not None else []
        self._count = len(entries)
        return [entry.text for entry in reversed(entries)]

    def remember(self, text: str, written: str) -> None:
        """Keep a text. `written` is how it looks once it is taken; empty, it is never written down."""
        if self._loaded_strings[:1] == [text]:
            return
        self._loaded_strings.insert(0, text)
        if self._is_incognito():
            self._unwritten.append(text)
        if written:
            self._due[written] = text

    def write_down(self, taken: str, kept: str | None) -> None:
        """Write down `kept` where what is taken now was remembered, whole or line by line. None: it is incognito."""
        lines = f"\n{taken}\n"
        parts = [taken] if taken in self._due else [e for e in self._due if f"\n{e}\n" in lines]
        texts = [self._due.pop(each) for each in parts]
        if kept is None:
            self._unwritten += texts
        elif kept and "\n".join(parts) == taken:  # nothing in it came from elsewhere
            self.store_string(kept)

    def forget(self) -> bool:
        """Forget what was typed in incognito once that has ended; return whether there was something."""
        if not self._unwritten or self._is_incognito():
            return False
        gone = set(self._unwritten)
        self._unwritten.clear()
        self._loaded_strings = [text for text in self._loaded_strings if text not in gone]
        return True

    def store_string(self, string: str) -> None:
        """Write a text down, off the loop that draws."""
        if self._path is None or len(string) > MOST_CHARACTERS:
            return
        self._pending.append(_Entry(time(), string))
        asyncio.get_running_loop().run_in_executor(None, self._write)

    def _write(self) -> None:
        """Write what is due; the order stays, whichever thread comes first."""
        with self._writing:
            entries = [self._pending.popleft() for _ in range(len(self._pending))]
            if entries and self._path is not None:
                with suppress(YbsError, OSError):  # a home that cannot be written disturbs no work
                    self._count = write_entries(self._path, entries, self._count)


def open_history(session: TerminalSession) -> LineHistory:
    """Open the history of the session's project, or one that lasts as long as the process."""
    path = history_file(session.host, session.folder) if session.config.ui.history else None
    return LineHistory(path, is_incognito=lambda: session.environment.incognito.is_on)


def history_file(host: Host, folder: Path) -> Path:
    """Return the file for a project's folder."""
    from hashlib import sha256  # after the first drawing is soon enough

    name = sha256(str(folder).encode(errors="surrogateescape")).hexdigest()
    return host.state_folder / "history" / f"{name}.jsonl"


def read_entries(path: Path) -> list[_Entry]:
    """Read a file, the oldest first. What is not an entry is left out; so is all where it cannot be read."""
    try:
        data = private_file.read(path) or b""
    except (YbsError, OSError):
        return []
    return list(_entries(data))


def write_entries(path: Path, entries: Iterable[_Entry], count: int) -> int:
    """Add entries to the file, cut it where it has become too long, and return how many it has.

    Raises OSError and YbsError.
    """
    data = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
    with _locked(path) as log:
        log.append(data)
        count += data.count(b"\n")
        if count <= MOST_ENTRIES and path.stat().st_size <= MOST_BYTES:
            return count
        kept = _newest_half((private_file.read(path) or b"").splitlines(keepends=True))
        private_file.replace(path, b"".join(kept))
        return len(kept)


def _newest_half(lines: list[bytes]) -> list[bytes]:
    kept: deque[bytes] = deque()
    size = 0
    for line in reversed(lines[-MOST_ENTRIES // 2 :]):
        size += len(line)
        if size > MOST_BYTES // 2:
            break
        kept.appendleft(line)
    return list(kept)


def _locked(path: Path) -> private_file.PrivateLog:
    for _ in range(_TRIES):
        try:
            return private_file.PrivateLog(path)
        except private_file.Busy:
            sleep(_WAIT_SECONDS)
    return private_file.PrivateLog(path)


def _entries(data: bytes) -> Iterable[_Entry]:
    decode = msgspec.json.Decoder(decodable(_Entry)).decode
    for line in data.splitlines():
        try:
            yield decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # another version's, or damaged
