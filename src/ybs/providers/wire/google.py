"""Google's wire format: `models/NAME:streamGenerateContent`, server-sent events.

https://ai.google.dev/api/generate-content
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import quote

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
from ybs.providers.wire.loose_json import as_list, as_object, as_text, at, count_at
from ybs.providers.wire.pictures import base64_of, without_pictures
from ybs.providers.wire.quirks import Quirks

#: Stands for the signature of a call that another model made; Gemini 3 refuses the first call of a message without one.
#: https://ai.google.dev/gemini-api/docs/thought-signatures
_UNSIGNED: Final = "skip_thought_signature_validator"
#: Levels that Gemini does not have, and the nearest that it has.
_LEVELS: Final = {"none": "minimal", "xhigh": "high", "max": "high"}
_LARGEST_BUDGET: Final = 24_576
_VERSION: Final = re.compile(r"/v\d\w*$")
#: Parts of a message, as the API names them.
_Parts = list[dict[str, Any]]


class GoogleAdapter:
    """Gemini's own format. The model and whether it streams stand in the path."""

    name = "google"
    framing: Framing = "sse"
    messages_field = "contents"
    listing = ModelListing("/models?pageSize=1000", "models", "name")
    quirks = Quirks(answer_schema="with_tools")

    def __init__(self) -> None:
        self._history = EncodedHistory()

    @staticmethod
    def base(endpoint: str) -> str:
        """Return the address with `/v1beta`, unless it ends with a version."""
        host = re.sub(r"/models/[^/]*$", "", without(endpoint, "/models"))
        return host if _VERSION.search(host) else f"{host}/v1beta"

    def path(self, options: RequestOptions) -> str:
        """Return the path of the call."""
        model = options.model if "/" in options.model else f"models/{options.model}"
        call = ":streamGenerateContent?alt=sse" if options.stream else ":generateContent"
        return f"/{quote(model)}{call}"

    def encode(self, request: Request, options: RequestOptions) -> dict[str, Any]:
        """Make the request body."""
        quirks = options.quirks
        settings: dict[str, Any] = {"maxOutputTokens": options.max_tokens}
        if options.temperature is not None and quirks.accepts_temperature:
            settings["temperature"] = options.temperature
        if thinking := _encode_effort(options):
            settings["thinkingConfig"] = thinking
        if options.answer_schema is not None:
            settings["responseMimeType"] = "application/json"
            settings["responseJsonSchema"] = options.answer_schema
        add = partial(_add, quirks=quirks)
        body: dict[str, Any] = {
            "contents": self._history.said(request.messages, add, first=[], terms=quirks),
            "generationConfig": settings,
        }
        if request.system.strip():
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        if request.tools:
            tools = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "parametersJsonSchema": tool.parameters,
                }
                for tool in request.tools
            ]
            body["tools"] = [{"functionDeclarations": tools}]
        return with_extra(body, quirks.extra_body)

    def decode(self, frame: Frame, draft: Assembly) -> Iterator[Event]:
        """Put a piece of the answer, or a whole one, into the draft: both have one shape."""
        candidate = as_object(at(frame, "candidates.0"))
        for part in as_list(as_object(candidate.get("content")).get("parts")):
            yield from _decode_part(as_object(part), draft)
        if usage := as_object(frame.get("usageMetadata")):
            _note_usage(usage, draft)
        if reason := as_text(candidate.get("finishReason")):
            draft.stop(reason, as_text(candidate.get("finishMessage")))
        elif reason := as_text(at(frame, "promptFeedback.blockReason")):
            draft.stop("refusal", reason)

    def headers(self, key: str | None) -> dict[str, str]:
        """Make the headers: the key where there is one."""
        return {"x-goog-api-key": key} if key else {}


