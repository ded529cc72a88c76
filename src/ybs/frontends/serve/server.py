"""The server's sockets, its clients, and its end: when it is told to, or when nobody has used it for long."""

import asyncio
import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from time import monotonic
from typing import Final

from ybs.config.host import Host
from ybs.frontends.serve.connection import ClientConnection
from ybs.frontends.serve.place import ServerPlace, peer_uid
from ybs.frontends.serve.sessions import HostedSessions

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
