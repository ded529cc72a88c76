"""What the person has sent along with each request: headers, fields of the body, the query of the address; and where it stays."""

import json
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from rows import every_row
from scripted import (
    AnthropicServer,
    GoogleServer,
    MistralServer,
    OllamaServer,
    OpenAIServer,
    ResponsesServer,
    ScriptedServer,
)
from trusting import give_trust
from trusting import write as write_in
from ybs.config.host import Host
from ybs.config.schema import Config, Endpoint, LlmSettings
from ybs.core.errors import ConfigError, ModelError
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers import builtin
from ybs.providers.nearby import probe
from ybs.providers.reachable import find_reachable
from ybs.providers.registry import create_model
from ybs.providers.remote import Retry
from ybs.trust.settings import load

KEY = "k" + "3" * 20
REQUEST = Request("Be brief.", [UserMessage.of("hi")])
WIRES: list[tuple[str, type[ScriptedServer]]] = [
    ("openai", OpenAIServer),
    ("openai-responses", ResponsesServer),
    ("anthropic", AnthropicServer),
    ("google", GoogleServer),
    ("mistral", MistralServer),
    ("ollama", OllamaServer),
]


def own(endpoint: str, environ: dict[str, str] | None = None, **settings: Any) -> Any:
    config = Config(
        providers={"own": Endpoint(endpoint=endpoint, model="scripted", **settings)},
        llm=LlmSettings(provider="own"),
    )
    return create_model(Host.of(environ or {}), config)


async def ask(model: Any) -> None:
    assert [event async for event in model.stream(REQUEST)]
    await model.aclose()


@every_row(("wire", "server"), WIRES)
async def test_every_wire_format_sends_all_of_it_with_requests_and_lists(
    wire: str, server: type[ScriptedServer]
):
    assert {name for name, _ in WIRES} == {*builtin.WIRES}
    async with server(["fine"]) as far:
        address = f"{far.url}?api-version=2024-10-21&team=a%20b"
        model = own(
            address, wire=wire, headers={"X-Team": "a"}, extra_body={"n": {"x": 1}}, api_key=KEY
        )
        await model.detect_window()
        assert await model.list_models() == ["scripted"]
        await ask(model)
    assert far.requests[0].body["n"] == {"x": 1}
    asked = [*far.requests, *far.other_requests]
    assert len(asked) >= 3
    for each in asked:
        assert f"&{each.query}".endswith("&api-version=2024-10-21&team=a%20b"), each.path
        assert each.headers["x-team"] == "a"
        assert KEY in "".join(each.headers.values())


async def test_objects_of_the_body_are_laid_over_what_ybs_sends():
    async with OllamaServer(["fine"]) as server:
        more = {"options": {"num_gpu": 7}, "keep_alive": "1h"}
        await ask(own(server.url, wire="ollama", extra_body=more))
    body = server.requests[0].body
    assert (body["options"]["num_gpu"], body["keep_alive"], body["truncate"]) == (7, "1h", False)
    assert body["options"]["num_ctx"] > 0


async def test_azures_own_address_is_asked_as_azure_wants_it():
    """As its portal shows it: with a deployment, the path of the call and a version."""
    async with OpenAIServer(["fine"]) as server:
        place = server.url.removesuffix("/v1")
        address = f"{place}/openai/deployments/gpt/chat/completions?api-version=2024-10-21"
        await ask(own(address, api_key=KEY, quirks={"key_header": "api-key"}))
    (asked,) = server.requests
    assert asked.path == "/openai/deployments/gpt/chat/completions"
    assert asked.query == "api-version=2024-10-21"
    assert asked.headers["api-key"] == KEY
    assert "authorization" not in asked.headers
    at_azure = own("https://x.openai.azure.com/openai/v1", api_key=KEY)
    assert at_azure._client._headers["api-key"] == KEY


@every_row(
    ("wire", "header"),
    [("openai", "Authorization"), ("anthropic", "X-Api-Key"), ("google", "x-goog-api-key")],
)
def test_a_header_does_not_take_the_place_of_the_key_in_silence(wire: str, header: str):
    settings: dict[str, Any] = {
        "wire": wire,
        "headers": {header: "Bearer other"},
        "api_key_env": "MY_KEY",
    }
    with pytest.raises(ConfigError, match=r"headers: '.*' would take the place of the key \(MY_K"):
        own("https://a.example/v1", {"MY_KEY": KEY}, **settings)
    alone = own("https://a.example/v1", **settings)
    assert alone._client._headers[header.lower()] == "Bearer other"


