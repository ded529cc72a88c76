"""Work that may block, done in a thread. Most takes less time than a round of the event loop, so it is waited for at once."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import Generic, TypeVar

from ybs.core.time_limits import time_limit

_Value = TypeVar("_Value")
#: The loop stands still for so long at most, and only while no other work is done in a thread.
MOST_BLOCKING_SECONDS = 0.001


class _Work(Generic[_Value]):
    """One call, and what came of it."""

    def __init__(self, function: Callable[[], _Value]) -> None:
        self._function = function
        self._done = threading.Lock()
        self._done.acquire()
        self._told: Callable[[], object] | None = None
        self._error: BaseException | None = None
        self._value: _Value | None = None

    def do(self) -> None:
        try:
            self._value = self._function()
        except BaseException as error:  # whoever waits gets it
            self._error = error
        self._done.release()
        if (told := self._told) is not None:
            with suppress(RuntimeError):  # the loop is closed; nobody waits there any more
                told()

    def is_done(self, within_seconds: float = 0.0) -> bool:
        if within_seconds:
            return self._done.acquire(timeout=within_seconds)
        return self._done.acquire(blocking=False)

    def tell(self, told: Callable[[], object]) -> bool:
        """Have `told` called in the thread once it is done; return whether it is done already."""
        self._told = told
        return self.is_done()

    @property
    def outcome(self) -> _Value:
        """What the function returned. Raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._value  # pyright: ignore[reportReturnType] - None only where the function returned it


class _Worker:
    """A thread that does one piece of work after the other. Starting one anew costs more than most work."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._run, name="ybs-tool", daemon=True).start()

    def do(self, work: Callable[[], None]) -> None:
        self._work.put(work)

    def _run(self) -> None:
        while True:
            self._work.get()()
            _busy.discard(self)
            _idle.append(self)


_idle: list[_Worker] = []
_busy: set[_Worker] = set()


def _free() -> _Worker:
    try:
        return _idle.pop()
    except IndexError:
        return _Worker()


async def in_thread(function: Callable[[], _Value], seconds: float | None = None) -> _Value:
    """Call a function in a thread, with the context variables of the caller; return what it returns, raise what it raises, or TimeoutError after so long.

    A thread cannot be stopped: one that does not end, or whose caller is cancelled, is left behind and holds up nobody,
    not even the exit. Where the machine gives no more threads the function is called here.
    """
    work = _Work(partial(copy_context().run, function))
    is_alone = not _busy
    try:
        worker = _free()
    except RuntimeError:
        return function()
    _busy.add(worker)
    worker.do(work.do)
    if is_alone and work.is_done(MOST_BLOCKING_SECONDS):
        if (task := asyncio.current_task()) is not None and task.cancelling():
            await asyncio.sleep(0)  # else the cancellation would come later than it was asked for
        return work.outcome
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not answer.done():
            answer.set_result(None)

    if not work.tell(lambda: loop.call_soon_threadsafe(settle)):
        async with time_limit(seconds):
            await answer
    return work.outcome
