"""`ybs gateway`: runs the gateway, and says what it does and who waits to be let in."""

import asyncio
import faulthandler
import logging
import os
import signal
from collections.abc import Generator
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import to_builtins
from sqlalchemy import select

from ybs.commands.figures import age
from ybs.config import private_file
from ybs.config.private_file import Busy
from ybs.config.schema import GatewaySettings as Settings
from ybs.core.errors import ConfigError, YbsError
from ybs.frontends.gateway.doctor import RUNS, RUNS_NOT, findings, is_running
from ybs.frontends.gateway.gateway import Gateway, GatewayFolder, make_channels, welcome
from ybs.frontends.gateway.lease import DatabaseLease
from ybs.frontends.gateway.monitor import Figures, JsonLines, Monitor
from ybs.frontends.gateway.outbox import Outbox
from ybs.frontends.gateway.people import ChannelPolicy, People
from ybs.frontends.gateway.store import GatewayStore, channel_states, inbox, ledger, states_in
from ybs.frontends.gateway.transcripts import Files, Tables, copied
from ybs.frontends.gateway.unattended import unattended
from ybs.frontends.headless.output import UsageError, tell, write, write_json, write_table
from ybs.frontends.log_file import LogFile
from ybs.frontends.serve.command import SessionServer, listening_at
from ybs.frontends.serve.place import ServerPlace
from ybs.security.unicode import printable
from ybs.session.options import Options
from ybs.session.settings import load_settings
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
        load_settings(unattended(options, folder.path))  # what no session could begin with
        return _start(arguments, options, settings, folder)
    if arguments.action == "logs":
        return _logs(folder)
    if arguments.action == "doctor":
        return _doctor(arguments, options, settings)
    store = folder.store(settings)
    try:
        if arguments.action == "pair":
            return asyncio.run(_pair(arguments, settings, store))
        if arguments.action in ("export", "import"):
            return asyncio.run(_copy(arguments, options, settings, store))
        looks = {"status": _status, "channels": _channels}
        facts, rows = asyncio.run(looks[arguments.action](options, settings, store))
    finally:
        store.close()
    if not settings.channels:
        tell(_NO_CHANNELS)
    if arguments.format == "json":
        write_json(facts)
    else:
        write_table(rows)
    return 0


def _doctor(arguments: "Namespace", options: Options, settings: Settings) -> int:
    found = asyncio.run(findings(options, settings))
    if arguments.format == "json":
        write_json([to_builtins(each) for each in found])
    else:
        write_table([("ok" if each.ok else "no", each.what, each.detail) for each in found])
    return 0 if all(each.ok for each in found) else 1


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
    figures = Figures()
    try:
        with ExitStack() as stack:
            _log_to(folder, as_json=arguments.log_format == "json")
            faulthandler.enable()  # a crash of a library's says where, and nothing of chats
            os.chdir("/")  # the folder that it was started in may go away
            if arguments.metrics:
                bound = listening_at("--metrics", arguments.metrics)
                engine = folder.database(settings)
                stack.enter_context(Monitor(bound, engine, figures, channels))
            lease = None
            if settings.database:
                lease = DatabaseLease(folder.database(settings), tell, settings.projects)
                lease.take()
            server, listening = stack.enter_context(_serving(options))
            made = Gateway(options, settings, channels, server.sessions, tell, lease)
            made.chats.watch(figures)
            tell(_STARTED.format(names=", ".join(channels)))
            return asyncio.run(_run(made, server, listening, arguments, options, figures))
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
    figures: Figures,
) -> int:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    figures.serve(loop, made.leads)
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


class _Printed(logging.Handler):
    """Writes the log to standard output as well, where containers are listened to."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError):  # nobody listens
            write(self.format(record))


def _log_to(folder: GatewayFolder, *, as_json: bool) -> None:
    """Have the log written to a file that this person alone reads. It holds no words of chats, no codes and no tokens."""
    file = LogFile(folder.log, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
    handlers: list[logging.Handler] = [file, _Printed()] if as_json else [file]
    plain = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    for handler in handlers:
        handler.setFormatter(JsonLines() if as_json else plain)
    for name, level in (
        ("ybs.gateway", logging.INFO),
        ("ybs.frontends.gateway", logging.INFO),
    ):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.handlers, logger.propagate = handlers, False


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


#: What an action says: as JSON, and as a table.
_Said: TypeAlias = tuple[Any, list[tuple[str, ...]]]


async def _status(options: Options, settings: Settings, store: GatewayStore) -> _Said:
    channels, rows = await _channels(options, settings, store)
    came, sent = [await store.do(lambda c, t=t: states_in(c, t)) for t in (inbox, ledger)]
    facts: dict[str, Any] = {
        "turns_waiting": came.total() - came["done"],
        "messages_waiting": sent["pending"] + sent["attempting"],
        "messages_failed": sent["failed"],
        "people_waiting": len(await _people(settings, store).waiting()),
    }
    runs = await is_running(options, settings, store)
    rows += [(name.replace("_", " "), str(count), "") for name, count in facts.items()]
    rows = [("gateway", RUNS if runs else RUNS_NOT, ""), *rows]
    return {"running": runs, "channels": channels, **facts}, rows


async def _channels(_options: Options, settings: Settings, store: GatewayStore) -> _Said:
    known = {row.name: row for row in await store.rows(select(channel_states))}
    rows: list[tuple[str, ...]] = [
        (name, known[name].state, printable(known[name].error))
        if name in known
        else (name, "never started", "")
        for name in settings.channels
    ]
    return [dict(zip(("name", "state", "error"), row, strict=True)) for row in rows], rows


def _people(settings: Settings, store: GatewayStore) -> People:
    return People(
        store, {name: ChannelPolicy.of(name, entry) for name, entry in settings.channels.items()}
    )


async def _pair(arguments: "Namespace", settings: Settings, store: GatewayStore) -> int:
    people = _people(settings, store)
    if arguments.words:
        person = await people.pair(arguments.words[0], arguments.role)
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


async def _copy(
    arguments: "Namespace", options: Options, settings: Settings, store: GatewayStore
) -> int:
    """Copy transcripts between the database and a folder, and say what became of each."""
    if not settings.database:
        raise YbsError("gateway.database is not set: sessions are files already (ybs sessions).")
    folder, *names = arguments.words
    tables, files = Tables(store), Files(options.host.expand(folder, Path.cwd()))
    ways = {"export": (tables, files), "import": (files, tables)}
    done = await copied(*ways[arguments.action], names)
    if arguments.format == "json":
        write_json([to_builtins(each) for each in done])
    elif done:
        write_table([("ok" if each.ok else "no", each.session, each.note) for each in done])
    else:
        write("There are no sessions to copy.")
    return 0 if all(each.ok for each in done) else 1
