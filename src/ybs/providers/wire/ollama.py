"""The Ollama wire format: `/api/chat`, one JSON object per line.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from ybs.core.events import Event, Noticed
from ybs.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    Thinking,
    ToolResult,
    UserMessage,
)
from ybs.core.ports import Request
from ybs.providers.wire.adapter import (
    Adapter,
    EncodedHistory,
    Frame,
    Framing,
    ModelListing,
    RequestOptions,
    Said,
    function_tool,
    with_extra,
    without,
)
from ybs.providers.wire.assemble import Assembly
from ybs.providers.wire.effort import OSS_LEVELS, asked_level, nearest
from ybs.providers.wire.loose_json import as_list, as_object, as_text, count_at, thought_in
from ybs.providers.wire.needed_window import cut_notice
from ybs.providers.wire.pictures import base64_of, caption_of, pictures_before, without_pictures
from ybs.providers.wire.quirks import Quirks


class OllamaAdapter(Adapter):
    """Ollama's native chat, streamed as JSON lines."""

    name = "ollama"
    framing: Framing = "ndjson"
    messages_field = "messages"
    listing = ModelListing("/api/tags", "models", "name")
    quirks = Quirks(
        reasoning_fields=("thinking",),
        reasoning_sent_as="thinking",
        takes_window=True,
        # What does not fit is refused, with its size, instead of being cut; older servers do not know these fields.
        extra_body={"truncate": False, "shift": False},
    )

    def __init__(self) -> None:
        self._history = EncodedHistory()
        self._has_warned = False

    @staticmethod
    def base(endpoint: str) -> str:
        """Return the address without what follows the port."""
        return without(endpoint, "/api/chat", "/v1", "/api")

    def path(self, _options: RequestOptions) -> str:
        """Return the path of the call."""
        return "/api/chat"

    def encode(self, request: Request, options: RequestOptions) -> dict[str, Any]:
        """Make the request body.

        `num_ctx` is always sent: without it Ollama takes a small window and silently drops the beginning of what does not fit.
        """
        quirks = options.quirks
        settings: dict[str, Any] = {"num_ctx": options.window, "num_predict": options.max_tokens}
        if options.temperature is not None and quirks.accepts_temperature:
            settings["temperature"] = options.temperature
        body: dict[str, Any] = {
            "model": options.model,
            "messages": self._encode_messages(request, quirks),
        }
        if request.tools:
            body["tools"] = [function_tool(tool) for tool in request.tools]
        if level := asked_level(options):
            has_levels = options.model.startswith("gpt-oss")
            body["think"] = nearest(level, OSS_LEVELS) if has_levels else level != "none"
        if options.answer_schema is not None:
            body["format"] = options.answer_schema
        if options.keep_minutes is not None:
            body["keep_alive"] = f"{60 * options.keep_minutes:.0f}s"
        body |= {"stream": options.stream, "options": settings}
        return with_extra(body, quirks.extra_body)

    def decode(self, frame: Frame, draft: Assembly) -> tuple[Event, ...]:
        """Put one line of the stream, or a whole answer, into the draft."""
        message = as_object(frame.get("message"))
        thought = thought_in(message, draft.quirks.reasoning_fields)
        events = draft.add_thinking(thought) if thought else ()
        events += draft.add_text(as_text(message.get("content")))
        for call in as_list(message["tool_calls"]) if "tool_calls" in message else ():
            events += _decode_call(as_object(call), draft)
        if frame.get("done") is True:
            read = count_at(frame, "prompt_eval_count")
            if not self._has_warned and (notice := cut_notice(read or 0, draft.messages)):
                self._has_warned = True
                events += (Noticed(level="warning", text=notice),)
            draft.set_usage(input_tokens=read, output_tokens=count_at(frame, "eval_count"))
            draft.stop(as_text(frame.get("done_reason")) or "stop")
            draft.end()
        return events

    def _encode_messages(self, request: Request, quirks: Quirks) -> Said:
        system, add = request.system, partial(_add, quirks=quirks)
        first = [{"role": quirks.system_role, "content": system}] if system else []
        said = self._history.said(request.messages, add, first=first, terms=(system, quirks))
        _show(said, request.messages, len(request.messages), quirks)
        return said


def _decode_call(call: dict[str, Any], draft: Assembly) -> tuple[Event, ...]:
    """Read a tool call; Ollama never sends one in pieces."""
    function = as_object(call.get("function")) or call
    arguments = function.get("arguments")
    return draft.add_call(
        id=as_text(call.get("id")),
        name=as_text(function.get("name")),
        arguments=arguments if isinstance(arguments, str) else as_object(arguments),
    )


def _add(said: Said, messages: Sequence[Message], place: int, quirks: Quirks) -> None:
    message = messages[place]
    if not isinstance(message, ToolResult):
        _show(said, messages, place, quirks)
    match message:
        case UserMessage():
            said.append(_encode_user(message.content, quirks))
        case AssistantMessage():
            said.extend(_encode_assistant(message, quirks))
        case ToolResult():
            said.append({"role": "tool", "content": message.output, "tool_name": message.name})


def _show(said: Said, messages: Sequence[Message], place: int, quirks: Quirks) -> None:
    """Add the pictures of the results before that place: templates show pictures in user messages only."""
    if images := pictures_before(messages, place):
        said.append(_encode_user((Text(text=caption_of(images)), *images), quirks))


def _encode_user(content: tuple[Text | Image, ...], quirks: Quirks) -> dict[str, Any]:
    if not quirks.sees_images:
        content = without_pictures(content)
    text = "".join(part.text for part in content if isinstance(part, Text))
    said: dict[str, Any] = {"role": "user", "content": text}
    if pictures := [base64_of(part) for part in content if isinstance(part, Image)]:
        said["images"] = pictures
    return said


def _encode_assistant(message: AssistantMessage, quirks: Quirks) -> Iterator[dict[str, Any]]:
    """Make the message; nothing at all where only thinking is left of it."""
    said: dict[str, Any] = {"role": "assistant", "content": message.text}
    thoughts = (part for part in message.content if isinstance(part, Thinking))
    thought = "".join(part.text for part in thoughts if part.provider == OllamaAdapter.name)
    if thought and quirks.reasoning_sent_as:
        said[quirks.reasoning_sent_as] = thought
    if calls := message.calls:
        functions = [{"name": call.name, "arguments": call.arguments} for call in calls]
        said["tool_calls"] = [{"function": function} for function in functions]
    if calls or message.text:
        yield said
