"""Model servers on this machine: what they have, and that nobody else is asked."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from raw_http import Scripted, http

from scripted import OllamaServer, OpenAIServer
from ybs.providers import nearby
from ybs.providers.nearby import ask_ollama, ask_openai, find_servers, ollama_endpoint

Serve = Callable[..., Awaitable[Scripted]]
JSON = "application/json"


def test_ollama_host_counts_where_it_names_this_machine() -> None:
    expected = {
        "": nearby.OLLAMA,
        "127.0.0.1": "http://127.0.0.1:11434",
        "127.0.0.1:11777": "http://127.0.0.1:11777",
        ":11777": "http://127.0.0.1:11777",
        "0.0.0.0": "http://127.0.0.1:11434",
        "http://localhost:11777/": "http://localhost:11777",
        "http://localhost": "http://localhost:80",
        "[::1]:11777": "http://[::1]:11777",
        "[::1]": "http://[::1]:11434",
        "192.168.1.5:11434": nearby.OLLAMA,
        "gpu.example.org": nearby.OLLAMA,
        "https://127.0.0.1": nearby.OLLAMA,
        "127.0.0.1.example.org:1": nearby.OLLAMA,
        "127.0.0.1:port": nearby.OLLAMA,
        "http://": nearby.OLLAMA,
        "a b": nearby.OLLAMA,
    }
    assert {each: ollama_endpoint({"OLLAMA_HOST": each}) for each in expected} == expected
    assert ollama_endpoint({}) == nearby.OLLAMA


async def test_servers_are_found_with_their_models(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("qwen3:14b", "nomic-embed-text:latest")
    async with OllamaServer(models=names) as ollama, OpenAIServer(models=("big",)) as other:
        port = int(other.url.split(":")[2].removesuffix("/v1"))
        monkeypatch.setattr(nearby, "PORTS", {port: ("LM Studio", "lmstudio"), 1: ("x", "x")})
        found = await find_servers({"OLLAMA_HOST": ollama.url})
    assert [(each.title, each.provider, each.wire) for each in found] == [
        ("ollama", "ollama", "ollama"),
        ("LM Studio", "lmstudio", "openai"),
    ]
    assert [(each.name, each.size_bytes) for each in found[0].models] == [("qwen3:14b", 1_000_000)]
    assert [(each.name, each.size_bytes) for each in found[1].models] == [("big", None)]
    asked = [*ollama.other_requests, *other.other_requests]
    assert [request.path for request in asked] == ["/api/tags", "/v1/models"]
    assert not any("authorization" in request.headers for request in asked)


async def test_a_server_says_whose_it_is(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def other_user_at(host: str, port: int) -> str:
        asked.append((host, port))
        return "mallory"

    server = await serve(http('{"data": [{"id": "m"}]}', type=JSON))
    own = await ask_openai(f"{server.url}/v1")
    monkeypatch.setattr(nearby, "other_user_at", other_user_at)
    found = await ask_openai(f"{server.url}/v1")
    assert [each and each.owner for each in (own, found)] == ["", "mallory"]
    assert await nearby.owner_of("http://[::1]:11434") == "mallory"
    assert asked == [("127.0.0.1", server.port), ("::1", 11434)]


async def test_wrong_answers_are_no_servers(serve: Serve) -> None:
    wrong = [
        http("<html>a web page</html>", type="text/html"),
        http("[1, 2]", type=JSON),
        http('{"models": 3, "data": "x"}', type=JSON),
        http("{" * 5000, type=JSON),
        http("no", status="404 Not Found"),
        http("", status="302 Found", location="http://models.example.org/"),
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    ]
    for answer in wrong:
        server = await serve(answer)
        assert await ask_ollama(server.url) is None, answer
        assert await ask_openai(f"{server.url}/v1") is None, answer
    assert await ask_ollama("http://127.0.0.1:1") is None


async def test_names_that_cannot_be_shown_or_talked_to_are_left_out(serve: Serve) -> None:
    names = ["ok", "\x1b[2J", "a\nb", "", " ", "x" * 201, "bge-m3", "\u202eevil", 7, None]
    rows = [{"id": name, "owned_by": "llamacpp"} for name in names]
    server = await serve(http(json.dumps({"data": [*rows, 3]}), type=JSON))
    found = await ask_openai(f"{server.url}/v1")
    assert found is not None
    assert [each.name for each in found.models] == ["ok"]
    assert (found.title, found.provider) == ("llama.cpp", "llama-server")


async def test_a_server_that_names_nobody_is_called_by_its_port(serve: Serve) -> None:
    server = await serve(http('{"data": [{"id": "m"}]}', type=JSON))
    found = await ask_openai(f"{server.url}/v1")
    assert found is not None
    assert (found.title, found.provider) == (
        f"server on port {server.port}",
        f"local-{server.port}",
    )


async def test_an_address_may_name_no_port(monkeypatch: pytest.MonkeyPatch) -> None:
    class Answering:
        def __init__(self, *_: object, **__: object) -> None: ...

        async def fetch(self, *_: object, **__: object) -> dict[str, object]:
            return {"data": [{"id": "m"}]}

        async def aclose(self) -> None: ...

    monkeypatch.setattr(nearby, "HttpClient", Answering)
    found = [await ask_openai(f"{scheme}://localhost/v1") for scheme in ("http", "https")]
    assert [each and each.provider for each in found] == ["local-80", "local-443"]


async def test_a_server_that_never_answers_is_not_waited_for(serve, monkeypatch):
    monkeypatch.setattr(nearby, "PATIENCE_SECONDS", 0.02)

    async def silent(_writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    server = await serve(silent)
    assert await ask_ollama(server.url) is None


async def test_nobody_beyond_this_machine_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object, **__: object) -> None:
        pytest.fail("a connection")

    monkeypatch.setattr(nearby, "HttpClient", opened)
    for address in ("http://192.168.0.7:11434", "https://models.example.org", "http://a.lan"):
        assert await ask_ollama(address) is None
        assert await ask_openai(f"{address}/v1") is None
