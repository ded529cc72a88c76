"""The sessions of chats: which session a chat goes on with, in which folder, and what may be done there."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    case,
    delete,
    func,
    insert,
    select,
    update,
)

from ybs.agent.hooks import TurnHook
from ybs.commands.open import open_session
from ybs.config.private_file import Busy
from ybs.config.schema import Clone, GatewaySettings
from ybs.core.decoding import from_json
from ybs.core.envelope import Sink
from ybs.core.errors import YbsError
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect, Tool
from ybs.frontends.gateway.asking import ChatQuestions
from ybs.frontends.gateway.channel import ChatPlace, chat_of
from ybs.frontends.gateway.clones import cloned
from ybs.frontends.gateway.fleet import Fleet
from ybs.frontends.gateway.store import GatewayStore, chats, inbox, insert_into, ledger, moves
from ybs.frontends.gateway.transcripts import KeptTranscripts
from ybs.frontends.gateway.unattended import unattended
from ybs.frontends.serve.sessions import HostedSessions
from ybs.session.hub import Shared
from ybs.session.options import Options
from ybs.session.session import Session
from ybs.transcripts.reading import SUFFIX

#: So many sessions are open at once; those that were used least lately are closed for others. They go on when somebody writes.
MOST_OPEN: Final = 512
_KEEP_SECONDS: Final = 1.0
#: A session that nothing happens in is closed after so long.
IDLE_SECONDS: Final = 900.0
#: The modes that a chat keeps with a new conversation and in another project.
_STRICT: Final = ("plan", "deny")
#: Tools that start programs: a chat has none of them where no sandbox holds what they do.
_PROGRAMS: Final = ("run_shell", "shell_job", "git")
_ELSEWHERE: Final = "This conversation is open in another program on the machine. Close it there, or begin another one here: /new"
_NOT_HERE: Final = "This conversation is not open on this machine. Send it again, or choose another project: /project"
_log = logging.getLogger("ybs.gateway.chats")


def key_of(place: ChatPlace, person: str) -> str:
    """Return what names a chat of one person: the channel, its account, the kind, the chat, the thread and the person."""
    parts = (place.channel, place.account, place.kind, place.chat, place.thread, person)
    return ":".join(quote(part, safe="") for part in parts)


def place_of(key: str) -> ChatPlace:
    """Return where the chat of a key is."""
    channel, account, kind, chat, thread, person = map(unquote, key.split(":"))
    if kind == "group":
        return ChatPlace(channel, account, "group", chat, thread)
    return ChatPlace(channel, account, "private", chat, thread, person)


def _beginning(place: ChatPlace) -> str:
    """Return what the keys of all threads and people of a chat begin with."""
    return key_of(replace(place, thread=""), "").removesuffix(":")


def _kept_mode() -> ColumnElement[str]:
    """Return the mode with which a chat begins anew: none that is looser than the usual one."""
    return case((chats.c.mode.in_(_STRICT), chats.c.mode), else_="")


def _moved(connection: Connection, place: ChatPlace, chat: str) -> None:
    """Write down that a chat has another id, wherever it is named by the old one."""
    old, new = _beginning(place), _beginning(replace(place, chat=chat))
    for table in (chats, inbox):
        renamed = new + func.substr(table.c.key, len(old) + 1)
        is_its = table.c.key.startswith(old, autoescape=True)
        if table is chats:  # somebody may have written there already
            twice = select(renamed).where(is_its)
            connection.execute(delete(chats).where(chats.c.key.in_(twice)))
        connection.execute(update(table).where(is_its).values(key=renamed))
    is_due = (ledger.c.state == "pending") & (ledger.c.chat == chat_of(place))
    for row in connection.execute(select(ledger.c.number, ledger.c.place).where(is_due)).all():
        there = replace(from_json(row.place, ChatPlace), chat=chat)
        values = {"chat": chat_of(there), "place": msgspec.json.encode(there)}
        is_it = ledger.c.number == row.number
        connection.execute(update(ledger).where(is_it).values(**values))
    known = {"channel": place.channel, "account": place.account, "chat": chat}
    row = insert_into(connection, moves).values(**known, before=place.chat)
    connection.execute(row.on_conflict_do_nothing())


class OpenChat(Struct, eq=False):
    """An open session of a chat. `mode` is the one that is noted; `lost` is the name of a session that another machine had begun and kept nothing of."""

    key: str
    shared: Shared
    beginning: "_Beginning"
    used_at: float
    leave: Callable[[], None]
    mode: str
    lost: str = ""

    @property
    def session(self) -> Session:
        """The session."""
        return self.shared.session


class _Beginning(TurnHook):
    """Has it noted that a turn begins, before anything of it is written or done, and the transcript kept before a change is made."""

    def __init__(self) -> None:
        self._note: Callable[[], Awaitable[None]] | None = None
        #: Keeps the transcript, where files are not enough.
        self.keep: Callable[[], Awaitable[None]] | None = None

    def tell(self, note: Callable[[], Awaitable[None]] | None) -> None:
        """Have the next turns noted by this."""
        self._note = note

    async def before_turn(self, emit: Any) -> None:
        """Note it."""
        del emit
        if self._note is not None:
            await self._note()

    async def before_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Have the transcript kept."""
        del call, effect, paths
        await self.kept()

    async def kept(self) -> None:
        """Return when the transcript is kept."""
        if self.keep is not None:
            await self.keep()


