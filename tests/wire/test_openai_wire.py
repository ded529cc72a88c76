"""OpenAI: server and adapter against the official SDK."""

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from scripted import Frames, HttpError, Interrupted, OpenAIServer, Whole
from sdk_requests import accept, unknown_keys
from ybs.core.ports import Request
from ybs.testing import ScriptedAnswer

if TYPE_CHECKING:
    from openai import AsyncOpenAI

#: Importing the SDK takes seconds on a busy machine.
pytestmark = pytest.mark.timeout(60)
MESSAGES: Any = [{"role": "user", "content": "hello"}]
STOPS = {"stop": "end", "tool_calls": "tool_calls", "length": "length"}


def client_of(server: OpenAIServer) -> "AsyncOpenAI":
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    client = DefaultAsyncHttpxClient(verify=False)  # plain HTTP; reading certificates is slow
    return AsyncOpenAI(api_key="none", base_url=server.url, max_retries=0, http_client=client)


@pytest.mark.slow
async def test_the_server_is_refused_by_the_sdk_where_it_misbehaves():
    from openai import APIStatusError, RateLimitError

    script = [HttpError(status=429, message="slow down"), Interrupted(how="error", kind="broken")]
    async with OpenAIServer(script) as server, client_of(server) as client:
        with pytest.raises(RateLimitError, match="slow down"):
            await client.chat.completions.create(model="m", messages=MESSAGES)
        stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        with pytest.raises(Exception, match="something broke") as caught:
            [chunk async for chunk in stream]
    assert not isinstance(caught.value, APIStatusError)


@pytest.mark.slow
async def test_every_frame_is_a_chunk_and_every_whole_answer_a_completion(scripted: ScriptedAnswer):
    import httpx2
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

    body = {"model": "m", "messages": MESSAGES, "stream_options": {"include_usage": True}}
    script = [scripted, Whole(answer=scripted)]
    async with OpenAIServer(script) as server, httpx2.AsyncClient(verify=False) as client:
        path = f"{server.url}/chat/completions"
        streamed = await client.post(path, json={**body, "stream": True})
        whole = await client.post(path, json=body)
    *frames, end = [line.removeprefix("data: ") for line in streamed.text.split("\n\n") if line]
    assert end == "[DONE]"
    for frame in frames:
        chunk = ChatCompletionChunk.model_validate_json(frame)
        chunk_keys = chunk.model_dump(exclude_unset=True).keys()
        assert chunk_keys == msgspec.json.decode(frame).keys()
        assert not chunk.model_extra
    assert not ChatCompletion.model_validate_json(whole.text).model_extra


@pytest.mark.slow
async def test_ybs_and_the_sdk_understand_a_stream_alike(scripted, ask, said_type):
    async with OpenAIServer([scripted, scripted]) as server, client_of(server) as client:
        async with client.chat.completions.stream(
            model="m", messages=MESSAGES, stream_options={"include_usage": True}
        ) as stream:
            [event async for event in stream]
            final = stream.current_completion_snapshot
        ours = said_type.of(await ask(server))
    choice = final.choices[0]
    assert final.usage is not None
    assert ours == said_type(
        text=choice.message.content or "",
        thinking=(choice.message.model_extra or {}).get("reasoning_content", ""),
        calls=[
            (call.id, call.function.name, msgspec.json.decode(call.function.arguments))
            for call in choice.message.tool_calls or []
        ],
        stop=STOPS[choice.finish_reason],
        tokens=(final.usage.prompt_tokens, final.usage.completion_tokens),
    )


async def test_a_whole_answer_is_understood_like_a_stream(scripted: ScriptedAnswer, ask: Any):
    async with OpenAIServer([scripted, Whole(answer=scripted)]) as server:
        assert await ask(server) == await ask(server)


@pytest.mark.slow
async def test_requests_are_what_the_sdk_would_send(conversation: Request, ask: Any):
    async with OpenAIServer(["fine"]) as server:
        await ask(server, conversation, key="the-key")
    (request,) = server.requests
    assert request.headers["authorization"] == "Bearer the-key"
    assert request.headers["content-type"] == "application/json"
    accept("openai", request.body)


@pytest.mark.slow
def test_the_check_for_unknown_keys_finds_them():
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    message = {"role": "user", "content": [{"type": "text", "text": "hi", "odd": 1}]}
    body = {"model": "m", "messages": [message], "strem": True}
    assert unknown_keys(body, CompletionCreateParamsStreaming) == [
        "$.messages[0].content[0].odd",
        "$.strem",
    ]


async def test_loose_frames_still_make_a_message(ask: Any):
    call: dict[str, Any] = {"function": {"name": "look", "arguments": {"at": "a"}}}
    frames = Frames.of(
        {"choices": []},
        {"choices": [{"delta": {"role": "assistant"}}]},
        {"choices": [{"delta": {"reasoning": "hm", "content": "so"}}]},
        {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]},
    )
    async with OpenAIServer([frames]) as server:
        message = await ask(server)
    assert (message.text, message.stop_reason) == ("so", "tool_calls")
    assert [c.name for c in message.calls] == ["look"]
    assert all(c.id for c in message.calls)
