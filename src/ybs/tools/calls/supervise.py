"""The supervision of a tool's own code: it ends in time, and whatever it raises becomes a ToolError.

This is the toolbox's edge, where a broad `except` is right: a tool may be anybody's program.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from functools import partial
from types import coroutine
from typing import Any, TypeVar

from ybs.core.cutting import shortened
from ybs.core.errors import ToolError
from ybs.core.threads import in_thread

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())  # else Python writes to the terminal, past the gate
_Value = TypeVar("_Value")
#: Between asking a tool to stop and stopping it; a shell command needs two seconds of it.
GRACE_SECONDS = 5.0
_MOST_WORDS = 500  # characters of an error's own message


class Crashed(ToolError):
    """The tool failed by a mistake of its own."""


class Endless(ToolError):
    """The tool did not end in time and was stopped."""


def checked(function: Callable[[], _Value], name: str) -> _Value:
    """Call the function of the tool `name`. Raises ToolError, whatever it raised."""
    try:
        return function()
    except BaseException as error:
        raise _as_tool_error(error, name) from error


async def called(function: Callable[[], _Value], name: str, seconds: float | None) -> _Value:
    """Call a function that may block, in a thread of its own, at most so long. Raises ToolError, and nothing else.

    A thread cannot be stopped: one that does not end is left behind and holds up nobody, not even the exit.
    """
    try:
        return await in_thread(lambda: checked(function, name), seconds)
    except TimeoutError:
        raise Endless(
            f"{name} did not even begin within {seconds:g} s; nothing was done."
        ) from None


async def awaited(
    start: Callable[[], Awaitable[_Value]], name: str, seconds: float | None
) -> _Value:
    """Await what `start` begins, at most so long. Raises ToolError; cancelling this ends the tool's work too."""
    supervision = _Supervision()
    task = asyncio.create_task(supervision.hold(start, name))
    task.add_done_callback(_forget)
    try:
        await asyncio.wait((task,), timeout=seconds)
        if task.cancelled():
            raise Crashed(f"{name} failed by a mistake of its own: it cancelled itself")
        if task.done():
            return task.result()
    finally:
        if not task.done():
            await supervision.end(task)
    raise Endless(
        f"{name} did not end within {seconds:g} s and was stopped. It may have done part of its work."
    )


class _Supervision:
    """Holds one coroutine. Unlike a Task alone it can let go of one that ignores its cancellation."""

    def __init__(self) -> None:
        self._is_cut = self._is_closing = False

    async def hold(self, start: Callable[[], Awaitable[_Value]], name: str) -> _Value:
        async def inner() -> _Value:
            return await start()

        try:
            return await self._driven(inner())
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            if self._is_closing:
                raise
            raise _as_tool_error(error, name) from error

    async def end(self, task: "asyncio.Task[Any]") -> None:
        """Ask the task to stop, wait a little, then drop it."""
        task.cancel()
        try:
            await asyncio.wait((task,), timeout=GRACE_SECONDS)
        finally:
            if not task.done():
                self._is_cut = True
                task.cancel()
        await asyncio.wait((task,), timeout=GRACE_SECONDS)

    @coroutine
    def _driven(self, inner: Coroutine[Any, Any, _Value]) -> Generator[Any, Any, _Value]:
        """Pass everything between the loop and the coroutine, until it is ended."""
        go_on: Callable[[], Any] = partial(inner.send, None)
        while True:
            try:
                waits_for = go_on()
            except StopIteration as end:
                return end.value
            try:
                yield waits_for
            except BaseException as error:
                self._is_closing = isinstance(error, GeneratorExit)
                if self._is_cut:
                    with suppress(RuntimeError):  # it ignores this as well
                        inner.close()
                    raise
                go_on = partial(inner.throw, error)
            else:
                go_on = partial(inner.send, None)


def _forget(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled():
        task.exception()  # looked at, so that asyncio does not complain about an abandoned one


def _as_tool_error(error: BaseException, name: str) -> ToolError:
    try:
        words = str(error)
    except BaseException:  # what cannot even be described is a mistake too
        words, is_known = "its message cannot be read", False
    else:
        is_known = isinstance(error, ToolError)
    if is_known and isinstance(error, ToolError):
        return error
    _log.error("the tool %s failed", name, exc_info=error)
    kind = type(error).__name__
    return Crashed(
        f"{name} failed by a mistake of its own: {kind}: {shortened(words, _MOST_WORDS)}"
    )
