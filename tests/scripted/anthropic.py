"""The Anthropic Messages format, seen from the server.

Source: https://platform.claude.com/docs/en/build-with-claude/streaming
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from ybs.testing.script import ScriptedAnswer

_STOP: dict[StopReason, str] = {
    "end": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "refusal": "refusal",
    "cut_off": "pause_turn",
    "failed": "error",
}
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class _Named(Struct):
    type: str


class AnthropicWire:
    """`/v1/messages`: SSE with named events, ended by `message_stop`."""

    name: Literal["anthropic"] = "anthropic"
    chat_path = "/messages"
    base_path = ""
    content_type = "text/event-stream"
    end_mark = b""

    def said_by_path(self, path: str) -> Mapping[str, Any]:
        """Return nothing: all stands in the body."""
        return {}

    def is_streamed(self, body: Mapping[str, Any]) -> bool:
        """Return whether `stream` is true."""
        return body.get("stream") is True

    def frames(
        self, answer: ScriptedAnswer, message: AssistantMessage, body: Mapping[str, Any]
    ) -> Sequence[Mapping[str, Any]]:
        """Make the events: message_start, a ping, the blocks, message_delta and message_stop."""
        empty = {**_message(message, []), "stop_reason": None}
        empty["usage"] = {**_usage(message.usage), "output_tokens": 1}
        frames: list[dict[str, Any]] = [
            {"type": "message_start", "message": empty},
            {"type": "ping"},
        ]
        for index, part in enumerate(message.content):
            block, deltas = _streamed(answer, part)
            frames.append({"type": "content_block_start", "index": index, "content_block": block})
            frames += (
                {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
            )
            frames.append({"type": "content_block_stop", "index": index})
        ending = {"stop_reason": _STOP[message.stop_reason], "stop_sequence": None}
        usage = _usage(message.usage)
        frames.append({"type": "message_delta", "delta": ending, "usage": usage})
        frames.append({"type": "message_stop"})
        return frames

    def whole(
        self, answer: ScriptedAnswer, message: AssistantMessage, body: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Make a `message`."""
        return _message(message, [_block(part) for part in message.content])

    def frame(self, *values: bytes) -> bytes:
        """Make one SSE event, named by the type of the first value."""
        return b"event: " + _name(values[0]) + b"\ndata: " + b" ".join(values) + b"\n\n"

    def error(self, status: int, kind: str, message: str) -> Mapping[str, Any]:
        """Make the error object; the kind is guessed from the status where none is given."""
        kind = kind or _KINDS.get(status, "api_error")
        error = {"type": kind, "message": message}
        return {"type": "error", "error": error, "request_id": "req_scripted"}

    def facts(self, path: str, models: Sequence[str]) -> Mapping[str, Any] | None:
        """Answer the list of models."""
        if not path.endswith("/models"):
            return None
        data = [
            {
                "type": "model",
                "id": name,
                "display_name": name,
                "created_at": "2026-01-01T00:00:00Z",
            }
            for name in models
        ]
        return {"data": data, "has_more": False, "first_id": None, "last_id": None}


def _name(value: bytes) -> bytes:
    try:
        return msgspec.json.decode(value, type=_Named).type.encode()
    except msgspec.DecodeError:
        return b"message"  # garbage has no name of its own


def _message(message: AssistantMessage, content: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": message.model,
        "content": content,
        "stop_reason": _STOP[message.stop_reason],
        "stop_sequence": None,
        "usage": _usage(message.usage),
    }


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    }


def _block(part: AssistantPart) -> dict[str, Any]:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Thinking() if part.redacted:
            return {"type": "redacted_thinking", "data": part.redacted}
        case Thinking():
            return {"type": "thinking", "thinking": part.text, "signature": part.signature}
        case ToolCall():
            return {
                "type": "tool_use",
                "id": part.id,
                "name": part.name,
                "input": msgspec.json.decode(part.arguments),
            }


def _streamed(
    answer: ScriptedAnswer, part: AssistantPart
) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """Return a block as it begins, and the deltas that fill it."""
    block = _block(part)
    match part:
        case Text():
            pieces = answer.chunks(part.text)
            return {**block, "text": ""}, ({"type": "text_delta", "text": p} for p in pieces)
        case Thinking() if part.redacted:
            return block, iter(())
        case Thinking():
            return {**block, "thinking": "", "signature": ""}, _thinking_deltas(answer, part)
        case ToolCall():
            pieces = ["", *answer.chunks(part.invalid or bytes(part.arguments).decode())]
            deltas = ({"type": "input_json_delta", "partial_json": p} for p in pieces)
            return {**block, "input": {}}, deltas


def _thinking_deltas(answer: ScriptedAnswer, part: Thinking) -> Iterator[dict[str, Any]]:
    for piece in answer.chunks(part.text):
        yield {"type": "thinking_delta", "thinking": piece}
    if part.signature:
        yield {"type": "signature_delta", "signature": part.signature}
