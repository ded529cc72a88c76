"""The OpenAI chat completions format, and Mistral's, seen from the server.

Sources: https://platform.openai.com/docs/api-reference/chat-streaming, https://docs.mistral.ai/api
"""

from collections.abc import Mapping, Sequence
from typing import Any

from scripted.wire import CREATED_AT_SECONDS, model_list
from ybs.core.messages import AssistantMessage, StopReason, Text, Thinking, ToolCall, Usage
from ybs.testing.script import ScriptedAnswer

_FINISH: dict[StopReason, str] = {
    "end": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "refusal": "content_filter",
    "cut_off": "length",
    "failed": "error",
}


class OpenAIWire:
    """Chat completions: SSE with `data:` lines, ended by `[DONE]`."""

    name: str = "openai"
    chat_path = "/chat/completions"
    base_path = "/v1"
    content_type = "text/event-stream"
    end_mark = b"data: [DONE]\n\n"

    def said_by_path(self, path: str) -> Mapping[str, Any]:
        """Return nothing: all stands in the body."""
        return {}

    def is_streamed(self, body: Mapping[str, Any]) -> bool:
        """Return whether `stream` is true."""
        return body.get("stream") is True

    def frames(
        self, answer: ScriptedAnswer, message: AssistantMessage, body: Mapping[str, Any]
    ) -> Sequence[Mapping[str, Any]]:
        """Make the chunks: role, deltas, finish reason, and usage where it was asked for."""
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
        index = 0
        for part in message.content:
            match part:
                case Text():
                    deltas += [{"content": piece} for piece in answer.chunks(part.text)]
                case Thinking():
                    deltas += [self.thought(piece) for piece in answer.chunks(part.text)]
                case ToolCall():
                    deltas += self.calls(answer, part, index)
                    index += 1
        chunks = [_chunk(message, [_choice(delta, None)]) for delta in deltas]
        chunks.append(_chunk(message, [_choice({}, _FINISH[message.stop_reason])]))
        stream_options: dict[str, Any] = body.get("stream_options") or {}
        if stream_options.get("include_usage"):
            chunks.append({**_chunk(message, []), "usage": _usage(message.usage)})
        return chunks

    def whole(
        self, answer: ScriptedAnswer, message: AssistantMessage, body: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Make a `chat.completion`."""
        said: dict[str, Any] = {"role": "assistant", "content": message.text or None}
        if thought := "".join(p.text for p in message.content if isinstance(p, Thinking)):
            said = self.with_thought(said, thought)
        if message.calls:
            said["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": _arguments(call)},
                }
                for call in message.calls
            ]
        choice = {
            "index": 0,
            "message": said,
            "finish_reason": _FINISH[message.stop_reason],
            "logprobs": None,
        }
        return {
            **_chunk(message, [choice]),
            "object": "chat.completion",
            "usage": _usage(message.usage),
        }

    def frame(self, *values: bytes) -> bytes:
        """Make one SSE event of one data line."""
        return b"data: " + b" ".join(values) + b"\n\n"

    def error(self, status: int, kind: str, message: str) -> Mapping[str, Any]:
        """Make the error object."""
        return {"error": {"message": message, "type": kind, "param": None, "code": status}}

    def facts(self, path: str, models: Sequence[str]) -> Mapping[str, Any] | None:
        """Answer the list of models."""
        return model_list(path, models)

    def calls(self, answer: ScriptedAnswer, call: ToolCall, index: int) -> list[dict[str, Any]]:
        """Make the deltas of a call."""
        return _call_deltas(answer, call, index)

    def thought(self, piece: str) -> dict[str, Any]:
        """Make the delta of a piece of thinking."""
        return {"reasoning_content": piece}

    def with_thought(self, said: dict[str, Any], thought: str) -> dict[str, Any]:
        """Put the thinking into a whole message."""
        return {**said, "reasoning_content": thought}


class MistralWire(OpenAIWire):
    """Mistral: thinking is a part of the content, calls come whole, and the last chunk has the usage."""

    name = "mistral"

    def frames(
        self, answer: ScriptedAnswer, message: AssistantMessage, body: Mapping[str, Any]
    ) -> Sequence[Mapping[str, Any]]:
        """Make the chunks: role, deltas, and the finish reason with the usage."""
        *chunks, last = super().frames(answer, message, {})
        return [*chunks, {**last, "usage": _usage(message.usage)}]

    def calls(self, answer: ScriptedAnswer, call: ToolCall, index: int) -> list[dict[str, Any]]:
        """Make the one delta of a call."""
        function = {"name": call.name, "arguments": _arguments(call)}
        return [{"tool_calls": [{"index": index, "id": call.id, "function": function}]}]

    def thought(self, piece: str) -> dict[str, Any]:
        """Make the delta of a piece of thinking."""
        return {"content": [_thinking_part(piece)]}

    def with_thought(self, said: dict[str, Any], thought: str) -> dict[str, Any]:
        """Put the thinking into a whole message."""
        text = {"type": "text", "text": said["content"] or ""}
        return {**said, "content": [_thinking_part(thought), text]}


def _thinking_part(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


def _chunk(message: AssistantMessage, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": CREATED_AT_SECONDS,
        "model": message.model,
        "choices": choices,
    }


def _choice(delta: dict[str, Any], finish_reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _arguments(call: ToolCall) -> str:
    return call.invalid or bytes(call.arguments).decode()


def _call_deltas(answer: ScriptedAnswer, call: ToolCall, index: int) -> list[dict[str, Any]]:
    begin = {
        "index": index,
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": ""},
    }
    pieces = [
        {"index": index, "function": {"arguments": piece}}
        for piece in answer.chunks(_arguments(call))
    ]
    return [{"tool_calls": [piece]} for piece in (begin, *pieces)]


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }
