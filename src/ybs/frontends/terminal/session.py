"""What the terminal needs of a session: `ybs.Session` has it, and so has a session of a server (`frontends/serve/attached.py`)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

from ybs.config.host import Host
from ybs.config.schema import Config, Mode
from ybs.core.envelope import Sink
from ybs.core.ports import Confirm
from ybs.session.inbox import InboxLine, Sender
from ybs.session.own_commands import RunOwn
from ybs.session.reply import Outcome, Reply
from ybs.session.status import Status, View


class TerminalInbox(Protocol):
    """What takes the lines, and says what waits: see `ybs.session.inbox.Inbox`."""

    now: InboxLine | None

    @property
    def is_busy(self) -> bool:
        """Whether a line is being worked on."""
        ...

    @property
    def has_more(self) -> bool:
        """Whether a line waits for the end of the running turn."""
        ...

    @property
    def steering(self) -> list[str]:
        """The words that the running turn has not read."""
        ...

    @property
    def queued(self) -> list[str]:
        """The lines that wait for its end."""
        ...

    @property
    def in_order(self) -> list[str]:
        """The line that is being worked on, and those that wait behind it."""
        ...

    @property
    def beside(self) -> list[str]:
        """The commands that run beside a turn."""
        ...

    def submit(self, line: InboxLine) -> None:
        """Take a line now."""
        ...

    def queue(self, line: InboxLine) -> None:
        """Take a line now, or when the running turn has ended."""
        ...

    async def result_of(
        self, text: str, *, typed: str | None = None, is_for_model: bool = False
    ) -> Reply | Outcome:
        """Take a line when it is its turn, and return what comes of it. Raises YbsError."""
        ...

    def take_ahead(self) -> str:
        """Take the line that waits first out of the queue."""
        ...

    def give_ahead(self, line: InboxLine) -> None:
        """Put a line before all that wait."""
        ...

    def recall(self) -> str:
        """Take back the newest line that waits."""
        ...

    def hear(self, sender: Sender) -> None:
        """Tell a frontend what waits, though it has sent nothing."""
        ...

    def stop(self) -> None:
        """Stop the running turn or command."""
        ...

    async def abandon(self) -> None:
        """Stop what ends with the frontend."""
        ...


class TerminalCommands(Protocol):
    """The slash commands, as the terminal sees them: see `ybs.session.reply.Commands`."""

    def listed(self, session: Any) -> Sequence[Any]:
        """Return all of them."""
        ...

    def runs_beside(self, session: Any, line: str) -> bool:
        """Return whether the line is a command that need not wait for the end of a running turn."""
        ...


class TerminalSession(Protocol):
    """A session, as the terminal sees it. The names mean what they mean in `ybs.Session`."""

    #: Whether it goes on when the terminal leaves.
    stays: bool

    @property
    def view(self) -> View:
        """What the person sees of the work."""
        ...

    @property
    def commands(self) -> TerminalCommands | None:
        """The slash commands."""
        ...

    @property
    def mode(self) -> Mode:
        """What is allowed without asking."""
        ...

    @mode.setter
    def mode(self, mode: Mode) -> None: ...

    @property
    def inbox(self) -> TerminalInbox:
        """What takes lines."""
        ...

    @property
    def environment(self) -> Any:
        """Its folders, and what finds secrets."""
        ...

    @property
    def folder(self) -> Path:
        """The project's folder."""
        ...

    @property
    def host(self) -> Host:
        """The folders and the variables that it goes by."""
        ...

    @property
    def config(self) -> Config:
        """The configuration in force."""
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was wrong with the configuration."""
        ...

    @property
    def resumed(self) -> Reply | None:
        """What is drawn first of a session that goes on."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running."""
        ...

    @property
    def is_ending(self) -> bool:
        """Whether a turn has finished and what it left behind is being kept."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...

    def attach(self, confirm: Confirm, *, keys: str = "", run_own: RunOwn | None = None) -> None:
        """Serve a frontend with a person before it."""
        ...

    def subscribe(self, sink: Sink, *, follows: bool = False) -> Callable[[], None]:
        """Have `sink` called with every event; return the way to end that."""
        ...

    def status(self) -> Status:
        """Say where things stand."""
        ...

    async def prepare(self) -> None:
        """Get ready for the first words."""
        ...

    def cancel(self) -> bool:
        """Stop the running turn or command; return whether there was one."""
        ...
