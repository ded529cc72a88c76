"""What a scripted server must know about a wire format."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from ybs.core.messages import AssistantMessage
from ybs.testing.script import ScriptedAnswer

#: The moment at which every scripted answer was made.
CREATED_AT_SECONDS = 1_767_225_600


class Wire(Protocol):
    """One wire format, seen from the server. All of it is pure."""

    @property
    def name(self) -> str:
        """The name of the format, as in the configuration of ybs."""
        ...

    @property
    def chat_path(self) -> str | tuple[str, ...]:
        """How the path of a chat request ends, one way or several."""
        ...

    @property
    def base_path(self) -> str:
        """What a client's endpoint has behind the host and port."""
        ...

    @property
    def content_type(self) -> str:
        """The media type of a stream."""
        ...

    @property
    def end_mark(self) -> bytes:
        """What closes a stream after the last frame."""
        ...

    def said_by_path(self, path: str) -> Mapping[str, Any]:
        """Return what the path of a request says that other formats have in the body: `model` and `stream`."""
        ...

    def is_streamed(self, body: Mapping[str, Any]) -> bool:
        """Return whether the request asks for a stream."""
        ...

    def frames(
        self, answer: ScriptedAnswer, message: AssistantMessage, body: Mapping[str, Any]
    ) -> Sequence[Mapping[str, Any]]:
        """Make the JSON values of the stream, in order."""
        ...

    def whole(
        self, answer: ScriptedAnswer, message: AssistantMessage, body: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Make the answer as one JSON value."""
        ...

    def frame(self, *values: bytes) -> bytes:
        """Make one frame of encoded JSON values (more than one is what a bad server does)."""
        ...

    def error(self, status: int, kind: str, message: str) -> Mapping[str, Any]:
        """Make the error object of a response, or of a frame."""
        ...

    def facts(self, path: str, models: Sequence[str]) -> Mapping[str, Any] | None:
        """Answer what clients ask about models and versions; None where there is nothing."""
        ...


def encode(value: Any) -> bytes:
    """Encode a value as JSON."""
    return msgspec.json.encode(value)


def model_list(path: str, models: Sequence[str]) -> Mapping[str, Any] | None:
    """Answer the list of models as OpenAI's servers do."""
    if not path.endswith("/models"):
        return None
    data = [
        {"id": name, "object": "model", "created": CREATED_AT_SECONDS, "owned_by": "ybs"}
        for name in models
    ]
    return {"object": "list", "data": data}
