"""How hard a model is to think: one setting, as each wire format says it."""

from typing import Any, cast

import msgspec

from rows import every_row
from scripted import OpenAIServer
from ybs.config.host import Host
from ybs.config.schema import Config, Effort, Endpoint, LlmSettings
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.builtin import WIRES
from ybs.providers.registry import create_model
from ybs.providers.wire.adapter import RequestOptions
from ybs.providers.wire.effort import level_of
from ybs.providers.wire.quirks import Quirks
from ybs.providers.wires import adapter_of

REQUEST = Request("", [UserMessage.of("hi")])


def asked(wire: str, effort: Effort | None, model: str = "m", **quirks: Any) -> dict[str, Any]:
    """Return what a request says beside one that leaves the effort to the model."""
    adapter = adapter_of(wire)
    terms = msgspec.structs.replace(adapter.quirks, **quirks)
    options = RequestOptions(model=model, quirks=terms, max_tokens=8192, temperature=0.5)
    bare = adapter.encode(REQUEST, options)
    body = adapter.encode(REQUEST, msgspec.structs.replace(options, effort=effort))
    return {key: body.get(key) for key in {*body, *bare} if body.get(key) != bare.get(key)}


def google(**thinking: Any) -> dict[str, Any]:
    settings = {"maxOutputTokens": 8192, "temperature": 0.5}
    return {
        "generationConfig": settings | {"thinkingConfig": {"includeThoughts": True, **thinking}}
    }


ADAPTIVE = {"type": "adaptive", "display": "summarized"}


@every_row(
    ("wire", "effort", "quirks", "expected"),
    [
        ("openai", "high", {}, {"reasoning_effort": "high"}),
        ("openai", "none", {}, {"reasoning_effort": "none"}),
        ("openai", 9_000, {}, {"reasoning_effort": "medium"}),
        ("openai", "max", {"efforts": ("low", "high")}, {"reasoning_effort": "high"}),
        ("openai", "low", {"effort_form": "object"}, {"reasoning": {"effort": "low"}}),
        ("openai", 9_000, {"effort_form": "object"}, {"reasoning": {"max_tokens": 9_000}}),
        ("openai", "high", {"effort_form": "no"}, {}),
        ("mistral", "high", {}, {"reasoning_effort": "high"}),
        ("openai-responses", "xhigh", {}, {"reasoning": {"summary": "auto", "effort": "xhigh"}}),
        ("ollama", "none", {}, {"think": False}),
        ("ollama", "high", {}, {"think": True}),
        ("google", "low", {}, google(thinkingLevel="LOW")),
        ("google", "none", {}, google(thinkingLevel="MINIMAL")),
        ("google", "low", {"effort_form": "budget"}, google(thinkingBudget=4_096)),
        ("google", 0, {"effort_form": "budget"}, google(thinkingBudget=0)),
        ("anthropic", "none", {}, {"thinking": {"type": "disabled"}}),
        (
            "anthropic",
            "minimal",
            {},
            {"thinking": ADAPTIVE, "output_config": {"effort": "low"}, "temperature": None},
        ),
        (
            "anthropic",
            "high",
            {"effort_form": "budget"},
            {"thinking": {"type": "enabled", "budget_tokens": 6_144}, "temperature": None},
        ),
        ("anthropic", "none", {"effort_form": "budget"}, {"thinking": {"type": "disabled"}}),
    ],
)
def test_each_format_says_it_in_its_own_way(wire, effort, quirks, expected):
    assert asked(wire, effort, **quirks) == expected


def test_ollama_gives_a_level_to_the_models_that_take_one():
    for effort, level in {"high": "high", "minimal": "low", "none": "low", "max": "high"}.items():
        assert asked("ollama", cast("Effort", effort), model="gpt-oss:20b") == {"think": level}


@every_row("wire", WIRES)
def test_an_effort_that_is_not_set_is_left_to_the_model(wire: str):
    assert asked(wire, None) == {}


@every_row(
    ("effort", "taken", "level"),
    [
        ("xhigh", ("low", "high"), "high"),
        ("none", ("low", "high"), "low"),
        ("minimal", ("none", "high"), "high"),
        ("none", ("none", "high"), "none"),
        ("low", (), "low"),
        (10**6, (), "max"),
    ],
)
def test_the_nearest_level_is_asked_for(effort: Effort, taken: tuple[str, ...], level: str):
    assert level_of(effort, taken) == level


@every_row(
    ("wire", "model", "form"),
    [
        ("anthropic", "claude-sonnet-4-5", "budget"),
        ("anthropic", "claude-sonnet-5-5", "level"),
        ("google", "gemini-2.5-flash", "budget"),
        ("google", "gemini-3.8-flash", "level"),
        ("openai", "gpt-4o", "level"),
        ("openai", "of-nobody-knows-whom", "level"),
    ],
)
def test_what_is_known_of_a_model_decides_on_the_form(wire: str, model: str, form: str):
    own = Endpoint(endpoint="http://127.0.0.1:9/v1", wire=wire)
    config = Config(
        llm=LlmSettings(provider="own", model=model, effort="high"), providers={"own": own}
    )
    made: Any = create_model(Host.of({}), config)
    assert made.quirks.effort_form == form
    assert isinstance(made.quirks, Quirks)


async def test_a_model_that_is_known_not_to_think_is_told_nothing():
    async with OpenAIServer(["fine"]) as server:
        own = Endpoint(endpoint=server.url)
        config = Config(
            llm=LlmSettings(provider="own", model="gpt-4o", effort="high"), providers={"own": own}
        )
        model = create_model(Host.of({}), config)
        assert [event async for event in model.stream(REQUEST)]
        await model.aclose()
    assert "reasoning_effort" not in server.requests[0].body


def test_openrouter_is_known_by_its_address_and_the_person_may_say_otherwise():
    for changes, form in (({}, "object"), ({"effort_form": "level"}, "level")):
        own = Endpoint(endpoint="https://openrouter.ai/api/v1", api_key="k", quirks=changes)
        config = Config(llm=LlmSettings(provider="own", model="a/b"), providers={"own": own})
        made: Any = create_model(Host.of({}), config)
        assert made.quirks.effort_form == form
