"""Steering: what the person says while a turn runs reaches the model at its next step."""

from collections.abc import Awaitable, Callable, Sequence

from ybs.core.messages import Image, UserMessage
from ybs.core.ports import Guard, Turn

#: Makes a message of words and pictures; what it needs for that may take time.
Compose = Callable[[str, Sequence[Image]], Awaitable[UserMessage]]


class Steering(Guard):
    """Holds words until the turn's next step. It stands last, so that a turn goes on where only they ask for it."""

    def __init__(self, compose: Compose) -> None:
        self._compose = compose
        self._waiting: list[tuple[str, Sequence[Image]]] = []

    def add(self, words: str, images: Sequence[Image] = ()) -> None:
        """Have the words said at the next step."""
        self._waiting.append((words, images))

    def take_back(self) -> str:
        """Return the newest words that were not said yet, and forget them; "" where there are none."""
        return self._waiting.pop()[0] if self._waiting else ""

    def take_all(self) -> tuple[str, ...]:
        """Return all words that were not said, oldest first, and forget them."""
        words = tuple(words for words, _ in self._waiting)
        self._waiting.clear()
        return words

    async def before_step(self, turn: Turn) -> None:
        """Say what waits."""
        await self._say_all(turn)

    async def wants_more(self, turn: Turn) -> bool:
        """Go on where words came while the model wrote its last ones."""
        return await self._say_all(turn)

    async def _say_all(self, turn: Turn) -> bool:
        has_said = False
        while self._waiting:
            words, images = self._waiting[0]
            message = await self._compose(words, images)
            if self._waiting and self._waiting[0] == (words, images):  # not taken back meanwhile
                self._waiting.pop(0)
                turn.say(message)
                has_said = True
        return has_said
