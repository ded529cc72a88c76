"""The Anthropic wire format: `/v1/messages`, server-sent events.

https://platform.claude.com/docs/en/api/messages
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from ybs.config.presets import CREDENTIALS
from ybs.core.events import Event
from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ybs.core.ports import Request, ToolSpec
from ybs.providers.registry import Provider
from ybs.providers.wire.adapter import (
    EncodedHistory,
    Frame,
    Framing,
    ModelListing,
    RequestOptions,
    Said,
    with_extra,
    without,
)
from ybs.providers.wire.assemble import Assembly
from ybs.providers.wire.effort import asked_level, budget_of
from ybs.providers.wire.loose_json import as_count, as_list, as_object, as_text
from ybs.providers.wire.pictures import base64_of, without_pictures
from ybs.providers.wire.quirks import Quirks

_VERSION: Final = "2023-06-01"
_IMAGE_TYPES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")
#: The API refuses a smaller one.
_LEAST_BUDGET: Final = 1024
_LONGEST_NAME: Final = 128

#: Content blocks, as the API names them.
_Blocks = list[dict[str, Any]]


class AnthropicAdapter:
    """Anthropic Messages, streamed as server-sent events."""

    name = "anthropic"
    framing: Framing = "sse"
    messages_field = "messages"
    listing = ModelListing("/v1/models?limit=1000")
    quirks = Quirks(answer_schema="with_tools")

    def __init__(self) -> None:
        self._history = EncodedHistory()

    @staticmethod
    def base(endpoint: str) -> str:
        """Return the address without `/v1`, which the paths have."""
        return without(endpoint, "/v1/messages", "/v1")

    def path(self, _options: RequestOptions) -> str:
        """Return the path of the call."""
        return "/v1/messages"

    def encode(self, request: Request, options: RequestOptions) -> dict[str, Any]:
        """Make the request body, with cache breakpoints so that the unchanged prefix is read from the cache."""
        quirks = options.quirks
        body: dict[str, Any] = {"model": options.model, "max_tokens": options.max_tokens}
        if request.tools:
            body["tools"] = [_encode_tool(tool) for tool in request.tools]
            _set_breakpoint(body["tools"])
        if request.system.strip():
            body["system"] = [{"type": "text", "text": request.system}]
            _set_breakpoint(body["system"])
        add = partial(_add, quirks=quirks)
        said = body["messages"] = self._history.said(request.messages, add, first=[], terms=quirks)
        # The end of the conversation is written to the cache; the user message before the last is where
        # the previous request ended, so it is found again however many blocks have come since.
        places = [place for place, message in enumerate(said) if message["role"] == "user"]
        for place in places[-2:]:
            said[place] = {"role": "user", "content": [*said[place]["content"]]}
            _set_breakpoint(said[place]["content"])
        thinking = _encode_effort(options)
        is_thinking = bool(thinking) and thinking["thinking"]["type"] != "disabled"
        if options.temperature is not None and quirks.accepts_temperature and not is_thinking:
            body["temperature"] = options.temperature
        body |= {**thinking, "stream": options.stream}
        if options.answer_schema is not None:
            form = {"type": "json_schema", "schema": options.answer_schema}
            body["output_config"] = {**thinking.get("output_config", {}), "format": form}
        return with_extra(body, quirks.extra_body)

    def decode(self, frame: Frame, draft: Assembly) -> Iterator[Event]:
        """Put an event of the stream, or a whole message, into the draft."""
        match frame.get("type"):
            case "message_start":
                _note_usage(as_object(frame.get("message")), draft)
            case "content_block_start":
                yield from _begin_block(as_object(frame.get("content_block")), _index(frame), draft)
            case "content_block_delta":
                yield from _decode_delta(as_object(frame.get("delta")), _index(frame), draft)
            case "content_block_stop":
                draft.end_part()
            case "message_delta":
                _note_stop(as_object(frame.get("delta")), draft)
                _note_usage(frame, draft)
            case "message_stop":
                draft.end()
            case "message":
                yield from _decode_whole(frame, draft)
            case _:
                pass  # `ping`, and what the API may send one day

    def headers(self, key: str | None) -> dict[str, str]:
        """Make the headers: the API's version, and the key where there is one."""
        return {"anthropic-version": _VERSION} | ({"x-api-key": key} if key else {})


def _encode_effort(options: RequestOptions) -> dict[str, Any]:
    """Make the settings of thinking; models before Opus 4.6 take a budget, which counts within the longest answer."""
    if options.effort is not None and options.quirks.effort_form == "budget":
        budget = budget_of(options.effort, most=options.max_tokens * 3 // 4)
        if budget < _LEAST_BUDGET:
            return {"thinking": {"type": "disabled"}}
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}
    match asked_level(options):
        case "":
            return {}
        case "none":
            return {"thinking": {"type": "disabled"}}
        case level:
            return {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "low" if level == "minimal" else level},
            }


def _encode_tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.parameters,
    }


def _set_breakpoint(blocks: _Blocks) -> None:
    """Let the cache hold everything up to the last of the blocks. A request may have four of these."""
    blocks[-1] = {**blocks[-1], "cache_control": {"type": "ephemeral"}}


def _add(said: Said, messages: Sequence[Message], place: int, quirks: Quirks) -> None:
    """Add a message so that roles alternate; tool results stand before all else in theirs."""
    match message := messages[place]:
        case UserMessage():
            role, blocks = "user", _encode_user(message.content, quirks)
        case AssistantMessage():
            role, blocks = "assistant", _encode_assistant(message.content)
        case ToolResult():
            role, blocks = "user", [_encode_result(message, quirks)]
    if not blocks:
        return  # nothing is left of the message, and an empty one is refused
    if said and said[-1]["role"] == role:
        blocks = [*said.pop()["content"], *blocks]
    said.append({"role": role, "content": blocks})


