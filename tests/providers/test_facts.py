"""Facts of a model: what servers tell, what the person states, and which of them counts."""

from typing import Any

import msgspec
import pytest
from raw_http import http

from rows import every_row
from ybs.config.host import Host
from ybs.config.schema import Config, LlmSettings
from ybs.config.sections import ModelEntry
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.catalog import CATALOG_DATE, FREE, ModelFacts, Price, facts_of, over
from ybs.providers.facts import fitting_temperature, in_props, in_row, in_show, stated
from ybs.providers.registry import create_model
from ybs.providers.remote import Terms

KEY = "sk-" + "d4" * 16
JSON = "application/json"
#: As the servers' own documentation shows them.
OPENROUTER = {
    "id": "maker/model",
    "context_length": 262_144,
    "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"]},
    "pricing": {"prompt": "0.0000025", "completion": "0.00001", "input_cache_read": "0.00000025"},
    "top_provider": {"context_length": 262_144, "max_completion_tokens": 32_768},
    "supported_parameters": ["max_tokens", "reasoning", "tools"],
}


def test_the_catalog_says_of_when_it_is():
    year, month = CATALOG_DATE.split("-")
    assert (len(year), 1 <= int(month) <= 12) == (4, True)


@every_row(
    ("row", "facts"),
    [
        (
            OPENROUTER,
            ModelFacts(
                window=262_144,
                max_output=32_768,
                price=Price(2.5, 10, 0.25),
                sees_images=True,
                thinks=True,
                accepts_temperature=False,
                calls_tools=True,
            ),
        ),
        ({"id": "m", "owned_by": "vllm", "max_model_len": 8192}, ModelFacts(window=8192)),
        (
            {"id": "m", "context_window": 131_072, "max_completion_tokens": 65_536},
            ModelFacts(window=131_072, max_output=65_536),
        ),
        (
            {"name": "models/g", "inputTokenLimit": 9, "outputTokenLimit": 3},
            ModelFacts(window=9, max_output=3),
        ),
        (
            {"id": "free", "pricing": {"prompt": "0", "completion": "0"}},
            ModelFacts(price=Price(0, 0, 0)),
        ),
        ({"id": "router", "pricing": {"prompt": "-1", "completion": "-1"}}, ModelFacts()),
        ({"id": "half", "pricing": {"prompt": "0.000001"}}, ModelFacts()),
        ({"id": "together", "pricing": {"input": 3, "output": 5}}, ModelFacts()),
        ({"max_model_len": "x", "pricing": [], "supported_parameters": 3}, ModelFacts()),
        ({}, ModelFacts()),
    ],
)
def test_a_row_of_a_list_of_models_is_read(row: dict[str, Any], facts: ModelFacts):
    assert in_row(row) == facts


def test_ollama_and_llama_cpp_tell_abilities():
    shown = in_show(
        {"capabilities": ["completion", "tools"], "model_info": {"a.context_length": 9}}
    )
    assert shown == ModelFacts(window=9, sees_images=False, thinks=False, calls_tools=True)
    assert in_show({}) == ModelFacts()
    props = {"default_generation_settings": {"n_ctx": 4096}, "modalities": {"vision": True}}
    assert in_props(props) == ModelFacts(window=4096, sees_images=True, takes_grammar=True)
    known = in_props({"model_path": "/m/Qwen3-4B-Q4_K_M.gguf"})
    assert known == ModelFacts(billions=4, thinks=True, calls_tools=True)


@every_row(
    "asked, billions, thinks, sent",
    [
        (None, 1.5, None, 0.0),
        (None, 4.5, False, 0.0),
        (None, 4.0, True, None),
        (None, 7.0, None, None),
        (None, None, None, None),
        (0.7, 1.5, None, 0.7),
    ],
)
def test_a_small_model_that_does_not_think_answers_without_chance(asked, billions, thinks, sent):
    assert fitting_temperature(asked, billions, ModelFacts(thinks=thinks)) == sent


def test_the_temperature_of_a_model_follows_from_its_name():
    names = ("llama3.2:3b", "qwen3:4b", "llama3.1:8b")
    made: list[Any] = [
        create_model(Host.of({}), Config(), provider="ollama", model=n, is_persons=True)
        for n in names
    ]
    assert [each._options.temperature for each in made] == [0, None, None]


def test_what_the_person_states_of_a_providers_model_goes_first():
    entries = {
        "m": ModelEntry(window=5),
        "far/m": ModelEntry(window=7, input_price=1, output_price=2),
    }
    config = Config(models=entries)
    assert stated(config, "near", "m") == ModelFacts(window=5)
    assert stated(config, "far", "m") == ModelFacts(window=7, price=Price(1, 2, 1))
    assert stated(config, "far", "other") == ModelFacts()
    known = over(stated(config, "far", "m"), facts_of("gpt-4.1"))
    assert (known.window, known.max_output, known.price) == (7, 32_768, Price(1, 2, 1))


