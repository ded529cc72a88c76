"""`events_of`: the events of one turn as an async iterator, for callers who want `async for`."""

import asyncio
from collections.abc import AsyncGenerator

from ybs.core.envelope import Envelope
from ybs.session.session import Session


async def events_of(
    session: Session, prompt: str, *, follows: bool = False
) -> AsyncGenerator[Envelope, None]:
    """Take a turn and yield its events as they happen; close it (`contextlib.aclosing`) to cancel the turn.

    With `follows` it yields where the session stands as well (`StateChanged`): the questions that wait, for example.
    """
    envelopes: asyncio.Queue[Envelope | None] = asyncio.Queue()
    leave = session.subscribe(envelopes.put_nowait, follows=follows)
    turn = asyncio.create_task(session.send(prompt))
    turn.add_done_callback(lambda _turn: envelopes.put_nowait(None))
    try:
        while (envelope := await envelopes.get()) is not None:
            yield envelope
        await turn
    finally:
        leave()
        if not turn.done():
            session.cancel()
            await asyncio.wait((turn,))
