"""`ybs serve`: opens the sockets, and serves until it is ended or nobody needs it."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ybs.config.host import Host
from ybs.config.private_file import Busy
from ybs.core.errors import YbsError
from ybs.frontends.headless.output import tell
from ybs.frontends.headless.prompt import UsageError
from ybs.frontends.headless.run import SIGNALS
from ybs.frontends.serve.place import ServerPlace
from ybs.frontends.serve.protocol import protocol_schema
from ybs.frontends.serve.server import SessionServer
from ybs.frontends.serve.sessions import HostedSessions
from ybs.security.gate import put_json
from ybs.security.incognito import leave_no_dump
from ybs.session.options import Options
from ybs.trust.settings import load

if TYPE_CHECKING:
    from argparse import Namespace

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
