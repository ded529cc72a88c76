"""An answer that has to fit a JSON Schema: asked for, checked, asked for again, or told to be wrong."""

from collections.abc import Callable
from random import Random
from string import ascii_letters, digits
from typing import Any

import pytest

from rows import every_row
from scripted import Entry, HttpError, OpenAIServer
from ybs.core.errors import ConfigError
from ybs.session.reply import Outcome
from ybs.session.session import Session
from ybs.testing import RecordedEvents, answer, call

Open = Callable[..., tuple[Session, RecordedEvents]]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"files": {"type": "integer"}},
    "required": ["files"],
    "additionalProperties": False,
}


async def ask(open_session: Open, *script: Entry) -> tuple[Outcome, OpenAIServer]:
    async with OpenAIServer(script) as server:
        session, _ = open_session(server, output_schema=SCHEMA)
        async with session:
            return await session.send("how many files?"), server


@pytest.mark.integration
@every_row("said", ['{"files": 3}', '```json\n{"files": 3}\n```', ' {"files": 3}\n'])
async def test_an_answer_that_fits_is_the_result(open_session: Open, said: str):
    outcome, server = await ask(open_session, answer(call("list_files")), said)
    assert (outcome.finished.reason, outcome.json) == ("done", b'{"files": 3}')
    words = [m["content"] for m in server.requests[0].body["messages"] if m["role"] == "user"]
    assert '"required":["files"]' in "".join(map(str, words))
    # An unknown server of chat completions may not take tools and a schema at once.
    assert all("response_format" not in request.body for request in server.requests)


async def test_a_wrong_answer_is_asked_for_again_natively_and_without_tools(open_session: Open):
    outcome, server = await ask(open_session, "There are 3.", '{"files": "3"}', '{"files": 3}')
    assert outcome.json == b'{"files": 3}'
    first, second, third = (request.body for request in server.requests)
    assert "tools" in first
    for body in (second, third):
        assert "tools" not in body
        assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert "not JSON" in str(second["messages"][-1]["content"])
    assert "$.files: '3' is not of type 'integer'" in str(third["messages"][-1]["content"])


async def test_a_secret_in_the_schema_is_masked_in_the_native_field_too(playing):
    token = "ghp_" + "".join(Random(3).choices(ascii_letters + digits, k=36))
    schema = {"type": "object", "properties": {"files": {"description": f"not {token}"}}}
    async with playing(["There are 3.", '{"files": 3}'], output_schema=schema) as (
        session,
        _,
        server,
    ):
        outcome = await session.send("how many files?")
    assert outcome.json == b'{"files": 3}'
    assert "response_format" in server.requests[1].body
    for request in server.requests:
        assert token not in str(request.body)
        assert "[ybs:secret:" in str(request.body)


async def test_a_server_that_takes_no_schema_is_asked_without(open_session: Open):
    refusal = HttpError(status=400, message="response_format json_schema is not supported")
    outcome, server = await ask(open_session, "no", refusal, '{"files": 3}')
    assert outcome.json == b'{"files": 3}'
    assert ["response_format" in request.body for request in server.requests] == [False, True, False]  # fmt: skip


async def test_after_three_wrong_answers_the_turn_fails_and_says_why(open_session: Open):
    outcome, server = await ask(open_session, "one", "two", "{}")
    assert outcome.finished.reason == "error"
    assert "does not fit the output schema after 3 tries: $: 'files' is a required property" in (
        outcome.finished.message
    )
    assert outcome.json == b""
    assert len(server.requests) == 3


def test_a_schema_that_is_not_understood_is_refused_at_once(project: Any):
    with pytest.raises(ConfigError, match="not a JSON Schema"):
        Session.open(
            project,
            provider="openai",
            endpoint="http://127.0.0.1:9",
            model="m",
            output_schema=["x"],
        )
