"""Requests as the official SDKs' own types see them: `accept` fails for what they refuse or do not know.

The SDKs are slow to import, so each is imported inside the function that needs it.
"""

import types
import typing
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec


def accept(wire: str, body: Any) -> None:
    """Fail where a request body is not what the SDK of the wire format would send."""
    _CHECKS[wire](body)


@cache
def _adapter(hint: Any) -> Any:
    """Give what validates a type: slow to build, and needed as long as its lazy results are."""
    from pydantic import TypeAdapter

    return TypeAdapter(hint)


def _accept_typed(body: Any, hint: Any) -> None:
    forced(_adapter(hint).validate_python(body))
    assert unknown_keys(body, hint) == []


def _accept_openai(body: Any) -> None:
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    _accept_typed(body, CompletionCreateParamsStreaming)
    assert_every_call_is_answered(body["messages"])


def _accept_responses(body: Any) -> None:
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    _accept_typed(body, ResponseCreateParamsStreaming)
    asked = [item["call_id"] for item in body["input"] if item["type"] == "function_call"]
    answered = [item["call_id"] for item in body["input"] if item["type"] == "function_call_output"]
    assert asked == answered
    assert len({*asked}) == len(asked)


def _accept_anthropic(body: Any) -> None:
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

    _accept_typed(body, MessageCreateParamsStreaming)
    assert_anthropic_takes(body)


def assert_anthropic_takes(body: Any) -> None:
    """Check what the API insists on and no type says."""
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2)
    asked: set[str] = set()
    for message in body["messages"]:
        kinds = [block["type"] for block in message["content"]]
        assert kinds, "a message without content"
        assert kinds == sorted(kinds, key=lambda kind: kind != "tool_result") or (
            message["role"] == "assistant"
        )
        answered = {b["tool_use_id"] for b in message["content"] if b["type"] == "tool_result"}
        assert answered == asked
        asked = {b["id"] for b in message["content"] if b["type"] == "tool_use"}
        texts = [b["text"] for b in message["content"] if b["type"] == "text"]
        assert all(text.strip() for text in texts)
    assert not asked
    assert msgspec.json.encode(body).count(b'"cache_control"') <= 4


def _accept_google(body: Any) -> None:
    from google.genai.types import Content, GenerationConfig, Tool

    # Its types forbid fields that they do not know.
    rest = dict(body)
    contents: Any = _adapter(list[Content]).validate_python(rest.pop("contents"))
    Content.model_validate(rest.pop("systemInstruction"))
    GenerationConfig.model_validate(rest.pop("generationConfig"))
    _adapter(list[Tool]).validate_python(rest.pop("tools"))
    assert rest == {}
    assert all(first.role != second.role for first, second in pairwise(contents))
    for content, follower in pairwise(contents):
        called = [part.function_call.id for part in content.parts if part.function_call]
        answered = [p.function_response.id for p in follower.parts if p.function_response]
        assert called == answered


def _accept_mistral(body: Any) -> None:
    from mistralai.client.models import ChatCompletionStreamRequest as Asked
    from mistralai.client.models import ChatCompletionStreamRequestTypedDict as AskedDict

    Asked.model_validate(body)
    assert unknown_keys(body, AskedDict) == []
    assert_every_call_is_answered(body["messages"])
    roles = [message["role"] for message in body["messages"]]
    assert ("tool", "user") not in [*pairwise(roles)]
    ids = [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())]
    assert all(len(each) == 9 and each.isalnum() for each in ids)


def assert_every_call_is_answered(messages: Any) -> None:
    """Check that the results of an answer's calls stand right behind it, each once."""
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
        else:
            assert open_calls == []
            open_calls = [call["id"] for call in message.get("tool_calls", ())]
    assert open_calls == []


def _accept_ollama(body: Any) -> None:
    from ollama._types import ChatRequest  # what the client builds its body from

    parsed = ChatRequest.model_validate(body)
    lost = missing(body, parsed.model_dump(exclude_none=True, by_alias=True))
    # Of a schema the types know the plainest keywords only. The server knows these, its SDK does not: https://github.com/ollama/ollama/blob/main/api/types.go
    known = ("$.truncate", "$.shift")
    assert [key for key in lost if ".parameters." not in key and key not in known] == []


_CHECKS = {
    "openai": _accept_openai,
    "openai-responses": _accept_responses,
    "anthropic": _accept_anthropic,
    "google": _accept_google,
    "mistral": _accept_mistral,
    "ollama": _accept_ollama,
}


def missing(sent: Any, understood: Any, place: str = "$") -> list[str]:
    """List what was sent and did not come through the SDK's types: unknown keys."""
    if isinstance(sent, list):
        pairs = enumerate(zip(typing.cast("list[Any]", sent), understood, strict=True))
        return [each for at, (a, b) in pairs for each in missing(a, b, f"{place}[{at}]")]
    found: list[str] = []
    if isinstance(sent, dict):
        for key, value in typing.cast("dict[str, Any]", sent).items():
            here = f"{place}.{key}"
            if key in understood:
                found += missing(value, understood[key], here)
            elif value is not None:
                found.append(here)
    return found


@cache
def _fields(hint: Any) -> dict[str, Any] | None:
    """Return the fields of a TypedDict with their types, or None for any other type."""
    return typing.get_type_hints(hint) if hasattr(hint, "__required_keys__") else None


def unknown_keys(value: Any, hint: Any, place: str = "$") -> list[str]:
    """List the keys of plain data that a TypedDict does not know. Pydantic passes over them."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        fitting = [each for each in arguments if _may_be(value, each)]
        return min(
            (unknown_keys(value, each, place) for each in fitting), key=len, default=list[str]()
        )
    if isinstance(value, list) and arguments:
        items = enumerate(typing.cast("list[Any]", value))
        return [k for at, each in items for k in unknown_keys(each, arguments[0], f"{place}[{at}]")]
    if not isinstance(value, dict) or (fields := _fields(hint)) is None:
        return []
    found: list[str] = []
    for key, each in typing.cast("dict[str, Any]", value).items():
        here = f"{place}.{key}"
        found += unknown_keys(each, fields[key], here) if key in fields else [here]
    return found


def _may_be(value: Any, hint: Any) -> bool:
    """Return whether a member of a union could be meant: its literal fields, and its shape, must agree."""
    fields = _fields(hint)
    if isinstance(value, list):
        return bool(typing.get_args(hint)) and typing.get_origin(hint) is not typing.Literal
    if not isinstance(value, dict) or fields is None:
        return isinstance(value, dict) == (fields is not None)
    given = typing.cast("dict[str, Any]", value)
    literals = {name: typing.get_args(fields.get(name)) for name in ("type", "role")}
    return all(given.get(name) in known for name, known in literals.items() if known)


def forced(value: Any) -> Any:
    """Walk through everything, so that lazy validation happens."""
    if isinstance(value, Mapping):
        mapping = typing.cast("Mapping[str, Any]", value)
        return {key: forced(each) for key, each in mapping.items()}
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return value
    return [forced(each) for each in typing.cast("Iterable[Any]", value)]
