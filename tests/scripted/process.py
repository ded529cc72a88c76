"""ServerProcess: a scripted server in a process of its own, for tests that start the real command."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE, Popen
from types import TracebackType
from typing import Literal, Self

import msgspec

from scripted.faults import Entry
from scripted.http import RecordedRequest
from ybs.testing.script import ScriptOver


class ServerProcess:
    """Starts a scripted server with `with`, and ends it. Its files go to `folder`.

    Entries that are functions cannot leave the process, so the script holds plain entries only.
    """

    def __init__(
        self,
        wire: Literal["openai", "ollama", "anthropic"],
        script: Sequence[Entry],
        folder: Path,
        *options: str,
    ) -> None:
        self.url = ""
        self._script, self._record = folder / f"{wire}-script.json", folder / f"{wire}-requests"
        self._script.write_bytes(msgspec.json.encode(script))
        self._record.write_bytes(b"")
        files = ("--script", str(self._script), "--record", str(self._record))
        self._command = (sys.executable, "-m", "scripted", "--wire", wire, *files)
        self._options = options
        self._process: Popen[bytes] | None = None

    def __enter__(self) -> Self:
        paths = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        self._process = Popen([*self._command, *self._options], stdout=PIPE, env=paths)
        if self._process.stdout is not None:
            self.url = self._process.stdout.readline().decode().strip()
        if not self.url:
            self._end()
            raise RuntimeError("the scripted server did not start; its words are on stderr")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._end() and error is None:
            raise ScriptOver(f"the server got {len(self.requests)} requests, see stderr")

    def _end(self) -> int:
        if self._process is None:
            return 0
        self._process.terminate()
        self._process.communicate(timeout=10)
        return self._process.returncode

    @property
    def requests(self) -> list[RecordedRequest]:
        """Every request so far, oldest first."""
        lines = self._record.read_bytes().splitlines()
        return [msgspec.json.decode(line, type=RecordedRequest) for line in lines]
