"""Google's Gemini format, seen from the server.

Source: https://ai.google.dev/api/generate-content
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from ybs.core.messages import AssistantMessage, StopReason, Text, Thinking, ToolCall, Usage
from ybs.testing.script import ScriptedAnswer

_FINISH: dict[StopReason, str] = {
    "end": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "refusal": "SAFETY",
    "cut_off": "OTHER",
    "failed": "MALFORMED_FUNCTION_CALL",
}
_KINDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


class GoogleWire:
    """`models/NAME:streamGenerateContent`: SSE with `data:` lines and nothing at the end."""

    name: Literal["google"] = "google"
    chat_path = (":streamGenerateContent", ":generateContent")
    base_path = "/v1beta"
    content_type = "text/event-stream"
    end_mark = b""

    def said_by_path(self, path: str) -> Mapping[str, Any]:
        """Return the model, and whether a stream is asked for."""
        model, _, call = path.rpartition("/")[2].partition(":")
        return {"model": model, "stream": call.startswith("stream")}

    def is_streamed(self, body: Mapping[str, Any]) -> bool:
        """Return whether the path asked for a stream."""
        return body.get("stream") is True

    def frames(
        self, answer: ScriptedAnswer, message: AssistantMessage, body: Mapping[str, Any]
    ) -> Sequence[Mapping[str, Any]]:
        """Make the pieces: calls are whole, and the last one has the reason and the usage."""
        parts = [part for each in message.content for part in _streamed(answer, each, message)]
        frames = [_response(message, [part]) for part in parts]
        return [*frames, _end(_response(message, [{"text": ""}]), message)]

    def whole(
        self, answer: ScriptedAnswer, message: AssistantMessage, body: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Make one response with all parts."""
        parts = [_part(part, message) for part in message.content]
        return _end(_response(message, parts), message)

    def frame(self, *values: bytes) -> bytes:
        """Make one SSE event of one data line, with the line ends that the service has."""
        return b"data: " + b" ".join(values) + b"\r\n\r\n"

    def error(self, status: int, kind: str, message: str) -> Mapping[str, Any]:
        """Make the error object."""
        kind = kind or _KINDS.get(status, "INTERNAL")
        return {"error": {"code": status, "message": message, "status": kind}}

    def facts(self, path: str, models: Sequence[str]) -> Mapping[str, Any] | None:
        """Answer the list of models."""
        if not path.split("?")[0].endswith("/models"):
            return None
        return {
            "models": [
                {"name": f"models/{name}", "version": "1", "displayName": name, "inputTokenLimit": 1_048_576}
                for name in models
            ]
        }  # fmt: skip


def _response(message: AssistantMessage, parts: list[dict[str, Any]]) -> dict[str, Any]:
    candidate = {"content": {"parts": parts, "role": "model"}, "index": 0}
    return {"candidates": [candidate], "modelVersion": message.model, "responseId": "scripted"}


def _end(response: dict[str, Any], message: AssistantMessage) -> dict[str, Any]:
    response["candidates"][0]["finishReason"] = _FINISH[message.stop_reason]
    return {**response, "usageMetadata": _usage(message.usage)}


def _part(part: Text | Thinking | ToolCall, message: AssistantMessage) -> dict[str, Any]:
    match part:
        case Text():
            return {"text": part.text}
        case Thinking():
            return {"text": part.text, "thought": True}
        case ToolCall():
            arguments = part.invalid or msgspec.json.decode(part.arguments)
            call = {"id": part.id, "name": part.name, "args": arguments}
            signed = _signature_before(part, message)
            return {"functionCall": call} | ({"thoughtSignature": signed} if signed else {})


def _signature_before(call: ToolCall, message: AssistantMessage) -> str:
    """Return the signature of the thought that the first call follows; the others have none."""
    thoughts = [part.signature for part in message.content if isinstance(part, Thinking)]
    return thoughts[-1] if thoughts and message.calls[0] is call else ""


def _streamed(
    answer: ScriptedAnswer, part: Text | Thinking | ToolCall, message: AssistantMessage
) -> list[dict[str, Any]]:
    made = _part(part, message)
    if isinstance(part, ToolCall):
        return [made]
    return [{**made, "text": piece} for piece in answer.chunks(part.text)]


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens,
        "totalTokenCount": usage.input_tokens + usage.output_tokens,
        "cachedContentTokenCount": usage.cached_tokens,
    }
