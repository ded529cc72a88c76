"""The scripted servers over real sockets."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from rows import every_row
from scripted import (
    AnthropicServer,
    HttpError,
    Interrupted,
    OllamaServer,
    OpenAIServer,
    RecordedRequest,
    Recut,
    ScriptedServer,
    ServerProcess,
)
from scripted.__main__ import main
from ybs.testing import ScriptOver

SERVERS = [OpenAIServer, OllamaServer, AnthropicServer]
each_server = every_row("kind", SERVERS, ids=lambda kind: kind.wire.name)
BODY: dict[str, Any] = {"model": "m", "stream": True, "messages": []}


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=5, verify=False) as client:
        yield client


def chat(server: ScriptedServer) -> str:
    return server.url + server.wire.chat_path


@pytest.mark.integration
@each_server
async def test_a_request_too_many_gets_an_error_and_fails_the_test(client, kind):
    server = await kind(["one"]).__aenter__()
    assert (await client.post(chat(server), json=BODY)).status_code == 200
    late = await client.post(chat(server), json=BODY)
    assert late.status_code == 400
    assert "has 1 answers" in late.text
    with pytest.raises(ScriptOver, match="has 1 answers; 2 requests came"):
        await server.__aexit__(None, None, None)


async def test_a_failure_in_the_block_is_not_hidden_by_the_script_being_over(client):
    server = await OpenAIServer().__aenter__()
    await client.post(chat(server), json=BODY)
    await server.__aexit__(KeyError, KeyError(), None)


@each_server
async def test_requests_are_recorded_and_one_connection_serves_several(client, kind):
    async with kind(["one", lambda request: f"about {request.body['model']}"]) as server:
        await client.post(chat(server) + "?beta=1", json=BODY, headers={"X-Thing": "yes"})
        second = await client.post(chat(server), json=BODY)
    first = server.requests[0]
    assert (first.method, first.path) == (
        "POST",
        chat(server).removeprefix(f"http://{first.headers['host']}"),
    )
    assert (first.headers["x-thing"], first.body) == ("yes", BODY)
    assert "about m" in second.text
    assert len(server.requests) == 2


async def test_a_body_that_is_no_json_is_recorded_raw(client: httpx2.AsyncClient):
    async with OpenAIServer(["one", "two"]) as server:
        await client.post(chat(server), content=b"{not json")
        await client.post(chat(server))
    assert [(r.body, r.raw) for r in server.requests] == [(None, b"{not json"), (None, b"")]


async def test_an_unknown_status_has_a_phrase_too(client: httpx2.AsyncClient):
    async with AnthropicServer([HttpError(status=529)]) as server:
        response = await client.post(chat(server), json=BODY)
    assert (response.status_code, response.json()["error"]["type"]) == (529, "overloaded_error")


async def test_a_broken_connection_is_seen_by_the_client(client: httpx2.AsyncClient):
    async with OpenAIServer([Interrupted(how="break")]) as server:
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.post(chat(server), json=BODY)
    assert server.requests[0].was_dropped is False  # the server broke it


async def test_a_stalled_answer_goes_on_when_told(client: httpx2.AsyncClient):
    async with OpenAIServer([Interrupted(how="stall", answer="all of it")]) as server:
        asking = asyncio.create_task(client.post(chat(server), json=BODY))
        await server.received()
        assert not asking.done()
        server.resume()
        assert (await asking).text.endswith("[DONE]\n\n")


async def test_a_client_that_hangs_up_on_a_stalled_answer_is_noticed(client: httpx2.AsyncClient):
    async with OpenAIServer([Interrupted(how="stall")]) as server:
        async with client.stream("POST", chat(server), json=BODY) as response:
            await anext(response.aiter_bytes())
        await server.dropped()
        assert server.requests[0].was_dropped


async def test_a_server_closes_although_an_answer_is_stalled(client: httpx2.AsyncClient):
    async with OpenAIServer([Interrupted(how="stall")]) as server:
        asking = asyncio.create_task(client.post(chat(server), json=BODY))
        await server.received()
    with pytest.raises(httpx2.RemoteProtocolError):
        await asking


async def test_pieces_arrive_as_they_were_cut(client: httpx2.AsyncClient):
    async with (
        OllamaServer([Recut(answer="grüße", at=(3, 100))]) as server,
        client.stream("POST", chat(server), json=BODY) as response,
    ):
        pieces = [piece async for piece in response.aiter_raw()]
    assert [len(piece) for piece in pieces[:2]] == [3, 97]


async def test_a_repeated_script_never_ends(client: httpx2.AsyncClient):
    seen: list[RecordedRequest] = []
    async with OpenAIServer(["a", "b"], is_repeated=True, on_request=seen.append) as server:
        for _ in range(5):
            assert (await client.post(chat(server), json=BODY)).status_code == 200
    assert seen == server.requests


@every_row(
    ("kind", "path", "words"),
    [
        (OpenAIServer, "/models", "my-model"),
        (AnthropicServer, "/v1/models", "my-model"),
        (OllamaServer, "/api/tags", "my-model"),
        (OllamaServer, "/api/show", "context_length"),
        (OllamaServer, "/api/version", "version"),
    ],
)
async def test_facts_are_given_without_touching_the_script(client, kind, path, words):
    async with kind(models=["my-model"]) as server:
        response = await client.get(server.url + path)
        missing = await client.get(server.url + "/nowhere")
    assert (response.status_code, missing.status_code) == (200, 404)
    assert words in response.text
    assert (server.requests, len(server.other_requests)) == ([], 2)


@pytest.mark.integration
def test_a_server_process_serves_and_records(tmp_path: Path):
    with ServerProcess("openai", ["hello"], tmp_path, "--model", "m", "--port", "0") as server:
        assert httpx2.get(f"{server.url}/models").json()["data"][0]["id"] == "m"
        assert "hello" in httpx2.post(f"{server.url}/chat/completions", json={"model": "m"}).text
    assert [request.path for request in server.requests] == ["/v1/models", "/v1/chat/completions"]
    assert server.requests[1].body == {"model": "m"}


@pytest.mark.integration
def test_a_server_process_that_was_asked_too_often_fails_the_test(tmp_path: Path):
    with (
        pytest.raises(ScriptOver, match="got 1 requests"),
        ServerProcess("ollama", [], tmp_path) as server,
    ):
        assert httpx2.post(f"{server.url}/api/chat", json={}).status_code == 400


@pytest.mark.integration
def test_a_server_process_with_wrong_options_does_not_start(tmp_path: Path):
    with pytest.raises(RuntimeError, match="did not start"):
        ServerProcess("openai", [], tmp_path, "--nonsense").__enter__()


def test_a_script_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    script = tmp_path / "script.json"
    assert main(["--wire", "openai", "--script", str(script)]) == 2
    script.write_text('[{"type": "nonsense"}]')
    assert main(["--wire", "openai", "--script", str(script)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith(f"{script}: ") for line in lines)
    assert "nonsense" in lines[1]


@pytest.mark.integration
def test_the_command_prints_its_endpoint_and_ends_when_told(tmp_path: Path):
    script = tmp_path / "script.json"
    script.write_text('["hi"]')
    command = [sys.executable, "-m", "scripted", "--wire", "anthropic", "--script", script]
    tests = Path(__file__).parents[1]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tests) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=5) == 0
