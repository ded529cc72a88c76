"""Work that is begun and must not be left half done."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

_T = TypeVar("_T")


async def to_its_end(
    work: Coroutine[Any, Any, _T], *, hurry: Callable[[], object] = lambda: None
) -> _T:
    """Do something to its end, however often whoever waits for it is cancelled meanwhile; `hurry` is called then."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        hurry()
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait((task,))
        raise
