"""Ollama: server and adapter against the official SDK."""

from typing import Any

import msgspec
import pytest

from opened import events_to
from scripted import HttpError, Interrupted, OllamaServer, Whole
from sdk_requests import accept, missing
from ybs.core.events import Noticed
from ybs.core.ports import Request
from ybs.session.session import Session
from ybs.testing import ScriptedAnswer

#: Importing the SDK takes seconds on a busy machine.
pytestmark = pytest.mark.timeout(60)
MESSAGES: Any = [{"role": "user", "content": "hello"}]


def client_of(server: OllamaServer) -> Any:
    """Make the SDK's client, which has incomplete types."""
    import ollama

    return ollama.AsyncClient(host=server.url, trust_env=False, verify=False)


async def collect(client: Any) -> list[Any]:
    stream = await client.chat(model="m", messages=MESSAGES, stream=True)
    return [chunk async for chunk in stream]


@pytest.mark.slow
async def test_the_server_is_refused_by_the_sdk_where_it_misbehaves():
    from ollama import ResponseError

    script = [HttpError(status=404, message="no model 'm'"), Interrupted(how="error")]
    async with OllamaServer(script) as server, client_of(server) as client:
        with pytest.raises(ResponseError, match="no model 'm'"):
            await collect(client)
        with pytest.raises(ResponseError, match="something broke"):
            await collect(client)


@pytest.mark.slow
async def test_the_servers_facts_are_read_by_the_sdk():
    async with OllamaServer(models=["qwen3:4b"]) as server, client_of(server) as client:
        assert [model.model for model in (await client.list()).models] == ["qwen3:4b"]
        shown = await client.show("qwen3:4b")
    assert shown.modelinfo is not None
    assert shown.modelinfo["scripted.context_length"] == 32_768


@pytest.mark.slow
async def test_every_line_is_a_chat_response(scripted: ScriptedAnswer):
    import httpx2
    from ollama import ChatResponse

    async with (
        OllamaServer([scripted, Whole(answer=scripted)]) as server,
        httpx2.AsyncClient(verify=False) as client,
    ):
        path = f"{server.url}/api/chat"
        streamed = await client.post(path, json={"model": "m", "messages": MESSAGES})
        whole = await client.post(path, json={"model": "m", "messages": MESSAGES})
    for line in (*streamed.text.split("\n")[:-1], whole.text):
        said = ChatResponse.model_validate_json(line)
        assert said.model_dump(exclude_unset=True).keys() == msgspec.json.decode(line).keys()


@pytest.mark.slow
async def test_ybs_and_the_sdk_understand_a_stream_alike(scripted, ask, said_type):
    async with OllamaServer([scripted, scripted]) as server, client_of(server) as client:
        lines = await collect(client)
        ours = said_type.of(await ask(server))
    calls: list[Any] = []
    for line in lines:
        calls += line.message.tool_calls or []
    # the SDK's type has no id, which newer servers send
    assert [(name, arguments) for _, name, arguments in ours.calls] == [
        (call.function.name, dict(call.function.arguments)) for call in calls
    ]
    ids = [call_id for call_id, _, _ in ours.calls]
    last = lines[-1]
    assert last.done is True
    stop = "length" if last.done_reason == "length" else "tool_calls" if calls else "end"
    assert ours._replace(calls=[]) == said_type(
        text="".join(line.message.content or "" for line in lines),
        thinking="".join(line.message.thinking or "" for line in lines),
        calls=[],
        stop=stop,
        tokens=(last.prompt_eval_count, last.eval_count),
    )
    assert len(set(ids)) == len(ids)


async def test_a_whole_answer_is_understood_like_a_stream(scripted: ScriptedAnswer, ask: Any):
    async with OllamaServer([scripted, Whole(answer=scripted)]) as server:
        assert await ask(server) == await ask(server)


@pytest.mark.slow
async def test_requests_are_what_the_sdk_would_send(conversation: Request, ask: Any):
    async with OllamaServer(["fine"]) as server:
        await ask(server, conversation)
    (request,) = server.requests
    assert "authorization" not in request.headers
    accept("ollama", request.body)


def test_the_check_for_unknown_keys_finds_them():
    assert missing({"a": [{"b": 1, "odd": 2}]}, {"a": [{"b": 1}]}) == ["$.a[0].odd"]


async def test_a_model_without_tools_is_asked_again_without_them_and_that_is_remembered(project):
    refusal = HttpError(
        status=400, message="registry.ollama.ai/library/g:2b does not support tools"
    )
    async with (
        OllamaServer([refusal, "Hello.", "Again."], models=["g:2b"]) as server,
        Session.open(project, provider="ollama", endpoint=server.url, model="g:2b") as session,
    ):
        seen: list[Noticed] = []
        session.subscribe(
            events_to(lambda event: seen.append(event) if isinstance(event, Noticed) else None)
        )
        first, second = await session.send("hi"), await session.send("and again")
    assert (first.text, second.text) == ("Hello.", "Again.")
    assert ["tools" in request.body for request in server.requests] == [True, False, False]
    assert [note.text for note in seen] == [
        "g:2b does not accept tools here, so it writes its calls as text."
    ]
