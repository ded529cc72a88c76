"""What is drawn above the prompt while a turn runs, and vanishes: the spinner, running calls, the open block."""

from collections.abc import Callable
from time import monotonic

from msgspec import Struct

from ybs.security.unicode import printable
from ybs.ui.signs import Paint, Signs
from ybs.ui.steps import call_text, running_line
from ybs.ui.words import amount, one_line, shorten, wrap

FRAMES_PER_SECOND = 8
#: Running calls, last lines of their output, and last lines of an open block that are shown.
MAX_CALLS, MAX_OUTPUT, MAX_OPEN = 6, 3, 12


class RunningCall(Struct):
    """A tool call that has not ended."""

    name: str
    about: str
    started_at: float
    asked_at: float | None = None
    waited_seconds: float = 0.0
    tail: str = ""


class Live:
    """The passing part of the screen; `clock` counts seconds."""

    def __init__(self, paint: Paint, signs: Signs, clock: Callable[[], float] = monotonic) -> None:
        self._paint, self._signs, self.clock = paint, signs, clock
        self.calls: dict[str, RunningCall] = {}
        self.open_block = ""
        self.thinking = ""
        self.activity = ""
        self.streamed_characters = 0
        self.queued: list[str] = []
        self._since: float | None = None

    @property
    def is_running(self) -> bool:
        """Tell whether a turn runs."""
        return self._since is not None

    def begin(self) -> None:
        """Start the clock of a turn."""
        self._since = self.clock()
        self.wait("waiting")

    def end(self) -> None:
        """Show nothing any more."""
        self._since = None
        self.calls.clear()
        self.open_block = self.thinking = self.activity = ""
        self.streamed_characters = 0

    def wait(self, activity: str) -> None:
        """Say what is being waited for."""
        self.activity = activity
        self.streamed_characters = 0

    def add_output(self, call_id: str, text: str) -> None:
        """Keep the end of a running call's output."""
        if call := self.calls.get(call_id):
            call.tail = (call.tail + printable(text))[-2_000:]

    def pause(self, call_id: str) -> None:
        """Stop counting a call's time while the person is asked about it."""
        if call := self.calls.get(call_id):
            call.asked_at = self.clock()

    def resume(self, call_id: str) -> None:
        """Go on counting."""
        if (call := self.calls.get(call_id)) and call.asked_at is not None:
            call.waited_seconds += self.clock() - call.asked_at
            call.asked_at = None

    def lines(self, width: int, height: int) -> list[str]:
        """Draw at most `height` lines."""
        lines = [*self._open_lines(width), *self._call_lines(width)]
        if self.is_running and not self.calls:
            lines.append(self._waiting_line(width))
        lines += [
            self._paint.dim(shorten(f"{self._signs.prompt} {one_line(text)}  (next)", width))
            for text in self.queued
        ]
        return lines[-height:] if height > 0 else []

    def _open_lines(self, width: int) -> list[str]:
        if self.open_block:
            lines = wrap(printable(self.open_block), width, "  " if width >= 40 else "")
            return [*lines[-MAX_OPEN:], ""]
        if self.thinking:
            lines = wrap(printable(self.thinking.strip()), width, "  ")
            return [*map(self._paint.dim, lines[-2:]), ""]
        return []

    def _call_lines(self, width: int) -> list[str]:
        lines: list[str] = []
        now = self.clock()
        for call in list(self.calls.values())[:MAX_CALLS]:
            seconds = now - call.started_at - call.waited_seconds
            text = call_text(call.name, call.about, width)
            lines.append(running_line(text, seconds, width, self._paint, self._frame()))
            tail = [line for line in call.tail.split("\n") if line.strip()][-MAX_OUTPUT:]
            lines += [self._paint.dim(shorten("    " + line.expandtabs(4), width)) for line in tail]
        return lines

    def _waiting_line(self, width: int) -> str:
        seconds = self.clock() - (self._since or 0.0)
        size = (
            f"  {amount(self.streamed_characters)} characters" if self.streamed_characters else ""
        )
        hint = self._paint.dim("   esc to stop") if width >= 50 and seconds >= 1 else ""
        text = self.activity + size
        return running_line(text, seconds, width - 14, self._paint, self._frame()) + hint

    def _frame(self) -> str:
        frames = self._signs.spinner
        return frames[int(self.clock() * FRAMES_PER_SECOND) % len(frames)]
