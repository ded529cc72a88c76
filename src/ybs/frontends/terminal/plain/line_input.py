"""Lines that are typed on a terminal which edits them itself, and the answers in them."""

import asyncio
import os
import sys
import termios
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from select import select

from ybs.core.ports import Answer, Question
from ybs.frontends.terminal.questions.confirm import GUARD_SECONDS, HOLD_SECONDS
from ybs.session.questions import choices_of, in_words

#: Words that answer a question, and mean nothing later.
ANSWERS = frozenset(("y", "yes", "n", "no", "a", "always", "p", "project", "o", "outside"))
#: What an answer ends in that gives the command the network.
WITH_NETWORK = " with network"


class InputLines:
    """Lines of standard input, read without blocking.

    `tell_early` hears of each line that came too early for an answer. It waits for `read`, unless it was meant as one.
    `take` is offered each line as it comes, and tells whether it took it.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        tell_early: Callable[[str], None] = lambda _line: None,
        take: Callable[[str], bool] = lambda _line: False,
    ) -> None:
        self._clock, self._tell_early, self._take = clock, tell_early, take
        self._kept: deque[str] = deque()
        self._waiting: asyncio.Queue[tuple[float, str]] = asyncio.Queue()
        self._rest = b""
        self._number = sys.stdin.fileno()
        self._has_ended = False

    def __enter__(self) -> "InputLines":
        asyncio.get_running_loop().add_reader(self._number, self._receive)
        return self

    def __exit__(self, *_error: object) -> None:
        asyncio.get_running_loop().remove_reader(self._number)

    @contextmanager
    def away(self) -> Generator[None]:
        """Leave the lines to another program that reads from the same place."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._number)
        try:
            yield
        finally:
            if not self._has_ended:
                loop.add_reader(self._number, self._receive)

    async def read(self) -> str | None:
        """Wait for a line; None at the end of input."""
        return self._kept.popleft() if self._kept else (await self._next())[1]

    async def read_answer(self) -> str | None:
        """Wait for a line that came after the question could be read. Earlier ones are kept for `read`."""
        while not self._has_ended and select([self._number], [], [], 0)[0]:
            self._receive()
        while self._waiting.qsize() > self._has_ended:  # the end itself is for whoever waits
            self._put_aside(self._waiting.get_nowait()[1])
        forget_typed(self._number)
        self._rest = b""
        counts_from = self._clock() + GUARD_SECONDS
        while True:
            came_at, line = await self._next()
            if line is None or (came_at >= counts_from and not await self._goes_on()):
                return line
            self._put_aside(line)
            counts_from = came_at + GUARD_SECONDS

    async def _goes_on(self) -> bool:
        """Return whether more comes at once: then the line is part of a paste, and no answer."""
        await asyncio.sleep(HOLD_SECONDS)
        return self._waiting.qsize() > self._has_ended or bool(self._rest)

    def take_back(self) -> list[str]:
        """Return the lines that wait, and forget them."""
        lines = list(self._kept)
        self._kept.clear()
        while self._waiting.qsize() > self._has_ended:
            lines.append(self._waiting.get_nowait()[1])
        return lines

    def _put_aside(self, line: str) -> None:
        words = line.strip()
        if words:
            self._tell_early(words)
        if words and not is_answer(words):
            self._kept.append(words)

    async def _next(self) -> tuple[float, str | None]:
        if self._has_ended and self._waiting.empty():
            return self._clock(), None
        came_at, line = await self._waiting.get()
        return came_at, None if self._has_ended and not line else line

    def _receive(self) -> None:
        data = os.read(self._number, 4096)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in (each.decode(errors="replace") for each in lines):
            if not self._take(line):
                self._waiting.put_nowait((self._clock(), line))
        if not data:
            self._has_ended = True
            asyncio.get_running_loop().remove_reader(self._number)
            self._waiting.put_nowait((self._clock(), ""))  # wakes whoever waits


def is_followed(number: int) -> bool:
    """Return whether more is typed at once."""
    return bool(select([number], [], [], HOLD_SECONDS)[0])


def forget_typed(number: int) -> None:
    """Drop what was typed and not read yet."""
    try:
        termios.tcflush(number, termios.TCIFLUSH)
    except termios.error:  # not a terminal
        return


def is_answer(words: str) -> bool:
    """Return whether a line answers a question or a menu, and means nothing later."""
    return words.lower().removesuffix(WITH_NETWORK) in ANSWERS or words.isdecimal()


def as_answer(text: str, question: Question) -> Answer:
    """Read an answer to a question about a call; everything that is not clearly a yes that is offered is a no."""
    words = text.strip()
    bare = words.lower().removesuffix(WITH_NETWORK) if question.offers_network else words.lower()
    offered = choices_of(question, with_network=bare != words.lower())
    key = bare[:1] if bare in ANSWERS else ""
    if key == "y" and question.outside == "needed":
        key = "i"
    if key in offered:
        return offered[key].answer
    return in_words(question, words.partition("because")[2].strip(" :,"))
