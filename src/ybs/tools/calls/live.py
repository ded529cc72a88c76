"""A running tool's output on its way to the screen: within bounds, in order, and only while the tool runs."""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager

from ybs.core.errors import ToolError
from ybs.core.events import ConfirmationAnswered, ConfirmationAsked, Emit, ToolPrinted
from ybs.core.ports import Preview, ToolOutput

#: What one call may show while it runs, and how many pieces it may print before that counts as a mistake.
MOST_CHARS = 1_000_000
MOST_PIECES = 1_000_000


class LiveOutput:
    """The `print_live` of one call. It may be called from any thread.

    `left` is what a tool that was cancelled can say all the same: what a command had written, or that it had come to its end.
    """

    def __init__(self, call_id: str, emit: Emit) -> None:
        self.call_id, self._emit = call_id, emit
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._chars = self._pieces = 0
        self._is_over = False
        self.left: ToolOutput | None = None

    def __call__(self, text: str) -> None:
        """Show a piece of output. Raises ToolError for a tool that prints without end."""
        self._pieces += 1
        if self._pieces > MOST_PIECES:
            raise ToolError("it printed without end and was stopped")
        room = MOST_CHARS - self._chars
        if room <= 0 or self._is_over:
            return
        shown = str(text)[:room]
        self._chars += len(shown)
        if len(shown) == room:
            shown += "\n[no more of this output is shown here]\n"
        if threading.get_ident() == self._thread:
            self._show(shown)
        else:
            self._loop.call_soon_threadsafe(self._show, shown)

    def leave(self, output: ToolOutput) -> None:
        """Leave behind what can be said of the call, whatever becomes of it."""
        self.left = output

    @contextmanager
    def waiting(self, name: str, preview: Preview) -> Generator[None, None, None]:
        """Tell, for as long as this lasts, that the call waits for the person: for a tool that asks by itself."""
        asked = ConfirmationAsked(
            id=self.call_id, name=name, title=preview.title, preview=preview.body
        )
        self._emit(asked)
        try:
            yield
        finally:
            self._emit(ConfirmationAnswered(id=self.call_id, is_allowed=True))

    def close(self) -> None:
        """Show nothing any more: the call has its result."""
        self._is_over = True

    def _show(self, text: str) -> None:
        if not self._is_over:
            self._emit(ToolPrinted(id=self.call_id, text=text))
