"""The state that all pages of a process share: the hub, followed sessions, and open tabs."""

import asyncio
from pathlib import Path
from time import time
from typing import Final, Literal, Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from ybs.commands.figures import age
from ybs.commands.learn import RecurringTasks
from ybs.core.errors import YbsError
from ybs.frontends.serve.sessions import HostedSessions
from ybs.frontends.subcommands.sessions import Sessions
from ybs.frontends.web.board import Fact, Ledger, board_of
from ybs.frontends.web.drawing import Record, reply_of
from ybs.frontends.web.following import Followed, Tab
from ybs.security.unicode import printable
from ybs.session.hub import Shared
from ybs.session.options import Options

#: So many sessions and tabs are open at once.
MOST_OPEN, MOST_TABS = 32, 256
#: Saved sessions and projects that are listed.
MOST_LISTED: Final = 300
#: As whom somebody is let in.
Role: TypeAlias = Literal["owner", "guest", "refused"]
#: How long changes are gathered before lists are sent anew.
_GATHER_SECONDS: Final = 0.1
_TRUST: Final = "This project asks for settings or programs that wait for your trust. See what it asks for, and trust it: /trust"


class GatewayChats(Protocol):
    """The chats of a gateway in whose process the pages are."""

    async def health(self) -> list[Fact]:
        """Return facts for the board."""
        ...

    async def waiting(self) -> list[Record]:
        """List who waits to be let in: `code`, `channel`, `who`, and since when (`age`)."""
        ...

    async def pair(self, code: str, role: Role) -> None:
        """Let the person with this code in, or refuse them. Raises YbsError where nobody waits with it."""
        ...


