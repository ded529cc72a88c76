"""One server of a session: started once, restarted when it is lost, and what it offers."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec.structs import replace

from ybs.core.errors import ConfigError, Refused, ToolError
from ybs.core.ports import ToolOutput
from ybs.core.remedies import Remedy
from ybs.core.time_limits import time_limit
from ybs.tools.mcp.listed import ListedTool, ServerOffer
from ybs.tools.mcp.pins import Pins, ReviewedTools
from ybs.tools.mcp.settings import BadServer, Server

if TYPE_CHECKING:
    from ybs.tools.mcp.link import McpLink
import re
from pathlib import Path

from ybs.core.lazy import lazy
from ybs.tools.mcp.listed import cleaned

#: `known`: what it offers is known from before, and it runs when it is needed.
State: TypeAlias = Literal["off", "known", "new", "starting", "ready", "lost", "failed"]
#: A server that is lost is started again so often, with a pause that doubles each time.
MOST_RESTARTS: Final = 5
FIRST_PAUSE_SECONDS: Final = 0.5
LOSS_SECONDS: Final = 0.3
#: After so long without a loss the count begins again.
CALM_SECONDS: Final = 60.0
#: So long between two looks at what a server offers, however often it says that this has changed.
LOOK_SECONDS: Final = 1.0
_MOST_NAMED = 3


class OpenConnection:
    """An open connection as its owner holds it: what answers, and what it goes by, which ends with the other side."""

    def __init__(self, link: Any, transport: Any) -> None:
        self.link: McpLink = link
        self._transport = transport
        self.lost: asyncio.Event = transport.ended

    @property
    def why(self) -> str:
        """Return how it ended, with the lines that it wrote about it; nothing as long as it has not."""
        if not self.lost.is_set():
            return ""
        said = reason_in(self._transport.said)
        return f"{self._transport.how}: {said}" if said else self._transport.how


#: Opens the connection to a server; the function is called when the server says that what it offers has changed.
Open: TypeAlias = Callable[
    [Server, Callable[[], None]], AbstractAsyncContextManager[OpenConnection]
]


class Connection:
    """A server, as a session has it. `tell` takes what the person should know, as a sentence."""

    def __init__(
        self, server: Server, open_: Open, pins: Pins, tell: Callable[[str], None]
    ) -> None:
        self.server = server
        self._open, self._pins, self._tell = open_, pins, tell
        known = pins.of(server) if server.is_on else None
        self.state: State = ("known" if known else "new") if server.is_on else "off"
        self.problem = ""
        #: What the person can do about the problem.
        self.remedies: tuple[Remedy, ...] = ()
        #: What it offers, of tools those that may be used; the same object as long as that does not change.
        self.offer: ServerOffer = _narrowed(known.offer, server) if known else ServerOffer()
        self.reviewed = ReviewedTools(self.offer.tools)
        #: The changes that the person was shown.
        self.shown: Sequence[tuple[ListedTool | None, ListedTool]] = ()
        #: What is wrong with tools that it offers.
        self.unfit: Sequence[str] = ()
        self.version = ""
        self._all = ServerOffer()
        self._task: asyncio.Task[None] | None = None
        self._opened: OpenConnection | None = None
        #: It may not be started, so trying again would be of no use.
        self._is_refused = False
        self._settled = asyncio.Event()
        self._has_changed = asyncio.Event()

    def note_shown(self) -> None:
        """Note that the person was shown what has changed."""
        self.shown = self.reviewed.changed

    def start(self) -> None:
        """Have it started, unless it is running, starting or switched off. One that failed is tried again."""
        if self.state == "off" or (self._task is not None and not self._task.done()):
            return
        self.state, self.problem, self.remedies = "starting", "", ()
        self._is_refused = False
        self._settled, self._has_changed = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._live(), name=f"mcp {self.server.name}")
        self._task.add_done_callback(self._give_up)

    async def settled(self) -> None:
        """Wait until it runs or has failed; one that was not started is started."""
        self.start()
        if self.state != "off":
            await self._settled.wait()

    async def link(self) -> "McpLink":
        """Return the link to the running server. Raises ToolError if it does not run."""
        await self.settled()
        if self._opened is not None and self._opened.lost.is_set():
            self._settled.clear()  # it will be started again, or given up
            await self._settled.wait()
        if self._opened is None:
            why = self.problem or "it is switched off"
            raise ToolError(
                f"The MCP server {self.server.name} does not run: {why}.", remedies=self.remedies
            )
        return self._opened.link

    async def call(
        self, tool: ListedTool, given: Any, print_live: Callable[[str], None]
    ) -> ToolOutput:
        """Have it run a tool as that was approved. Raises ToolError."""
        link = await self.link()
        if not any(each.digest == tool.digest for each in self.offer.tools):
            raise Refused(
                f"Not called: the server {self.server.name} describes {tool.name} in another way than it was approved."
            )
        opened = self._opened
        try:
            return await link.call(tool.name, given, print_live)
        except ToolError as error:
            if opened is None or not await _is_lost(opened):
                raise
            raise ToolError(
                f"The MCP server {self.server.name} was lost: {opened.why}. It is being started again."
            ) from error

    def approve(self) -> None:
        """Use what it offers as it is now. Raises ConfigError and OSError."""
        self._pins.approve(self.server, self._all)
        self._take(self._all)

    async def aclose(self) -> None:
        """End it."""
        if (task := self._task) is not None:  # until that has ended no other one is started
            task.cancel()
            await asyncio.wait((task,))
        if self.state not in ("off", "failed"):
            self.state, self.problem = "known", "it was ended"
        self._settled.set()  # for whoever waits

    async def _live(self) -> None:
        """Run it, and start it again when it is lost."""
        tries, has_answered, loop = 0, False, asyncio.get_running_loop()
        while True:
            began = loop.time()
            has_answered = await self._run() or has_answered
            tries = 0 if loop.time() - began > CALM_SECONDS else tries
            if not has_answered or tries == MOST_RESTARTS or self.remedies or self._is_refused:
                self.state = "failed"
                self._settled.set()
                self._tell(f"The MCP server {self.server.name} does not run: {self.problem}.")
                return
            if not tries:
                self._tell(
                    f"The MCP server {self.server.name} was lost and is started again: {self.problem}."
                )
            self.state = "lost"
            self._settled.clear()
            await asyncio.sleep(FIRST_PAUSE_SECONDS * 2**tries)
            tries += 1

    def _give_up(self, task: asyncio.Task[None]) -> None:
        """Let nobody wait for a server that is not run any more, whatever ended that."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.state, self.problem = "failed", f"{type(error).__name__}: {error}"
            self._tell(f"The MCP server {self.server.name} does not run: {self.problem}.")
            self._settled.set()

    async def _run(self) -> bool:
        """Run it to its end; return whether it ever answered."""
        is_ready, opened = False, None
        try:
            async with (
                time_limit(self.server.start_seconds) as limit,
                self._open(self.server, self._has_changed.set) as opened,
            ):
                await self._look(opened.link)
                limit.reschedule(None)
                self._opened, self.state, is_ready = opened, "ready", True
                self.version = opened.link.version
                self._settled.set()
                await self._until_lost(opened)
        except asyncio.CancelledError:
            raise
        except TimeoutError:
            self.problem = f"it was not ready within {self.server.start_seconds:g} s"
        except Exception as error:  # somebody else's doing: the session goes on
            self.problem, first = _words_of(error), _first_in(error)
            self.remedies = first.remedies if isinstance(first, ToolError) else ()
            self._is_refused = isinstance(first, Refused)
        finally:
            self._opened = None
        if opened is not None and (why := opened.why):
            self.problem = why if is_ready or not self.problem else f"{self.problem} ({why})"
        return is_ready

    async def _until_lost(self, opened: OpenConnection) -> None:
        """Look again at what it offers whenever that changes, until it is gone."""
        watching = asyncio.create_task(self._listen(opened.link))
        lost = asyncio.create_task(opened.lost.wait())
        try:
            while not lost.done():
                changed = asyncio.create_task(self._has_changed.wait())
                try:
                    await asyncio.wait((changed, lost), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
                if self._has_changed.is_set() and not lost.done():
                    self._has_changed.clear()
                    with suppress(ToolError):
                        await self._look(opened.link)
                    await asyncio.wait((lost,), timeout=LOOK_SECONDS)
        finally:
            watching.cancel()
            lost.cancel()

    async def _listen(self, link: "McpLink") -> None:
        if link.is_modern:
            async for _ in link.changes():
                self._has_changed.set()

    async def _look(self, link: "McpLink") -> None:
        """Ask what it offers. Raises ToolError."""
        found, unfit = await link.offer()
        if new := [each for each in unfit if each not in self.unfit]:
            self._tell(
                f"The MCP server {self.server.name} offers what cannot be used: {_few(new)}."
            )
        self.unfit = unfit
        self._take(found)
        if self._pins.of(self.server) is None:
            with suppress(ConfigError, OSError):
                await asyncio.to_thread(self._pins.approve, self.server, found)

    def _take(self, found: ServerOffer) -> None:
        self._all = found
        before = {new.digest for _, new in self.reviewed.changed}
        self.reviewed = self._pins.judge(self.server, found.tools)
        offer = _narrowed(replace(found, tools=self.reviewed.usable), self.server)
        if offer != self.offer:
            self.offer = offer
        waiting = [each for each in self.reviewed.changed if each[1].digest not in before]
        who, until = f"The MCP server {self.server.name}", "not used until you approve"
        if names := [new.name for old, new in waiting if old is not None]:
            listed = ", ".join(names)
            self._tell(f"{who} describes {listed} in another way than before: {until} the change.")
        if names := [new.name for old, new in waiting if old is None]:
            self._tell(f"{who} has new tools, {', '.join(names)}: {until} them.")


async def _is_lost(opened: OpenConnection) -> bool:
    """Return whether the other side is gone, which may become known a moment after a call failed for it."""
    with suppress(TimeoutError):
        async with time_limit(LOSS_SECONDS):
            await opened.lost.wait()
    return opened.lost.is_set()


def _few(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_NAMED
    return "; ".join([*texts[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])])


def _narrowed(offer: ServerOffer, server: Server) -> ServerOffer:
    """Return the entry's settings."""
    wanted = server.tools
    if wanted is None:
        return offer
    return replace(offer, tools=tuple(tool for tool in offer.tools if tool.name in wanted))


def _first_in(error: BaseException) -> BaseException:
    """Return the error, or the first of several."""
    while isinstance(error, BaseExceptionGroup):
        several: tuple[BaseException, ...] = error.exceptions  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType] - of any kind
        error = several[0]
    return error


