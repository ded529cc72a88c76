"""`events_of`: the events of one turn as an async iterator, for callers who want `async for`."""

import asyncio
from collections.abc import AsyncGenerator

from ybs.core.events import Event
from ybs.session.session import Session


async def events_of(session: Session, prompt: str) -> AsyncGenerator[Event, None]:
    """Take a turn and yield its events as they happen; close it (`contextlib.aclosing`) to cancel the turn."""
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    leave = session.subscribe(events.put_nowait)
    turn = asyncio.create_task(session.send(prompt))
    turn.add_done_callback(lambda _turn: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        await turn
    finally:
        leave()
        if not turn.done():
            session.cancel()
            await asyncio.wait((turn,))
