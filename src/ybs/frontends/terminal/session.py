"""The interface that the terminal needs of a session: `ybs.Session` has it, and so has a session of a server (`frontends/serve/attached.py`)."""

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
    """What takes the lines, and says what waits. The names mean what they mean in `ybs.session.inbox.Inbox`."""

    now: InboxLine | None
    submit: Callable[[InboxLine], None]
    queue: Callable[[InboxLine], None]
    take_ahead: Callable[[], InboxLine | None]
    give_ahead: Callable[[InboxLine], None]
    recall: Callable[[], InboxLine | None]
    hear: Callable[[Sender], None]
    stop: Callable[[], None]

    @property
    def is_busy(self) -> bool: ...
    @property
    def has_more(self) -> bool: ...
    @property
    def steering(self) -> list[str]: ...
    @property
    def queued(self) -> list[str]: ...
    @property
    def in_order(self) -> list[str]: ...
    @property
    def beside(self) -> list[str]: ...

    async def kept(self, text: str) -> str | None: ...
    async def abandon(self) -> None: ...
    async def result_of(
        self, text: str, *, typed: str | None = None, is_for_model: bool = False
    ) -> Reply | Outcome: ...


class TerminalCommands(Protocol):
    """The slash commands. The names mean what they mean in `ybs.session.reply.Commands`."""

    listed: Callable[[Any], Sequence[Any]]
    runs_beside: Callable[[Any, str], bool]


class TerminalSession(Protocol):
    """A session, as the terminal sees it. The names mean what they mean in `ybs.Session`."""

    #: Whether it goes on when the terminal leaves.
    stays: bool
    status: Callable[[], Status]
    cancel: Callable[[], bool]

    @property
    def view(self) -> View: ...
    @property
    def commands(self) -> TerminalCommands | None: ...
    @property
    def mode(self) -> Mode: ...
    @mode.setter
    def mode(self, mode: Mode) -> None: ...
    @property
    def inbox(self) -> TerminalInbox: ...
    @property
    def environment(self) -> Any: ...
    @property
    def folder(self) -> Path: ...
    @property
    def host(self) -> Host: ...
    @property
    def config(self) -> Config: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...
    @property
    def resumed(self) -> Reply | None: ...
    @property
    def is_busy(self) -> bool: ...
    @property
    def is_ending(self) -> bool: ...

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...
    async def prepare(self) -> None: ...

    def attach(
        self, confirm: Confirm, *, keys: str = "", run_own: RunOwn | None = None
    ) -> None: ...
    def subscribe(self, sink: Sink, *, follows: bool = False) -> Callable[[], None]: ...
