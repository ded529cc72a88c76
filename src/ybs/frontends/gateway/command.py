"""`ybs gateway`: runs the gateway, and says what it does and who waits to be let in."""

import asyncio
import logging
import logging.handlers
import os
import signal
from collections.abc import Generator
from contextlib import AsyncExitStack, contextmanager
from socket import socket
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sqlalchemy import select

from ybs.commands.figures import age
from ybs.config import private_file
from ybs.config.private_file import Busy
from ybs.config.schema import Clone
from ybs.config.schema import Gateway as Settings
from ybs.core.errors import ConfigError, YbsError
from ybs.frontends.gateway.clones import clone_of
from ybs.frontends.gateway.gateway import Gateway, GatewayFolder, make_channels, welcome
from ybs.frontends.gateway.lease import Lease, is_served
from ybs.frontends.gateway.outbox import Outbox
from ybs.frontends.gateway.people import People, Policy
from ybs.frontends.gateway.store import Store, channel_states, inbox, ledger, states_in
from ybs.frontends.headless.output import tell, write, write_json
from ybs.frontends.headless.prompt import UsageError
from ybs.frontends.headless.tables import write_table
from ybs.frontends.serve.place import ServerPlace
from ybs.frontends.serve.server import SessionServer
from ybs.security.unicode import printable
from ybs.session.options import Options
from ybs.trust.settings import load

if TYPE_CHECKING:
    from argparse import Namespace

_NO_CHANNELS: Final = (
    "No chat platform is set up. Name one in the settings, for example:\n"
    '  ybs config set gateway.channels.telegram \'{"token_env": "TELEGRAM_TOKEN"}\'\n'
    "docs/gateway.md says how to get a token."
)
_STARTED: Final = (
    "ybs: the gateway serves {names}; Ctrl-C ends it. Who waits to be let in: ybs gateway pair"
)
_RUNS, _RUNS_NOT = "runs", "does not run: ybs gateway start"
_LOG_BYTES: Final = 2_000_000
_LOG_LINES: Final = 40


def gateway(arguments: "Namespace", options: Options) -> int:
    """Do what an action of `ybs gateway` does; return the exit code. Raises YbsError and OSError."""
    folder = GatewayFolder(options.host)
    private_file.make_folder(folder.path)
    # What a project's settings ask for is not for all chats.
    settings = load(
        options.host, folder=folder.path, config_file=options.config_file
    ).config.gateway
    if arguments.action == "start":
        return _start(arguments, options, settings, folder)
    if arguments.action == "logs":
        return _logs(folder)
    store = folder.store(settings)
    try:
        if arguments.action == "pair":
            return asyncio.run(_pair(arguments, settings, store))
        looks = {"status": _status, "channels": _channels, "doctor": _doctor}
        facts, rows = asyncio.run(looks[arguments.action](options, settings, store))
    finally:
        store.close()
    if not settings.channels:
        tell(_NO_CHANNELS)
    if arguments.format == "json":
        write_json(facts)
    else:
        write_table(rows)
    return 1 if any(row[0] == "no" for row in rows) else 0


def _start(
    arguments: "Namespace", options: Options, settings: Settings, folder: GatewayFolder
) -> int:
    if not settings.channels:
        raise ConfigError(_NO_CHANNELS)
    channels = make_channels(settings, options.host)
    try:
        lock = private_file.open_locked(folder.lock)
    except Busy as error:
        raise YbsError(
            "A gateway of yours runs already. `ybs gateway status` shows what it does."
        ) from error
    try:
        _log_to(folder)
        os.chdir("/")  # the folder that it was started in may go away
        lease = None
        if settings.database:
            lease = Lease(folder.database(settings), tell, settings.projects)
            lease.take()
        with _serving(options) as (server, listening):
            made = Gateway(options, settings, channels, server.sessions, tell, lease)
            tell(_STARTED.format(names=", ".join(channels)))
            return asyncio.run(_run(made, server, listening, arguments, options))
    except UsageError as error:
        tell(f"ybs: {error}")
        return 2
    finally:
        os.close(lock)


@contextmanager
def _serving(options: Options) -> Generator[tuple[SessionServer, list[socket]]]:
    """Hand out the server of `ybs attach`; where another one runs, this one has no socket."""
    place = ServerPlace.of(options.host)
    server = SessionServer(options.host, place, keep_seconds=None, stays=True)
    try:
        lock = place.lock()
    except Busy:
        tell("ybs: `ybs serve` runs already, so `ybs attach` does not see the sessions of chats")
        yield server, []
        return
    try:
        listening = place.listen()
        place.make_token()
        yield server, [listening]
    finally:
        os.close(lock)


async def _run(
    made: Gateway,
    server: SessionServer,
    listening: list[socket],
    arguments: "Namespace",
    options: Options,
) -> int:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: None)  # the terminal that started it may go
    async with AsyncExitStack() as stack:
        serving = asyncio.create_task(server.run(listening))
        stack.push_async_callback(asyncio.wait, (serving,))
        stack.callback(server.stop)
        if arguments.web is not None:
            from ybs.frontends.web.command import shown  # few want it

            page = shown(arguments, arguments.web, options, server.sessions, made)
            await stack.enter_async_context(page)
        await made.run(stopped)
        if (
            made.turns.count
        ):  # a tidy end would write that they were stopped; the next start goes on with them
            os._exit(0)
    return 0


