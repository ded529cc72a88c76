"""Show a running turn in a chat: typing, one line of progress, and the growing answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, Self

from ybs.core.envelope import MAIN, Envelope
from ybs.core.events import AssistantSaid, RequestRetried, TextStreamed, ToolStarted
from ybs.core.time_limits import time_limit
from ybs.frontends.gateway.channel import Capabilities, ChatPlace, MaybeSentError
from ybs.frontends.gateway.formatting import literal
from ybs.session.session import Session

#: A turn that is over sooner is not shown at all; afterwards something new is shown so often.
FIRST_SECONDS, EVERY_SECONDS = 2.0, 2.0
_TYPING_SECONDS: Final = 4.0
_MOST_TITLE: Final = 200
#: So long at the end an edit that is on its way may take: it must not come after the answer.
_LAST_SECONDS: Final = 10.0
_GROWING: Final = " …"


class Shows(Protocol):
    """Shows what is not kept, as `Outbox` does."""

    async def progress(self, place: ChatPlace, text: str, *, message: str) -> str:
        """Show how far something is; return the platform's id of the message that shows it. Raises MaybeSentError."""
        ...

    async def show_typing(self, place: ChatPlace) -> None:
        """Show that an answer is on its way."""
        ...


class LiveTurn:
    """Follows one turn of a session in a chat, from `async with` on.

    `message` is the platform's id of the message that shows it, which the answer may take the place of; `shown` is told it.
    """

    def __init__(
        self,
        outbox: Shows,
        capabilities: Capabilities,
        place: ChatPlace,
        session: Session,
        message: str = "",
        shown: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._outbox, self._capabilities, self._place = outbox, capabilities, place
        self._session, self._shown_as = session, shown
        self.message = message
        self._text, self._doing, self._shown = "", "", ""
        self._tasks: list[asyncio.Task[None]] = []
        self._over = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._leave = self._session.subscribe(self._take)
        if self._capabilities.shows_typing:
            self._tasks.append(asyncio.create_task(self._type()))
        if self._capabilities.can_edit:
            self._tasks.append(asyncio.create_task(self._show()))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._leave()
        self._over.set()
        if self._tasks:
            late = (await asyncio.wait(self._tasks, timeout=_LAST_SECONDS))[1]
            for task in late:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _take(self, envelope: Envelope) -> None:
        if envelope.agent != MAIN:
            return
        match envelope.event:
            case TextStreamed(text=text):
                self._text, self._doing = self._text + text, ""
            case ToolStarted() as started:
                self._text, self._doing = "", (started.title or started.name)[:_MOST_TITLE]
            case AssistantSaid(content=content):
                self._text = content
            case RequestRetried():
                self._text = ""
            case _:
                pass

    async def _type(self) -> None:
        while not self._over.is_set():
            await self._outbox.show_typing(self._place)
            await self._pause(_TYPING_SECONDS)

    async def _show(self) -> None:
        await self._pause(FIRST_SECONDS)
        while not self._over.is_set():
            words = f"{self._text}{_GROWING}" if self._text.strip() else ""
            words = words or (f"_{literal(self._doing)}{_GROWING}_" if self._doing else "")
            if words and words != self._shown and not await self._put(words):
                return
            await self._pause(EVERY_SECONDS)

    async def _put(self, words: str) -> bool:
        """Show words; return whether more may follow."""
        try:
            message = await self._outbox.progress(self._place, words, message=self.message)
        except MaybeSentError:  # another try could show it twice
            return False
        if message and message != self.message:
            self.message = message
            if self._shown_as is not None:
                await self._shown_as(message)
        if message:
            self._shown = words
        return True

    async def _pause(self, seconds: float) -> None:
        try:
            async with time_limit(seconds):
                await self._over.wait()
        except TimeoutError:
            pass
