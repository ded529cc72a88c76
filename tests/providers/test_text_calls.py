"""The text protocol around a model behind a server: chosen by the catalog, after a refusal, or by what the model does."""

from typing import Any

import msgspec
from msgspec import Raw

from hosts import this_host
from scripted import HttpError, OpenAIServer, ScriptedServer
from ybs.config.layers import load
from ybs.core.events import AssistantSaid, Event, Noticed, TextStreamed, ToolCallStreamed
from ybs.core.messages import AssistantMessage, ToolResult, UserMessage
from ybs.core.ports import Request, ToolSpec
from ybs.providers.registry import create_model
from ybs.testing import call

TOOLS = [
    ToolSpec(
        name="read_file",
        description="Read.",
        parameters=Raw(b'{"type":"object","properties":{"path":{"type":"string"}}}'),
        effect="read",
    )
]
BLOCK = 'I look.\n```json\n{"name": "read_file", "arguments": {"path": "a"}}\n```'


async def asked(
    server: ScriptedServer, times: int, tmp_path: Any, model: str = "m"
) -> list[list[Event]]:
    overrides = {"llm.endpoint": server.url, "llm.model": model}
    loaded = load(this_host(), folder=tmp_path, overrides=overrides)
    made = create_model(this_host(), loaded.config, provider="openai")
    request = Request("Be brief.", [UserMessage.of("go")], TOOLS)
    answers = [[event async for event in made.stream(request)] for _ in range(times)]
    await made.aclose()
    return answers


def calls_in(events: list[Event]) -> list[str]:
    last = events[-1]
    assert isinstance(last, AssistantSaid)
    return [each.name for each in last.message.calls]


def shown(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextStreamed))


def has_tools(server: ScriptedServer) -> list[bool]:
    return ["tools" in each.body for each in server.requests if each.path.endswith("completions")]


async def test_a_model_that_the_catalog_knows_to_write_calls_as_text_gets_no_tools(tmp_path: Any):
    async with OpenAIServer([BLOCK]) as server:
        (events,) = await asked(server, 1, tmp_path, "qwen2.5-coder-1.5b")
    assert has_tools(server) == [False]
    system = server.requests[-1].body["messages"][0]["content"]
    assert "- read_file(path?): Read." in system
    assert calls_in(events) == ["read_file"]
    assert shown(events).strip() == "I look."
    assert [e.text for e in events if isinstance(e, ToolCallStreamed)] == ['{"path":"a"}']


async def test_after_a_refusal_of_tools_calls_are_written_as_text(tmp_path: Any):
    refusal = HttpError(status=400, body='{"error": {"message": "m does not support tools"}}')
    async with OpenAIServer([refusal, BLOCK]) as server:
        (events,) = await asked(server, 1, tmp_path)
    assert has_tools(server) == [True, False]
    assert calls_in(events) == ["read_file"]
    assert "writes its calls as text" in next(e.text for e in events if isinstance(e, Noticed))


async def test_a_model_that_keeps_writing_calls_as_text_is_asked_for_text(tmp_path: Any):
    async with OpenAIServer([BLOCK, BLOCK, BLOCK]) as server:
        answers = await asked(server, 3, tmp_path)
    assert has_tools(server) == [True, True, False]
    assert [calls_in(events) for events in answers] == [["read_file"]] * 3


async def test_a_real_call_between_is_a_reason_to_go_on_with_tools(tmp_path: Any):
    async with OpenAIServer([BLOCK, call("read_file", path="a"), BLOCK, "Done."]) as server:
        await asked(server, 4, tmp_path)
    assert has_tools(server) == [True] * 4


async def test_a_model_that_calls_functions_only_shows_what_looks_like_a_call(tmp_path: Any):
    async with OpenAIServer([call("read_file", path="a"), BLOCK]) as server:
        _, events = await asked(server, 2, tmp_path)
    assert (shown(events), calls_in(events)) == (BLOCK, [])


async def test_the_call_that_a_file_holds_is_not_made_where_the_file_is_shown(tmp_path: Any):
    quoted = '{"name": "read_file", "arguments": {"path": "secret"}}'
    loaded = load(this_host(), folder=tmp_path, overrides={"llm.model": "qwen2.5-coder-1.5b"})
    result = ToolResult(call_id="1", name="read_file", output=f"# Notes\n{quoted}\n")
    history = [UserMessage.of("show it"), AssistantMessage(content=(call("read_file", path="a"),)), result]  # fmt: skip
    async with OpenAIServer([f"It says:\n```json\n{quoted}\n```", BLOCK]) as server:
        config = msgspec.structs.replace(
            loaded.config, llm=msgspec.structs.replace(loaded.config.llm, endpoint=server.url)
        )
        made = create_model(this_host(), config, provider="openai")
        shown_file, own = [
            [event async for event in made.stream(Request("", history, TOOLS))] for _ in range(2)
        ]
        await made.aclose()
    assert (calls_in(shown_file), calls_in(own)) == ([], ["read_file"])


async def test_a_server_elsewhere_is_never_asked_for_calls_as_text(tmp_path, monkeypatch):
    monkeypatch.setattr("ybs.providers.remote.is_local", lambda _host: False)
    async with OpenAIServer([BLOCK, BLOCK, BLOCK]) as server:
        answers = await asked(server, 3, tmp_path)
    assert has_tools(server) == [True] * 3
    assert [calls_in(events) for events in answers] == [[], [], []]


async def test_an_answer_in_words_is_shown_as_it_comes_and_whole(tmp_path: Any):
    text = "See:\n```python\nx = {1}\n```\nDone."
    async with OpenAIServer([text]) as server:
        (events,) = await asked(server, 1, tmp_path, "qwen2.5-coder-1.5b")
    assert (shown(events), calls_in(events)) == (text, [])
