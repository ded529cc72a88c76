"""Waiting for an answer: how long, and only where there is something to wait for."""

import asyncio
from collections.abc import Callable, Generator
from math import inf
from typing import Any, Final

#: So long, in seconds, a server may keep an answer open with signs of life alone: comments, pings, empty frames.
LONGEST_SILENCE: Final = 600.0


class Clock:
    """How long one answer may be waited for. What says nothing (comments, empty frames) keeps it open for so long only.

    `first` and `later` are the seconds that the first chunk and each later one may take.
    `linger` says how much longer once the answer is complete; `progress` changes with each piece of the answer.
    """

    def __init__(
        self,
        first: float,
        later: float,
        linger: Callable[[], float | None],
        progress: Callable[[], object] | None,
    ) -> None:
        self._first, self._later = first, later
        self._linger, self._progress = linger, progress
        self._longest = max(LONGEST_SILENCE, first, later)
        self._now = asyncio.get_running_loop().time
        self._said_until = self._now() + self._longest
        self._ends_at = inf
        self._last: object = None
        self.has_begun = False

    def begin(self) -> None:
        """Note that the answer has begun."""
        self.has_begun = True

    @property
    def seconds(self) -> float:
        """How long to wait for the next chunk."""
        if (rest := self._linger()) is not None:
            self._ends_at = min(self._ends_at, self._now() + rest)
            return max(self._ends_at - self._now(), 0.0)
        allowed = self._later if self.has_begun else self._first
        return max(min(allowed, self._said_until - self._now()), 0.0)

    @property
    def silence(self) -> float:
        """How long nothing was said where that was too long."""
        allowed = self._later if self.has_begun else self._first
        return allowed if self._now() < self._said_until else self._longest

    def frame_came(self) -> None:
        """Count a frame that says something."""
        said = object() if self._progress is None else self._progress()
        if said != self._last:
            self._last, self._said_until = said, self._now() + self._longest


class Begun:
    """An awaitable that goes on with one that has begun, and waits for `first`."""

    def __init__(self, step: Generator[Any, Any, bytes | None], first: Any) -> None:
        self._step, self._first = step, first

    def __await__(self) -> Generator[Any, Any, bytes | None]:
        waiting = self._first
        try:
            while True:
                try:
                    sent = yield waiting
                except BaseException as error:  # the step that waits gets it
                    waiting = self._step.throw(error)
                else:
                    waiting = self._step.send(sent)
        except StopIteration as done:
            return done.value
