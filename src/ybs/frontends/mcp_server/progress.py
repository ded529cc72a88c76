"""What a running call prints, as progress notifications to a client that asked for them."""

import asyncio
from typing import Final, Self

from mcp.server.session import ServerSession

from ybs.core.events import Emit, Event, ToolPrinted
from ybs.security.marks import marked

#: A notification has at most so many characters, the last ones; between two there is at least this time.
MOST_CHARS: Final = 2_000
BETWEEN_SECONDS: Final = 0.25


class Progress:
    """An `Emit` that sends what is printed, as long as it is entered, and hands on everything else.

    The number of a notification is that of the characters printed so far.
    """

    def __init__(self, session: ServerSession, emit: Emit) -> None:
        self._session, self._emit = session, emit
        self._text, self._printed = "", 0
        self._has_news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __call__(self, event: Event) -> None:
        """Take an event of the call."""
        if not isinstance(event, ToolPrinted):
            self._emit(event)
            return
        self._printed += len(event.text)
        self._text = (self._text + event.text)[-MOST_CHARS:]
        self._has_news.set()
        if self._task is None:
            self._task = asyncio.create_task(self._send())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _send(self) -> None:
        """Send what is new; the session sends nothing where the client did not ask for it."""
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            text, self._text = self._text, ""
            await self._session.report_progress(self._printed, message=marked(text)[0])
            await asyncio.sleep(BETWEEN_SECONDS)
