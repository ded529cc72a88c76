"""One program for all sessions of a project in this process that have the same entry for a server: what a host shares."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

from ybs.config.host import Host
from ybs.tools.mcp.connection import Opened
from ybs.tools.shell.orphans import token
from ybs.tools.shell.watch import Watch

#: Opens the connection to a program; the function is called when it says that what it offers has changed.
OpenProgram: TypeAlias = Callable[[Callable[[], None]], AbstractAsyncContextManager[Opened]]


class Sharing:
    """The programs that run, each by all that makes it what it is."""

    def __init__(self) -> None:
        self._running: dict[Hashable, _Program] = {}
        self._watch: Watch | None = None

    @classmethod
    def of(cls, host: Host) -> "Sharing":
        """Return that of a host."""
        shared: Sharing = host.shared.setdefault("mcp", cls())
        return shared

    @property
    def watch(self) -> Watch:
        """What ends the programs where ybs was killed; it lives as long as any of them."""
        if self._watch is None:
            self._watch = Watch(token())
        return self._watch

    @asynccontextmanager
    async def joined(
        self, key: Hashable, open_: OpenProgram, changed: Callable[[], None]
    ) -> AsyncGenerator[Opened]:
        """Use a program with others; the first one starts it, and the last one ends it. Raises what opening it raises."""
        program = self._running.get(key)
        if program is None or program.is_over:
            program = self._running[key] = _Program(open_)
        program.changed.append(changed)
        try:
            yield await asyncio.shield(program.opened)
        finally:
            program.changed.remove(changed)
            if not program.changed:
                if self._running.get(key) is program:
                    del self._running[key]
                await program.end()
                if not self._running and self._watch is not None:
                    self._watch.close()
                    self._watch = None


class _Program:
    """A program, in a task of its own: who started it may leave before the others."""

    def __init__(self, open_: OpenProgram) -> None:
        self._open, self._unused = open_, asyncio.Event()
        #: What is called when that which it offers has changed.
        self.changed: list[Callable[[], None]] = []
        self.opened: asyncio.Future[Opened] = asyncio.get_running_loop().create_future()
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
        try:
            async with self._open(self._tell) as opened:
                self.opened.set_result(opened)
                await self._unused.wait()
        except asyncio.CancelledError:
            self.opened.cancel()
        except Exception as error:  # whoever waits for it is told
            if not self.opened.done():
                self.opened.set_exception(error)
                self.opened.exception()  # it may be that nobody waits any more

    def _tell(self) -> None:
        for changed in tuple(self.changed):
            changed()