def _encode_user(content: Sequence[Text | Image], quirks: Quirks) -> _Blocks:
    return _encode_prose(content, quirks) or [{"type": "text", "text": "(empty message)"}]


def _encode_prose(content: Sequence[Text | Image], quirks: Quirks) -> _Blocks:
    """Make blocks of texts and pictures; a text of nothing but space is left out, the API refuses it."""
    blocks: _Blocks = []
    for part in content:
        can_be_shown = quirks.sees_images and getattr(part, "media_type", "") in _IMAGE_TYPES
        if isinstance(part, Image) and can_be_shown:
            source = {"type": "base64", "media_type": part.media_type, "data": base64_of(part)}
            blocks.append({"type": "image", "source": source})
        elif (text := without_pictures([part])[0].text).strip():
            blocks.append({"type": "text", "text": text})
    return blocks


def _encode_result(result: ToolResult, quirks: Quirks) -> dict[str, Any]:
    output = result.output if result.output.strip() else "(no output)"
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": _plain(result.call_id),
        "content": output,
    }
    if result.images:
        block["content"] = _encode_prose((Text(text=output), *result.images), quirks)
    if result.is_error:
        block["is_error"] = True
    return block


def _encode_assistant(parts: Sequence[AssistantPart]) -> _Blocks:
    return [block for part in parts if (block := _encode_part(part)) is not None]


def _encode_part(part: AssistantPart) -> dict[str, Any] | None:
    match part:
        case Text():
            return {"type": "text", "text": part.text} if part.text.strip() else None
        case Thinking():
            return _encode_thinking(part)
        case ToolCall():
            return {
                "type": "tool_use",
                "id": _plain(part.id),
                "name": _plain(part.name)[:_LONGEST_NAME],
                "input": part.arguments,
            }


def _encode_thinking(part: Thinking) -> dict[str, Any] | None:
    """Make the block just as it came; thinking of another maker, or without its proof, is refused."""
    if part.provider != AnthropicAdapter.name:
        return None
    if part.redacted:
        return {"type": "redacted_thinking", "data": part.redacted}
    if part.signature:
        return {"type": "thinking", "thinking": part.text, "signature": part.signature}
    return None


def _plain(name: str) -> str:
    """Return an id or name that the API takes; those of another provider may hold dots or colons."""
    return _NOT_IN_NAMES.sub("_", name)


def _index(frame: Frame) -> int | None:
    index = frame.get("index")
    return index if isinstance(index, int) else None


def _begin_block(block: dict[str, Any], index: int | None, draft: Assembly) -> Iterator[Event]:
    """Read a block as it begins: mostly empty, whole in an answer that is not streamed."""
    match block.get("type"):
        case "text":
            yield from draft.add_text(as_text(block.get("text")))
        case "thinking":
            yield from draft.add_thinking(as_text(block.get("thinking")))
            if signature := as_text(block.get("signature")):
                draft.sign_thinking(signature)
        case "redacted_thinking":
            draft.add_redacted(as_text(block.get("data")))
        case "tool_use":
            yield from draft.add_call_delta(
                index,
                id=as_text(block.get("id")),
                name=as_text(block.get("name")),
                arguments=as_object(block.get("input")) or None,
            )
        case _:
            pass


def _decode_delta(delta: dict[str, Any], index: int | None, draft: Assembly) -> Iterator[Event]:
    match delta.get("type"):
        case "text_delta":
            yield from draft.add_text(as_text(delta.get("text")))
        case "thinking_delta":
            yield from draft.add_thinking(as_text(delta.get("thinking")))
        case "signature_delta":
            draft.sign_thinking(as_text(delta.get("signature")))
        case "input_json_delta" if draft.has_call_at(index):  # others belong to unknown blocks
            yield from draft.add_call_delta(index, arguments=as_text(delta.get("partial_json")))
        case _:
            pass


def _decode_whole(frame: Frame, draft: Assembly) -> Iterator[Event]:
    for index, block in enumerate(as_list(frame.get("content"))):
        yield from _begin_block(as_object(block), index, draft)
        draft.end_part()
    _note_stop(frame, draft)
    _note_usage(frame, draft)
    draft.end()


def _note_stop(holder: dict[str, Any], draft: Assembly) -> None:
    if reason := as_text(holder.get("stop_reason")):
        draft.stop(reason)


def _note_usage(holder: dict[str, Any], draft: Assembly) -> None:
    """Note the tokens. The API counts those read from and written to its cache apart from the input.

    Counts are cumulative and come twice; a server may leave some out, or send zero the first time.
    """
    usage, known = as_object(holder.get("usage")), draft.usage

    def count(field: str, so_far: int) -> int:
        return max(so_far, as_count(usage.get(field)) or 0)

    fresh = known.input_tokens - known.cached_tokens - known.cache_write_tokens
    read = count("cache_read_input_tokens", known.cached_tokens)
    written = count("cache_creation_input_tokens", known.cache_write_tokens)
    draft.set_usage(
        input_tokens=count("input_tokens", fresh) + read + written,
        output_tokens=count("output_tokens", known.output_tokens),
        cached_tokens=read,
        cache_write_tokens=written,
    )


#: Anthropic itself. Another address given for it is any server that speaks this format.
PROVIDER = Provider(
    name="anthropic",
    wire="anthropic",
    endpoint="https://api.anthropic.com",
    model="claude-sonnet-5-5",
    key_variables=CREDENTIALS["anthropic"],
    endpoint_variables=("ANTHROPIC_BASE_URL",),
    quirks=AnthropicAdapter.quirks,
)
