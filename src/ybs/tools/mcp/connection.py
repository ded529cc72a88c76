"""One server of a session: started once, restarted when it is lost, and what it offers."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec.structs import replace

from ybs.core.errors import ConfigError, Refused, ToolError
from ybs.core.ports import ToolOutput
from ybs.core.remedies import Remedy
from ybs.tools.mcp.listed import Listed, Offer
from ybs.tools.mcp.pins import Judged, Pins
from ybs.tools.mcp.settings import BadServer, Server
from ybs.tools.mcp.stderr import reason_in

if TYPE_CHECKING:
    from ybs.tools.mcp.link import Link

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


class Opened:
    """An open connection as its owner holds it: what answers, and what it goes by, which ends with the other side."""

    def __init__(self, link: Any, transport: Any) -> None:
        self.link: Link = link
        self._transport = transport
        self.lost: asyncio.Event = transport.ended

    @property
    def why(self) -> str:
        """Say how it ended, with the lines that it wrote about it; nothing as long as it has not."""
        if not self.lost.is_set():
            return ""
        said = reason_in(self._transport.said)
        return f"{self._transport.how}: {said}" if said else self._transport.how


#: Opens the connection to a server; the function is called when the server says that what it offers has changed.
Open: TypeAlias = Callable[[Server, Callable[[], None]], AbstractAsyncContextManager[Opened]]


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
        self.offer: Offer = _narrowed(known.offer, server) if known else Offer()
        self.judged = Judged(self.offer.tools)
        #: The changes that the person was shown.
        self.shown: Sequence[tuple[Listed | None, Listed]] = ()
        #: What is wrong with tools that it offers.
        self.unfit: Sequence[str] = ()
        self.version = ""
        self._all = Offer()
        self._task: asyncio.Task[None] | None = None
        self._opened: Opened | None = None
        self._settled = asyncio.Event()
        self._has_changed = asyncio.Event()

    def note_shown(self) -> None:
        """Note that the person was shown what has changed."""
        self.shown = self.judged.changed

    def start(self) -> None:
        """Have it started, unless it is running, starting or switched off. One that failed is tried again."""
        if self.state == "off" or (self._task is not None and not self._task.done()):
            return
        self.state, self.problem, self.remedies = "starting", "", ()
        self._settled, self._has_changed = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._live(), name=f"mcp {self.server.name}")
        self._task.add_done_callback(self._give_up)

    async def settled(self) -> None:
        """Wait until it runs or has failed; one that was not started is started."""
        self.start()
        if self.state != "off":
            await self._settled.wait()

    async def link(self) -> "Link":
        """Return what answers. Raises ToolError where it does not run."""
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

    async def call(self, tool: Listed, given: Any, print_live: Callable[[str], None]) -> ToolOutput:
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
            if not has_answered or tries == MOST_RESTARTS or self.remedies:
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
                asyncio.timeout(self.server.start_seconds) as limit,
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
            self.problem, self.remedies = _words_of(error), _remedies_in(error)
        finally:
            self._opened = None
        if opened is not None and (why := opened.why):
            self.problem = why if is_ready or not self.problem else f"{self.problem} ({why})"
        return is_ready

    async def _until_lost(self, opened: Opened) -> None:
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

    async def _listen(self, link: "Link") -> None:
        if link.is_modern:
            async for _ in link.changes():
                self._has_changed.set()

    async def _look(self, link: "Link") -> None:
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

    def _take(self, found: Offer) -> None:
        self._all = found
        before = {new.digest for _, new in self.judged.changed}
        self.judged = self._pins.judge(self.server, found.tools)
        offer = _narrowed(replace(found, tools=self.judged.usable), self.server)
        if offer != self.offer:
            self.offer = offer
        waiting = [each for each in self.judged.changed if each[1].digest not in before]
        who, until = f"The MCP server {self.server.name}", "not used until you approve"
        if names := [new.name for old, new in waiting if old is not None]:
            listed = ", ".join(names)
            self._tell(f"{who} describes {listed} in another way than before: {until} the change.")
        if names := [new.name for old, new in waiting if old is None]:
            self._tell(f"{who} has new tools, {', '.join(names)}: {until} them.")


async def _is_lost(opened: Opened) -> bool:
    """Return whether the other side is gone, which may become known a moment after a call failed for it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LOSS_SECONDS):
            await opened.lost.wait()
    return opened.lost.is_set()


def _few(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_NAMED
    return "; ".join([*texts[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])])


def _narrowed(offer: Offer, server: Server) -> Offer:
    """Return what the person wants of it."""
    wanted = server.tools
    if wanted is None:
        return offer
    return replace(offer, tools=tuple(tool for tool in offer.tools if tool.name in wanted))


def _remedies_in(error: BaseException) -> tuple[Remedy, ...]:
    """Return what the person can do, if the error says so, or the first of several errors."""
    while isinstance(error, BaseExceptionGroup):
        several: tuple[BaseException, ...] = error.exceptions  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType] - of any kind
        error = several[0]
    return error.remedies if isinstance(error, ToolError) else ()


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
