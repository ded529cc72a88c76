"""What a request weighs, and what one message adds to it, in tokens."""

from collections.abc import Callable, Sequence

from ybs.core.messages import Message, UserMessage
from ybs.core.ports import Request, ToolSpec


class Scale:
    """Weighs the requests of one conversation. `fixed` is the system prompt with the tools."""

    def __init__(
        self, size: Callable[[Request], int], system: str, specs: Sequence[ToolSpec]
    ) -> None:
        self._size, self._system, self._specs = size, system, specs
        self._empty = size(Request("", ()))
        self._known: dict[int, tuple[Message, int]] = {}
        self.fixed = size(Request(system, (), specs))

    def request(self, messages: Sequence[Message]) -> int:
        """Weigh the whole request."""
        return self._size(Request(self._system, messages, self._specs))

    def message(self, message: Message) -> int:
        """Weigh one message."""
        known = self._known.get(id(message))
        if known is None:
            weight = max(1, self._size(Request("", (message,))) - self._empty)
            known = self._known[id(message)] = (
                message,
                weight,
            )  # held, so that the id stays its own
        return known[1]

    def messages(self, messages: Sequence[Message]) -> int:
        """Weigh some messages, one by one."""
        return sum(map(self.message, messages))

    def text(self, text: str) -> int:
        """Weigh a text."""
        message = UserMessage.of(text, origin="summary")
        return max(1, self._size(Request("", (message,))) - self._empty)
