"""The interface of the terminal to its prompt, keys and menus."""

from collections.abc import Callable
from typing import Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyPressEvent

from ybs.frontends.terminal.drawing.live import LiveArea
from ybs.frontends.terminal.drawing.render import Canvas, Renderer
from ybs.frontends.terminal.prompt.draft import PromptDraft
from ybs.frontends.terminal.resize import SteadyApplication
from ybs.frontends.terminal.session import TerminalSession
from ybs.session.inbox import InboxLine
from ybs.session.reply import Reply
from ybs.session.status import Status


class Menus(Protocol):
    """The menus that stand in the place of the prompt and then take every key."""

    take_key: Callable[[KeyPressEvent], None]
    hold_key: Callable[[KeyPressEvent], None]

    @property
    def is_open(self) -> bool: ...
    @property
    def is_coming(self) -> bool: ...
    @property
    def has_held(self) -> bool: ...


class _Questions(Protocol):
    """The questions that the person is asked; one that is open takes every key."""

    take_key: Callable[[KeyPressEvent], None]
    explain: Callable[[str], None]

    @property
    def is_open(self) -> bool: ...
    @property
    def is_choosing(self) -> bool: ...
    @property
    def is_explaining(self) -> bool: ...


class _Lines(Protocol):
    """What becomes of the lines that were typed."""

    submit: Callable[[str], None]
    choose: Callable[[str], None]
    queue: Callable[[str], None]
    take_ahead: Callable[[], InboxLine | None]
    give_ahead: Callable[[InboxLine], None]

    async def kept(self, text: str) -> str | None: ...
    @property
    def is_busy(self) -> bool: ...
    @property
    def is_opening_menu(self) -> bool: ...


class BottomWindow(Protocol):
    """The lines at the bottom of the screen."""

    app: SteadyApplication
    draft: PromptDraft
    reason: Buffer
    is_away: bool
    focus: Callable[[], None]
    edit: Callable[[], None]
    paste_image: Callable[[], None]
    suspend: Callable[[], None]


class Desk(Protocol):
    """The terminal."""

    session: TerminalSession
    canvas: Canvas
    renderer: Renderer
    live: LiveArea
    state: Status

    @property
    def asking(self) -> _Questions: ...
    @property
    def picking(self) -> Menus: ...
    @property
    def work(self) -> _Lines: ...
    @property
    def window(self) -> BottomWindow: ...

    # What the keys do
    is_waiting: Callable[[], bool]
    recall: Callable[[], None]
    show_keys: Callable[[], None]
    unfold: Callable[[], None]
    interrupt: Callable[[], None]
    escape: Callable[[], None]
    stop: Callable[[], None]
    leave: Callable[[], None]
    next_mode: Callable[[], None]

    # What stands on the screen
    above: Callable[[], str]
    menu: Callable[[], str]
    below: Callable[[], StyleAndTextTuples]
    prompt: Callable[[], str]
    hint: Callable[[str], None]
    note_hidden: Callable[[], None]
    call: Callable[[str], None]

    # What the work shows
    write_down: Callable[[str, str | None], None]
    echo: Callable[[str], None]
    shorten: Callable[[str], str]
    show_error: Callable[[str], None]
    end_line: Callable[[], None]
    give_back: Callable[[str], None]
    redraw: Callable[[], None]

    async def show_reply(self, reply: Reply) -> None: ...
