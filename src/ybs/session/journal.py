"""The journal: writes a session's events down as they happen, secrets masked, and knows what they add up to."""

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ybs.config.private_file import open_to_read
from ybs.core import events
from ybs.core.envelope import MAIN, Envelope
from ybs.core.errors import YbsError
from ybs.core.events import Emit, Event
from ybs.core.ports import Guard, Turn
from ybs.session.masking import mask, masked_event
from ybs.transcripts.line import lines_in
from ybs.transcripts.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ybs.security.firewall.masking import Firewall
    from ybs.transcripts.log import Log
    from ybs.transcripts.store import SessionStore


PLACEHOLDER_START = b"[ybs:secret:"
#: Pieces for the screen, and what says nothing of how it went on.
PASSING = (
    events.TextStreamed,
    events.ThinkingStreamed,
    events.ToolCallStreamed,
    events.ToolPrinted,
    events.PromptRead,
    events.RequestStarted,
    events.StateChanged,
)


class Journal:
    """Takes every event of one session. Where it may not write it still knows what they add up to.

    `store` and `firewall` are loaded with the first line. `tell` takes what the person should know of the writing.
    """

    def __init__(
        self,
        store: "Callable[[], SessionStore]",
        firewall: "Callable[[], Firewall]",
        tell: Emit,
        *,
        may_write: bool,
    ) -> None:
        self.may_write = may_write
        self.replay = Replay()
        #: What was told before this session was taken up again.
        self.earlier: Sequence[Envelope] = ()
        #: How many lines of it could not be read.
        self.damaged = 0
        #: When the session that was taken up began; 0 where nobody knows.
        self.began_ns = 0
        #: The mark of the repository that was there then.
        self.repository = ""
        #: Whether it goes on in a copy of what it was taken up from.
        self.is_fork = False
        #: The session's name; empty before it has begun.
        self.name = ""
        #: The saved sessions.
        self.store = store
        self._firewall, self._tell = firewall, tell
        #: What running commands print.
        self._log: Log | None = None
        self._told = ""

    @property
    def path(self) -> str:
        """The file that is written; empty where there is none."""
        return str(self._log.path) if self._log else ""

    @property
    def problem(self) -> str:
        """Why nothing more is written at the moment; empty where it is, or where it should not be."""
        return self._log.problem if self._log else self._told

    def begin(self) -> str:
        """Open a new file where this session has none yet, and return the session's name."""
        if self.name:
            return self.name
        # No file keeps another session from taking this name in the same second, so a random end does.
        self.name = f"session-{datetime.now():%Y%m%d-%H%M%S}-{os.urandom(3).hex()}"
        if self.may_write:
            try:
                store = self.store()
                self.name = store.create()
                self._log = store.open_log(self.name)
            except (YbsError, OSError) as error:
                self._warn(str(error))
        return self.name

    def take_up(self, name: str, *, is_fork: bool = False) -> None:
        """Go on with a saved session: in its file, or in a new one that begins with its past.

        Raises Busy while another ybs writes that file, YbsError and OSError.
        """
        store = self.store()
        if is_fork and self.may_write:
            name = store.fork(store.read(name))
        log = store.open_log(name) if self.may_write else None
        try:
            transcript = store.read(name)  # now that nobody else writes it
        except BaseException:
            if log is not None:
                log.close()
            raise
        if log is not None:
            log.go_on_after(transcript.last)
        self.name, self._log, self.damaged = name, log, transcript.damaged
        self.is_fork = is_fork
        self.replay, self.earlier = transcript.replay, transcript.events
        self.began_ns, self.repository = transcript.began_ns, transcript.repository
        self._reserve(transcript.path)

    def _reserve(self, path: Path) -> None:
        """Let no placeholder of the transcript stand for another secret from now on."""
        file = open_to_read(path)
        if file is not None:
            with file:
                texts = [line for line in lines_in(file) if PLACEHOLDER_START in line]
            if texts:
                self._firewall().vault.reserve(b"".join(texts).decode(errors="replace"))

    def add(self, event: Event, *, agent: str = MAIN, started_by: str = "") -> Event:
        """Write an event of an agent down, and return it with its secrets masked. A call started a sub-agent.

        Never raises: what cannot be written waits, and the person hears of it once.
        """
        is_request = isinstance(event, events.RequestStarted)
        if isinstance(event, PASSING) and not is_request:
            return event
        clean = masked_event(self._firewall(), event)
        if is_request and not event.decision:
            return clean
        if agent != MAIN:
            self._add_others(event, clean, agent, started_by)
            return clean
        if isinstance(event, events.SystemPrompted) and event.content == self.replay.system:
            return clean
        number = 0
        if self._log is not None:
            if isinstance(event, events.SessionEnded) and self.replay.title:
                self._write_title()  # a list of sessions looks at the last lines
            parent = self.replay.line_of(event.keeps) if isinstance(event, events.Rewound) else None
            number = self._log.add(clean, parent=parent)
            is_first = isinstance(event, events.SessionStarted) and self.replay.started is None
            if is_first and self.replay.title and not self.earlier:
                self._write_title()  # it was given before there was a file
        # A title is shown wherever sessions are listed.
        self.replay.add(clean if isinstance(event, events.Titled) else event, number)
        self._check_log()
        return clean

    def masked(self, state: events.StateChanged) -> events.StateChanged:
        """Return where a session stands with its secrets masked; its questions have been masked before they were asked."""
        shown = mask(self._firewall(), replace(state, questions=()))
        return replace(shown, questions=state.questions)

    def _add_others(self, event: Event, clean: Event, agent: str, started_by: str) -> None:
        """Write down what a sub-agent tells, which is not part of the conversation."""
        number = 0
        if self._log is not None:
            number = self._log.add(clean, agent=agent, started_by=started_by)
        self.replay.add(event, number, agent=agent)
        self._check_log()

    def _check_log(self) -> None:
        if self._log is not None and self._log.problem:
            self._warn(self._log.problem)

    def _write_title(self) -> None:
        if self._log is not None:
            self._log.add(masked_event(self._firewall(), events.Titled(title=self.replay.title)))

    async def synced(self) -> None:
        """Wait until the disk has all that was written."""
        if self._log is not None:
            await self._log.synced()

    def sync_soon(self) -> None:
        """Have the disk take what was written, without waiting for it."""
        if self._log is not None:
            self._log.sync_soon()

    def close(self) -> None:
        """Let go of the file."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _warn(self, problem: str) -> None:
        if not self._told:
            self._told = problem
            self._tell(
                events.Noticed(level="warning", text=f"This session is not being saved: {problem}")
            )


class Syncing(Guard):
    """Has the disk take a long turn while it goes on, a step at a time. It stands behind all others."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def before_step(self, turn: Turn) -> None:
        """Wait for nothing: the system has each line already, so a killed ybs loses none."""
        del turn
        self._journal.sync_soon()


def named(store: "SessionStore", folder: Path, word: str) -> str:
    """Return the name of the session that a word means; no word means the newest of the folder.

    It is empty where nothing was said in any of them (ybs was killed at once, or all was taken back), and where there is
    none. Raises YbsError where the word means no session.
    """
    if word:
        return store.name_of(word, project=str(folder))
    newest = store.newest(str(folder))
    return newest.name if newest else ""
