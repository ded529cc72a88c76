"""The schema of an answer, as each wire format sends it, and what a refusal of it teaches."""

from typing import Any

from msgspec import Raw

from rows import every_row
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.wire.adapter import RequestOptions, named_schema
from ybs.providers.wire.quirks import Quirks, learn_schema
from ybs.providers.wires import adapter_of

SCHEMA = Raw(b'{"type":"object","properties":{},"additionalProperties":false}')
NAMED = {"name": "answer", "schema": SCHEMA, "strict": True}
REQUEST = Request("", [UserMessage.of("hi")])


@every_row(
    ("wire", "field", "expected"),
    [
        ("openai", "response_format", {"type": "json_schema", "json_schema": NAMED}),
        ("mistral", "response_format", {"type": "json_schema", "json_schema": NAMED}),
        ("openai-responses", "text", {"format": {"type": "json_schema", **NAMED}}),
        ("anthropic", "output_config", {"format": {"type": "json_schema", "schema": SCHEMA}}),
        ("ollama", "format", SCHEMA),
        (
            "google",
            "generationConfig",
            {
                "maxOutputTokens": 4096,
                "responseMimeType": "application/json",
                "responseJsonSchema": SCHEMA,
                "thinkingConfig": {"includeThoughts": True},
            },
        ),
    ],
)
def test_each_format_sends_it_in_its_own_way(wire: str, field: str, expected: Any):
    adapter = adapter_of(wire)
    options = RequestOptions(model="m", quirks=adapter.quirks, answer_schema=SCHEMA)
    assert adapter.encode(REQUEST, options)[field] == expected


def test_anthropic_sends_effort_and_schema_together():
    options = RequestOptions(model="m", effort="high", answer_schema=SCHEMA)
    body = adapter_of("anthropic").encode(REQUEST, options)
    assert body["output_config"].keys() == {"effort", "format"}


@every_row(
    ("schema", "is_strict"),
    [
        (b'{"type":"string"}', True),
        (b'{"type":"object"}', False),
        (b'{"type":"object","properties":{"a":{}},"additionalProperties":false}', False),
        (b'{"items":[{"type":"object","properties":{"a":{}}}]}', False),
        (
            b'{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}',
            True,
        ),
    ],
)
def test_only_what_openai_can_enforce_is_called_strict(schema: bytes, is_strict: bool):
    assert named_schema(Raw(schema))["strict"] is is_strict


@every_row(
    ("taken", "refusal", "has_tools", "learned"),
    [
        ("with_tools", "Function calling with a response mime type is unsupported", True, "alone"),
        ("with_tools", "output_config.format: Extra inputs are not permitted", False, "no"),
        ("alone", "Invalid schema for response_format 'answer'", False, "no"),
        ("alone", "Cannot use custom grammar constraints", True, "no"),
        ("no", "response_format", False, None),
        ("alone", "temperature must be at most 1", False, None),
    ],
)
def test_a_refusal_teaches(taken: Any, refusal: str, has_tools: bool, learned: str | None):
    found = learn_schema(Quirks(answer_schema=taken), refusal, has_tools=has_tools)
    assert (found and found.answer_schema) == learned
