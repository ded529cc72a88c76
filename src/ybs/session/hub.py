"""The hub: the sessions of one process, which frontends open, find, share and close.

async with Hub() as hub:
    shared = hub.open("project", mode="ask")
    async for envelope in shared.feed.listen(): ...
    shared.session.questions.answer(question_id, Answer(is_allowed=True))
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from ybs.config.host import Host
from ybs.core.errors import YbsError
from ybs.session.feed import Feed
from ybs.session.options import this_host
from ybs.session.questions import by_id
from ybs.session.session import Session


class Shared:
    """A session that several frontends hold: its feed, and how many hold it."""

    def __init__(self, session: Session) -> None:
        self.session, self.feed = session, Feed()
        self.holders = 1
        session.subscribe(self.feed, follows=True)

    def hold(self, count: int = 1) -> None:
        """Note that so many more frontends hold it, or fewer."""
        self.holders += count


class Hub:
    """Holds sessions by their ids, on one `host`: that of this process's environment, unless another is given.

    What they say and do is seen in none of the others. Those of a project share programs of MCP servers with the same entry and the map's
    process, and those that reach a server in the same way share connections.
    `open_session` takes what `Session.open` takes.
    """

    def __init__(
        self, open_session: Callable[..., Session] = Session.open, host: Host | None = None
    ) -> None:
        self._open_session, self._host = open_session, host or this_host()
        self._sessions: dict[str, Shared] = {}
        #: Called when a session was opened or closed.
        self._changed: Callable[[], None] = lambda: None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def watch(self, changed: Callable[[], None]) -> None:
        """Have this called, and nothing else, when there is one session more or less."""
        self._changed = changed

    @property
    def sessions(self) -> tuple[Shared, ...]:
        """Those that are open, oldest first."""
        return tuple(self._sessions.values())

    def open(self, folder: str | Path = ".", **options: Any) -> Shared:
        """Open a session. Raises what `Session.open` does, so Busy where `resume` names one that is open: `share` is for that.

        Questions are answered by their ids, unless `confirm` says who asks.
        """
        session = self._open_session(folder, **{"confirm": by_id, "host": self._host, **options})
        shared = self._sessions[session.id] = Shared(session)
        self._changed()
        return shared

    def find(self, session_id: str) -> Shared:
        """Return an open session. Raises YbsError where there is none of this id."""
        if session_id not in self._sessions:
            raise YbsError(f"No session with the id {session_id[:40]!r} is open here.")
        return self._sessions[session_id]

    def share(self, session_id: str) -> Shared:
        """Hold a session that is open already. Raises YbsError where there is none of this id."""
        shared = self.find(session_id)
        shared.holders += 1
        return shared

    async def release(self, session_id: str) -> None:
        """Hold a session no longer; the last one to do so closes it. Raises YbsError where there is none of this id."""
        shared = self.find(session_id)
        shared.holders -= 1
        if shared.holders <= 0:
            await self.close(session_id)

    async def close(self, session_id: str) -> None:
        """End a session, whoever holds it. Raises YbsError where there is none of this id."""
        shared = self.find(session_id)
        del self._sessions[session_id]
        self._changed()
        try:
            await shared.session.close()
        finally:
            shared.feed.end()

    async def aclose(self) -> None:
        """End all of them, side by side."""
        await asyncio.gather(*map(self.close, tuple(self._sessions)))
