"""Anthropic: server and adapter against the official SDK."""

from typing import TYPE_CHECKING, Any

import pytest

from rows import every_row
from scripted import (
    AnthropicServer,
    HttpError,
    Interrupted,
    Whole,
)
from sdk_requests import accept, unknown_keys
from ybs.core.errors import AuthError, ContextTooLong, ModelError, ProviderDown, RateLimited
from ybs.core.messages import Thinking, Usage
from ybs.core.ports import Request
from ybs.testing import ScriptedAnswer, answer, call

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

#: Importing the SDK takes seconds on a busy machine.
pytestmark = pytest.mark.timeout(60)
MESSAGES: Any = [{"role": "user", "content": "hello"}]
STOPS = {"end_turn": "end", "tool_use": "tool_calls", "max_tokens": "length"}
REASONS = {"the key is bad": 401, "no": 403}


def client_of(server: AnthropicServer) -> "AsyncAnthropic":
    from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

    client = DefaultAsyncHttpxClient(verify=False)  # plain HTTP; reading certificates is slow
    return AsyncAnthropic(api_key="none", base_url=server.url, max_retries=0, http_client=client)


@pytest.mark.slow
async def test_the_server_is_refused_by_the_sdk_where_it_misbehaves():
    from anthropic import APIStatusError, RateLimitError

    script = [
        HttpError(status=429, message="slow down"),
        Interrupted(how="error", kind="overloaded_error", message="too many of you"),
    ]
    async with AnthropicServer(script) as server, client_of(server) as client:
        with pytest.raises(RateLimitError, match="slow down"):
            await client.messages.create(model="m", max_tokens=9, messages=MESSAGES)
        stream = await client.messages.create(
            model="m", max_tokens=9, messages=MESSAGES, stream=True
        )
        with pytest.raises(APIStatusError, match="too many of you"):
            [event async for event in stream]


@pytest.mark.slow
async def test_every_frame_is_a_raw_event_of_the_sdk(scripted: ScriptedAnswer):
    from anthropic.types import Message

    async with AnthropicServer([scripted, scripted]) as server, client_of(server) as client:
        stream = await client.messages.create(
            model="m", max_tokens=9, messages=MESSAGES, stream=True
        )
        events = [event async for event in stream]
        whole = await client.messages.create(model="m", max_tokens=9, messages=MESSAGES)
    names = [event.type for event in events]
    assert (names[0], names[-2:]) == ("message_start", ["message_delta", "message_stop"])
    assert names.count("content_block_start") == names.count("content_block_stop")
    for event in events:
        again = type(event).model_validate(event.model_dump(exclude_unset=True))  # now strictly
        assert not again.model_extra
    assert not Message.model_validate(whole.model_dump(exclude_unset=True)).model_extra


@pytest.mark.slow
async def test_ybs_and_the_sdk_understand_a_stream_alike(scripted, ask, said_type):
    async with AnthropicServer([scripted, scripted]) as server, client_of(server) as client:
        async with client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream:
            final = await stream.get_final_message()
        ours = said_type.of(await ask(server))
    assert final.stop_reason is not None
    blocks = final.content
    assert ours == said_type(
        text="".join(block.text for block in blocks if block.type == "text"),
        thinking="".join(block.thinking for block in blocks if block.type == "thinking"),
        calls=[(block.id, block.name, block.input) for block in blocks if block.type == "tool_use"],
        stop=STOPS[final.stop_reason],
        tokens=(final.usage.input_tokens, final.usage.output_tokens),
    )


async def test_a_whole_answer_is_understood_like_a_stream(scripted: ScriptedAnswer, ask: Any):
    async with AnthropicServer([scripted, Whole(answer=scripted)]) as server:
        assert await ask(server) == await ask(server)


@pytest.mark.slow
async def test_requests_are_what_the_sdk_would_send(conversation: Request, ask: Any):
    async with AnthropicServer(["fine"]) as server:
        await ask(server, conversation, key="the-key")
    (request,) = server.requests
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == "the-key"
    assert request.headers["anthropic-version"] == "2023-06-01"
    accept("anthropic", request.body)


@pytest.mark.slow
def test_the_check_for_unknown_keys_finds_them():
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

    block = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "txt": ""}]}
    body = {"model": "m", "max_token": 1, "messages": [{"role": "user", "content": [block]}]}
    assert unknown_keys(body, MessageCreateParamsStreaming) == [
        "$.max_token",
        "$.messages[0].content[0].content[0].txt",
    ]


@pytest.mark.slow
async def test_thinking_goes_back_exactly_as_the_sdk_received_it(ask: Any):
    signed = Thinking(text="let me see", signature="c2lnbmF0dXJl")
    hidden = Thinking(redacted="b3BhcXVl")
    script = [answer(signed, hidden, "I look.", call("look"), chunk_size=3)] * 2
    async with AnthropicServer([*script, "done"]) as server, client_of(server) as client:
        theirs = await client.messages.create(model="m", max_tokens=9, messages=MESSAGES)
        ours = await ask(server)
        await ask(server, Request("", [ours]))
    sent = server.requests[2].body["messages"][0]["content"][:2]
    assert sent == [
        block.model_dump(include={"type", "thinking", "signature", "data"}, exclude_none=True)
        for block in theirs.content[:2]
    ]


@pytest.mark.slow
async def test_the_cache_is_counted_in_the_input(ask: Any):
    usage = Usage(input_tokens=100, output_tokens=5, cached_tokens=80, cache_write_tokens=15)
    async with AnthropicServer([answer("hi", usage=usage)]) as server, client_of(server) as client:
        counted = (await ask(server)).usage
        assert (counted.input_tokens, counted.output_tokens) == (100, 5)
        assert (counted.cached_tokens, counted.cache_write_tokens) == (80, 15)
        assert client.base_url.host == "127.0.0.1"


@pytest.mark.integration
@every_row(
    ("kind", "message", "expected", "is_temporary"),
    [
        ("overloaded_error", "Overloaded", ProviderDown, True),
        ("api_error", "Internal server error", ProviderDown, True),
        ("rate_limit_error", "slow down", RateLimited, True),
        ("authentication_error", "invalid x-api-key", AuthError, False),
        ("permission_error", "not for you", AuthError, False),
        (
            "invalid_request_error",
            "prompt is too long: 210000 tokens > 200000 maximum",
            ContextTooLong,
            False,
        ),
    ],
)
@every_row("is_streamed", [True, False])
async def test_errors_get_their_meaning_in_a_status_and_in_mid_stream(
    ask: Any,
    kind: str,
    message: str,
    expected: type[ModelError],
    *,
    is_temporary: bool,
    is_streamed: bool,
):
    statuses = {
        "overloaded_error": 529,
        "api_error": 500,
        "rate_limit_error": 429,
        "authentication_error": 401,
        "permission_error": 403,
        "invalid_request_error": 400,
    }
    in_stream = Interrupted(how="error", after_frames=0, kind=kind, message=message)
    in_status = HttpError(status=statuses[kind], kind=kind, message=message)
    async with AnthropicServer([in_stream if is_streamed else in_status]) as server:
        with pytest.raises(expected) as caught:
            await ask(server)
    assert message.split(":")[0] in str(caught.value)
    assert caught.value.temporary is is_temporary
