"""The OpenAI Responses format, seen from the server.

Source: https://platform.openai.com/docs/api-reference/responses-streaming
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Literal

import msgspec
from msgspec import Struct

from scripted.wire import CREATED_AT_SECONDS, model_list
from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from ybs.testing.script import ScriptedAnswer

_WHY = {
    "length": "max_output_tokens",
    "refusal": "content_filter",
    "cut_off": "max_output_tokens",
    "failed": "error",
}


class _Named(Struct):
    type: str


class ResponsesWire:
    """`/responses`: SSE with named events, ended by `response.completed` or `response.incomplete`."""

    name: Literal["openai-responses"] = "openai-responses"
    chat_path = "/responses"
    base_path = "/v1"
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
        """Make the events: created, those of each item, and the end."""
        begun = _response(message, [], "in_progress")
        numbers = count()
        frames: list[dict[str, Any]] = [
            {"type": "response.created", "response": begun},
        ]
        for index, part in enumerate(message.content):
            frames += _item_events(answer, part, index)
        end = "response.incomplete" if message.stop_reason in _WHY else "response.completed"
        frames.append({"type": end, "response": self.whole(answer, message, body)})
        return [{**frame, "sequence_number": next(numbers)} for frame in frames]

    def whole(
        self, answer: ScriptedAnswer, message: AssistantMessage, body: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Make a `response`."""
        items = [_item(part, index, "completed") for index, part in enumerate(message.content)]
        status = "incomplete" if message.stop_reason in _WHY else "completed"
        return _response(message, items, status)

    def frame(self, *values: bytes) -> bytes:
        """Make one SSE event, named by the type of the first value."""
        return b"event: " + _name(values[0]) + b"\ndata: " + b" ".join(values) + b"\n\n"

    def error(self, status: int, kind: str, message: str) -> Mapping[str, Any]:
        """Make the error object of an HTTP answer, or of a frame."""
        return {"error": {"message": message, "type": kind, "param": None, "code": status}}

    def facts(self, path: str, models: Sequence[str]) -> Mapping[str, Any] | None:
        """Answer the list of models."""
        return model_list(path, models)


def _name(value: bytes) -> bytes:
    try:
        return msgspec.json.decode(value, type=_Named).type.encode()
    except msgspec.DecodeError:
        return b"error"  # it has no name of its own


def _response(
    message: AssistantMessage, output: list[dict[str, Any]], status: str
) -> dict[str, Any]:
    why = _WHY.get(message.stop_reason) if status == "incomplete" else None
    return {
        "id": "resp_scripted",
        "object": "response",
        "created_at": CREATED_AT_SECONDS,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": why} if why else None,
        "instructions": None,
        "metadata": {},
        "model": message.model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None if status == "in_progress" else _usage(message.usage),
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _item(part: AssistantPart, index: int, status: str) -> dict[str, Any]:
    match part:
        case Text():
            text: dict[str, Any] = {"type": "output_text", "text": part.text, "annotations": []}
            content = [text] if status == "completed" else []
            kind = {"id": f"msg_{index}", "type": "message", "role": "assistant"}
            return {**kind, "status": status, "content": content}
        case Thinking():
            summary = [{"type": "summary_text", "text": part.text}] if part.text else []
            item = {"id": f"rs_{index}", "type": "reasoning", "summary": summary}
            return {**item, "encrypted_content": part.signature or None}
        case ToolCall():
            return {
                "id": f"fc_{index}",
                "type": "function_call",
                "call_id": part.id,
                "name": part.name,
                "arguments": _arguments(part) if status == "completed" else "",
                "status": status,
            }


def _arguments(call: ToolCall) -> str:
    return call.invalid or bytes(call.arguments).decode()


def _item_events(
    answer: ScriptedAnswer, part: AssistantPart, index: int
) -> Iterator[dict[str, Any]]:
    """Yield how an item begins, its pieces, and how it ends."""
    begun, done = _item(part, index, "in_progress"), _item(part, index, "completed")
    if isinstance(part, Thinking):
        begun |= {"summary": [], "encrypted_content": None}
    place = {"item_id": done["id"], "output_index": index}
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    match part:
        case Text():
            yield from _text_events(answer, part, {**place, "content_index": 0})
        case Thinking() if part.text:
            at = {**place, "summary_index": 0}
            empty, full = ({"type": "summary_text", "text": text} for text in ("", part.text))
            yield {"type": "response.reasoning_summary_part.added", **at, "part": empty}
            for piece in answer.chunks(part.text):
                yield {"type": "response.reasoning_summary_text.delta", **at, "delta": piece}
            yield {"type": "response.reasoning_summary_text.done", **at, "text": part.text}
            yield {"type": "response.reasoning_summary_part.done", **at, "part": full}
        case Thinking():
            pass
        case ToolCall():
            for piece in answer.chunks(_arguments(part)):
                yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
            done_kind = "response.function_call_arguments.done"
            yield {"type": done_kind, **place, "arguments": _arguments(part)}
    yield {"type": "response.output_item.done", "output_index": index, "item": done}


def _text_events(
    answer: ScriptedAnswer, part: Text, at: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    empty: dict[str, Any] = {"type": "output_text", "text": "", "annotations": []}
    yield {"type": "response.content_part.added", **at, "part": empty}
    for piece in answer.chunks(part.text):
        yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **at, "text": part.text, "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": {**empty, "text": part.text}}
