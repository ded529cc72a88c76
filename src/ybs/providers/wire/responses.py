"""OpenAI's Responses format: `/responses`, server-sent events; the newest models reason between tool calls only here.

Nothing is stored at the provider: reasoning comes encrypted and is sent back so.
https://platform.openai.com/docs/api-reference/responses
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from msgspec.json import decode

from ybs.core.errors import ProviderDown
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
from ybs.core.ports import Request
from ybs.core.remedies import Remedy
from ybs.providers.wire.adapter import (
    Adapter,
    EncodedHistory,
    Frame,
    Framing,
    ModelListing,
    RequestOptions,
    Said,
    named_schema,
    with_extra,
    with_path,
    without,
)
from ybs.providers.wire.assemble import Assembly
from ybs.providers.wire.effort import asked_level
from ybs.providers.wire.loose_json import as_list, as_object, as_text, at, count_at
from ybs.providers.wire.pictures import base64_of, without_pictures
from ybs.providers.wire.quirks import Quirks

_LONGEST_ID: Final = 64
_TEXTS: Final = ("response.output_text.delta", "response.refusal.delta")
_THOUGHTS: Final = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_ENDS: Final = ("response.completed", "response.incomplete")

#: The whole response has come already, in one frame, so it may be as long as it is.
_NO_LIMIT: Final = 10_000_000


class ResponsesAdapter(Adapter):
    """OpenAI Responses, streamed as typed events."""

    name = "openai-responses"
    framing: Framing = "sse"
    messages_field = "input"
    listing = ModelListing()
    quirks = Quirks(answer_schema="with_tools")

    def __init__(self) -> None:
        self._history = EncodedHistory()

    @staticmethod
    def base(endpoint: str) -> str:
        """Return the address with `/v1`, unless it has a path of its own."""
        return with_path(without(endpoint, "/responses"), "/v1")

    def path(self, _options: RequestOptions) -> str:
        """Return the path of the call."""
        return "/responses"

    def encode(self, request: Request, options: RequestOptions) -> dict[str, Any]:
        """Make the request body."""
        quirks = options.quirks
        add = partial(_add, quirks=quirks, account=options.account)
        terms = (quirks, options.account)
        body: dict[str, Any] = {
            "model": options.model,
            "input": self._history.said(request.messages, add, first=[], terms=terms),
            "max_output_tokens": options.max_tokens,
            "store": False,
            "stream": options.stream,
        }
        if request.system:
            body["instructions"] = request.system
        if quirks.shows_thinking:
            body["include"] = ["reasoning.encrypted_content"]
            body["reasoning"] = {"summary": "auto"}
        if options.answer_schema is not None:
            schema = named_schema(options.answer_schema)
            body["text"] = {"format": {"type": "json_schema", **schema}}
        if level := quirks.reasoning_effort or asked_level(options):
            body["reasoning"] = body.get("reasoning", {}) | {"effort": level}
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in request.tools
            ]
            if quirks.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = quirks.parallel_tool_calls
        if options.temperature is not None and quirks.accepts_temperature:
            body["temperature"] = options.temperature
        return with_extra(body, quirks.extra_body)

    def decode(self, frame: Frame, draft: Assembly) -> Iterator[Event]:
        """Put an event of the stream, or a whole response, into the draft."""
        kind = as_text(frame.get("type"))
        if draft.has_ended:
            return  # a piece that comes behind the whole response would be in it twice
        if kind in _TEXTS:
            yield from draft.add_text(as_text(frame.get("delta")))
        elif kind in _THOUGHTS:
            yield from draft.add_thinking(as_text(frame.get("delta")))
        elif kind in _ENDS:
            yield from _decode_response(as_object(frame.get("response")), draft)
        elif frame.get("object") == "response":
            yield from _decode_response(frame, draft)
        else:
            yield from _decode_item(kind, frame, draft)


def _add(said: Said, messages: Sequence[Message], place: int, quirks: Quirks, account: str) -> None:
    match message := messages[place]:
        case UserMessage():
            content = _encode_parts(message.content, quirks)
            said.append({"type": "message", "role": "user", "content": content})
        case AssistantMessage():
            said.extend(item for part in message.content if (item := _encode_item(part, account)))
        case ToolResult():
            images = _encode_parts(message.images, quirks)
            text = {"type": "input_text", "text": message.output}
            output = [text, *images] if images else message.output
            call_id = _wire_id(message.call_id)
            said.append({"type": "function_call_output", "call_id": call_id, "output": output})


def _encode_parts(content: Sequence[Text | Image], quirks: Quirks) -> list[dict[str, Any]]:
    if not quirks.sees_images:
        content = without_pictures(content)
    return [
        {"type": "input_text", "text": part.text}
        if isinstance(part, Text)
        else {
            "type": "input_image",
            "detail": "auto",
            "image_url": f"data:{part.media_type};base64,{base64_of(part)}",
        }
        for part in content
    ]


def _encode_item(part: AssistantPart, account: str) -> dict[str, Any] | None:
    match part:
        case Text():
            return (
                {"type": "message", "role": "assistant", "content": part.text}
                if part.text
                else None
            )
        case ToolCall():
            return {
                "type": "function_call",
                "call_id": _wire_id(part.id),
                "name": part.name,
                "arguments": bytes(part.arguments).decode(),
            }
        case Thinking():
            return _encode_reasoning(part, account)


def _encode_reasoning(part: Thinking, account: str) -> dict[str, Any] | None:
    """Make the item as it came; reasoning of another format or account, or without its encrypted content, is not sent."""
    sealed_for, _, item = part.signature.rpartition("|")
    item_id, _, encrypted = item.partition(":")
    if part.provider != ResponsesAdapter.name or sealed_for != account or not encrypted:
        return None
    summary = [{"type": "summary_text", "text": part.text}] if part.text else []
    return {
        "type": "reasoning",
        "id": item_id,
        "summary": summary,
        "encrypted_content": encrypted,
    }


def _wire_id(call_id: str) -> str:
    """Return an id that the API takes; always the same one for the same call."""
    if len(call_id) <= _LONGEST_ID:
        return call_id
    from hashlib import sha256  # only after a switch of provider

    return sha256(call_id.encode()).hexdigest()


def _decode_item(kind: str, frame: Frame, draft: Assembly) -> Iterator[Event]:
    """Read how an item begins, goes on and ends; what repeats the deltas, and what may come one day, is passed over."""
    place = frame.get("output_index")
    index = place if isinstance(place, int) else None
    match kind:
        case "response.output_item.added":
            yield from _begin_item(as_object(frame.get("item")), index, draft)
        case "response.function_call_arguments.delta" if draft.has_call_at(index):
            yield from draft.add_call_delta(index, arguments=as_text(frame.get("delta")))
        case "response.function_call_arguments.done" if draft.has_call_at(index):
            yield from _fill_call(frame, index, draft)
        case "response.reasoning_summary_part.added" if frame.get("summary_index"):
            yield from draft.add_thinking("\n\n")
        case "response.output_item.done":
            item = as_object(frame.get("item"))
            if item.get("type") == "function_call":
                yield from _fill_call(item, index, draft)
            _end_item(item, draft)
        case _:
            pass


def _begin_item(item: dict[str, Any], index: int | None, draft: Assembly) -> Iterator[Event]:
    draft.end_part()
    if item.get("type") == "function_call":
        yield from draft.add_call_delta(
            index,
            id=as_text(item.get("call_id")),
            name=as_text(item.get("name")),
            arguments=as_text(item.get("arguments")),
        )


def _fill_call(holder: dict[str, Any], index: int | None, draft: Assembly) -> Iterator[Event]:
    """Read the whole arguments of a call where none have come in pieces, as some servers send them."""
    if not draft.has_arguments_at(index):
        yield from draft.add_call_delta(
            index,
            id=as_text(holder.get("call_id")),
            name=as_text(holder.get("name")),
            arguments=as_text(holder.get("arguments")),
        )


def _end_item(item: dict[str, Any], draft: Assembly) -> None:
    if item.get("type") == "reasoning" and (sealed := as_text(item.get("encrypted_content"))):
        mark = f"{draft.account}|" if draft.account else ""
        draft.sign_thinking(f"{mark}{as_text(item.get('id'))}:{sealed}")
    draft.end_part()


def _decode_response(response: dict[str, Any], draft: Assembly) -> Iterator[Event]:
    """Read the whole response, which repeats what was streamed where anything was."""
    items = as_list(response.get("output"))
    if draft.is_empty:
        for number, item in enumerate(items):
            yield from _decode_whole(as_object(item), number, draft)
    elif response.get("status") != "incomplete":
        _compare(items, draft)
    _finish(response, draft)


def _compare(items: list[Any], draft: Assembly) -> None:
    """Raise ProviderDown when the stream and the final response disagree; some servers leave parts of the latter out."""
    whole = Assembly(draft.model, draft.wire, max_tokens=_NO_LIMIT)
    for number, item in enumerate(items):
        for _ in _decode_whole(as_object(item), number, whole):
            pass  # it was shown as it came
    said, streamed = whole.message(), draft.message()
    is_other_text = said.text.strip() and said.text.split() != streamed.text.split()
    if is_other_text or (said.calls and _asked(said) != _asked(streamed)):
        raise ProviderDown(
            f"{draft.model}: pieces of the answer are missing, doubled or in the wrong order.",
            remedies=(Remedy("try_again"),),
        )


def _asked(message: AssistantMessage) -> list[tuple[str, Any]]:
    """Return the calls of a message in a comparable form, however their JSON is written."""
    return [(call.name, call.invalid or decode(call.arguments)) for call in message.calls]


def _decode_whole(item: dict[str, Any], index: int, draft: Assembly) -> Iterator[Event]:
    yield from _begin_item(item, index, draft)
    if item.get("type") == "reasoning":
        texts = [as_text(each) for each in as_list(item.get("summary"))]
        yield from draft.add_thinking("\n\n".join(texts) or as_text(item.get("content")))
    for part in as_list(item.get("content")) if item.get("type") == "message" else ():
        yield from draft.add_text(as_text(part) or as_text(as_object(part).get("refusal")))
    _end_item(item, draft)


def _finish(response: dict[str, Any], draft: Assembly) -> None:
    """Note usage and why it ended. A response that failed is an error of the stream and does not come here."""
    draft.set_usage(
        input_tokens=count_at(response, "usage.input_tokens"),
        output_tokens=count_at(response, "usage.output_tokens"),
        cached_tokens=count_at(response, "usage.input_tokens_details.cached_tokens"),
    )
    status = as_text(response.get("status")).replace("in_progress", "") or "completed"
    why = as_text(at(response, "incomplete_details.reason")) or "max_output_tokens"
    draft.stop(why if status == "incomplete" else status)
    draft.end()