class Pages:
    """The sessions of a server (`hosted`) as pages see them; without one they are the pages' own, and end with them.

    `options` are those of the command line, for the sessions that pages open. `chats` are those of a gateway.
    """

    def __init__(
        self,
        options: Options,
        hosted: HostedSessions | None = None,
        chats: GatewayChats | None = None,
    ) -> None:
        self.options, self.chats = options, chats
        self._hosted, self._is_alone = hosted or HostedSessions(options.host), hosted is None
        self.hub = self._hosted.hub
        self.hub.watch(self.tell)
        self.saved, self.ledger = Sessions(options), Ledger()
        self.begun_at = time()
        self._followed: dict[str, Followed] = {}
        self._tabs: set[Tab] = set()
        self._telling: asyncio.TimerHandle | None = None

    async def aclose(self) -> None:
        """End everything."""
        for tab in tuple(self._tabs):
            tab.end()
        if self._telling is not None:
            self._telling.cancel()
        for followed in self._followed.values():
            followed.close()
        self._followed.clear()
        self.hub.watch(lambda: None)
        if self._is_alone:
            await self._hosted.aclose("The page ends.")

    # Sessions

    def projects(self) -> list[str]:
        """Return the folders that a session may be opened in: this one, and those of saved sessions, the newest first."""
        saved = (each.project for each in self.saved.store.sessions())
        known = dict.fromkeys((str(self.saved.folder), *saved))
        return [each for each in known if each and Path(each).is_dir()][:MOST_LISTED]

    async def open(
        self, login: str, *, folder: str, resume: str, is_fork: bool, is_incognito: bool
    ) -> Followed:
        """Open a new session in a known project, or a saved one. Raises YbsError."""
        if len(self.hub.sessions) >= MOST_OPEN:
            raise YbsError(f"{MOST_OPEN} sessions are open. Close one first.")
        folder, name = folder or str(self.saved.folder), ""
        if resume:
            saved = await asyncio.to_thread(self.saved.find, resume)
            folder, name = saved.project, saved.name
        elif folder not in await asyncio.to_thread(self.projects):
            raise YbsError("No session was ever held in that folder. Start ybs there once.")
        incognito = {"incognito.enabled": True} if is_incognito else {}
        options = replace(
            self.options, folder=Path(folder), overrides=self.options.overrides | incognito
        )
        options.host.work_in(options.folder)
        held = None if is_fork else self._hosted.share(name, options)
        shared = (held or self._hosted.hold(options, name, is_fork=is_fork)).shared
        followed = self._follow(shared, login)
        review = shared.session.loaded.review
        if review is not None and review.needs_question:
            followed.note(_TRUST)
        return followed

    def _follow(self, shared: Shared, owner: str) -> Followed:
        name = shared.session.id
        if name not in self._followed:
            self._followed[name] = Followed(shared, owner, self.tell)
        return self._followed[name]

    def find(self, session_id: str, login: str) -> Followed:
        """Return an open session that this login may see. Raises YbsError."""
        followed = self._follow(self.hub.find(session_id), "")
        if not followed.is_seen_by(login):
            raise YbsError(f"No session with the id {session_id[:40]!r} is open here.")
        return followed

    async def close(self, followed: Followed) -> None:
        """End a session."""
        held = self._hosted.find(followed.session.id)
        await self._hosted.close(held, "It was closed on the page.")

    def opened_by(self, login: str) -> list[Record]:
        """List the open sessions that a login may see, oldest first."""
        seen = (self._follow(each, "") for each in self.hub.sessions)
        return [_row(each) for each in seen if each.is_seen_by(login)]

    def listed(self) -> list[Record]:
        """List the saved sessions that are not open here, the newest first. It reads the disk."""
        open_names = {each.session.journal.name for each in self.hub.sessions}
        found: list[Record] = []
        for saved in self.saved.store.sessions()[:MOST_LISTED]:
            if not saved.messages or saved.name in open_names:
                continue
            clean = self.saved.cleaned(saved)
            found.append(
                {
                    "name": saved.name,
                    "title": printable(clean.title),
                    "folder": printable(self.options.host.short(saved.project)),
                    "at": saved.changed_at,
                    "messages": saved.messages,
                    "model": printable(saved.model),
                    "elsewhere": bool(saved.is_open),
                    "cost": self.ledger.cost_of(saved),
                }
            )
        return found

    async def board(self, login: str, logins: int) -> Record:
        """Return the figures of the board, as a login may see them."""
        opened = self.opened_by(login)
        words = {each.session.environment.sandbox.word for each in self.hub.sessions}
        facts = [
            ("started", age(time() - self.begun_at), True),
            ("open sessions", str(len(opened)), True),
            ("open pages", str(len(self._tabs)), True),
            ("logged in browsers", str(logins), True),
            (
                "sandbox",
                ", ".join(sorted(words)) or "no session is open",
                "no sandbox" not in words,
            ),
        ]
        facts += await self.chats.health() if self.chats else ()
        return {
            "waiting": await self.chats.waiting() if self.chats else [],
            **await board_of(self.saved, self.ledger, opened, facts),
            "learned": await self.learned("/learn"),
        }

    async def learned(self, line: str) -> Record:
        """List the tasks that recur, or do with one what a line says. Raises YbsError."""
        folder = self.saved.folder
        learning = RecurringTasks(self.options.host, self.saved.store.folder, folder)
        argument = line.removeprefix("/learn").strip()
        return reply_of(await asyncio.to_thread(learning.take, argument), line)

    # Tabs

    def add(self, tab: Tab) -> None:
        """Take a tab that has connected. Raises YbsError where there are too many."""
        if len(self._tabs) >= MOST_TABS:
            raise YbsError("Too many pages are open.")
        for old in [
            each for each in self._tabs if (each.name, each.login) == (tab.name, tab.login)
        ]:
            old.end()
        self._tabs.add(tab)
        tab.put(msgspec.json.encode(self._overview(tab.login)) + b"\n")

    def leave(self, tab: Tab) -> None:
        """Let go of a tab."""
        self._tabs.discard(tab)
        for followed in self._followed.values():
            followed.leave(tab)

    def end_tabs(self, login: str) -> None:
        """Send nothing more to the tabs of a login that has ended."""
        for tab in [each for each in self._tabs if each.login == login]:
            tab.end()

    def tell(self) -> None:
        """Have all tabs sent the list of open sessions, in a moment."""
        if self._telling is None:
            later = asyncio.get_running_loop().call_later
            self._telling = later(_GATHER_SECONDS, self._tell)

    def _tell(self) -> None:
        self._telling = None
        for name in self._followed.keys() - {each.session.id for each in self.hub.sessions}:
            self._followed.pop(name).close()
        lines: dict[str, bytes] = {}
        for tab in tuple(self._tabs):
            if tab.login not in lines:
                lines[tab.login] = msgspec.json.encode(self._overview(tab.login)) + b"\n"
            tab.put(lines[tab.login])

    def _overview(self, login: str) -> Record:
        return {"t": "sessions", "open": self.opened_by(login)}


def _row(followed: Followed) -> Record:
    session, state = followed.session, followed.state
    return {
        "id": session.id,
        "name": state.name,
        "title": printable(state.title),
        "folder": printable(session.host.short(str(session.folder))),
        "model": printable(state.model),
        "busy": state.is_busy,
        "question": state.questions[-1].id if state.questions else "",
        "cost": session.usage.cost_usd,
        "at": followed.at,
        "incognito": followed.is_private,
    }
