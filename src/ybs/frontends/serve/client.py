"""A client of the server in this process, which starts one where none runs; `ybs attach`, `ybs --background`, and what `ybs sessions` says of the server."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final, Self, TypeVar

import msgspec
from msgspec import Raw, Struct

from ybs.config import private_file
from ybs.config.host import Host
from ybs.core.errors import YbsError
from ybs.core.events import StateChanged
from ybs.frontends.headless.output import tell
from ybs.frontends.serve import protocol as wire
from ybs.frontends.serve.place import ServerPlace, short_path
from ybs.providers.local.process import exit_code, spawn
from ybs.security.launcher import environ_away, python
from ybs.session.options import Options
from ybs.transcripts.line import decoded, json_of

_T = TypeVar("_T")
_LIMIT: Final = 1 << 27
_START_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 0.05
#: Variables of the server itself, for turns that it takes up after a kill: none of a project's.
_KEPT: Final = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "PATH", "YBS_HOME")
_KEPT_BEGINNINGS: Final = ("LC_", "XDG_", "SSL_CERT_")


class ServerGone(YbsError):
    """The server has ended before it answered."""

    def __init__(self) -> None:
        super().__init__("The server has gone.")


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
        with short_path(place.path) as path:
            client = cls(*await asyncio.open_unix_connection(path, limit=_LIMIT))
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
        number = self.later(method, params)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        data = await answer
        return data if kind is Raw else msgspec.json.decode(data, type=kind)

    def later(self, method: str, params: Struct) -> int:
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
                self._take(msgspec.json.decode(line, type=_Message))
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
    """Return streams to an agent in the server that speaks the Agent Client Protocol. Raises OSError where no server runs and none `starts`, and YbsError."""
    place = ServerPlace.of(options.host)
    client = await (connect(options.host) if starts else ServerClient.connect(place))
    try:
        await client.call("acp", wire.opening_of(options))
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
    environ = environ_away(own_environ(host.environ), host.roots)
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


_Entries = tuple[wire.SessionEntry, ...]
_NAMED_SECONDS: Final = 10.0


def attach(options: Options, name: str) -> int:
    """Show a session of the server on this terminal until the person leaves; return the exit code. Raises YbsError."""
    return asyncio.run(_attach(options, name))


async def _attach(options: Options, name: str) -> int:
    from ybs.frontends.serve.attached import AttachedSession  # all that a terminal needs
    from ybs.frontends.terminal.app import talk

    client = await connect(options.host)
    try:
        found = await _found(client, options, name)
        here = Options.of(Path(found.folder), {"host": options.host})
        session = await AttachedSession.attach_to(client, found.session, here)
    except BaseException:
        await client.aclose()
        raise
    return await talk(session, "", "", leaving=lambda: session.farewell)


async def _found(client: ServerClient, options: Options, name: str) -> wire.SessionEntry:
    """Return the open session that a name means, or the only one that may be meant; a saved one is opened in the server."""
    if name:
        opening = wire.opening_of(options, wire.Resuming, name=name)
        return await client.call("resume", opening, wire.SessionEntry)
    entries = await client.call("list", wire.SessionQuery(), _Entries)
    folder = str(options.folder.resolve())
    fitting = [each for each in entries if each.folder == folder] or list(entries)
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise YbsError(
            "No session runs in the server. `ybs --background PROMPT` starts one, `ybs attach NAME` opens a saved one."
        )
    names = "".join(
        f"\n  ybs attach {each.name or each.session}   {each.doing}  {each.title}"
        for each in fitting
    )
    raise YbsError(f"Several sessions run in the server:{names}")


def background(options: Options, prompt: str) -> int:
    """Have the server begin with a prompt, and say how to look at it; return the exit code. Raises YbsError."""
    return asyncio.run(_background(options, prompt))


async def _background(options: Options, prompt: str) -> int:
    async with await connect(options.host) as client:
        opened = await client.call("open", wire.opening_of(options), wire.SessionEntry)
        here = opened.session
        sending = wire.Sending(session=here, text=prompt, is_for_model=True)
        client.later("send", sending)
        await client.call("subscribe", wire.Subscribing(session=here), wire.Subscribed)
        try:
            async with asyncio.timeout(_NAMED_SECONDS):
                name = await _named(client)
        except TimeoutError:
            name = here  # it is busy with something before its first words
    tell(f"Session {name} works in the background. Look at it with: ybs attach {name}")
    return 0


async def _named(client: ServerClient) -> str:
    """Return the name that a session gets with its first words. Raises YbsError where these are refused."""
    while (message := await client.told()) is not None:
        if message.error is not None:
            raise YbsError(str(message.error["message"]))
        if message.method == "event":
            line = decoded(bytes(msgspec.json.decode(message.params, type=wire.EventTold).line))
            if line is not None and isinstance(line.said, StateChanged) and line.said.name:
                return line.said.name
    raise ServerGone


def running(host: Host) -> dict[str, str]:
    """Return what the sessions of the server do, by their names; nothing where none runs. It never starts one."""
    if not ServerPlace.of(host).path.exists():
        return {}
    return asyncio.run(_running(host))


async def _running(host: Host) -> dict[str, str]:
    try:
        async with await ServerClient.connect(ServerPlace.of(host)) as client:
            entries = await client.call("list", wire.SessionQuery(), _Entries)
    except (YbsError, OSError):  # it was killed, or is another version's
        return {}
    return {each.name: each.doing for each in entries}