def model_with(entry: ModelEntry, *, name: str = "gpt-4.1") -> Any:
    config = Config(
        llm=LlmSettings(provider="openai", model=name, effort="high"), models={name: entry}
    )
    return create_model(Host.of({"OPENAI_API_KEY": KEY}), config)


def test_stated_facts_make_the_model():
    price = {"input_price": 1.0, "output_price": 2.0, "cached_price": 0.1, "cache_write_price": 3.0}
    entry = ModelEntry(window=50_000, max_output=900, sees_images=False, calls_tools=False, **price)
    model = model_with(entry)
    assert (model.window, model.max_tokens) == (50_000, 900)
    assert model._terms.price == Price(1, 2, 0.1, 3)
    assert (model.quirks.sees_images, model.quirks.takes_tools) == (False, False)
    assert model_with(ModelEntry(input_price=1.0))._terms.price == facts_of("gpt-4.1").price


def test_stated_abilities_go_before_the_catalog():
    refusing, taking = ModelEntry(), ModelEntry(accepts_temperature=True, thinks=False)
    models = [model_with(entry, name="gpt-6-sol") for entry in (refusing, taking)]
    assert [each.quirks.accepts_temperature for each in models] == [False, True]
    assert [each._options.effort for each in models] == ["high", None]


def test_a_model_that_ollama_passes_on_is_not_free():
    names = ("qwen3:8b", "qwen3-coder:480b-cloud")
    made: list[Any] = [
        create_model(Host.of({}), Config(), provider="ollama", model=n, is_persons=True)
        for n in names
    ]
    assert [each._terms.price for each in made] == [FREE, None]


async def test_what_a_server_tells_is_used_but_not_against_the_person(serve, model_of):
    listed = http(msgspec.json.encode({"data": [{**OPENROUTER, "id": "m"}]}), type=JSON)
    server = await serve(http("{}", type=JSON), listed)
    model = model_of(server, terms=Terms(), max_tokens=100_000)
    assert await model.detect_window() == 262_144
    assert [each.path for each in server.asked] == ["/props", "/models"]
    assert (model.max_tokens, model._terms.price) == (32_768, Price(2.5, 10, 0.25))
    assert model.quirks.accepts_temperature is False
    own = ModelFacts(window=9_000, price=Price(1, 2, 1), accepts_temperature=True, max_output=7)
    server = await serve(http("{}", type=JSON), listed)
    kept = model_of(server, window=9_000, terms=Terms(price=FREE, stated=own, max_output=7))
    assert await kept.detect_window() == 9_000
    assert (kept.max_tokens, kept._terms.price) == (7, Price(1, 2, 1))
    assert kept.quirks.accepts_temperature is True


@pytest.mark.parametrize(("asks", "paths"), [(True, ["/models"]), (False, [])])
async def test_a_server_elsewhere_is_asked_only_for_what_is_missing(
    serve, model_of, monkeypatch: pytest.MonkeyPatch, asks: bool, paths: list[str]
):
    from ybs.providers import facts, remote

    for module in (facts, remote):
        monkeypatch.setattr(module, "is_local", lambda _host: False)
    server = await serve(http('{"data":[{"id":"m","context_length":5000}]}', type=JSON))
    model = model_of(server, window=128_000, terms=Terms(asks=asks))
    assert await model.detect_window() == (5000 if asks else 128_000)
    await model.detect_window()  # it said what it knows
    assert [each.path for each in server.asked] == paths


async def test_a_server_is_asked_for_the_window_before_it_fills(serve, model_of):
    from ybs.agent.window import Window

    def said(tokens: int) -> bytes:
        usage = {"prompt_tokens": tokens, "completion_tokens": 1}
        choice = {"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}
        return http(
            b"data: %s\n\ndata: [DONE]\n\n"
            % msgspec.json.encode({"choices": [choice], "usage": usage})
        )

    props = http('{"default_generation_settings":{"n_ctx":4000}}', type=JSON)
    server = await serve(said(100), said(2_000), props, said(2_100))
    model = model_of(server, window=8_000)
    watched = Window("own", model, lambda: ()).watching(model)
    windows: list[int] = []
    for _ in range(3):
        async for _ in watched.stream(Request("", [UserMessage.of("hi")])):
            pass
        windows.append(model.window)
    assert windows == [8_000, 8_000, 4_000]
    assert [each.path for each in server.asked][2] == "/props"