class Chats:
    """Opens and closes sessions of chats. `tools` makes the tools of a chat; `asking` asks what they ask.

    In all but the private chats of owners the model is not told what the person wrote about themselves.
    """

    def __init__(  # noqa: PLR0913 - each is a part of its own
        self,
        store: GatewayStore,
        hosted: HostedSessions,
        options: Options,
        settings: GatewaySettings,
        *,
        tools: Callable[[str, ChatPlace], tuple[Tool, ...]],
        asking: ChatQuestions,
        kept: KeptTranscripts | None = None,
        fleet: Fleet | None = None,
    ) -> None:
        self._store, self._options, self._settings = store, options, settings
        self._kept, self._fleet = kept, fleet
        self._hosted, self._hub = hosted, hosted.hub
        self._tools, self._asking = tools, asking
        self._opened: dict[str, OpenChat] = {}
        self._has_sandbox: bool | None = None
        self._sink: Sink = lambda envelope: None
        self._locks: dict[str, asyncio.Lock] = {}

    def watch(self, sink: Sink) -> None:
        """Have the events of all sessions that are opened from now on told to this."""
        self._sink = sink

    async def projects(self) -> list[str]:
        """Return the names of the projects that a chat can be bound to."""
        known = self._settings.projects.keys()
        return sorted(await self._fleet.projects() | known) if self._fleet else [*known]

    async def enter(self, place: ChatPlace, person: str) -> str:
        """Return the key of a chat that somebody writes in; after many idle hours it begins anew, unless it has something to do."""
        key, now, hours = key_of(place, person), time.time(), self._settings.idle_hours
        row = await self._row(key)
        is_old = hours is not None and bool(row.session) and now - row.used_at > hours * 3_600
        opened = self._opened.get(key)
        if is_old and (opened is None or _is_idle(opened)):  # a question may be open for days
            await self.begin_anew(key)
        await self._save(key, used_at=now)
        return key

    def opened(self, key: str) -> Session | None:
        """Return the session of a chat where it is open."""
        opened = self._opened.get(key)
        return opened.session if opened else None

    async def session(self, key: str) -> Session:
        """Open the session of a chat, or return the one that is open. Raises YbsError where that is not possible."""
        return (await self.open(key)).session

    async def open(self, key: str) -> OpenChat:
        """Do what `session` does, and return all that belongs to it."""
        async with self._locks.setdefault(key, asyncio.Lock()):
            if (opened := self._opened.get(key)) is None:
                row = await self._row(key)
                if self._fleet is not None and row.worker != self._fleet.number:
                    raise YbsError(_NOT_HERE)
                await self._make_room()
                opened = self._opened[key] = await self._open(row)
            opened.used_at = time.monotonic()
            return opened

    async def _row(self, key: str) -> "Row[Any]":
        """Return what is known of a chat; it is known from now on."""

        def work(connection: Connection) -> "Row[Any]":
            rows = select(chats).where(chats.c.key == key)
            if (row := connection.execute(rows).first()) is None:
                connection.execute(insert(chats).values(key=key, used_at=time.time()))
                row = connection.execute(rows).one()
            return row

        return await self._store.do(work)

    async def _open(self, row: "Row[Any]") -> OpenChat:
        place, beginning = place_of(row.key), _Beginning()
        options = self._options_of(row, await self._folder(row), place, beginning)
        options = replace(options, is_shared=not await self._asking.people.is_owners(place))
        if not await self._is_held(options):
            options = replace(options, deny=(*options.deny, *_PROGRAMS))
        if self._kept is not None and row.session:
            folder = self._hosted.store(options).folder
            await self._kept.bring(folder / f"{row.session}{SUFFIX}")
        lost = ""
        try:
            shared = await asyncio.to_thread(self._opening, options, row.session)
        except Busy as error:
            raise YbsError(_ELSEWHERE) from error
        except YbsError:
            if not row.session:
                raise
            # Its transcript is gone: a new one begins, which the next turn notes.
            lost = row.session if self._kept else ""
            shared = await asyncio.to_thread(self._opening, options, "")
        shared.session.subscribe(self._sink)
        leave = self._asking.follow(row.key, place, shared.session, beginning.kept)
        forget = self._hosted.adopt(shared)

        def left() -> None:
            leave()
            forget()

        mode = shared.session.mode
        opened = OpenChat(row.key, shared, beginning, time.monotonic(), left, mode, lost)
        if (kept := self._kept) is not None:
            beginning.keep = lambda: kept.must_put(Path(opened.session.journal.path))
        return opened

    async def _is_held(self, options: Options) -> bool:
        """Return whether a whole sandbox holds what commands do here."""
        if self._has_sandbox is None:
            session = await asyncio.to_thread(open_session, options)
            self._has_sandbox = session.environment.sandbox.state == "full"
            await session.close()
        return self._has_sandbox

    def _opening(self, options: Options, name: str) -> Shared:
        """Open a session, or the saved one of this name. Raises Busy where it is open already, with the options of others."""
        return self._hub.open(options.folder, options=options, resume=name or None)

    async def _folder(self, row: "Row[Any]") -> Path:
        """Return the project that a chat is bound to, or a folder of its own. Raises YbsError where the project is not there."""
        if row.project:
            return await self._project(row.project)
        name = hashlib.sha256(row.key.encode()).hexdigest()[:16]
        folder = self._options.host.home / "ybs-chats" / name
        for each in (folder.parent, folder):
            each.mkdir(0o700, parents=True, exist_ok=True)
        return folder

    async def _project(self, name: str) -> Path:
        if name not in self._settings.projects:
            names = ", ".join(sorted(await self.projects()))
            known = names or "none; the settings name them, in gateway.projects"
            raise YbsError(f"There is no project {name[:80]!r} here. There are: {known}.")
        entry, host = self._settings.projects[name], self._options.host
        if isinstance(entry, Clone):
            return await asyncio.to_thread(cloned, entry.clone, name, host)
        folder = host.expand(entry, host.home)
        if not folder.is_dir():
            raise YbsError(f"The folder of the project {name!r} is not there: {folder}")
        return folder

    def _options_of(
        self, row: "Row[Any]", folder: Path, place: ChatPlace, beginning: _Beginning
    ) -> Options:
        """Return the options of a chat's session, in the mode that was chosen there."""
        given = self._options
        self._options.host.work_in(folder)
        return replace(
            unattended(given, folder, mode=row.mode),
            session_mark=f"-m{self._fleet.number}" if self._fleet else "",
            tools=(*given.tools, *self._tools(row.key, place)),
            hooks=(*given.hooks, beginning),
        )

    async def keep(self, opened: OpenChat) -> None:
        """Put what the transcript of a session says into the database that several machines share, where there is one. Raises YbsError and OSError."""
        if self._kept is not None and (path := opened.session.journal.path):
            await self._kept.put(Path(path))

    async def keep_all(self) -> None:
        """Do so with those of all sessions, again and again."""
        while self._kept is not None:
            await asyncio.sleep(_KEEP_SECONDS)
            for opened in tuple(self._opened.values()):
                try:
                    await self.keep(opened)
                except (YbsError, OSError) as error:
                    _log.warning("a transcript was not kept: %s", error)

    async def noted(self, key: str, **values: str) -> None:
        """Note with which transcript a chat goes on (`session`), and in which `mode`."""
        await self._save(key, **values)

    async def began(self, key: str, turn_id: str, *, session: str, turns: int) -> None:
        """Note in which transcript a turn begins, after so many others, and that the chat goes on with it: both or neither, whenever the process dies."""

        def work(connection: Connection) -> None:
            begins = update(inbox).where(inbox.c.id == turn_id)
            connection.execute(begins.values(session=session, turns=turns))
            connection.execute(update(chats).where(chats.c.key == key).values(session=session))

        await self._store.do(work)

    async def _note_mode(self, opened: OpenChat | None) -> None:
        """Note the mode of a session, which any screen that shows it may have changed: the chat goes on in it."""
        if opened is not None and opened.session.mode != opened.mode:
            opened.mode = opened.session.mode
            await self._save(opened.key, mode=opened.mode)

    async def begin_anew(self, key: str) -> None:
        """Have the chat begin a new session with its next words."""
        await self._note_mode(self._opened.get(key))
        await self._save(key, session="", mode=_kept_mode())
        await self.close(key)

    async def bind(self, key: str, project: str) -> None:
        """Bind a chat to a project ("": a folder of its own); it begins a new session there. Raises YbsError for a name that is not known."""
        if project and (project in self._settings.projects or project not in await self.projects()):
            await self._project(project)
        await self._note_mode(self._opened.get(key))
        await self._save(key, session="", project=project, mode=_kept_mode())
        await self.close(key)

    async def move(self, place: ChatPlace, chat: str) -> None:
        """Have a chat go on where the platform has given it another id: what it was bound to, what waits, and what it may."""
        for key in tuple(self._opened):
            if key.startswith(_beginning(place)):
                await self.close(key)
        await self._store.do(lambda connection: _moved(connection, place, chat))

    async def _save(self, key: str, **values: Any) -> None:
        await self._store.change(update(chats).where(chats.c.key == key).values(**values))

    async def close(self, key: str) -> None:
        """Close the session of a chat; its transcript stays."""
        async with self._locks.setdefault(key, asyncio.Lock()):
            await self._close(key)

    async def _close(self, key: str) -> None:
        if (opened := self._opened.pop(key, None)) is not None:
            opened.leave()
            await opened.session.inbox.abandon()
            await self._note_mode(opened)
            await self.keep(opened)
            await self._hub.release(opened.session.id)
            await self.let_go(key)

    async def let_go(self, key: str) -> None:
        """Leave a chat to any gateway that shares the database, where nothing of it is open or to be done here. Raises StoreError."""
        if self._fleet is not None and key not in self._opened:
            await self._fleet.let_go(key)

    async def aclose(self) -> None:
        """Close all of them."""
        for key in tuple(self._opened):
            await self.close(key)

    async def close_idle(self, seconds: float = IDLE_SECONDS) -> None:
        """Close the sessions that nothing has happened in for so long, and those whose chats have another id now."""
        now_open = tuple(self._opened.items())
        known = await self._fleet.chats() if self._fleet else self._opened.keys()
        for key, opened in now_open:
            is_unused = time.monotonic() - opened.used_at > seconds and _is_idle(opened)
            if is_unused or key not in known:
                await self.close(key)

    async def _make_room(self) -> None:
        idle = [each for each in self._opened.values() if _is_idle(each)]
        if len(self._opened) >= MOST_OPEN and idle:
            await self._close(min(idle, key=lambda each: each.used_at).key)


def _is_idle(opened: OpenChat) -> bool:
    session = opened.session
    return not (session.is_busy or session.inbox.is_busy or session.state.jobs)