def _words_of(error: Exception) -> str:
    if isinstance(error, BadServer | ToolError):
        return str(error).rstrip(".")
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, ImportError):
        return (
            f"ybs cannot load the MCP SDK ({type(error).__name__}: {error}); another package of that name may be found "
            "before it, as through PYTHONPATH"
        )
    from ybs.tools.mcp.link import words_of  # loaded by now

    return words_of(error)


_MOST_LINES: Final = 2
_SHALLOW: Final = 2  # parts of a path such as /srv, which is not named to be opened
_MOST_SHOWN: Final = 500
_ESCAPES = lazy(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
#: What stands around a reason: frames, rulers, brackets, version lines, hints at logs and manuals.
_NOISE = lazy(
    r"""\W*$|\s+at\s|\s*File\s"|\s*throw\s|\s*\^|node:|file://\S+:\d+$|/\S+:\d+$|Node\.js\sv|Bun\sv|Require\sstack:|-\s/
    |\s*(?:errno|code|syscall|path|url|requireStack|cause|address|port|hostname|dest):\s|(?:.*\s)?Traceback\s
    |npm\s(?:notice|warn|WARN)|npm\s(?:error|ERR!)\s*(?:$|code\s|errno\s|syscall\s|path\s|\d+\s*$|A\scomplete\slog|\s*/
    |.*Note\sthat\syou\scan|\d+\s+tarball|\s+at\s)
    |Run\s'docker|See\s'docker|Unable\sto\sfind\simage|note:\srun\swith|stack\sbacktrace|goroutine\s|exit\sstatus|\s+\d+:\s
    |\s*\.\.\.\s\d+\smore|(?:For\smore|Learn\smore|See\shttps?:|Did\syou\smean)|During\shandling\sof|The\sabove\sexception""",
    re.VERBOSE,
)
#: Lines that say what failed.
_STRONG = lazy(
    r"""(?:Uncaught\s|Unhandled\s|\[?)?[\w.$:]*(?:Error|Exception|Exit|Interrupt|Panic)\b(?:\s\[\w+\])?[:\]\s]
    |(?i:error|fatal|panic|failed)\b[:\[]|\S+:\s(?:error|fatal)\b|docker:\s|podman:\s|npm\s(?:error|ERR!)
    |thread\s'.*panicked\sat|Exception\sin\sthread|Caused\sby:|[\u00d7╰├]|ERR_\w+|\[ERR""",
    re.VERBOSE,
)
_WEAK = lazy(
    r"\b(?:error|fatal|cannot|can't|could not|couldn't|unable|failed|failure|denied|refused|missing|required|invalid|unknown|"
    r"unsupported|not found|no such|not set|must|usage|expired|unauthorized|forbidden)\b",
    re.IGNORECASE,
)
_READ_ONLY = lazy(
    r"\b(?:EROFS|EACCES|EPERM)\b|read-only file system|PermissionError|permission denied|readonly database|"
    r"unable to open database file",
    re.IGNORECASE,
)
_NO_NETWORK = lazy(
    r"\b(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH)\b|getaddrinfo|could not resolve|name resolution|name or service not known|"
    r"dns error|network is unreachable|no such host|error sending request",
    re.IGNORECASE,
)
_HIDDEN = lazy(r"\bENOENT\b|no such file or directory|FileNotFoundError", re.IGNORECASE)
_PATH = lazy(r"""['"`:\s](/[^'"`:\n]+)""")


def reason_in(said: str) -> str:
    """Return the lines of a standard error that say why a program failed, as one; empty where it wrote none."""
    lines = _joined([line.rstrip() for line in _ESCAPES().sub("", said).splitlines()])
    whole = [line for line in lines if line.strip()]
    telling = [line.strip() for line in whole if not _NOISE().match(line)]
    strong = [line for line in telling if _STRONG().match(line)]
    if "Traceback (most recent call last)" in said:
        chosen = strong[-1:]  # Python tells the last error last
    else:
        causes = [line for line in strong[1:] if line.startswith("Caused by:")]
        chosen = [*strong[:1], causes[-1]] if causes else strong[:_MOST_LINES]
    weak = [line for line in telling if _WEAK().search(line)]
    last = telling or [line.strip() for line in whole]
    chosen = list(dict.fromkeys(chosen or weak[-_MOST_LINES:] or last[-_MOST_LINES:]))
    return cleaned("; ".join(line.rstrip(".;?!") for line in chosen), _MOST_SHOWN)


def _joined(lines: list[str]) -> list[str]:
    """Return lines with the message of a panic, and the rest of a broken line of uv, behind where they begin."""
    joined: list[str] = []
    for line in lines:
        line = re.sub(r"^\s*\|\s?", "", line)  # of Python's groups of exceptions
        before = joined[-1].lstrip() if joined else ""
        is_panic = " panicked at " in before and before.endswith(":")
        is_rest = before[:1] in ("╰", "├") and line.startswith("    ") and line.strip()
        if is_panic or is_rest:
            joined[-1] += f" {line.strip()}"
        else:
            joined.append(line)
    return joined


def remedies_for(server: Server, said: str, folder: Path) -> tuple[Remedy, ...]:
    """Return what the person can change in a server's entry, where the sandbox kept it from what it tried."""
    if server.transport != "stdio" or not server.is_held:
        return ()
    found: list[str] = []
    if not server.network and _NO_NETWORK().search(said):
        found.append(
            'give it the network, which the first fetch of a package needs: take "network": false out of its entry '
            "(--no-network of ybs mcp add)"
        )
    if denied := _READ_ONLY().search(said):
        found += _let_write(server, _path_beside(denied, said), folder)
    elif (hidden := _HIDDEN().search(said)) and (path := _path_beside(hidden, said)):
        found += _let_see(server, path, folder)
    return tuple(Remedy(kind="do", value=each) for each in found)


def _path_beside(found: re.Match[str], said: str) -> Path | None:
    """Return the path that stands in the line of a find."""
    line = said[found.start() :].partition("\n")[0] + said[: found.start()].rpartition("\n")[2]
    named = _PATH().search(line)
    return Path(named[1].strip()) if named else None


def _let_see(server: Server, path: Path, folder: Path) -> list[str]:
    """Return how a server sees a path that is there, but not for it. One that was told to see nothing of the project is not given that."""
    shown = path if path.exists() else path.parent
    is_projects = shown.is_relative_to(folder) or folder.is_relative_to(shown)
    if server.project == "none" and is_projects:
        return []
    if len(shown.parts) <= _SHALLOW or not shown.exists():
        return []
    return [
        f'let it see {shown}: "read": ["{shown}"] in its entry, or "write" to change it (--write {shown})'
    ]


def _let_write(server: Server, path: Path | None, folder: Path) -> list[str]:
    is_inside = path is not None and path.is_relative_to(folder)
    project = 'let it change the project: "project": "write" in its entry (--project write)'
    where = "PATH" if path is None or is_inside else str(path.parent)
    elsewhere = (
        f'let it change a folder elsewhere: "write": ["{where}"] in its entry (--write {where})'
    )
    found = [project] if (path is None or is_inside) and server.project == "read" else []
    return [*found, *([] if is_inside else [elsewhere])]
