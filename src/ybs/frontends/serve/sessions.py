"""The sessions of a server: opened for its clients, kept when these go, and taken up where a kill has interrupted them."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.agent.model_choice import AUTO
from ybs.commands.open import open_session
from ybs.config import private_file
from ybs.config.host import Host
from ybs.core.decoding import from_json
from ybs.core.envelope import Envelope
from ybs.core.errors import YbsError
from ybs.core.events import StateChanged, TurnFinished
from ybs.core.wording import listed
from ybs.frontends.host import this_host
from ybs.frontends.serve import protocol as wire
from ybs.frontends.serve.bounds import bounded, bounds_of, hold, settings_of, tightened
from ybs.security.incognito import leave_no_dump
from ybs.session.hub import Hub, Shared
from ybs.session.inbox import InboxLine, Sender
from ybs.session.options import Options
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.session.settings import load_settings
from ybs.session.unsaved import Unsaved
from ybs.transcripts.store import SessionStore

#: A turn that the server died in so often is left for a person to look at.
MOST_TRIES: Final = 3
#: Variables that belong to a terminal: they make no other session of it.
_OF_TERMINAL: Final = frozenset(
    ("PWD", "OLDPWD", "SHLVL", "_", "TERM", "COLORTERM", "COLUMNS", "LINES", "WINDOWID", "SSH_TTY")
)


class LedgerEntry(Struct, frozen=True):
    """What is written down of a session, without its variables: how to open it again, how often its turn was taken up, and its bounds.

    `settings` is what the settings said where options count in their place. `waits`: it has no turn to go on with, and is kept for its bounds
    alone until a client resumes it.
    """

    opening: wire.Opening
    tries: int = 0
    bounds: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    waits: bool = False


class Watcher(Sender):
    """A client that has to do with a session."""

    is_subscribed = False

    def closed(self, message: str) -> None:
        """Hear that the session is closed, and why."""


class HostedSession:
    """An open session, the clients that have to do with it, how it was opened, and since when nobody has used it."""

    def __init__(
        self,
        shared: Shared,
        kept: LedgerEntry,
        changed: Callable[[], None],
        unsaved: Unsaved,
        *,
        is_own: bool = True,
    ) -> None:
        self.shared, self.session, self.feed = shared, shared.session, shared.feed
        self.kept, self._changed = kept, changed
        #: What editors hold of its files.
        self.unsaved = unsaved
        unsaved.open_in(lambda: self.session.environment.roots)
        #: Whether this server opened it, and not another frontend of its process, which closes it as well.
        self.is_own = is_own
        self.watchers: list[Watcher] = []
        self.used_at = monotonic()
        #: What it goes on from, to be drawn first.
        self.earlier: Reply | None = self.session.resumed
        self._has_worked = self.earlier is not None
        self.name, self._state = "", StateChanged()
        self._noted: tuple[str, LedgerEntry] = "", kept
        self.session.watch(self._note)
        self.session.subscribe(self._hear, follows=True)

    def note_use(self, now: float) -> None:
        """Note when it was used last, by the monotonic clock."""
        self.used_at = now

    @property
    def doing(self) -> wire.Doing:
        """What the session does now."""
        session = self.session
        if session.questions.open:
            return "asks"
        if session.inbox.is_busy or session.is_busy or session.inbox.has_more:
            return "working"
        return "done" if self._has_worked else "new"

    @property
    def is_used(self) -> bool:
        """Whether it may not be closed: somebody looks, or it is at work."""
        is_idle = self.doing in ("done", "new") and not self.session.state.jobs
        return bool(self.viewers) or not is_idle

    @property
    def viewers(self) -> int:
        """How many clients and pages have to do with it."""
        return len(self.watchers) + self.shared.holders - 1

    @property
    def facts(self) -> wire.SessionEntry:
        """What there is to say of it in a list."""
        state = self.session.state
        return wire.SessionEntry(
            session=self.session.id,
            name=state.name,
            title=state.title,
            folder=str(self.session.folder),
            doing=self.doing,
            provider=state.provider,
            model=state.model,
            mode=state.mode,
            number=self.feed.number,
            clients=sum(each.is_subscribed for each in self.watchers) + self.shared.holders - 1,
        )

    def retry(self) -> None:
        """Go on with a turn that the last server was killed in, unless that happened again and again."""
        if self.session.is_cut_short and self.kept.tries < MOST_TRIES:
            self._keep(self.kept.tries + 1)
            self.session.inbox.submit(InboxLine(text="/retry", sender=Sender()))

    def _hear(self, envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, TurnFinished) and envelope.is_main:
            self._has_worked = True
            self._keep(0)
        elif isinstance(event, StateChanged):
            is_saved = bool(self.session.journal.path)  # what is not saved is not taken up
            self.name = event.name if is_saved else ""
            opening = opened_again(self.kept.opening, self._state, event)
            self._state, self.kept = event, replace(self.kept, opening=opening)

    def _note(self) -> None:
        """Have it written down where what is kept of it has changed: a command changes bounds without an event."""
        self.kept = replace(self.kept, bounds=bounds_of(self.session) if self.name else {})
        if self._noted != (self.name, self.kept):
            self._noted = self.name, self.kept
            self._changed()

    def _keep(self, tries: int) -> None:
        self.kept = replace(self.kept, tries=tries)
        self._note()


def opened_again(opening: wire.Opening, before: StateChanged, state: StateChanged) -> wire.Opening:
    """Return how a session is opened again: as it was, with what the person has chosen since."""
    if not before.mode:  # the first
        return opening
    if state.mode != before.mode:
        opening = replace(opening, mode=state.mode or None)
    if (state.provider, state.model) != (before.provider, before.model):
        model = None if state.provider == AUTO else state.model
        endpoint = opening.endpoint if state.provider == before.provider else None
        # An address that was named alone is not named with a provider now, whose key would go there.
        provider = opening.provider if endpoint else state.provider
        opening = replace(opening, provider=provider, model=model, endpoint=endpoint)
    return opening


class HostedSessions:
    """Opens, finds, lists and closes the sessions of a process; `file` says after a kill of a server which were open."""

    def __init__(self, host: Host, file: Path | None = None) -> None:
        self._host, self._file = host, file
        self._hosts: dict[frozenset[tuple[str, str]], Host] = {}
        self.hub = Hub(_open, host)
        self._held: dict[str, HostedSession] = {}
        #: What the last server had open, and nobody has opened since.
        self._left: dict[str, LedgerEntry] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose("They end.")

    async def aclose(self, message: str) -> None:
        """Close all that were opened here, and tell their clients why."""
        for held in [each for each in self.held if each.is_own]:
            await self.close(held, message)

    @property
    def held(self) -> tuple[HostedSession, ...]:
        """Those that are open, oldest first."""
        return tuple(self._held.values())

    async def take_up(self) -> None:
        """Go on with the turns that the last server was killed in. What cannot be opened now waits for a client that resumes it."""
        with suppress(YbsError, OSError, msgspec.MsgspecError):
            data = (private_file.read(self._file) if self._file else None) or b"{}"
            self._left = from_json(data, dict[str, LedgerEntry])
        for name, kept in tuple(self._left.items()):
            with suppress(YbsError, OSError):
                held = None if kept.waits else self.hold(self.options_of(kept.opening), name)
                if held is not None and held.doing == "done":
                    self._left[name] = replace(held.kept, waits=True)
                    await self.close(held, "Nothing was interrupted in it.")

    def _write_down(self) -> None:
        if self._file is None:
            return
        open_now = {each.name: each.kept for each in self.held if each.name and each.is_own}
        # The trust of one run is not written down: its files may be others by then.
        kept = {
            name: replace(each, opening=replace(each.opening, trust=False))
            for name, each in {**self._left, **open_now}.items()
        }
        data = msgspec.json.encode(kept)
        with suppress(YbsError, OSError):  # a disk that is full stops no session
            private_file.replace(self._file, data, waits=False)

    def open(self, opening: wire.Opening, *, is_fork: bool) -> HostedSession:
        """Open a session, or share the one that is meant. Raises YbsError and OSError."""
        if isinstance(opening, wire.Resuming) and opening.name and not is_fork:
            held = None
            with suppress(YbsError):
                held = self.find(opening.name)
            if held is not None:
                return _shared(held, opening)
        options = self.options_of(opening)
        if not isinstance(opening, wire.Resuming):
            return self.hold(options)
        folder = str(Path(opening.folder).resolve())
        store = self.store(options)
        newest = None if opening.name else store.newest(folder)
        if not opening.name and newest is None:
            raise YbsError(f"No session of {folder} is saved.")
        name = newest.name if newest else store.name_of(opening.name, project=folder)
        held = None if is_fork else self._named(name)
        return self.hold(options, name, is_fork=is_fork) if held is None else _shared(held, opening)

    def _named(self, name: str) -> HostedSession | None:
        """Return the open session that is saved under this name."""
        return next((each for each in self.held if each.session.journal.name == name), None)

    @staticmethod
    def store(options: Options) -> SessionStore:
        """Return where sessions with these options are saved."""
        config = load_settings(options).config
        return SessionStore(options.host.expand(config.session.storage_path, options.folder))

    def share(self, name: str, options: Options) -> HostedSession | None:
        """Return the open session that is saved under this name, for one more client; None where none is.

        This and `open` are the only ways to a session that is open. Raises YbsError for options that it does not have.
        """
        held = self._named(name) if name else None
        return None if held is None else _shared(held, wire.for_server(options))

    def hold(self, options: Options, name: str = "", *, is_fork: bool = False) -> HostedSession:
        """Open a session, a new one or the saved one of this name. Raises Busy where that is open, YbsError and OSError."""
        open_now = {held.name: held.kept for held in self.held if held.name}
        known = {**self._left, **open_now}.get(name)
        settings = settings_of(options) if self._file else {}
        bounds = tightened(known.bounds, known.settings, settings) if known else {}
        options = bounded(options, bounds) if bounds else options
        unsaved = Unsaved()
        options = replace(options, editor=unsaved)
        resuming = {"resume": name or None, "fork": is_fork}
        shared = self.hub.open(options.folder, options=options, **resuming)
        if bounds:
            hold(shared.session, bounds)
        tries = known.tries if known and not is_fork else 0
        opening = replace(wire.opening_of(options), environ={})  # variables hold keys
        kept = LedgerEntry(opening, tries, settings=settings)
        held = HostedSession(shared, kept, self._write_down, unsaved)
        self._held[shared.session.id] = held
        if not is_fork:
            self._left.pop(name, None)
        self._write_down()
        if known is not None and not is_fork:
            held.retry()
        return held

    def options_of(self, opening: wire.Opening) -> Options:
        """Return the options that a client has named. Raises YbsError."""
        folder = Path(opening.folder)
        if not folder.is_absolute():
            raise YbsError(f"The folder has to be an absolute path: {opening.folder[:200]}")
        this_host().work_in(folder)
        fields = {name: getattr(opening, name) for name in wire.Opening.__struct_fields__}
        rest = {key: value for key, value in fields.items() if key not in ("folder", "environ")}
        rest |= {"add_dirs": tuple(map(Path, opening.add_dirs)), "host": self._host_of(opening)}
        rest |= {"incognito": opening.incognito or None, "before_incognito": leave_no_dump}
        return Options.of(folder, rest)

    def _host_of(self, opening: wire.Opening) -> Host:
        """Return the host that a client's variables describe: one for all with the same, as its sessions share programs."""
        if not opening.environ:
            return self._host
        key = frozenset((n, v) for n, v in opening.environ.items() if n not in _OF_TERMINAL)
        if key not in self._hosts:
            self._hosts[key] = Host.of(dict(key))
        return self._hosts[key]

    def find(self, word: str) -> HostedSession:
        """Return an open session by its id, its name or the beginning of its title. Raises YbsError."""
        for held in self.held:
            if word in (held.session.id, held.session.journal.name):
                return held
        begun = [held for held in self.held if word and held.facts.title.startswith(word)]
        if len(begun) != 1:
            what = "More than one session" if begun else "No session"
            raise YbsError(f"{what} called {word[:80]!r} is open here.")
        return begun[0]

    def listed(self, listing: wire.SessionQuery) -> tuple[wire.SessionEntry, ...]:
        """Return the sessions that are open, and those that are saved where they are asked for. Raises YbsError."""
        facts = tuple(each.facts for each in self.held)
        if not listing.saved:
            return facts
        store = self.store(self.options_of(wire.Opening(folder=listing.folder or "/")))
        names = {each.name for each in facts}
        saved = (
            wire.SessionEntry(
                name=each.name,
                title=each.title,
                folder=each.project,
                doing="saved",
                provider=each.provider,
                model=each.model,
            )
            for each in store.sessions(project=listing.folder or None)
            if each.name not in names
        )
        return (*facts, *saved)

    def adopt(self, shared: Shared) -> Callable[[], None]:
        """Let clients use a session that another frontend of this process has opened; what is returned ends that."""
        kept = LedgerEntry(wire.Opening(folder=str(shared.session.folder)))
        held = HostedSession(shared, kept, lambda: None, Unsaved(), is_own=False)
        self._held[shared.session.id] = held

        def forget() -> None:
            if self._held.pop(shared.session.id, None) is not None:
                for watcher in tuple(held.watchers):
                    watcher.closed("The chat that it belongs to has closed it.")

        return forget

    async def close(self, held: HostedSession, message: str) -> None:
        """Close a session, and tell its clients why. Raises YbsError for one that another frontend has opened."""
        if not held.is_own:
            raise YbsError("This session belongs to a chat. There, /new ends it.")
        if self._held.pop(held.session.id, None) is None:
            return
        await held.session.inbox.abandon()
        await self.hub.close(held.session.id)
        self._write_down()
        for watcher in tuple(held.watchers):
            watcher.closed(message)


def _open(folder: str | Path, *, options: Options, host: Host, **changes: object) -> Session:
    del folder, host  # the options have both
    return open_session(replace(options, **changes))


def _shared(held: HostedSession, opening: wire.Opening) -> HostedSession:
    """Return an open session for one more client. Raises YbsError for options that it does not have: it keeps those that it was opened with."""
    if names := opening.beyond(held.kept.opening):
        raise YbsError(
            f"This session is open already and keeps the options that it was opened with; {listed(names)} cannot be given. "
            "Leave that out: /mode, /model and /permissions change the session once you are there."
        )
    return held
