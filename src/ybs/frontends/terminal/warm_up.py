"""What is done while the person reads the first screen: completion and the drawing of Markdown are loaded, the project's facts, and what recurs is looked for."""

import asyncio
from collections.abc import Callable
from typing import Any, Self

from ybs.frontends.terminal.prompt.input import Prompt
from ybs.frontends.terminal.session import TerminalSession

#: It begins this long after the prompt is drawn.
WARM_UP_SECONDS = 0.15
#: Recurring tasks are looked for this long after the rest, where no turn runs.
LEARN_SECONDS = 2.0


class WarmUp:
    """Loads what a first prompt will need; `refresh` draws what has become known, `say` a line about what recurs."""

    def __init__(
        self,
        session: TerminalSession,
        window: Prompt,
        refresh: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self._session, self._window, self._refresh, self._say = session, window, refresh, say
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
            self._timer = asyncio.get_running_loop().call_later(LEARN_SECONDS, self._learn)

    def _learn(self) -> None:
        if not self._session.is_busy and not self._session.stays:  # else it is the server's
            learning = asyncio.get_running_loop().run_in_executor(
                None, recurring_line, self._session
            )
            learning.add_done_callback(self._offered)

    def _offered(self, done: "asyncio.Future[str]") -> None:
        is_read = not done.cancelled() and done.exception() is None
        if is_read and self._window.app.is_running and done.result():
            self._say(done.result())

    def _complete(self, _loaded: object) -> None:
        if self._window.app.is_running:
            self._window.complete(self._session)
            # rich takes a moment
            asyncio.get_running_loop().run_in_executor(None, _import, "drawing.markdown")


def recurring_line(session: Any) -> str:
    """Return a line about what recurs; empty where there is nothing, or where the person does not want it."""
    from ybs.commands.learn import learning_of
    from ybs.core.errors import YbsError

    is_wanted = session.config.learning.enabled and session.config.session.auto_save
    if not is_wanted or session.environment.incognito.is_on:
        return ""
    try:
        return learning_of(session).offer()
    except (OSError, YbsError):  # another ybs is at it, or the file is damaged: /learn says so
        return ""


def _import(part: str) -> None:
    from importlib import import_module

    import_module(f"ybs.frontends.terminal.{part}")
