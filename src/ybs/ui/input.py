"""The prompt: what may be typed, which keys mean something, and where everything stands on the screen."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Always, Condition, Filter
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.output import ColorDepth, Output

from ybs.ui.resize import SteadyApplication

Act: TypeAlias = Callable[[KeyPressEvent], None]
#: Seconds until a lone Esc counts as Esc (and not as the beginning of Alt-something).
ESCAPE_SECONDS = 0.05
ALWAYS = Always()
MAX_INPUT_ROWS = 10
MODES = ("ask", "accept-edits", "plan", "auto")


class Desk(Protocol):
    """What the keys act on, and what is drawn around the prompt."""

    def is_asking(self) -> bool:
        """Tell whether a question waits for a key."""
        ...

    def is_explaining(self) -> bool:
        """Tell whether the reason for a no is being typed."""
        ...

    def is_busy(self) -> bool:
        """Tell whether a turn runs."""
        ...

    def submit(self, text: str) -> None:
        """Take a line of input."""
        ...

    def explain(self, text: str) -> None:
        """Take the reason for a no."""
        ...

    def answer_key(self, event: KeyPressEvent) -> None:
        """Take a key while a question waits."""
        ...

    def interrupt(self) -> None:
        """Take Ctrl-C."""
        ...

    def stop(self) -> None:
        """Take Esc while a turn runs or a reason is typed."""
        ...

    def leave(self) -> None:
        """Take Ctrl-D at an empty prompt."""
        ...

    def next_mode(self) -> None:
        """Take Shift-Tab."""
        ...

    def above(self) -> str:
        """Draw what stands above the prompt, with ECMA-48 attributes."""
        ...

    def below(self) -> str:
        """Draw the bottom line."""
        ...

    def prompt(self) -> str:
        """Draw the sign before the input."""
        ...


class Prompt:
    """The lines at the bottom of the screen: passing things, the input, the status."""

    def __init__(
        self, desk: Desk, put_in: Input, put_out: Output, *, has_colour: bool, rule: str
    ) -> None:
        self.draft = Buffer(multiline=True, history=InMemoryHistory())
        self.reason = Buffer(multiline=False)
        self._desk, self._rule = desk, rule
        self._draft_window = self._input_window(self.draft)
        self._reason_window = self._input_window(self.reason)
        self.app = SteadyApplication(
            layout=Layout(self._rows(), focused_element=self._draft_window),
            key_bindings=bindings(desk, self),
            color_depth=None if has_colour else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
            input=put_in,
            output=put_out,
        )
        self.app.ttimeoutlen = ESCAPE_SECONDS
        self.app.timeoutlen = 0.3

    def focus(self) -> None:
        """Let the keyboard write where the next words belong."""
        window = self._reason_window if self._desk.is_explaining() else self._draft_window
        self.app.layout.focus(window)

    def _rows(self) -> HSplit:
        desk = self._desk
        is_tall = Condition(lambda: self.app.output.get_size().rows >= 8)
        is_free = Condition(lambda: not desk.is_asking() and not desk.is_explaining())
        return HSplit(
            [
                Window(_text(lambda: ANSI(desk.above())), dont_extend_height=True, wrap_lines=True),
                ConditionalContainer(self._draft_window, is_free),
                ConditionalContainer(self._reason_window, Condition(desk.is_explaining)),
                ConditionalContainer(Window(height=1, char=self._rule, style="dim"), is_tall),
                ConditionalContainer(
                    Window(_text(desk.below), height=1, style="dim", dont_extend_height=True),
                    is_tall,
                ),
            ]
        )

    def _input_window(self, buffer: Buffer) -> Window:
        def prefix(line: int, wrapped: int) -> AnyFormattedText:
            is_first = line == 0 and wrapped == 0
            return ANSI(self._desk.prompt()) if is_first else "  "

        return Window(
            BufferControl(buffer),
            height=Dimension(min=1, max=MAX_INPUT_ROWS),
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=prefix,
        )


def bindings(desk: Desk, prompt: Prompt) -> KeyBindings:
    """Make the key bindings; what is not here is what prompt_toolkit's Emacs keys do."""
    keys = KeyBindings()
    asking, explaining = Condition(desk.is_asking), Condition(desk.is_explaining)
    free = ~asking & ~explaining
    empty = Condition(lambda: not prompt.draft.text)

    def on(*names: str, do: Act, when: Filter = ALWAYS, is_eager: bool = False) -> None:
        keys.add(*names, filter=when, eager=is_eager)(do)

    on("enter", do=lambda event: _enter(event, desk, prompt.draft), when=free)
    on("enter", do=lambda _: desk.explain(prompt.reason.text), when=explaining)
    on("escape", "enter", do=lambda _: prompt.draft.insert_text("\n"), when=free)
    on("c-j", do=lambda _: prompt.draft.insert_text("\n"), when=free)
    on("c-c", do=lambda _: desk.interrupt())
    on("<sigint>", do=lambda _: desk.interrupt())
    on("c-d", do=lambda _: desk.leave(), when=free & empty)
    on("s-tab", do=lambda _: desk.next_mode())
    on("escape", do=lambda _: desk.stop(), when=explaining, is_eager=True)
    on("escape", do=lambda _: desk.stop(), when=free & Condition(desk.is_busy))
    on("c-z", do=lambda event: event.app.suspend_to_background())
    on(Keys.Any, do=desk.answer_key, when=asking, is_eager=True)
    return keys


def _enter(event: KeyPressEvent, desk: Desk, draft: Buffer) -> None:
    """Send the draft; a new line after a backslash, and in the middle of pasted text."""
    if event.key_processor.input_queue:  # more came in the same burst: this is a paste, not a key
        draft.insert_text("\n")
    elif draft.document.current_line_before_cursor.endswith("\\"):
        draft.delete_before_cursor()
        draft.insert_text("\n")
    elif text := draft.text.strip():
        draft.append_to_history()
        draft.reset()
        desk.submit(text)


def _text(read: Callable[[], AnyFormattedText]) -> FormattedTextControl:
    return FormattedTextControl(read)
