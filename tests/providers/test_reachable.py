"""What can be reached now: all are asked at once, and nobody waits for one that does not answer."""

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from raw_http import Scripted, http

from hosts import this_host
from scripted import OllamaServer, OpenAIServer
from ybs.config.presets import PRESETS
from ybs.config.schema import Config, Endpoint, IncognitoSettings, LlmSettings
from ybs.config.sections import ModelEntry
from ybs.providers import nearby, reachable
from ybs.providers.catalog import FREE, Price
from ybs.providers.reachable import Reached, find_reachable

Serve = Callable[..., Awaitable[Scripted]]
JSON = "application/json"
FAR = "http://models.example.org/v1"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this machine one without servers on the usual ports."""
    monkeypatch.setattr(nearby, "PORTS", {})
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")


def own(entries: dict[str, ModelEntry] | None = None, **servers: str) -> Config:
    providers = {name: Endpoint(endpoint=place) for name, place in servers.items()}
    return Config(providers=providers, models=entries or {})


async def found_in(config: Config, *, everywhere: bool = False) -> dict[str, Reached]:
    found = await find_reachable(this_host(), config, everywhere=everywhere)
    return {each.reach.provider: each for each in found}


async def test_each_server_is_listed_with_what_it_tells_and_what_the_person_states(serve):
    rows = [{"id": "b", "max_model_len": 8192}, {"id": "a"}, {"id": "text-embed"}]
    vllm = await serve(http(msgspec.json.encode({"data": rows}), type=JSON), http("{}", type=JSON))
    entries = {"mine/a": ModelEntry(window=7, input_price=1, output_price=2)}
    async with OllamaServer(models=("qwen3:8b", "q:cloud")) as ollama:
        config = msgspec.structs.replace(
            own(entries, mine=vllm.url), llm=LlmSettings(provider="ollama", endpoint=ollama.url)
        )
        found = await found_in(config)
    (a, b) = found["mine"].models
    assert (a.name, a.facts.window, a.facts.price) == ("a", 7, Price(1, 2, 1))
    assert (b.name, b.facts.window, b.facts.price) == ("b", 8192, FREE)
    cloud, here = found["ollama"].models
    assert (cloud.facts.price, here.facts.price) == (None, FREE)
    assert (here.facts.window, here.facts.sees_images) == (32_768, True)
    assert here.size_bytes == 1_000_000


@pytest.mark.integration
async def test_one_that_does_not_answer_is_named_and_keeps_nobody_waiting(serve, monkeypatch):
    monkeypatch.setattr(reachable, "REACH_SECONDS", 0.05)

    async def silent(_writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    hanging = [await serve(silent) for _ in range(3)]
    locked = await serve(http('{"error":"no"}', status="401 Unauthorized", type=JSON))
    places = {f"slow{n}": server.url for n, server in enumerate(hanging)}
    async with OpenAIServer(models=("m",)) as quick:
        found = await found_in(own(**places, quick=quick.url, locked=locked.url))
    assert [each.name for each in found["quick"].models] == ["m"]
    assert {found[name].why for name in places} == {"it did not answer within 0.05 seconds"}
    assert "refused the key" in found["locked"].why
    assert found["ollama"].reach.state == "stopped"


@pytest.mark.integration
async def test_those_elsewhere_are_asked_only_where_that_is_wanted(monkeypatch):
    monkeypatch.setattr(reachable, "REACH_SECONDS", 0.05)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    asked: list[str] = []

    async def resolve(_loop: object, host: str, *_rest: Any, **_more: Any) -> None:
        asked.append(host)
        await asyncio.Event().wait()  # as a name server that does not answer

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolve)
    far = own(far=FAR)
    assert "far" not in await found_in(far)
    chosen = msgspec.structs.replace(far, llm=LlmSettings(provider="far"))
    assert "did not answer" in (await found_in(chosen))["far"].why
    everywhere = await found_in(far, everywhere=True)
    assert "did not answer" in everywhere["far"].why
    assert everywhere["openai"].reach.state == "keyless"
    assert set(asked) == {"models.example.org"}
    kept = msgspec.structs.replace(far, incognito=IncognitoSettings(enabled=True, local_only=True))
    assert "far" not in await found_in(kept, everywhere=True)


async def test_a_server_on_a_usual_port_is_listed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async with OpenAIServer(models=("m",)) as server:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        monkeypatch.setattr(nearby, "PORTS", {port: ("LM Studio", "lmstudio")})
        found = await found_in(Config())
        assert [each.name for each in found["lmstudio"].models] == ["m"]
        known = await found_in(own(mine=server.url))
    assert "lmstudio" not in known


async def test_a_server_that_nobody_chose_gets_no_key(serve: Serve, monkeypatch):
    """Any program of this machine may have its usual port."""
    monkeypatch.setenv("VLLM_API_KEY", "of-vllm")
    server = await serve(http('{"data": [{"id": "m"}]}', type=JSON))
    preset = msgspec.structs.replace(PRESETS["vllm"], endpoint=server.url)
    monkeypatch.setitem(PRESETS, "vllm", preset)
    found = (await found_in(Config()))["vllm"]
    names = await reachable.models_here(
        this_host(), await reachable.look(this_host(), "vllm", Config()), Config()
    )
    assert [each.name for each in found.models] == names == ["m"]
    assert server.asked
    assert not any("authorization" in each.headers for each in server.asked)
    server.asked.clear()
    await found_in(Config(llm=LlmSettings(provider="vllm")))
    await reachable.list_models(this_host(), Config(), "vllm")
    assert {each.headers["authorization"] for each in server.asked} == {"Bearer of-vllm"}


@pytest.mark.parametrize("owner", ["mallory", ""])
async def test_the_list_of_another_users_server_is_asked_for_without_anything_of_the_persons(
    serve: Serve, monkeypatch, owner: str
):
    """Not with a key, a header, a login or a query that the settings give it, whatever its name there."""
    monkeypatch.setattr(nearby, "other_user_at", lambda *_: owner)
    monkeypatch.setenv("WORK_KEY", "of-variable")
    server = await serve(http('{"data": [{"id": "m"}]}', type=JSON))
    place = f"{server.url}?sig=of-query"
    work = Endpoint(endpoint=place, api_key_env="WORK_KEY", headers={"x-key": "of-header"})
    login = Endpoint(endpoint=server.url.replace("http://", "http://me:of-login@"), model="m")
    config = Config(
        providers={"work": work, "login": login}, llm=LlmSettings(provider="work", model="m")
    )
    for name in config.providers:
        found = await reachable.look(this_host(), name, config)
        assert await reachable.models_here(this_host(), found, config) == ["m"]
        assert (await reachable.look_at_model(this_host(), name, config)).state == "listed"
    assert [each.name for each in (await found_in(config))["work"].models] == ["m"]
    sent = " ".join(f"{each.path} {each.headers}" for each in server.asked)
    secrets = ("of-variable", "of-header", "of-query", b64encode(b"me:of-login").decode())
    assert [each in sent for each in secrets] == [not owner] * 4
