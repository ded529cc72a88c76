"""Drives a real `ybs` on a pseudo-terminal: types, reads what is drawn, and asks the kernel what it used."""

import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from typing import Self

from lab import HERE, YBS, Lab, make_project

SIZE_MB = 2**20
#: The drawn prompt: the sign, with attributes around it.
PROMPT = "\u203a".encode()


class Typist:
    """A terminal of 100 x 30 with a person before it. Use as a context manager."""

    def __init__(
        self,
        argv: list[str],
        folder: Path,
        environment: dict[str, str],
        *,
        columns: int = 100,
        rows: int = 30,
    ) -> None:
        self.seen = bytearray()
        self._left = b""
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(argv[0], argv, {**environment, "TERM": "xterm-256color"})
        ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.close(self._terminal)
        _, _, self.used = os.wait4(self.pid, 0)  # with the children waited for

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._terminal, text.encode())

    def read(self, seconds: float) -> bytes:
        """Wait for output so long; return the piece that came."""
        if not select.select([self._terminal], [], [], max(0.0, seconds))[0]:
            return b""
        try:
            piece = os.read(self._terminal, 65_536)
        except OSError:  # Linux says so when nobody has the other side open any more
            raise SystemExit(f"ybs has ended:\n{self.seen.decode(errors='replace')}") from None
        self.seen += piece
        del self.seen[:-SIZE_MB]
        return piece

    def rest(self, seconds: float) -> None:
        """Do nothing but read for so long."""
        ends_at = time.monotonic() + seconds
        while (left := ends_at - time.monotonic()) > 0:
            self.read(left)

    def waits_for(self, text: bytes, seconds: float = 60) -> None:
        """Read until the text has come, after what the call before this one waited for."""
        ends_at, seen = time.monotonic() + seconds, self._left
        while text not in seen:
            if time.monotonic() > ends_at:
                raise SystemExit(f"{text!r} never came:\n{self.seen.decode(errors='replace')}")
            seen = seen[-len(text) :] + self.read(1)
        self._left = seen.partition(text)[2]

    def echo_seconds(self, key: str) -> float:
        """Press a key that stands nowhere on the screen yet; return the time until it does."""
        wanted, seen, self._left = key.encode(), b"", b""
        pressed_at = time.monotonic()
        self.type(key)
        while wanted not in seen:
            if time.monotonic() > pressed_at + 20:
                raise SystemExit(f"{key!r} never came:\n{self.seen.decode(errors='replace')}")
            seen = seen[-len(wanted) :] + self.read(1)
        return time.monotonic() - pressed_at

    @property
    def cpu_seconds(self) -> float:
        """The CPU time of ybs itself, without the commands that it ran."""
        words = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self, kind: str = "VmRSS") -> float:
        """Ask for the memory that ybs has now, or with `VmHWM` the most that it ever had."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        line = next(line for line in lines if line.startswith(f"{kind}:"))
        return int(line.split()[1]) * 1024 / SIZE_MB


@contextmanager
def paced(plan: str) -> Iterator[str]:
    """Start the paced server; give the endpoint of a plan."""
    command = [sys.executable, str(HERE / "paced.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/{plan}/v1"
        server.stdin.close()


@contextmanager
def typing(lab: Lab, plan: str, *options: str) -> Iterator[Typist]:
    """Start ybs before the paced server, in a project of its own, ready for words."""
    project = lab.folder / f"terminal-{plan}"
    make_project(project)
    with paced(plan) as endpoint:
        argv = [YBS, "--provider", "openai", "--model", "fake", "--endpoint", endpoint, *options]
        environment = {**lab.environment, "YBS_GIT__AUTO_COMMIT": "true"}  # no question about it
        with Typist(argv, project, environment) as typist:
            typist.waits_for(PROMPT)
            typist.rest(1)  # what loads after the prompt has loaded
            yield typist
