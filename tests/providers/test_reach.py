"""What can be reached: the facts about providers and models, found without asking anybody beyond this machine."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from raw_http import Scripted, http

from hosts import this_host
from scripted import OllamaServer, OpenAIServer
from ybs.config.host import Host
from ybs.config.key_store import SAVED, keep_key
from ybs.config.schema import Config, Endpoint, LlmSettings
from ybs.core.errors import AuthError
from ybs.providers import reachable as reach
from ybs.providers import registry
from ybs.providers.reachable import (
    ModelReach,
    Reachability,
    list_models,
    look,
    look_at_model,
    models_here,
)
from ybs.providers.registry import Provider, chosen_provider, client_of, open_model

Serve = Callable[..., Awaitable[Scripted]]
JSON = "application/json"
KEY = "sk-" + "d4" * 16


def own(**servers: str) -> Config:
    return Config(providers={name: Endpoint(endpoint=place) for name, place in servers.items()})


def chosen(provider: str, **llm: Any) -> Config:
    return Config(llm=LlmSettings(provider=provider, **llm))


async def state_of(name: str, config: Config, **environ: str) -> tuple[str, str]:
    found = await look(Host.of({**os.environ, **environ}), name, config)
    return found.state, found.variable


async def test_what_a_provider_elsewhere_lacks_is_known_without_asking_it() -> None:
    far = "https://models.example.org/v1"
    rows = [
        (await state_of("openai", Config()), ("keyless", "OPENAI_API_KEY")),
        (await state_of("openai", Config(), OPENAI_API_KEY=" "), ("keyless", "OPENAI_API_KEY")),
        (await state_of("openai", Config(), OPENAI_API_KEY=KEY), ("keyed", "OPENAI_API_KEY")),
        (await state_of("openai", chosen("openai", api_key=KEY)), ("keyed", "")),
        (await state_of("mistral", chosen("openai", api_key=KEY)), ("keyless", "MISTRAL_API_KEY")),
        (await state_of("openai", chosen("openai", endpoint=far)), ("unasked", "")),
        (await state_of("mine", own(mine=far)), ("unasked", "")),
        (await state_of("mine", own(mine="nowhere")), ("unusable", "")),
        (await state_of("nobody", Config()), ("unusable", "")),
    ]
    assert [found for found, _ in rows] == [expected for _, expected in rows]


async def test_the_key_that_is_told_is_the_one_that_is_sent() -> None:
    far, saved = "https://models.example.org/v1", "s" * 24
    both, alone = chosen("openai", endpoint=far), Config(llm=LlmSettings(endpoint=far))
    assert await state_of("openai", both, OPENAI_API_KEY=KEY) == ("keyed", "OPENAI_API_KEY")
    assert await state_of("openai", alone, OPENAI_API_KEY=KEY) == ("unasked", "")
    keep_key(this_host(), "openai", "models.example.org", saved)
    for config in (both, alone):
        assert await state_of("openai", config, OPENAI_API_KEY=KEY) == ("keyed", SAVED)
        client = client_of(Host.of({**os.environ, "OPENAI_API_KEY": KEY}), named(config), config)
        assert client._secret == saved


def named(config: Config) -> Provider:
    return chosen_provider(this_host(), config)


async def test_a_secret_in_an_address_is_not_passed_on() -> None:
    found = await look(
        this_host(), "mine", own(mine="http://me:secret@h.example.org:1/v1?key=secret")
    )
    assert found.endpoint == "http://h.example.org:1/v1"


async def test_a_server_here_runs_or_comes_with_what_starts_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        up = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        found = await look(this_host(), "up", own(up=up))
        assert found == Reachability(provider="up", state="running", endpoint=up)
        assert (found.is_here, found.is_ready) == (True, True)
        # A chosen address takes the place of the server that ybs starts itself.
        assert (
            await look(this_host(), "llamacpp", chosen("llamacpp", endpoint=up))
        ).state == "running"
    found = await look(this_host(), "ollama", chosen("ollama", endpoint="http://127.0.0.1:1"))
    assert (found.state, found.advice) == ("stopped", "start it with `ollama serve`")
    assert (found.is_here, found.is_ready) == (True, False)


async def test_the_embedded_server_wants_the_model_that_would_be_used(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    assert (await look(this_host(), "llamacpp", Config())).state == "empty"
    assert (
        await look(this_host(), "llamacpp", chosen("llamacpp", model=str(file)))
    ).state == "empty"
    file.write_bytes(b"GGUF")
    assert (
        await look(this_host(), "llamacpp", chosen("llamacpp", model=str(file)))
    ).state == "startable"
    assert (await look(this_host(), "llamacpp", chosen("ollama", model=str(file)))).state == "empty"


async def test_a_model_is_looked_for_where_its_server_runs_here(serve, monkeypatch):
    async with OpenAIServer(models=("a", "b-embed")) as server, OllamaServer(models=()) as ollama:
        silent = (await serve(http("{}", type=JSON))).url
        rows = [
            (chosen("openai", endpoint=server.url, model="a"), "listed"),
            (chosen("openai", endpoint=server.url, model="b-embed"), "listed"),
            (chosen("openai", endpoint=server.url, model="c"), "unlisted"),
            (chosen("ollama", endpoint=ollama.url, model="c"), "unlisted"),
            (chosen("openai", endpoint=silent, model="c"), "unsaid"),
            (chosen("openai", endpoint="http://127.0.0.1:1/v1", model="c"), "unsaid"),
            (chosen("openai", endpoint="http://models.example.org/v1", model="c"), "unasked"),
        ]
        found = [
            await look_at_model(this_host(), config.llm.provider or "", config)
            for config, _ in rows
        ]
    assert [each.state for each in found] == [state for _, state in rows]
    endpoint = rows[-1][0].llm.endpoint
    assert found[-1] == ModelReach(
        name="c", window=found[-1].window, state="unasked", endpoint=endpoint or "", wire="openai"
    )
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(AuthError):
        await look_at_model(this_host(), "openai", Config())


async def test_latest_may_be_left_out() -> None:
    async with OllamaServer(models=("q:latest",)) as server:
        found = await look_at_model(
            this_host(), "ollama", chosen("ollama", endpoint=server.url, model="q")
        )
    assert found.state == "listed"


async def test_the_window_is_the_one_that_the_server_has(serve: Serve) -> None:
    answer = '{"data": [{"id": "a"}], "default_generation_settings": {"n_ctx": 4321}}'
    server = await serve(http(answer, type=JSON))
    found = await look_at_model(
        this_host(), "openai", chosen("openai", endpoint=server.url, model="a")
    )
    assert (found.state, found.window) == ("listed", 4321)


@pytest.mark.integration
async def test_a_server_that_hangs_is_not_waited_for(serve, monkeypatch):
    async def silent(_writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(reach, "LIST_SECONDS", 0.02)
    server = await serve(silent)
    config = Config(providers={"mine": Endpoint(endpoint=server.url, model="m")})
    assert await models_here(this_host(), await look(this_host(), "mine", config), config) == []
    found = await look_at_model(this_host(), "mine", config)
    assert (found.state, found.complaint) == ("unsaid", "the provider did not answer in time")


async def test_models_are_listed_for_a_picker(serve: Serve) -> None:
    server = await serve(http('{"models":[{"name":"q:1"}]}', type=JSON))
    assert await list_models(this_host(), chosen("ollama", endpoint=server.url)) == ["q:1"]


async def test_models_can_be_listed_before_one_is_chosen(serve: Serve) -> None:
    server = await serve(http('{"data":[{"id":"a"}]}', type=JSON))
    assert await list_models(Host.of({}), own(mine=server.url), "mine") == ["a"]
    assert server.asked[0].path == "/v1/models"


async def test_only_models_that_can_be_talked_to_are_offered() -> None:
    names = ("ok", "text-embedding-3", "whisper-1", "two words")
    async with OpenAIServer(models=names) as server:
        config = own(mine=server.url)
        found = await look(this_host(), "mine", config)
        assert await models_here(this_host(), found, config) == ["ok"]


async def test_nobody_beyond_this_machine_is_asked_for_models(monkeypatch):
    asked: list[str] = []

    async def ask(_host: Host, _config: Config, provider: Provider) -> list[str]:
        asked.append(provider.name)
        return ["m"]

    monkeypatch.setattr(reach, "_listed", ask)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        here = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        places = {"here": here, "down": "http://127.0.0.1:1", "far": "https://models.example.org"}
        config = own(lan="http://192.168.0.7:8080/v1", odd="nowhere", **places)
        found = [
            await models_here(this_host(), await look(this_host(), name, config), config)
            for name in ("far", "lan", "odd", "down", "here")
        ]
    assert (asked, found) == (["here"], [[], [], [], [], ["m"]])


async def test_a_managed_provider_lists_its_models_too(serve, monkeypatch):
    server = await serve(http('{"data":[{"id":"a"}]}', type=JSON))
    managed = Provider(
        name="managed",
        wire="openai",
        endpoint=server.url,
        make=lambda host, config, _model: open_model(host, managed, config, model="m"),
    )

    def installed(_name: str, _config: Config) -> Provider:
        return managed

    monkeypatch.setattr(registry, "_installed_provider", installed)
    assert await list_models(this_host(), Config(), "managed") == ["a"]
