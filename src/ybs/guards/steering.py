"""Steering: what the person says while a turn runs reaches the model at its next step."""

from collections.abc import Awaitable, Callable

from ybs.core.messages import UserMessage
from ybs.core.ports import Guard, Turn

#: Makes a message of words and the part of them that was typed (None: all), or None where they are not to be said.
Compose = Callable[[str, str | None], Awaitable[UserMessage | None]]


class Steering(Guard):
    """Holds words until the turn's next step. It stands behind the limits: what a stopped turn cannot answer stays unread."""

    def __init__(self, compose: Compose, after: Callable[[], None] = lambda: None) -> None:
        """`after` is called when words have been said: what is to be told of them comes behind them."""
        self._compose, self._after = compose, after
        self._waiting: list[tuple[str, str | None]] = []
        self._is_asked_for = False

    def __len__(self) -> int:
        """Count the words that wait."""
        return len(self._waiting)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The words that were not said yet, oldest first."""
        return tuple(words for words, _ in self._waiting)

    def add(self, words: str, typed: str | None = None) -> None:
        """Have the words said at the next step; `typed` is the part that was typed, where that is not all."""
        self._waiting.append((words, typed))

    def take_back(self) -> str:
        """Return the newest words that were not said yet, and forget them; "" where there are none.

        Those that a turn goes on for at this moment are as good as said.
        """
        return self._waiting.pop()[0] if len(self._waiting) > self._is_asked_for else ""

    def take_all(self) -> tuple[str, ...]:
        """Return all words that were not said, oldest first, and forget them."""
        words = self.waiting
        self._waiting.clear()
        self._is_asked_for = False
        return words

    async def before_step(self, turn: Turn) -> None:
        """Say what waits."""
        while self._waiting:
            words, typed = self._waiting[0]
            message = await self._compose(words, typed)
            if self._waiting and self._waiting[0] == (words, typed):  # not taken back meanwhile
                self._waiting.pop(0)
                if message is not None:
                    turn.say(message)
                    self._after()
        self._is_asked_for = False

    async def wants_more(self, turn: Turn) -> bool:
        """Go on where words came while the model wrote its last ones."""
        self._is_asked_for = bool(self._waiting)
        return self._is_asked_for
