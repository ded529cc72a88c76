"""What is loaded while the person reads the first screen: completion, the project's facts, then the drawing of Markdown."""

import asyncio
from collections.abc import Callable
from typing import Self

from ybs.frontends.terminal.prompt.input import Prompt
from ybs.frontends.terminal.session import TerminalSession

#: It begins this long after the prompt is drawn.
WARM_UP_SECONDS = 0.15


class WarmUp:
    """Loads what a first prompt will need; `refresh` draws what has become known."""

    def __init__(
        self, session: TerminalSession, window: Prompt, refresh: Callable[[], None]
    ) -> None:
        self._session, self._window, self._refresh = session, window, refresh
        self._timer: asyncio.TimerHandle | None = None
        self._preparing: asyncio.Task[None] | None = None

    def begin(self) -> Self:
        """Begin in a moment."""
        self._timer = asyncio.get_running_loop().call_later(WARM_UP_SECONDS, self._load)
        return self

    def end(self) -> None:
        """Stop what has not ended."""
        if self._timer is not None:
            self._timer.cancel()
        if self._preparing is not None:
            self._preparing.cancel()

    def _load(self) -> None:
        loading = asyncio.get_running_loop().run_in_executor(None, _import, "prompt.completion")
        loading.add_done_callback(self._complete)
        self._preparing = asyncio.create_task(self._session.prepare())
        self._preparing.add_done_callback(self._prepared)

    def _prepared(self, done: "asyncio.Task[None]") -> None:
        if not done.cancelled() and done.exception() is None and not self._session.is_busy:
            self._refresh()

    def _complete(self, _loaded: object) -> None:
        if self._window.app.is_running:
            self._window.complete(self._session)
            # rich takes a moment
            asyncio.get_running_loop().run_in_executor(None, _import, "drawing.markdown")


def _import(part: str) -> None:
    from importlib import import_module

    import_module(f"ybs.frontends.terminal.{part}")
