"""The running task of a session: one at a time, a turn or another task that excludes turns."""

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from ybs.core.errors import YbsError

_T = TypeVar("_T")


class Stopped(YbsError):
    """The person stopped what was being done."""


class RunningTask:
    """Holds the running task, so that it can be cancelled, and keeps a second thing from beginning."""

    def __init__(self) -> None:
        self.turn: asyncio.Task[None] | None = None
        self._work: asyncio.Task[Any] | None = None
        self._what = ""

    def check(self) -> None:
        """Raise YbsError where something is being done."""
        if self.turn is not None:
            raise YbsError(
                "ybs is still working on the last prompt. Wait until it has finished, or interrupt it."
            )
        if self._what:
            raise YbsError(f"{self._what} Wait for it.")

    def begin(self, turn: asyncio.Task[None]) -> None:
        """Hold a turn until it is `done`."""
        self.turn = turn

    def done(self) -> None:
        """Be free for the next turn."""
        self.turn = None

    def cancel(self) -> bool:
        """Stop the turn or the work. Return whether there was one that can be stopped."""
        task = self.turn or self._work
        return task is not None and task.cancel()

    @contextmanager
    def held(self, what: str) -> Generator[None]:
        """Let nothing else begin; `what` is a sentence that says why. It cannot be cancelled. Raises YbsError."""
        self.check()
        self._what = what
        try:
            yield
        finally:
            self._what = ""

    async def working(self, work: Coroutine[Any, Any, _T], what: str) -> _T:
        """Do something that may take long and can be cancelled. Raises Stopped when it was."""
        try:
            with self.held(what):
                task = self._work = asyncio.create_task(work)
                try:
                    return await task
                except asyncio.CancelledError:
                    if is_passed_on(task):
                        raise
                    raise Stopped("Interrupted; nothing was changed.") from None
                finally:
                    self._work = None
        finally:
            work.close()  # it was never begun where something else is being done

    async def end(self) -> None:
        """Cancel the turn and the work, and wait for their ends."""
        for task in (self.turn, self._work):
            if task is not None:
                task.cancel()
                await asyncio.wait((task,))


def is_passed_on(task: "asyncio.Task[Any]") -> bool:
    """Return whether a cancellation was meant for the one who waits for the task, and not for the task."""
    this = asyncio.current_task()
    return not task.cancelled() or (this is not None and this.cancelling() > 0)
