"""The network of a session's commands in bubblewrap: one namespace with a loopback of its own, from the first background job on.

Without it each command has a network namespace of its own, and nobody reaches a server that another one started. The namespace is
held by descriptors alone, which go with ybs, however that ends: https://man7.org/linux/man-pages/man7/namespaces.7.html. There is
no way from it to the machine's network; a forward is a process that takes connections on the machine's loopback and makes
others inside.
"""

import os
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from select import select
from subprocess import PIPE
from typing import TYPE_CHECKING

from ybs.core.errors import ToolError
from ybs.security.launcher import ask, start, system_program
from ybs.security.sandbox.launch import Launch

if TYPE_CHECKING:
    from subprocess import Popen

ENTER = ("/usr/bin/nsenter", "/bin/nsenter")
_MAKE = (
    "--unshare-user",
    "--unshare-net",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
    "--ro-bind",
    "/",
    "/",
    "--",
)
_TELL_AND_WAIT = ("/bin/sh", "-c", "echo $$; read -r _")
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENING = "0A"  # TCP_LISTEN in include/net/tcp_states.h
_SECONDS = 5.0
_LOOPBACK = "127.0.0.1"
#: Takes connections on descriptor 1st, and passes them on to a port of 127.0.0.1 or ::1; ends with its standard input.
_FORWARD = """\
import asyncio, socket, sys
async def copy(source, sink):
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
        sink.write_eof()
    except OSError:
        pass
async def inside(port):
    for address in ("127.0.0.1", "::1"):
        try:
            return await asyncio.open_connection(address, port)
        except OSError:
            pass
    raise OSError
async def serve(reader, writer):
    try:
        there = await inside(int(sys.argv[2]))
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))
        there[1].close()
    except OSError:
        pass
    writer.close()
async def main():
    taken = socket.socket(fileno=int(sys.argv[1]))
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, ended.set)
    async with await asyncio.start_server(serve, sock=taken):
        await ended.wait()
asyncio.run(main())
"""


class SharedNetwork:
    """Made when it is first needed; `want` says that it is. Where it cannot be had, each command keeps one of its own."""

    def __init__(self) -> None:
        #: Whether commands are to have it.
        self.is_wanted = self._has_failed = False
        self._descriptors: list[int] = []
        self._prefix: tuple[str, ...] = ()
        self._forwards: dict[int, tuple[int, Popen[bytes]]] = {}

    def want(self) -> None:
        """Have commands share a network from now on: something is about to go on in the background."""
        self.is_wanted = True

    def prefix(self, bubblewrap: str) -> tuple[str, ...]:
        """Return what stands before a command so that it starts in the network; nothing where there is none."""
        if self.is_wanted and not self._prefix and not self._has_failed:
            with suppress(OSError, ValueError):
                self._make(bubblewrap)
            self._has_failed = not self._prefix
        return self._prefix

    def _make(self, bubblewrap: str) -> None:
        enter = system_program(ENTER)
        if enter is None:
            return
        making = Launch((bubblewrap, *_MAKE, *_TELL_AND_WAIT), {})
        with start(making, stdin=PIPE, stdout=PIPE, has_own_group=False) as made:
            assert made.stdout is not None  # noqa: S101 - it is a pipe
            ready, _, _ = select([made.stdout], [], [], _SECONDS)
            pid = int(made.stdout.readline() if ready else b"")
            for kind in ("user", "net"):
                self._descriptors.append(os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY))
            made.kill()
        user, net = self._descriptors
        if os.fstat(net).st_ino == Path("/proc/self/ns/net").stat().st_ino:
            return  # never the machine's own
        # By the path of ybs's own descriptor: nsenter closes what it opens, so that the command inherits nothing.
        there = f"/proc/{os.getpid()}/fd"
        alone = (enter, f"--net={there}/{net}", "--")
        whole = (
            enter,
            f"--user={there}/{user}",
            "--preserve-credentials",
            f"--net={there}/{net}",
            "--",
        )
        ways = (alone, whole) if os.geteuid() == 0 else (whole,)
        self._prefix = next((way for way in ways if _works(way, bubblewrap)), ())

    @property
    def is_apart(self) -> bool:
        """Whether commands have one that is not the machine's."""
        return bool(self._prefix)

    def listening(self) -> list[int]:
        """Return the ports on which something inside takes connections; it may wait for a process."""
        if not self._prefix:
            return []
        _, printed, _ = ask(Launch((*self._prefix, "/bin/cat", *_TABLES), {}), _SECONDS)
        rows = [line.split() for line in printed.decode().splitlines()]
        found = {
            int(row[1].rpartition(":")[2], 16)
            for row in rows
            if len(row) > 3 and row[3] == _LISTENING
        }
        return sorted(found)

    @property
    def forwards(self) -> dict[int, int]:
        """The ports that are forwarded, each with its port on the machine's loopback."""
        return {
            port: outside
            for port, (outside, process) in self._forwards.items()
            if process.poll() is None
        }

    def forward(self, port: int) -> int:
        """Let programs of the machine reach a port inside; return the port on 127.0.0.1, the same one where it is free.

        Raises ToolError and OSError.
        """
        if port in self.forwards:
            return self.forwards[port]
        if not self._prefix:
            raise ToolError("Nothing is running in the background in the sandbox.")
        with socket.socket() as taken:
            # A port whose last connections have just ended is free.
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                taken.bind((_LOOPBACK, port))
            except OSError:
                taken.bind((_LOOPBACK, 0))
            taken.listen()
            outside: int = taken.getsockname()[1]
            inner = taken.detach()  # closed once the process has it
            script = (sys.executable, "-I", "-S", "-c", _FORWARD, str(inner), str(port))
            process = start(Launch((*self._prefix, *script), {}, (inner,)), stdin=PIPE)
            self._forwards[port] = outside, process
        return self._forwards[port][0]

    def end(self, port: int) -> bool:
        """End a forward; return whether there was one."""
        outside, process = self._forwards.pop(port, (0, None))
        if process is not None:
            process.kill()
            process.communicate()
        return bool(outside)

    def close(self) -> None:
        """End it: the forwards, and the namespace with the last command in it."""
        for port in tuple(self._forwards):
            self.end(port)
        while self._descriptors:
            os.close(self._descriptors.pop())
        self._prefix, self.is_wanted, self._has_failed = (), False, False


def _works(prefix: Sequence[str], bubblewrap: str) -> bool:
    """Return whether a sandbox can be built in there."""
    inside = ("--unshare-user", "--ro-bind", "/", "/", "--", "/bin/sh", "-c", ":")
    return ask(Launch((*prefix, bubblewrap, *inside), {}), _SECONDS)[0] == 0