def _encode_effort(options: RequestOptions) -> dict[str, Any]:
    """Make the settings of thinking: from Gemini 3 on a level, before that a budget."""
    quirks = options.quirks
    settings: dict[str, Any] = {"includeThoughts": True} if quirks.shows_thinking else {}
    if options.effort is not None and quirks.effort_form == "budget":
        settings["thinkingBudget"] = budget_of(options.effort, most=_LARGEST_BUDGET)
    elif level := asked_level(options):
        settings["thinkingLevel"] = _LEVELS.get(level, level).upper()
    return settings


def _add(said: Said, messages: Sequence[Message], place: int, quirks: Quirks) -> None:
    """Add a message. The results of one answer's calls stand together in one message, as the API wants it."""
    match message := messages[place]:
        case UserMessage():
            role, parts = "user", _encode_prose(message.content, quirks) or [{"text": " "}]
        case AssistantMessage():
            role, parts = "model", _encode_assistant(message)
        case ToolResult():
            role, parts = "user", _encode_result(message, quirks)
    if not parts:
        return  # only thinking is left of it
    if said and said[-1]["role"] == role:
        parts = [*said.pop()["parts"], *parts]
    said.append({"role": role, "parts": parts})


def _encode_prose(content: Sequence[Text | Image], quirks: Quirks) -> _Parts:
    if not quirks.sees_images:
        content = without_pictures(content)
    return [
        {"inlineData": {"mimeType": part.media_type, "data": base64_of(part)}}
        if isinstance(part, Image)
        else {"text": part.text}
        for part in content
        if isinstance(part, Image) or part.text
    ]


def _encode_result(result: ToolResult, quirks: Quirks) -> _Parts:
    field = "error" if result.is_error else "output"
    answer = {"id": result.call_id, "name": result.name, "response": {field: result.output}}
    return [{"functionResponse": answer}, *_encode_prose(result.images, quirks)]


def _encode_assistant(message: AssistantMessage) -> _Parts:
    """Make the parts. A thought goes back as the signature of the call that followed it, never as text."""
    parts: _Parts = []
    signature = "" if any(map(_signature_of, message.content)) else _UNSIGNED
    for part in message.content:
        if isinstance(part, ToolCall):
            call = {"id": part.id, "name": part.name, "args": part.arguments}
            parts.append({"functionCall": call})
            if signature:
                parts[-1]["thoughtSignature"] = signature
            signature = ""
        elif isinstance(part, Text) and part.text:
            parts.append({"text": part.text})
        else:
            signature = _signature_of(part) or signature
    return parts


def _signature_of(part: object) -> str:
    if isinstance(part, Thinking) and part.provider == GoogleAdapter.name:
        return part.signature
    return ""


def _decode_part(part: dict[str, Any], draft: Assembly) -> Iterator[Event]:
    if call := as_object(part.get("functionCall")):
        if signature := as_text(part.get("thoughtSignature")):
            draft.sign_thinking(signature)
        draft.end_part()
        arguments = call.get("args")
        yield from draft.add_call(
            id=as_text(call.get("id")),
            name=as_text(call.get("name")),
            arguments=as_text(arguments) or as_object(arguments),
        )
    elif text := as_text(part.get("text")):
        add = draft.add_thinking if part.get("thought") is True else draft.add_text
        yield from add(text)


def _note_usage(usage: dict[str, Any], draft: Assembly) -> None:
    given = count_at(usage, "promptTokenCount")
    said, thought = count_at(usage, "candidatesTokenCount"), count_at(usage, "thoughtsTokenCount")
    draft.set_usage(
        input_tokens=None if given is None else given + (count_at(usage, "toolUsePromptTokenCount") or 0),
        output_tokens=None if said is None and thought is None else (said or 0) + (thought or 0),
        cached_tokens=count_at(usage, "cachedContentTokenCount"),
    )  # fmt: skip


#: Google's Gemini API. Another address given for it is any server that speaks this format.
PROVIDER = Provider(
    name="google",
    wire="google",
    endpoint="https://generativelanguage.googleapis.com",
    model="gemini-3.8-flash",
    key_variables=CREDENTIALS["google"],
    endpoint_variables=("GOOGLE_GEMINI_BASE_URL",),
    quirks=GoogleAdapter.quirks,
)