def _log_to(folder: GatewayFolder) -> None:
    """Have the log written to a file that this person alone reads. It holds no words of chats, no codes and no tokens."""
    folder.log.touch(0o600)
    handler = logging.handlers.RotatingFileHandler(folder.log, maxBytes=_LOG_BYTES, backupCount=1)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name, level in (
        ("ybs.gateway", logging.INFO),
        ("ybs.frontends.gateway", logging.INFO),
        ("dbos", logging.WARNING),
    ):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.handlers, logger.propagate = [handler], False


def _logs(folder: GatewayFolder) -> int:
    try:
        lines = folder.log.read_text("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        lines = []
    for line in lines[-_LOG_LINES:]:
        write(printable(line))
    if not lines:
        tell("ybs: the log is empty")
    return 0


async def _is_running(options: Options, settings: Settings, store: Store) -> bool:
    if settings.database:
        return await store.do(is_served)
    try:
        os.close(private_file.open_locked(GatewayFolder(options.host).lock))
    except Busy:
        return True
    return False


#: What an action says: as JSON, and as a table.
_Said: TypeAlias = tuple[Any, list[tuple[str, ...]]]


async def _status(options: Options, settings: Settings, store: Store) -> _Said:
    channels, rows = await _channels(options, settings, store)
    came, sent = [await store.do(lambda c, t=t: states_in(c, t)) for t in (inbox, ledger)]
    facts: dict[str, Any] = {
        "turns_waiting": came.total() - came["done"],
        "messages_waiting": sent["pending"] + sent["attempting"],
        "messages_failed": sent["failed"],
        "people_waiting": len(await _people(settings, store).waiting()),
    }
    is_running = await _is_running(options, settings, store)
    rows += [(name.replace("_", " "), str(count)) for name, count in facts.items()]
    rows = [("gateway", _RUNS if is_running else _RUNS_NOT), *rows]
    return {"running": is_running, "channels": channels, **facts}, rows


async def _channels(_options: Options, settings: Settings, store: Store) -> _Said:
    known = {row.name: row for row in await store.rows(select(channel_states))}
    rows: list[tuple[str, ...]] = [
        (name, known[name].state, printable(known[name].error))
        if name in known
        else (name, "never started", "")
        for name in settings.channels
    ]
    return [dict(zip(("name", "state", "error"), row, strict=True)) for row in rows], rows


def _people(settings: Settings, store: Store) -> People:
    return People(
        store, {name: Policy.of(name, entry) for name, entry in settings.channels.items()}
    )


async def _pair(arguments: "Namespace", settings: Settings, store: Store) -> int:
    people = _people(settings, store)
    if arguments.code:
        person = await people.pair(arguments.code, arguments.role)
        await welcome(person, Outbox(store, {}))
        role = "the owner" if person.role == "owner" else "a guest"
        write(f"{person.name} may speak on {person.channel} now, as {role}.")
        return 0
    waiting = await people.waiting()
    if arguments.format == "json":
        write_json([{"code": w.code, "channel": w.channel, "who": w.who} for w in waiting])
    elif waiting:
        rows = [(each.code, each.channel, each.who, age(each.at)) for each in waiting]
        write_table([("code", "channel", "who", ""), *rows])
        tell("Let somebody in: ybs gateway pair CODE [--owner|--guest]")
    else:
        write("Nobody waits to be let in. Write to the bot first; then the code is shown here.")
    return 0


async def _doctor(options: Options, settings: Settings, store: Store) -> _Said:
    """Look at the settings, the database, the channels and the sandbox."""
    rows: list[tuple[str, bool, str]] = []
    rows.append(("settings", bool(settings.channels), ", ".join(settings.channels) or _NO_CHANNELS))
    for name, folder in settings.projects.items():
        is_clone = isinstance(folder, Clone)
        path = (
            clone_of(name, options.host)
            if is_clone
            else options.host.expand(folder, options.host.home)
        )
        rows.append((f"project {name}", is_clone or path.is_dir(), str(path)))
    await store.rows(select(inbox.c.id).limit(1))
    rows.append(("database", True, settings.database or str(GatewayFolder(options.host).path)))
    try:
        channels = make_channels(settings, options.host)
    except ConfigError as error:
        channels = {}
        rows.append(("channels", False, str(error)))
    is_running = await _is_running(options, settings, store)
    rows.append(("gateway", True, _RUNS if is_running else _RUNS_NOT))
    for name, channel in channels.items():
        try:
            await asyncio.wait_for(channel.probe(), 15)
            rows.append((name, True, "the platform answers and knows the token"))
        except (YbsError, TimeoutError) as error:
            rows.append((name, False, str(error) or "the platform does not answer"))
        await channel.close()
    facts = [{"what": what, "ok": is_ok, "detail": detail} for what, is_ok, detail in rows]
    return facts, [("ok" if is_ok else "no", what, detail) for what, is_ok, detail in rows]
