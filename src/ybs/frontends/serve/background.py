"""`ybs attach`, `ybs --background` and what `ybs sessions` says of those that run in the server."""

import asyncio
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from ybs.config.host import Host
from ybs.core.decoding import from_json
from ybs.core.errors import YbsError
from ybs.core.events import StateChanged
from ybs.core.time_limits import time_limit
from ybs.frontends.headless.output import tell
from ybs.frontends.serve import protocol as wire
from ybs.frontends.serve.client import ServerClient, ServerGone, connect
from ybs.frontends.serve.place import ServerPlace
from ybs.session.options import SETTINGS, Options
from ybs.transcripts.line import decoded

_Entries = tuple[wire.SessionEntry, ...]
_NAMED_SECONDS: Final = 10.0


def attach(options: Options, name: str) -> int:
    """Show a session of the server on this terminal until the person leaves; return the exit code. Raises YbsError."""
    return asyncio.run(_attach(options, name))


async def _attach(options: Options, name: str) -> int:
    from ybs.frontends.serve.attached import AttachedSession  # all that a terminal needs
    from ybs.frontends.terminal.app import talk

    opening = wire.for_server(options, wire.Resuming, name=name)
    client = await connect(options.host)
    try:
        found = await _found(client, opening, str(options.folder.resolve()))
        plain = options.overrides.get(SETTINGS["plain"])
        here = Options.of(Path(found.folder), {"host": options.host, "plain": plain})
        session = await AttachedSession.attach_to(client, found.session, here)
    except BaseException:
        await client.aclose()
        raise
    return await talk(session, "", "", leaving=lambda: session.farewell)


async def _found(client: ServerClient, opening: wire.Resuming, folder: str) -> wire.SessionEntry:
    """Return the open session that a name means, or the only one that may be meant, of this folder first; a saved one is opened in the server."""
    if opening.name:
        return await client.call("resume", opening, wire.SessionEntry)
    entries = await client.call("list", wire.SessionQuery(), _Entries)
    fitting = [each for each in entries if each.folder == folder] or list(entries)
    if len(fitting) == 1:
        opening = replace(opening, name=fitting[0].session)
        return await client.call("resume", opening, wire.SessionEntry)
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
    opening = wire.for_server(options)
    async with await connect(options.host) as client:
        opened = await client.call("open", opening, wire.SessionEntry)
        here = opened.session
        sending = wire.Sending(session=here, text=prompt, is_for_model=True)
        client.begin_request("send", sending)
        await client.call("subscribe", wire.Subscribing(session=here), wire.Subscribed)
        try:
            async with time_limit(_NAMED_SECONDS):
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
            line = decoded(bytes(from_json(message.params, wire.EventTold).line))
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
