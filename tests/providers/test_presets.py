"""Providers of whom only an address, a key and quirks are known: each is asked as it wants to be."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from raw_http import http

from hosts import this_host
from rows import every_row
from scripted import OpenAIServer
from ybs.config import presets
from ybs.config.host import Host
from ybs.config.presets import PRESETS
from ybs.config.schema import Config, Endpoint, LlmSettings
from ybs.core.errors import AuthError, ConfigError
from ybs.core.messages import AssistantMessage, UserMessage
from ybs.core.ports import Request
from ybs.providers.reachable import find_reachable, list_models, look
from ybs.providers.registry import create_model, find_provider, with_only_key
from ybs.providers.wires import clean_endpoint
from ybs.testing import call

KEY = "k" + "4" * 20
FAR = [name for name, preset in PRESETS.items() if not preset.start_advice]
REQUEST = Request("Be brief.", [UserMessage.of("hi")])


async def ask(model: Any, request: Request = REQUEST) -> None:
    assert [event async for event in model.stream(request)]
    await model.aclose()


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch):
    """Give a function that puts a preset at a server of a test."""

    def place(name: str, endpoint: str) -> None:
        moved = replace(PRESETS[name], endpoint=endpoint)
        monkeypatch.setitem(presets.PRESETS, name, moved)

    return place


@every_row("name", FAR)
def test_one_elsewhere_is_asked_with_its_key(name: str):
    preset, chosen = PRESETS[name], Config(llm=LlmSettings(provider=name, model="gpt-4.1"))
    environ = {preset.address_variable or "X": "https://a.openai.azure.com"}
    model: Any = create_model(Host.of({**environ, preset.key_variable: KEY}), chosen)
    assert KEY in "".join(model._client._headers.values())
    assert model._terms.price is None  # the catalog's prices are the makers' own
    if not preset.address_variable:
        with pytest.raises(AuthError, match="needs a key"):
            create_model(Host.of(environ), chosen)


def test_azure_is_asked_at_an_address_of_the_persons_own():
    chosen = Config(llm=LlmSettings(provider="azure", model="deployed"))
    with pytest.raises(
        ConfigError, match=r"such as https://NAME\.openai\.azure\.com.*\nSet AZURE_OP"
    ):
        create_model(Host.of({"AZURE_OPENAI_API_KEY": KEY}), chosen)
    environ = {"AZURE_OPENAI_API_KEY": KEY, "AZURE_OPENAI_ENDPOINT": "https://me.openai.azure.com/"}
    model: Any = create_model(Host.of(environ), chosen)
    assert model.endpoint == "https://me.openai.azure.com/openai/v1"
    assert model._client._headers["api-key"] == KEY
    assert "authorization" not in model._client._headers


@every_row(
    ("given", "clean"),
    [
        ("https://api.groq.com", "https://api.groq.com/openai/v1"),
        ("https://me.services.ai.azure.com", "https://me.services.ai.azure.com/openai/v1"),
        ("https://me.openai.azure.com/openai/deployments/x?v=1", "https://me.openai.azure.com/openai/deployments/x"),
        ("https://notapi.groq.com.example.org", "https://notapi.groq.com.example.org/v1"),
        ("http://127.0.0.1:1234", "http://127.0.0.1:1234/v1"),
    ],
)  # fmt: skip
def test_a_bare_host_gets_the_path_of_its_provider(given: str, clean: str):
    assert clean_endpoint(given, "openai") == clean


async def test_a_server_that_lists_its_models_without_an_envelope_is_read(serve: Any):
    rows = [{"id": "b/m", "context_length": 9000}, {"id": "a"}]
    server = await serve(http(msgspec.json.encode(rows), type="application/json"))
    config = Config(providers={"own": Endpoint(endpoint=server.url)})
    assert await list_models(this_host(), config, "own") == ["a", "b/m"]


async def test_deepseek_gets_its_thinking_back_with_each_call_and_an_empty_one_for_those_of_others():
    made = call("read_file", path="a")
    said = AssistantMessage(content=(made,), stop_reason="tool_calls", model="other")
    request = Request("", [UserMessage.of("hi"), said])
    async with OpenAIServer(["fine"]) as server:
        own = Endpoint(endpoint=server.url, quirks=PRESETS["deepseek"].quirks, model="m")
        config = Config(providers={"own": own}, llm=LlmSettings(provider="own"))
        await ask(create_model(Host.of({}), config), request)
    sent = [each for each in server.requests[0].body["messages"] if each["role"] == "assistant"]
    assert sent[0]["reasoning_content"] == ""
    assert find_provider("deepseek", Config()).quirks.reasoning_sent_as == "reasoning_content"


async def test_one_on_this_machine_needs_no_key_and_is_told_of_only_where_it_runs(placed: Any):
    async with OpenAIServer(["fine"], models=("near",)) as server:
        placed("vllm", server.url)
        placed("lmstudio", "http://127.0.0.1:9/v1")
        found = await find_reachable(Host.of({}), Config(), everywhere=True)
        named = {each.reach.provider: [model.name for model in each.models] for each in found}
        assert named["vllm"] == ["near"]
        assert not {"lmstudio", *FAR} & {*named}
        await ask(create_model(Host.of({}), Config(llm=LlmSettings(provider="vllm", model="near"))))
        assert "authorization" not in server.requests[0].headers
        stopped = await look(Host.of({}), "lmstudio", Config())
        assert (stopped.state, stopped.advice) == ("stopped", "start it with `lms server start`")


def test_the_only_key_in_the_environment_chooses_a_preset_too():
    assert with_only_key(Host.of({"GROQ_API_KEY": KEY}), Config()) == "groq"
    both = Host.of({"GROQ_API_KEY": KEY, "OPENAI_API_KEY": KEY})
    assert with_only_key(both, Config()) is None


def test_an_entry_of_the_persons_own_goes_before_a_preset():
    own = Config(providers={"groq": Endpoint(endpoint="https://mine.example/v1")})
    found = find_provider("groq", own)
    assert (found.endpoint, found.key_variables) == ("https://mine.example/v1", ())
