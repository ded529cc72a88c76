"""What a wire format is: two pure functions and the few facts that the transport needs.

A new format is a class with these members, checked by `tests/contracts`; it does no I/O, and what it remembers of the
last request (`History`) only saves work.
`RemoteModel` joins it with the HTTP client.
"""

from collections.abc import Iterator
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from ybs.core.events import Event
from ybs.core.ports import Request
from ybs.providers.wire.assemble import Assembly
from ybs.providers.wire.quirks import Quirks

#: One decoded JSON object of a stream, or a whole answer that was not streamed.
Frame: TypeAlias = dict[str, Any]
#: How frames are separated. `sse`: `data:` lines; `ndjson`: one JSON object per line.
Framing: TypeAlias = Literal["sse", "ndjson"]


class RequestOptions(Struct, frozen=True, kw_only=True):
    """What a request asks for beside the conversation.

    `max_tokens` is already fitted to `window` (both in tokens). `temperature` is None where it was not set
    or the model takes none. `stream` is false when the server gives its answers in one piece.
    """

    model: str
    max_tokens: int = 4096
    temperature: float | None = None
    stream: bool = True
    window: int = 32_768
    quirks: Quirks = Quirks()


class Adapter(Protocol):
    """One wire format. Nothing that an instance remembers changes an answer, so one serves every request."""

    @property
    def name(self) -> str:
        """The format's name (`openai`, `ollama`, `anthropic`); it marks the thinking it makes."""
        ...

    @property
    def path(self) -> str:
        """The path of the chat call below the endpoint, such as `/chat/completions`."""
        ...

    @property
    def framing(self) -> Framing:
        """How the frames of a stream are separated."""
        ...

    def encode(self, request: Request, options: RequestOptions) -> dict[str, Any]:
        """Make the JSON body of a request: plain data and `msgspec.Raw`, encodable by msgspec.

        A message that is the same object as in the last body is taken to be unchanged.
        """
        ...

    def decode(self, frame: Frame, draft: Assembly) -> Iterator[Event]:
        """Put one frame into the draft and yield what is worth showing.

        A frame is a piece of a stream or a whole answer; both go through here. Frames that say `error` do
        not come here: the HTTP client turns them into a ModelError. Unknown frames are passed over.
        """
        ...

    def headers(self, key: str | None) -> dict[str, str]:
        """Make the headers of the format, with the key where there is one."""
        ...
