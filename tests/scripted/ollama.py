"""Ollama's own chat format, seen from the server.

Source: https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    StopReason,
    Text,
    Thinking,
    ToolCall,
)
from ybs.testing.script import ScriptedAnswer

_CREATED_AT = "2026-01-01T00:00:00.000000Z"
_DONE: dict[StopReason, str] = {"length": "length", "cut_off": "length", "failed": "error"}
_NANOSECONDS = 1_000_000


class OllamaWire:
    """`/api/chat`: one JSON object a line, the last one with `done`. Streams unless told not to."""

    name: Literal["ollama"] = "ollama"
    chat_path = "/api/chat"
    base_path = ""
    content_type = "application/x-ndjson"
    end_mark = b""

    def said_by_path(self, path: str) -> Mapping[str, Any]:
        """Return nothing: all stands in the body."""
        return {}

    def is_streamed(self, body: Mapping[str, Any]) -> bool:
        """Return whether `stream` is not false."""
        return body.get("stream") is not False

    def frames(
        self, answer: ScriptedAnswer, message: AssistantMessage, body: Mapping[str, Any]
    ) -> Sequence[Mapping[str, Any]]:
        """Make the lines. A tool call comes whole, in a line of its own."""
        said: list[dict[str, Any]] = []
        for part in message.content:
            match part:
                case Text():
                    said += [{"content": piece} for piece in answer.chunks(part.text)]
                case Thinking():
                    pieces = answer.chunks(part.text)
                    said += [{"content": "", "thinking": piece} for piece in pieces]
                case ToolCall():
                    said.append({"content": "", "tool_calls": [_call(part)]})
        lines = [_line(message, each) for each in said]
        return [*lines, {**_line(message, {"content": ""}), **_summary(message)}]

    def whole(
        self, answer: ScriptedAnswer, message: AssistantMessage, body: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Make the one line of an answer that is not streamed."""
        said: dict[str, Any] = {"content": message.text}
        if thought := _joined(message.content, Thinking):
            said["thinking"] = thought
        if message.calls:
            said["tool_calls"] = [_call(call) for call in message.calls]
        return {**_line(message, said), **_summary(message)}

    def frame(self, *values: bytes) -> bytes:
        """Make one line. As Go's encoder does, line separators within a text are escaped."""
        line = b"".join(values)
        for number in (0x2028, 0x2029):
            line = line.replace(chr(number).encode(), b"\\u%x" % number)
        return line + b"\n"

    def error(self, status: int, kind: str, message: str) -> Mapping[str, Any]:
        """Make the error object: a message and no kind."""
        return {"error": message}

    def facts(self, path: str, models: Sequence[str]) -> Mapping[str, Any] | None:
        """Answer the list of models, the facts of one, and the version."""
        match path:
            case "/api/version":
                return {"version": "0.30.0"}
            case "/api/tags":
                return {"models": [_tag(name) for name in models]}
            case "/api/show":
                return {
                    "details": {"family": "scripted", "parameter_size": "1B"},
                    "model_info": {
                        "general.architecture": "scripted",
                        "scripted.context_length": 32_768,
                    },
                    "capabilities": ["completion", "tools", "thinking", "vision"],
                }
            case _:
                return None


def _joined(parts: Sequence[AssistantPart], kind: type[Thinking]) -> str:
    return "".join(part.text for part in parts if isinstance(part, kind))


def _line(message: AssistantMessage, said: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": message.model,
        "created_at": _CREATED_AT,
        "message": {"role": "assistant", **said},
        "done": False,
    }


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = call.invalid or msgspec.json.decode(call.arguments)
    return {"id": call.id, "function": {"name": call.name, "arguments": arguments}}


def _summary(message: AssistantMessage) -> dict[str, Any]:
    return {
        "done": True,
        "done_reason": _DONE.get(message.stop_reason, "stop"),
        "total_duration": 5 * _NANOSECONDS,
        "load_duration": _NANOSECONDS,
        "prompt_eval_count": message.usage.input_tokens,
        "prompt_eval_duration": 2 * _NANOSECONDS,
        "eval_count": message.usage.output_tokens,
        "eval_duration": 2 * _NANOSECONDS,
    }


def _tag(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "model": name,
        "modified_at": _CREATED_AT,
        "size": 1_000_000,
        "digest": "0" * 64,
        "details": {"format": "gguf", "family": "scripted", "parameter_size": "1B"},
    }
