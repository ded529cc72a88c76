"""`ybs serve`: opens the sockets, and serves clients until it is told to end or nobody has used it for long."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

import msgspec

from ybs.config.host import Host
from ybs.config.private_file import Busy
from ybs.config.private_socket import peer_uid
from ybs.core.errors import YbsError
from ybs.frontends.headless.output import UsageError, tell
from ybs.frontends.headless.run import SIGNALS
from ybs.frontends.serve.connection import ClientConnection
from ybs.frontends.serve.place import ServerPlace
from ybs.frontends.serve.protocol import protocol_schema
from ybs.frontends.serve.sessions import HostedSessions
from ybs.security.gate import put_json
from ybs.security.incognito import leave_no_dump
from ybs.session.options import Options
from ybs.trust.settings import load

if TYPE_CHECKING:
    from argparse import Namespace


MOST_CONNECTIONS: Final = 200
_LOOK_SECONDS: Final = 10.0
#: So long clients have at the end to read why.
_END_SECONDS: Final = 2.0
ENDS: Final = "The server ends."


class SessionServer:
    """Serves clients until nobody has used it for `keep_seconds` (None: for ever), or `stop`.

    `sessions` are its sessions, for other frontends in this process. Where it `stays`, it does not end for want of clients.
    """

    def __init__(
        self, host: Host, place: ServerPlace, *, keep_seconds: float | None, stays: bool = False
    ) -> None:
        self._place, self._keep_seconds = place, keep_seconds
        self.sessions = HostedSessions(host, place.state_folder / "open.json")
        self._stays = stays
        self._clients: dict[ClientConnection, asyncio.Task[None] | None] = {}
        self._used_at = monotonic()
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """End: sessions are closed, and clients told."""
        self._stopped.set()

    async def run(self, listening: Iterable[socket.socket]) -> None:
        """Serve at these sockets."""
        await self.sessions.take_up()
        servers = [await self._serve_at(each) for each in listening]
        try:
            await self._until_unused()
        finally:
            for each in servers:
                each.close()
            await self._end()

    async def _serve_at(self, listening: socket.socket) -> asyncio.Server:
        is_unix = listening.family == socket.AF_UNIX
        token = "" if is_unix and self._place.is_own else self._place.token()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            peer = writer.get_extra_info("socket")
            is_ours = not is_unix or peer_uid(peer) == os.geteuid()
            if not is_ours or len(self._clients) >= MOST_CONNECTIONS:
                writer.transport.abort()
                return
            client = ClientConnection(self.sessions, reader, writer, token=token)
            self._clients[client] = asyncio.current_task()
            try:
                await client.run()
            finally:
                del self._clients[client]
                self._used_at = monotonic()

        start = asyncio.start_unix_server if is_unix else asyncio.start_server
        return await start(connected, sock=listening)

    async def _until_unused(self) -> None:
        """Wait for `stop`, or until nobody has used the server for long; close sessions that nobody has used for as long."""
        keep = self._keep_seconds
        while not self._stopped.is_set():
            with suppress(TimeoutError):
                pause = None if keep is None else min(keep / 4, _LOOK_SECONDS)
                await asyncio.wait_for(self._stopped.wait(), pause)
            now = monotonic()
            for held in self.sessions.held:
                if held.is_used:
                    held.note_use(now)
                    self._used_at = now
                elif held.is_own and keep is not None and now - held.used_at >= keep:
                    await self.sessions.close(held, "Nobody has used it for long.")
            if self._clients or self._stays:
                self._used_at = now
            elif keep is not None and now - self._used_at >= keep:
                return

    async def _end(self) -> None:
        self._place.close()
        for client in tuple(self._clients):
            client.end(ENDS)
        await self.sessions.aclose(ENDS)
        for seconds in (_END_SECONDS, None):
            if tasks := [task for task in self._clients.values() if task is not None]:
                await asyncio.wait(tasks, timeout=seconds)
            for task in tasks:
                task.cancel()


LOOPBACK = "127.0.0.1"


def serve(arguments: "Namespace", host: Host) -> int:
    """Serve the sessions of this person, or print the schema of the protocol; return the exit code. Raises YbsError and OSError."""
    if arguments.schema:
        data = msgspec.json.encode(protocol_schema())
        put_json(msgspec.json.format(data, indent=2) + b"\n", sys.stdout)
        return 0
    started_in = Path.cwd()
    place = ServerPlace.of(host, Path(arguments.socket) if arguments.socket else None)
    try:
        lock = place.lock()
    except Busy as error:
        raise YbsError(f"A server runs at {place.path} already.") from error
    os.chdir(
        "/"
    )  # the folder that it was started in may go away, and is no project of most sessions
    # What is asked for by a project's settings is not for all projects.
    settings = load(host, folder=place.state_folder).config.serve
    keep = None if settings.keep_minutes is None else settings.keep_minutes * 60
    listening = [place.listen()]
    if arguments.tcp:
        listening.append(listening_at("--tcp", arguments.tcp))
    place.make_token()
    tell(f"ybs: serving at {place.path}; Ctrl-C ends it")
    if arguments.tcp or not place.is_own:
        tell(f"ybs: clients need the token in {place.token_file}")
    has_page = arguments.web is not None
    server = SessionServer(host, place, keep_seconds=keep, stays=has_page)
    try:
        options = Options(host=host, folder=started_in, before_incognito=leave_no_dump)
        page = _page(arguments, options, server.sessions)
        return asyncio.run(_run(server, listening, page if has_page else nullcontext()))
    except UsageError as error:
        tell(f"ybs: {error}")
        return 2
    finally:
        os.close(lock)


@asynccontextmanager
async def _page(
    arguments: "Namespace", options: Options, sessions: HostedSessions
) -> AsyncGenerator[None]:
    """Serve the page on the sessions of the server as well. Raises UsageError and YbsError."""
    from ybs.frontends.web.command import shown  # few want it

    async with shown(arguments, arguments.web, options, sessions):
        yield


async def _run(
    server: SessionServer, listening: list[socket.socket], page: AbstractAsyncContextManager[None]
) -> int:
    loop, code = asyncio.get_running_loop(), 0

    def end(number: int) -> None:
        nonlocal code
        code = code or number
        server.stop()

    for number, ends_with in SIGNALS.items():
        loop.add_signal_handler(number, end, ends_with)
    loop.add_signal_handler(signal.SIGHUP, lambda: None)  # the terminal that started it may go
    async with page:
        await server.run(listening)
    return code


def listening_at(option: str, where: str) -> socket.socket:
    """Return a socket at a port of this machine, or at the address that the person named with an option. Raises YbsError."""
    address, _, port = where.rpartition(":")
    address = address.strip("[]") or LOOPBACK
    try:
        number = int(port)
        return socket.create_server(
            (address, number), family=socket.AF_INET6 if ":" in address else socket.AF_INET
        )
    except (ValueError, OverflowError) as error:
        raise YbsError(f"{option} takes PORT or ADDRESS:PORT, not {where!r}.") from error
    except OSError as error:
        raise YbsError(f"ybs cannot listen at {where}: {error.strerror}.") from error
