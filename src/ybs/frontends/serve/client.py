"""A client of the server in this process: connects to it, starts one where none runs, calls methods and hears what is told."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, Final, Self, TypeVar

from msgspec import Raw, Struct

from ybs.config import private_file, private_socket
from ybs.config.host import Host
from ybs.core.decoding import from_json
from ybs.core.errors import YbsError
from ybs.frontends.serve import protocol as wire
from ybs.frontends.serve.place import ServerPlace
from ybs.providers.local.process import exit_code, spawn
from ybs.security.launcher import environ_away, python
from ybs.session.options import Options
from ybs.transcripts.line import json_of

_T = TypeVar("_T")
_LIMIT: Final = 1 << 27
_CONNECT_SECONDS: Final = 10.0
_START_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 0.05
#: Variables of the server itself, for turns that it takes up after a kill: none of a project's.
_KEPT: Final = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "PATH", "YBS_HOME")
_KEPT_BEGINNINGS: Final = ("LC_", "XDG_", "SSL_CERT_")


class ServerGone(YbsError):
    """The server has ended before it answered."""

    def __init__(self) -> None:
        super().__init__("The server has stopped.")


class _Message(Struct, frozen=True):
    """A message of the server."""

    id: int | None = None
    method: str = ""
    params: Raw = Raw(b"{}")
    result: Raw = Raw(b"null")
    error: dict[str, Any] | None = None


class ServerClient:
    """Calls methods. What the server tells, and the answers to `later`, come in their order from `told`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._waiting: dict[int, asyncio.Future[Raw]] = {}
        self._number = 0
        self._told: asyncio.Queue[_Message | None] = asyncio.Queue()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, place: ServerPlace) -> Self:
        """Connect to a server that runs. Raises OSError, YbsError where it speaks another version."""
        link = await asyncio.to_thread(private_socket.connect, place.path, _CONNECT_SECONDS)
        client = cls(*await asyncio.open_unix_connection(sock=link, limit=_LIMIT))
        try:
            await client.call(
                "hello", wire.Hello(version=wire.VERSION, client="ybs", token=place.token())
            )
        except BaseException:
            await client.aclose()
            raise
        return client

    async def call(self, method: str, params: Struct, kind: type[_T] = Raw) -> _T:
        """Call a method and return its result. Raises YbsError, also where the server has gone."""
        if self._reading.done():
            raise ServerGone
        number = self.begin_request(method, params)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        data = await answer
        return data if kind is Raw else from_json(data, kind)

    def begin_request(self, method: str, params: Struct) -> int:
        """Call a method whose answer comes with what is told, and return the number of the request."""
        self._number += 1
        form = b'{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}\n'
        self._writer.write(form % (self._number, method.encode(), json_of(params)))
        return self._number

    async def told(self) -> _Message | None:
        """Return the next message that is told; None where the server has gone."""
        return await self._told.get()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def streams(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return the streams, for whoever speaks another protocol on them from now on."""
        self._reading.cancel()
        await asyncio.wait((self._reading,))
        return self._reader, self._writer

    async def aclose(self) -> None:
        """Leave."""
        _, writer = await self.streams()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async def _read(self) -> None:
        try:
            async for line in self._reader:
                self._take(from_json(line, _Message))
        except (OSError, ValueError):  # a line that is too long is none of this server's
            pass
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(ServerGone())
            self._told.put_nowait(None)

    def _take(self, message: _Message) -> None:
        answer = self._waiting.pop(message.id or 0, None)
        if answer is None:
            self._told.put_nowait(message)
        elif message.error is not None and not answer.done():
            answer.set_exception(YbsError(str(message.error["message"])))
        elif not answer.done():
            answer.set_result(message.result)


async def agent_streams(
    options: Options, *, starts: bool
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return streams to an agent in the server that speaks the Agent Client Protocol. Raises OSError where no server runs and none `starts`, BadOption for options that no server is told, and YbsError."""
    opening, place = wire.for_server(options), ServerPlace.of(options.host)
    client = await (connect(options.host) if starts else ServerClient.connect(place))
    try:
        await client.call("acp", opening)
        return await client.streams()
    except BaseException:
        await client.aclose()
        raise


async def connect(host: Host) -> ServerClient:
    """Connect to this person's server, and start it where none runs. Raises YbsError."""
    place = ServerPlace.of(host)
    try:
        return await ServerClient.connect(place)
    except (OSError, ServerGone):  # one that was killed takes connections until the last moment
        return await _started(host, place)


async def _started(host: Host, place: ServerPlace) -> ServerClient:
    private_file.make_folder(place.state_folder)
    environ = environ_away(own_environ(host.environ), for_ybs=True)
    pid = spawn(python("-m", "ybs", "serve"), b"", place.log_file, environ)
    ends_at, code = monotonic() + _START_SECONDS, None
    while monotonic() < ends_at:
        # One that ended at once may have found another, which another client has started.
        code = exit_code(pid) if code is None else code
        with suppress(OSError, ServerGone):
            return await ServerClient.connect(place)
        await asyncio.sleep(_LOOK_SECONDS if code is None else 10 * _LOOK_SECONDS)
    why = (private_file.read(place.log_file) or b"").decode(errors="replace").strip()
    raise YbsError(f"The server did not start. {why or f'See {place.log_file}.'}")


def own_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a server has which no client hands any: folders, language, proxies, and keys of providers."""
    return {
        name: value
        for name, value in environ.items()
        if name in _KEPT
        or name.startswith(_KEPT_BEGINNINGS)
        or name.endswith("_API_KEY")
        or name.lower().endswith("_proxy")
    }
