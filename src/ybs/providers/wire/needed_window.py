"""Compute the window that a request needs, for servers that allocate memory for all of it."""

from collections.abc import Iterable
from typing import Final

from msgspec.json import encode

from ybs.core.messages import AssistantMessage, Message, Text, ToolResult, UserMessage
from ybs.core.ports import Request

#: The first window to ask for.
LEAST_WINDOW: Final = 8192
#: A token of text or code hardly ever has fewer bytes.
LEAST_BYTES_PER_TOKEN: Final = 2
#: For what a template adds.
SPARE_TOKENS: Final = 512
#: A token of text or code hardly ever has more.
MOST_BYTES_PER_TOKEN: Final = 8
#: Windows are multiples of this; the template's own tokens are beside them.
LEAST_CUT: Final = 1024
_NEAR: Final = 8
#: A picture counts as so many bytes.
_IMAGE: Final = 4000


class NeededWindow:
    """The window to ask for: with room for every request so far. For another one the server loads the model anew.

    So it grows in large steps and never shrinks.
    """

    def __init__(self) -> None:
        self._window = LEAST_WINDOW

    def fit(self, request: Request, *, max_tokens: int, most: int) -> int:
        """Return a window that surely has room for the request and its answer, but no more than `most`."""
        size = bytes_in(request.system) + sum(len(encode(tool)) for tool in request.tools)
        size += bytes_of(request.messages)
        while self._window < size // LEAST_BYTES_PER_TOKEN + max_tokens + SPARE_TOKENS:
            self._window *= 2
        return min(self._window, most)


def cut_notice(count: int, messages: Iterable[Message]) -> str:
    """Return a warning where the server dropped the beginning of a request, as older ones do without a word; else nothing.

    What is left then is a full window or half of one, and far less than such a request has.
    """
    is_cut = count >= LEAST_CUT and min(count % LEAST_CUT, -count % LEAST_CUT) <= _NEAR
    if not is_cut or bytes_of(messages) <= MOST_BYTES_PER_TOKEN * count:
        return ""
    return (
        f"The server read only {count:,} tokens of a much longer request: its window is smaller than the one that was "
        "asked for, so the beginning of the conversation was dropped. Set context.max_tokens to the server's window."
    )


def bytes_of(messages: Iterable[Message]) -> int:
    """Return about how many bytes of text messages have."""
    size = 0
    for message in messages:
        match message:
            case UserMessage():
                for part in message.content:
                    size += bytes_in(part.text) if isinstance(part, Text) else _IMAGE
            case AssistantMessage():
                size += bytes_in(message.text) + sum(len(call.arguments) for call in message.calls)
            case ToolResult():
                size += bytes_in(message.output) + _IMAGE * len(message.images)
    return size


def bytes_in(text: str) -> int:
    """Return about how many bytes a text has, without making them."""
    return len(text) if text.isascii() else 3 * len(text)
