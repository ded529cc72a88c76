"""What the prompt, its keys and its menus ask of the terminal that they belong to."""

from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyPressEvent

from ybs.frontends.terminal.drawing.render import Canvas
from ybs.frontends.terminal.prompt.draft import PromptDraft
from ybs.frontends.terminal.resize import SteadyApplication
from ybs.session.status import Status


class KeyTaker(Protocol):
    """Something that may stand in the place of the prompt and then takes every key."""

    @property
    def is_open(self) -> bool:
        """Whether it stands there."""
        ...

    def take_key(self, event: KeyPressEvent) -> None:
        """Take a key."""
        ...


class Menus(KeyTaker, Protocol):
    """The menus that stand in the place of the prompt."""

    @property
    def is_coming(self) -> bool:
        """Whether a command is at work that opens one, and an arrow that comes now is for that."""
        ...

    @property
    def has_held(self) -> bool:
        """Whether keys wait for it: what comes behind them waits too."""
        ...

    def hold_key(self, event: KeyPressEvent) -> None:
        """Keep a key for the menu that comes."""
        ...


class _Questions(KeyTaker, Protocol):
    """The questions that the person is asked."""

    @property
    def is_choosing(self) -> bool:
        """Whether one waits for a key."""
        ...

    @property
    def is_explaining(self) -> bool:
        """Whether one waits for a reason in words."""
        ...

    def explain(self, text: str) -> None:
        """Take the words."""
        ...


class _Lines(Protocol):
    """What becomes of the lines that were typed."""

    @property
    def is_busy(self) -> bool:
        """Whether a turn or a command runs."""
        ...

    @property
    def is_opening_menu(self) -> bool:
        """Whether a command is at work that opens a menu."""
        ...

    def submit(self, line: str) -> None:
        """Take a line now."""
        ...

    def choose(self, line: str) -> None:
        """Take a line that was chosen from a menu."""
        ...

    def take_ahead(self) -> str:
        """Take the line that was sent while the command before it was at work."""
        ...

    def give_ahead(self, line: str) -> None:
        """Put back a line that was taken ahead."""
        ...

    def queue(self, line: str) -> None:
        """Take a line now, or when the running turn has ended."""
        ...


class BottomWindow(Protocol):
    """The lines at the bottom of the screen."""

    app: SteadyApplication
    draft: PromptDraft
    is_away: bool

    def edit(self) -> None:
        """Open the input in the person's editor."""
        ...

    def paste_image(self) -> None:
        """Attach the image that the clipboard holds."""
        ...

    def suspend(self) -> None:
        """Hand the terminal to the shell that ybs was started from."""
        ...


class Desk(Protocol):
    """The terminal, as its parts see it."""

    canvas: Canvas

    @property
    def asking(self) -> _Questions:
        """The questions."""
        ...

    @property
    def picking(self) -> Menus:
        """The menu."""
        ...

    @property
    def work(self) -> _Lines:
        """What takes lines."""
        ...

    @property
    def window(self) -> BottomWindow:
        """The prompt."""
        ...

    @property
    def state(self) -> Status:
        """Where things stand."""
        ...

    @property
    def roots(self) -> Collection[Path]:
        """The folders that hold a project: none of their programs is run for the person."""
        ...

    def is_waiting(self) -> bool:
        """Return whether a line waits for the running turn."""
        ...

    def above(self) -> str:
        """Draw what stands above the input."""
        ...

    def menu(self) -> str:
        """Draw the menu that stands in the place of the prompt."""
        ...

    def below(self) -> StyleAndTextTuples:
        """Draw the bottom line."""
        ...

    def prompt(self) -> str:
        """Draw the sign before the input."""
        ...

    def hint(self, text: str) -> None:
        """Say something for a moment."""
        ...

    def note_hidden(self) -> None:
        """Note that another program had the screen."""
        ...

    def recall(self) -> None:
        """Put the newest line that waits back into the prompt."""
        ...

    def show_keys(self) -> None:
        """Draw the keys."""
        ...

    def unfold(self) -> None:
        """Draw whole what was drawn shortened."""
        ...

    def interrupt(self) -> None:
        """Take Ctrl-C."""
        ...

    def escape(self) -> None:
        """Take an Esc that stops nothing."""
        ...

    def stop(self) -> None:
        """Take Esc: stop what runs."""
        ...

    def leave(self) -> None:
        """Leave."""
        ...

    def next_mode(self) -> None:
        """Go to the next mode."""
        ...
