"""One program for all sessions of a project in this process that have the same entry for a server: what a host shares."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

from ybs.core.leases import Leases
from ybs.tools.mcp.connection import Opened
from ybs.tools.shell.orphans import token
from ybs.tools.shell.watch import Watch

#: Opens the connection to a program; the function is called when it says that what it offers has changed.
OpenProgram: TypeAlias = Callable[[Callable[[], None], Watch], AbstractAsyncContextManager[Opened]]


@asynccontextmanager
async def joined(
    leases: Leases, key: Hashable, open_: OpenProgram, changed: Callable[[], None]
) -> AsyncGenerator[Opened]:
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
