"""A conversation on the wire: of one that has grown, only what is new is encoded."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ybs.core.memo import alike
from ybs.core.messages import Message

#: Messages as a wire format writes them.
Said: TypeAlias = list[dict[str, Any]]
#: Writes one of the messages, by its place. What is said already may be replaced at the end; no part of it may change.
Add: TypeAlias = Callable[[Said, Sequence[Message], int], None]


class EncodedHistory:
    """Remembers the last conversation, whose messages never change and are known by their identity."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._said: Said = []
        self._terms: object = None

    def said(
        self, messages: Sequence[Message], add: Add, *, first: Said, terms: object = None
    ) -> Said:
        """Return what `add` writes behind `first`. With other `terms`, on which that depends, all is written anew."""
        messages = list(messages)
        known = alike(self._messages, messages)
        if known < len(self._messages) or terms != self._terms:
            known = 0  # compacted, cleared, or for another server
        said = [*(self._said if known else first)]
        for place in range(known, len(messages)):
            add(said, messages, place)
        self._messages, self._said, self._terms = messages, said, terms
        return [*said]
