"""The MCP servers of a session: read from its settings, started side by side, each a program in the sandbox or an address."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Raw, Struct
from msgspec.json import encode
from msgspec.structs import replace

from ybs.config.key_store import forget_key, has_key
from ybs.config.review import Review
from ybs.config.sections import Network
from ybs.config.variables import project_variables
from ybs.core.errors import ConfigError, Refused, ToolError
from ybs.core.events import Emit, Noticed
from ybs.core.leases import Leases
from ybs.core.ports import Confirm, Effect, Preview, Tool, ToolOutput, ToolSpec
from ybs.core.remedies import Remedy
from ybs.core.time_limits import time_limit
from ybs.security.own_programs import APART, Start
from ybs.security.policy.case import Subject
from ybs.security.sandbox.copied_homes import is_ready, mark_ready, mark_unready
from ybs.security.sandbox.launch import Launch
from ybs.security.sandbox.resident import Resident, home_of
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.foreign import BehindChecks
from ybs.tools.mcp.connection import Connection, OpenConnection, remedies_for
from ybs.tools.mcp.eliciting import asked
from ybs.tools.mcp.launching import alone, key_of, launch_bare, program_of, resident_of, sees
from ybs.tools.mcp.listed import ListedTool, ServerOffer, full_name
from ybs.tools.mcp.pins import Pins
from ybs.tools.mcp.replacing import ReplacedTool, wanted
from ybs.tools.mcp.settings import BadServer, Server, check_line, filled, given, servers_in
from ybs.tools.shell.orphans import CommandMark, token
from ybs.tools.shell.watch import Watch
from ybs.tools.toolbox import LocalToolbox
from ybs.tools.workspace import Workspace

#: How long the first request waits for servers whose tools nobody knows yet.
PATIENCE_SECONDS: Final = 10.0


class McpTool:
    """A tool of a server. Where the sandbox holds the server to it, it only reads; what the server claims counts for nothing."""

    def __init__(
        self, listed: ListedTool, connection: Connection, *, needs: str, is_reading: bool
    ) -> None:
        self.listed, self._connection = listed, connection
        self._needs, self._is_reading = needs, is_reading
        server = connection.server
        self.name = full_name(server.name, listed.name)
        self.description = listed.description
        self.parameters: Raw = listed.parameters
        self.longest_seconds = server.start_seconds + server.call_seconds + 15.0

    @property
    def source(self) -> str:
        """Where it comes from, for a list."""
        return f"MCP server {self._connection.server.name}"

    @property
    def effect(self) -> Effect:
        """What it may do, by what its server is given."""
        return "read" if self._is_reading else "execute"

    def preview(self, arguments: Any) -> Preview:
        """Show the server, the tool and its arguments."""
        shown = msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()
        title = f"Call {self.listed.name} of the MCP server {self._connection.server.name}"
        return Preview(title=title, body="" if shown == "{}" else shown)

    def subject(self, arguments: Any) -> Subject:
        """Give what the server is given: "always" stands for every call as long as it is this, and the server the same."""
        del arguments
        needs, identity = self._needs, self._connection.server.identity
        asks, detail = (f"its server {given(needs)}", f"with {needs}") if needs else ("", "")
        return Subject(is_alike=True, asks=asks, detail=detail, identity=identity)

    async def run(self, arguments: Any, print_live: Callable[[str], None]) -> ToolOutput:
        """Have the server run it. Raises ToolError."""
        return await self._connection.call(self.listed, arguments, print_live)


class Surface(Struct, frozen=True, kw_only=True):
    """What servers need of the session.

    `start` starts a held program, `is_off` says that the sandbox is switched off, `confirm` asks the person, and `hide` takes secrets that no model is to see.
    `may_share`: a program may be another session's too, which one of an incognito session may not. `review` is what the person decided about the project.
    """

    network: Network
    start: Callable[[Resident], Launch]
    is_off: Callable[[], bool]
    holds: Callable[[], bool]
    confirm: Callable[[], Confirm]
    hide: Callable[[Sequence[str]], None]
    may_share: bool = True
    review: Callable[[], Review | None] = lambda: None


class Servers:
    """The connections, by name, and what is wrong with entries of the settings."""

    def __init__(
        self,
        section: Mapping[str, Any],
        workspace: Workspace,
        surface: Surface,
        pins_file: Path | None,
    ) -> None:
        self._workspace, self._surface = workspace, surface
        self._pins = Pins(pins_file, workspace.roots.folder, may_write=surface.may_share)
        found, problems = servers_in(section)
        folder = str(workspace.roots.folder)
        servers = [each if each.is_own else replace(each, folder=folder) for each in found]
        self.problems: Sequence[str] = problems
        self.connections = {
            server.name: Connection(
                server, self._opened, self._pins, partial(self._hear_of, server.name)
            )
            for server in servers
        }
        self._replacing: dict[str, tuple[Connection, str]] = {}
        for server in servers:
            pairs, unknown = wanted(server) if server.is_on else ({}, [])
            problems += unknown
            for own, theirs in pairs.items():
                self._replacing.setdefault(own, (self.connections[server.name], theirs))
        self._replaced: list[ReplacedTool] = []
        self._news = [Noticed(level="warning", text=text) for text in problems]
        self._told = set[str]()
        self._tell: Callable[[Noticed], None] | None = None

    def listen(self, tell: Callable[[Noticed], None] | None) -> None:
        """Have news told; what came before is told now."""
        self._tell = tell
        if tell is not None:
            for each in self.news():
                tell(each)

    def news(self) -> Sequence[Noticed]:
        """Return what was to be told and that nobody has listened to, once."""
        news, self._news = self._news, []
        return news

    def tools(self) -> list[McpTool]:
        """Return the tools that may be used at this moment."""
        return [
            McpTool(
                tool,
                each,
                needs=self.needs_of(each.server),
                is_reading=self.is_reading(each.server),
            )
            for each in self.connections.values()
            for tool in each.offer.tools
        ]

    def replaced(self, tools: Sequence[Tool]) -> list[Tool]:
        """Return built-in tools, with those that servers are to stand in for by what these do."""
        self._replaced = [
            ReplacedTool(tool, *self._replacing[tool.name])
            for tool in tools
            if isinstance(tool, BuiltInTool) and tool.name in self._replacing
        ]
        by_name: dict[str, Tool] = {tool.name: tool for tool in self._replaced}
        return [by_name.get(tool.name, tool) for tool in tools]

    def check_replaced(self) -> None:
        """Tell which built-in tools a server should replace and does not, as far as that is known."""
        for tool in self._replaced:
            if (problem := tool.problem) and problem not in self._told:
                self._told.add(problem)
                self._hear(problem)

    def start(self) -> None:
        """Start all that are switched on, side by side; nobody waits for them."""
        for each in self.connections.values():
            each.start()

    async def known(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """Wait, but not long, until it is known what each of them offers."""
        new = [each for each in self.connections.values() if each.state in ("new", "starting")]
        new = [each for each in new if not each.reviewed.usable]
        if new:
            waiting = [asyncio.create_task(each.settled()) for each in new]
            _, late = await asyncio.wait(waiting, timeout=patience_seconds)
            for task in late:
                task.cancel()

    async def login(self, connection: Connection, show: Callable[[str, str], None]) -> None:
        """Have the person log in to a server; `show` gets the address to open, and where they log in. Raises ToolError."""
        server = connection.server
        if server.transport != "http":
            raise ToolError(f"{server.name} is a program; what it needs stands in its settings.")
        if server.has_key:
            raise ToolError(f"{server.name} has a key in its headers, and needs no login.")
        http = await asyncio.to_thread(import_module, "ybs.tools.mcp.http")
        await connection.aclose()  # from now on it takes what is kept
        wide = replace(server, start_seconds=server.start_seconds + http.LOGIN_SECONDS)
        async with http.BrowserLogin(show, server.oauth.port) as login:
            opened = partial(self._opened, login=login)
            asking = Connection(wide, opened, self._pins, lambda _text: None)
            try:
                await asking.link()
            except ToolError as error:
                why = asking.problem or "it is switched off"
                words = f"You are not logged in to {server.name}: {why}."
                raise ToolError(words, remedies=asking.remedies) from error
            finally:
                await asking.aclose()
        if not login.has_shown:
            raise ToolError(f"{server.name} does not ask for a login.")

    def has_login(self, server: Server) -> bool:
        """Return whether a login of the person's is kept for a server."""
        return has_key(self._workspace.roots.host, server.login, self._address_of(server))

    def logout(self, server: Server) -> bool:
        """Forget the login at a server; return whether there was one. Raises ConfigError."""
        return forget_key(self._workspace.roots.host, server.login, self._address_of(server))

    def _address_of(self, server: Server) -> str:
        with suppress(BadServer):
            return self._filled(server).url
        return server.url

    def _filled(self, server: Server) -> Server:
        """Return the server with variables in place of their names: for a program those that it starts with. Raises BadServer."""
        roots, is_program = self._workspace.roots, server.transport == "stdio"
        environ = self._start_of(server).environ if is_program else roots.host.environ
        ready = filled(server, {**environ, **project_variables(roots.folder)})
        check_line(server, ready)
        return ready

    def forget(self, server: Server) -> None:
        """Remove what is kept under a server's name: homes, its approval, the login. Raises ConfigError and OSError."""
        from shutil import rmtree

        host, key = self._workspace.roots.host, key_of(server)
        named = f"{key.rpartition('-')[0]}-*"
        self._pins.forget(server)
        self.logout(server)
        for folder in home_of(host, key).parent.glob(named):
            rmtree(folder, ignore_errors=True)

    def needs_of(self, server: Server) -> str:
        """Return in a few words what a server is given beside reading the project, as the sandbox is now."""
        is_open = server.transport == "stdio" and self._surface.is_off()
        return "no sandbox" if is_open else server.needs

    def is_reading(self, server: Server) -> bool:
        """Return whether the sandbox holds the server to reading the project, and lets nothing out of it."""
        is_narrow = server.project != "write" and not server.write and not server.network
        is_held = server.transport == "stdio" and server.is_held and not self._surface.is_off()
        return is_narrow and is_held and self._surface.holds()

    async def aclose(self) -> None:
        """End all of them."""
        self._tell = None
        await asyncio.gather(*(each.aclose() for each in self.connections.values()))

    def _hear_of(self, name: str, text: str) -> None:
        self._hear(text, self.connections[name].remedies)

    def _hear(self, text: str, remedies: tuple[Remedy, ...] = ()) -> None:
        news = Noticed(level="warning", text=text, remedies=remedies)
        if self._tell is None:
            self._news.append(news)
        else:
            self._tell(news)

    @asynccontextmanager
    async def _opened(
        self, server: Server, changed: Callable[[], None], login: Any = None
    ) -> AsyncGenerator[OpenConnection]:
        ready = self._filled(server)
        self._surface.hide(ready.secrets)
        may_share = server.shared and self._surface.may_share
        if server.transport == "http" or server.elicitation or not may_share:
            async with self._opened_alone(server, ready, changed, login=login) as opened:
                yield opened
            return
        roots, sandbox = self._workspace.roots, self._surface
        is_trusted = self._workspace.own_programs.trusts_project()
        places = (roots.folders, roots.blocked, self._start_of(server).folder, is_trusted)
        key = (encode(ready), places, sandbox.is_off(), sandbox.holds())
        open_ = partial(self._opened_alone, server, ready)
        async with joined(roots.host.shared, key, open_, changed) as opened:
            yield opened

    @asynccontextmanager
    async def _opened_alone(
        self,
        server: Server,
        ready: Server,
        changed: Callable[[], None],
        watch: Watch | None = None,
        login: Any = None,
    ) -> AsyncGenerator[OpenConnection]:
        """Open a connection for this session, or for all: what it is made of is the same for them. `login` asks the person for one."""
        link = await asyncio.to_thread(import_module, "ybs.tools.mcp.link")
        elicit = self._eliciting(server) if server.elicitation else None
        until, fails_alone = ExitStack(), False
        if server.transport == "http":
            http = await asyncio.to_thread(import_module, "ybs.tools.mcp.http")
            transport = http.HttpTransport(
                ready,
                self._workspace.roots.host,
                self._surface.network,
                self._surface.hide,
                login,
            )
        else:
            watch = watch or self._workspace.shells.watch
            # What the entry says before variables are replaced is what the person was shown.
            is_held = server.is_held and not self._surface.is_off()
            fails_alone = is_held and await self._fails_alone(link, ready, watch)
            transport = link.ProcessTransport(
                lambda: self._launched(ready, until, is_held=is_held), watch
            )
        try:
            async with link.connected(
                transport, seconds=server.call_seconds, elicit=elicit, changed=changed
            ) as open_link:
                if fails_alone:
                    with suppress(ConfigError, OSError):
                        mark_ready(home_of(self._workspace.roots.host, key_of(ready)))
                yield OpenConnection(open_link, transport)
        except Exception as error:
            if why := OpenConnection(None, transport).why:
                apart = self._start_of(server).why if server.transport == "stdio" else ""
                remedies = remedies_for(server, transport.said, self._workspace.roots.folder)
                why = f"{why} ({apart})" if apart and server.project != "none" else why
                raise ToolError(why, remedies=remedies) from error
            raise
        finally:
            until.close()

    async def _fails_alone(self, link: Any, server: Server, watch: Watch) -> bool:
        """Start a program once where it sees no project, for what `npx` or `uvx` fetch; return whether it ends without answering there.

        What it finds in each project is a copy of that home, which nothing that sees a project writes.
        """
        home = home_of(self._workspace.roots.host, key_of(server))
        if server.is_projects or not self._surface.may_share or is_ready(home):
            return False

        def start() -> tuple[Launch, CommandMark]:
            narrow = replace(server, cwd=APART, project="none", read=(), write=())
            begin = self._start_of(narrow)
            program = program_of(narrow, self._workspace, begin)
            resident = resident_of(narrow, self._workspace, begin, program)
            launch = self._surface.start(alone(resident, self._workspace.roots.folder))
            return self._workspace.shells.marked(launch)

        try:
            async with (
                time_limit(server.start_seconds / 2),
                link.connected(
                    link.ProcessTransport(start, watch),
                    seconds=server.call_seconds,
                    elicit=None,
                    changed=lambda: None,
                ),
            ):
                await asyncio.to_thread(mark_ready, home)
        except TimeoutError:  # it goes on fetching where it is needed, and the next time here
            return False
        except Exception:  # it needs the project: if it answers there, it has fetched what it needs
            return True
        return False

    def renew(self, server: Server) -> None:
        """Have a program fetch anew what it needs, before it starts the next time. Raises ConfigError and OSError."""
        mark_unready(home_of(self._workspace.roots.host, key_of(server)))

    def _launched(
        self, server: Server, until: ExitStack, *, is_held: bool
    ) -> tuple[Launch, CommandMark]:
        """Return the launch of a server, and the mark of its processes. Its home is its own `until` that is closed.

        Raises ToolError, OSError and BadServer.
        """
        start = self._start_of(server)
        workspace, program = self._workspace, program_of(server, self._workspace, start)
        seen = self._seen_by(server, program) if server.is_projects else ()
        if is_held:
            resident = resident_of(server, workspace, start, program, seen=seen)
            launch = self._surface.start(self._housed(server, resident, until))
        else:
            launch = launch_bare(server, workspace, start, program)
        return self._workspace.shells.marked(launch)

    def _housed(self, server: Server, resident: Resident, until: ExitStack) -> Resident:
        """Return a program with its home: what sees a project never writes where it runs in another one. Raises OSError."""
        roots, key = self._workspace.roots, resident.key
        if not server.is_projects and not sees(resident, roots.folder):
            return resident
        if not server.is_projects and not self._workspace.own_programs.trusts_project():
            return replace(resident, until=until)
        from ybs.trust.decision import home_mark  # few projects have servers

        mark = home_mark(roots.host, roots.folder)
        seed = "" if server.is_projects else key
        return replace(resident, key=f"{key}-{mark}", seed=seed)

    def _seen_by(self, server: Server, program: str) -> tuple[str, ...]:
        """Look again, before each start, at all that a project's server reaches; return what it sees of the project. Raises Refused.

        Its `program` counts by the path that is opened: what its words come to with variables in place was not shown.
        """
        from ybs.trust.decision import reach_unchanged  # few projects have servers

        roots = self._workspace.roots
        words = (program, *server.words) if "/" in server.command else server.words
        try:
            found = reach_unchanged(self._surface.review(), words, roots.folder, roots.host.home)
        except ToolError as error:
            raise Refused(
                f"{error}, so it is not started: trust the project again (ybs trust)"
            ) from error
        return found.seen(server.project)

    def _start_of(self, server: Server) -> Start:
        return self._workspace.own_programs.start(server.starts_in, in_sandbox=server.is_held)

    def _eliciting(self, server: Server) -> Any:
        async def elicit(message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
            return await asked(server.name, message, schema, self._surface.confirm())

        return elicit


#: Opens the connection to a program; the function is called when it says that what it offers has changed.
OpenProgram: TypeAlias = Callable[
    [Callable[[], None], Watch], AbstractAsyncContextManager[OpenConnection]
]


@asynccontextmanager
async def joined(
    leases: Leases, key: Hashable, open_: OpenProgram, changed: Callable[[], None]
) -> AsyncGenerator[OpenConnection]:
    """Use a program with others; the first one starts it, and the last one ends it. Raises what opening it raises.

    One process ends the programs where ybs was killed; it lives as long as any of them.
    """
    lease = leases.take(("mcp", key), lambda: _Program(leases, open_), lambda each: each.is_over)
    program = lease.thing
    program.changed.append(changed)
    try:
        yield await asyncio.shield(program.opened)
    finally:
        program.changed.remove(changed)
        if lease.release():
            await program.end()


class _Program:
    """A program, in a task of its own: who started it may leave before the others."""

    def __init__(self, leases: Leases, open_: OpenProgram) -> None:
        self._leases, self._open, self._unused = leases, open_, asyncio.Event()
        #: Callbacks for a change of its tools, resources or prompts.
        self.changed: list[Callable[[], None]] = []
        self.opened: asyncio.Future[OpenConnection] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live())

    @property
    def is_over(self) -> bool:
        """Whether nobody can join it any more: it is gone, or did not start."""
        if self._unused.is_set() or self._task.done():
            return True
        return self.opened.done() and (
            self.opened.exception() is not None or self.opened.result().lost.is_set()
        )

    async def end(self) -> None:
        """End it, and wait for that."""
        self._unused.set()
        if not self.opened.done():
            self._task.cancel()
        await asyncio.wait((self._task,))

    async def _live(self) -> None:
        watch = self._leases.take(Watch, lambda: Watch(token()))
        try:
            async with self._open(self._tell, watch.thing) as opened:
                self.opened.set_result(opened)
                await self._unused.wait()
        except asyncio.CancelledError:
            self.opened.cancel()
        except Exception as error:  # whoever waits for it is told
            if not self.opened.done():
                self.opened.set_exception(error)
                self.opened.exception()  # it may be that nobody waits any more
        finally:
            if watch.release():
                watch.thing.close()

    def _tell(self) -> None:
        for changed in tuple(self.changed):
            changed()


class McpToolbox(BehindChecks):
    """What the servers offer at this moment. `local` is empty and runs the calls; `is_short` offers them as to a small model."""

    def __init__(self, servers: Servers, local: LocalToolbox, *, is_short: bool = False) -> None:
        super().__init__(local)
        self._servers, self._is_short = servers, is_short
        self._offers: list[ServerOffer] = []

    async def open(self, emit: Emit) -> None:
        """Wait a moment for servers that nobody knows yet; the others are started when they are needed."""
        await self._local.open(emit)
        self._servers.listen(emit)
        await self._servers.known()
        self.specs()

    async def aclose(self) -> None:
        """Tell nobody any more. The servers run as long as the session."""
        self._servers.listen(None)

    def specs(self) -> Sequence[ToolSpec]:
        """Return the tools that may be used at this moment."""
        connections = self._servers.connections.values()
        offers = [each.offer for each in connections]
        if len(offers) != len(self._offers) or any(
            new is not old for new, old in zip(offers, self._offers, strict=True)
        ):
            self._offers = offers
            self._servers.check_replaced()
            self._local.offer((), foreign=self._servers.tools(), is_short=self._is_short)
        return self._local.specs()
