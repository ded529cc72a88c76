"""The OpenAI wire format: `/chat/completions`, as OpenAI and most other servers speak it.

https://platform.openai.com/docs/api-reference/chat
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ybs.config.presets import CREDENTIALS
from ybs.core.events import Event
from ybs.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ybs.core.ports import Request
from ybs.providers.registry import Provider
from ybs.providers.wire.adapter import (
    Adapter,
    EncodedHistory,
    Frame,
    Framing,
    ModelListing,
    RequestOptions,
    Said,
    function_tool,
    named_schema,
    with_extra,
    with_path,
    without,
)
from ybs.providers.wire.assemble import Assembly
from ybs.providers.wire.effort import asked_level
from ybs.providers.wire.loose_json import as_list, as_object, as_text, at, count_at, thought_in
from ybs.providers.wire.pictures import base64_of, caption_of, pictures_before, without_pictures
from ybs.providers.wire.quirks import Quirks

_LONGEST_ID: Final = 40  # OpenAI refuses longer ones; ids of other servers may be


class OpenAIAdapter(Adapter):
    """Chat completions, streamed as server-sent events."""

    name = "openai"
    framing: Framing = "sse"
    messages_field = "messages"
    listing = ModelListing()
    quirks = Quirks()

    def __init__(self) -> None:
        self._history = EncodedHistory()

    @staticmethod
    def base(endpoint: str) -> str:
        """Return the address with `/v1`, unless it has a path of its own."""
        return with_path(without(endpoint, "/chat/completions"), "/v1")

    def path(self, _options: RequestOptions) -> str:
        """Return the path of the call."""
        return "/chat/completions"

    def encode(self, request: Request, options: RequestOptions) -> dict[str, Any]:
        """Make the request body."""
        quirks = options.quirks
        body: dict[str, Any] = {
            "model": options.model,
            "messages": self._encode_messages(request, quirks),
        }
        if request.tools:
            body["tools"] = [function_tool(tool) for tool in request.tools]
            if quirks.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = quirks.parallel_tool_calls
        if options.answer_schema is not None:
            schema = named_schema(options.answer_schema)
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        level = quirks.reasoning_effort if request.tools else ""
        if level := level or asked_level(options):
            is_budget = isinstance(options.effort, int)
            asked = {"max_tokens": options.effort} if is_budget else {"effort": level}
            is_object = quirks.effort_form == "object"
            body |= {"reasoning": asked} if is_object else {"reasoning_effort": level}
        if quirks.max_tokens_field:
            body[quirks.max_tokens_field] = options.max_tokens
        if options.temperature is not None and quirks.accepts_temperature:
            body["temperature"] = options.temperature
        body["stream"] = options.stream
        if options.stream and quirks.sends_stream_options:
            body["stream_options"] = {"include_usage": True}
        grammar = {"grammar": options.grammar} if options.grammar else {}
        return with_extra(body | grammar, quirks.extra_body)

    def decode(self, frame: Frame, draft: Assembly) -> Iterator[Event]:
        """Put a `chat.completion.chunk`, or a whole `chat.completion`, into the draft."""
        _note_usage(frame, draft)
        if progress := as_object(frame.get("prompt_progress")):  # llama.cpp, where it was asked
            read, total = count_at(progress, "processed"), count_at(progress, "total")
            if read is not None and total:
                yield draft.note_reading(read, total)
        choices = frame.get("choices")
        choice = as_object(choices[0]) if isinstance(choices, list) and choices else {}  # pyright: ignore[reportUnknownArgumentType] - JSON
        message = choice.get("message") if draft.is_empty else None  # some repeat it all at the end
        yield from _decode_delta(as_object(choice.get("delta") or message), draft)
        if reason := as_text(choice.get("finish_reason")):
            native = as_text(choice.get("native_finish_reason"))  # OpenRouter says `stop` of it all
            is_native = draft.is_empty and bool(native)
            draft.stop(native if is_native else reason, as_text(at(choice, "error.message")))
        elif choice.get("message"):
            draft.stop("stop")  # a whole answer needs no reason

    def _encode_messages(self, request: Request, quirks: Quirks) -> Said:
        system = request.system
        first = [{"role": quirks.system_role, "content": system}] if system else []
        add = partial(_add, quirks=quirks)
        said = self._history.said(request.messages, add, first=first, terms=(system, quirks))
        _show(said, request.messages, len(request.messages), quirks)
        return said


def _add(said: Said, messages: Sequence[Message], place: int, quirks: Quirks) -> None:
    message = messages[place]
    if not isinstance(message, ToolResult):
        _show(said, messages, place, quirks)
    match message:
        case UserMessage():
            _append_user(said, _encode_user(message.content, quirks), quirks)
        case AssistantMessage():
            said.extend(_encode_assistant(message, quirks))
        case ToolResult():
            said.append(_encode_result(message, quirks))


def _show(said: Said, messages: Sequence[Message], place: int, quirks: Quirks) -> None:
    """Add a user message of the pictures of the tool results right before that place.

    A tool message takes text only, and every result must stand right behind its call, so the pictures
    follow the last result as if the person had sent them.
    """
    if images := pictures_before(messages, place):
        content = (Text(text=caption_of(images)), *images)
        _append_user(said, _encode_user(content, quirks), quirks)


def _append_user(said: Said, content: str | list[dict[str, Any]], quirks: Quirks) -> None:
    last = said[-1] if said else None
    if last and last["role"] == "tool" and quirks.wants_assistant_after_tool:
        said.append({"role": "assistant", "content": "Noted."})
    elif last and last["role"] == "user" and quirks.wants_alternating_roles:
        content = _join(last["content"], content)
        said.pop()
    said.append({"role": "user", "content": content})


def _join(
    first: str | list[dict[str, Any]], second: str | list[dict[str, Any]]
) -> str | list[dict[str, Any]]:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_as_parts(first), *_as_parts(second)]


def _as_parts(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _encode_user(content: tuple[Text | Image, ...], quirks: Quirks) -> str | list[dict[str, Any]]:
    if not quirks.sees_images:
        content = without_pictures(content)
    if all(isinstance(part, Text) for part in content):
        return "".join(part.text for part in content if isinstance(part, Text))
    return [_encode_part(part) for part in content]


def _encode_part(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    url = f"data:{part.media_type};base64,{base64_of(part)}"
    return {"type": "image_url", "image_url": {"url": url}}


def _encode_assistant(message: AssistantMessage, quirks: Quirks) -> Iterator[dict[str, Any]]:
    """Make the message; nothing at all where only thinking is left of it, which servers refuse."""
    said: dict[str, Any] = {"role": "assistant", "content": message.text}
    thought, calls = _thinking_of(message), message.calls
    if quirks.reasoning_sent_as and (thought or calls):  # DeepSeek wants it of each call, if empty
        said[quirks.reasoning_sent_as] = thought
    if calls:
        said["tool_calls"] = [_encode_call(call, quirks) for call in calls]
    if calls or message.text:
        yield said


def _thinking_of(message: AssistantMessage) -> str:
    thoughts = (part for part in message.content if isinstance(part, Thinking))
    return "".join(part.text for part in thoughts if part.provider == OpenAIAdapter.name)


def _encode_call(call: ToolCall, quirks: Quirks) -> dict[str, Any]:
    arguments = call.arguments if quirks.arguments_as_object else bytes(call.arguments).decode()
    return {
        "id": _wire_id(call.id, quirks),
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
        **quirks.call_extra,
    }


def _encode_result(result: ToolResult, quirks: Quirks) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": _wire_id(result.call_id, quirks),
        "content": result.output,
    }


def _wire_id(call_id: str, quirks: Quirks) -> str:
    """Return an id that the server takes; always the same one for the same call."""
    length = quirks.call_id_chars
    if not length and len(call_id) <= _LONGEST_ID:
        return call_id
    if len(call_id) == length and call_id.isalnum() and call_id.isascii():
        return call_id
    from hashlib import sha256  # only after a switch of provider

    return sha256(call_id.encode()).hexdigest()[: length or _LONGEST_ID]


def _decode_delta(delta: Mapping[str, Any], draft: Assembly) -> Iterator[Event]:
    if thought := thought_in(delta, draft.quirks.reasoning_fields):
        yield from draft.add_thinking(thought)
    content = delta.get("content")
    if isinstance(content, str):
        yield from draft.add_text(content)
    else:
        yield from _decode_content(content, draft)
    if refusal := delta.get("refusal"):
        yield from draft.add_text(as_text(refusal))
    for call in as_list(delta.get("tool_calls")):
        yield from _decode_call(as_object(call), draft)
    if call := as_object(delta.get("function_call")):  # as it was before tools
        yield from _decode_call({"index": 0, **call}, draft)


def _decode_content(content: Any, draft: Assembly) -> Iterator[Event]:
    """Read `content`: text, null, or a list of parts, where Mistral puts its thinking too."""
    for part in as_list(content) or (content,):
        if thought := as_object(part).get("thinking"):
            yield from draft.add_thinking(as_text(thought))
        else:
            yield from draft.add_text(as_text(part))


def _decode_call(call: dict[str, Any], draft: Assembly) -> Iterator[Event]:
    function = as_object(call.get("function")) or call  # some leave the envelope out
    index, arguments = call.get("index"), function.get("arguments")
    yield from draft.add_call_delta(
        index if isinstance(index, int) else None,
        id=as_text(call.get("id")),
        name=as_text(function.get("name")),
        arguments=arguments if isinstance(arguments, str) else as_object(arguments) or None,
    )


def _note_usage(frame: Frame, draft: Assembly) -> None:
    for field in draft.quirks.usage_fields:
        if usage := as_object(at(frame, field)):
            break
    else:
        return
    cached = count_at(
        usage, "prompt_tokens_details.cached_tokens", "prompt_cache_hit_tokens", "cache_n"
    )
    given = count_at(usage, "prompt_tokens", "input_tokens")
    processed = count_at(usage, "prompt_n")  # llama.cpp's `timings`: without what its cache had
    if given is None and processed is not None:
        given = processed + (cached or 0)
    elif given is not None and cached is not None and cached > given:
        given += cached  # a gateway that counts as Anthropic does
    draft.set_usage(
        input_tokens=given,
        output_tokens=count_at(usage, "completion_tokens", "output_tokens", "predicted_n"),
        cached_tokens=cached,
    )


#: OpenAI itself, by its newer format. Another address given for it is any server of chat completions.
PROVIDER = Provider(
    name="openai",
    wire="openai-responses",
    wire_elsewhere="openai",
    endpoint="https://api.openai.com/v1",
    model="gpt-6-sol",
    quirks=Quirks(answer_schema="with_tools"),
    key_variables=CREDENTIALS["openai"],
    endpoint_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
)