@every_row("name", ["Host", "content-length", "Transfer-Encoding", "accept"])
def test_how_a_call_is_framed_is_not_a_matter_of_settings(name: str):
    with pytest.raises(ConfigError, match="is set by ybs itself"):
        own("https://a.example/v1", headers={name: "1"})


async def test_nothing_of_it_goes_to_another_address():
    settings: dict[str, Any] = {
        "headers": {"X-Team": "a"},
        "extra_body": {"user": "me"},
        "quirks": {"extra_body": {"store": True}},
    }
    async with OpenAIServer(["fine"]) as other:
        mine = Endpoint(endpoint="https://a.example/v1?code=s3", model="m", **settings)
        moved = Config(
            providers={"own": mine},
            llm=LlmSettings(provider="own", endpoint=f"{other.url}?region=x"),
        )
        await ask(create_model(Host.of({}), moved))
    (asked,) = other.requests
    assert asked.query == "region=x"
    assert "x-team" not in asked.headers
    assert not {"user", "store"} & asked.body.keys()


def test_the_query_of_a_variable_or_of_llm_counts_at_the_same_address():
    mine = Endpoint(endpoint="https://a.example/v1?v=1", model="m", headers={"X-Team": "a"})
    for address, query in (("https://a.example/v1?v=2", "v=2"), ("https://a.example/v1", "v=1")):
        config = Config(providers={"own": mine}, llm=LlmSettings(provider="own", endpoint=address))
        model: Any = create_model(Host.of({}), config)
        assert model._client.site.query == query
        assert model._client._headers["x-team"] == "a"
    environ = {"OPENAI_BASE_URL": "https://b.example/v1?v=3"}
    model = create_model(Host.of(environ), Config(llm=LlmSettings(provider="openai")))
    assert (model.endpoint, model._client.site.query) == ("https://b.example/v1", "v=3")


async def test_a_server_that_is_named_in_setup_is_asked_with_its_query():
    async with OpenAIServer() as server:
        found = await probe(f"{server.url}/chat/completions?api-version=1", KEY)
    assert found.models == ("scripted",)
    assert [each.query for each in server.other_requests] == ["api-version=1"]


async def test_a_secret_in_the_query_is_in_no_message():
    async with OpenAIServer() as server:
        pass
    model = own(f"{server.url}?code=hush")
    model._retry = Retry(attempts=0)
    with pytest.raises(ModelError) as caught:
        await ask(model)
    await model.aclose()
    assert "hush" not in f"{caught.value} {caught.value.remedies}"
    config = Config(providers={"own": Endpoint(endpoint=f"{server.url}?code=hush")})
    found = await find_reachable(this_host(), config, everywhere=False)
    assert "hush" not in repr([each.reach for each in found])


def test_a_value_names_a_variable(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TEAM_TOKEN", KEY)
    entry = {
        "endpoint": "https://a.example/v1?code=${TEAM_TOKEN}",
        "headers": {"X-Team": "t ${TEAM_TOKEN}"},
        "extra_body": {"metadata": {"user": "${TEAM_TOKEN}"}, "n": 1},
    }
    file = home / ".config/ybs/config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"providers": {"own": entry}}))
    found = load(this_host(), folder=project).config.providers["own"]
    assert found.headers == {"X-Team": f"t {KEY}"}
    assert found.endpoint.endswith(f"?code={KEY}")
    assert found.extra_body == entry["extra_body"]  # a body is sent as it is written
    assert KEY not in repr(found)


@pytest.mark.parametrize("trust", [False, True])
def test_a_project_sends_nothing_along(home: Path, project: Path, trust: bool):
    file = home / ".config/ybs/config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    mine = {"endpoint": "https://a.example/v1", "api_key_env": "MY_KEY"}
    file.write_text(json.dumps({"providers": {"own": mine}}))
    more = {"headers": {"X-Evil": "1"}, "extra_body": {"metadata": "x"}}
    theirs = {"own": more, "new": {"endpoint": "https://evil.example/v1", **more}}
    write_in(project, {"providers": theirs, "skills": {"only": ["x"]}})
    loaded = give_trust(project) if trust else load(this_host(), folder=project)
    assert [*loaded.config.providers] == ["own"]
    own = loaded.config.providers["own"]
    assert (own.headers, own.extra_body) == ({}, {})
