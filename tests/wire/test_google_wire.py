"""Google: server and adapter against the official SDK."""

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from scripted import Frames, GoogleServer, HttpError, Whole
from scripted.google import GoogleWire
from sdk_requests import accept
from ybs.core.messages import AssistantMessage, Thinking, ToolCall
from ybs.core.ports import Request
from ybs.testing import ScriptedAnswer, answer, thought

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.genai.client import AsyncClient

#: Importing the SDK takes seconds on a busy machine.
pytestmark = pytest.mark.timeout(60)
STOPS = {"STOP": "end", "MAX_TOKENS": "length"}


@asynccontextmanager
async def client_of(server: GoogleServer) -> "AsyncGenerator[AsyncClient]":
    from google.genai import Client
    from google.genai.types import HttpOptions

    address = server.url.removesuffix("/v1beta")
    client = Client(api_key="none", http_options=HttpOptions(base_url=address))
    yield client.aio
    await client.aio.aclose()
    client.close()


@pytest.mark.slow
async def test_the_server_is_refused_by_the_sdk_where_it_misbehaves():
    from google.genai.errors import ClientError

    refusal = HttpError(status=429, message="slow down")
    async with GoogleServer([refusal]) as server, client_of(server) as client:
        with pytest.raises(ClientError, match="slow down"):
            await client.models.generate_content(model="m", contents="hello")


@pytest.mark.slow
async def test_every_frame_and_every_whole_answer_is_a_response_of_the_sdk(scripted):
    from google.genai.types import GenerateContentResponse

    wire, message = GoogleWire(), scripted.message("m", 1)
    for frame in (*wire.frames(scripted, message, {}), wire.whole(scripted, message, {})):
        read = GenerateContentResponse.model_validate(
            frame
        )  # it forbids fields that it does not know
        assert read.candidates


@pytest.mark.slow
async def test_ybs_and_the_sdk_understand_a_stream_alike(scripted, ask, said_type):
    async with GoogleServer([scripted, scripted]) as server:
        async with client_of(server) as client:
            stream = await client.models.generate_content_stream(model="m", contents="hello")
            chunks = [chunk async for chunk in stream]
        ours = said_type.of(await ask(server))
    parts = [p for c in chunks for each in c.candidates or [] for p in each.content.parts or []]
    calls = [part.function_call for part in parts if part.function_call]
    last = chunks[-1]
    reason = STOPS[last.candidates[0].finish_reason.value]
    assert ours == said_type(
        text="".join(part.text or "" for part in parts if not part.thought),
        thinking="".join(part.text or "" for part in parts if part.thought),
        calls=[(call.id, call.name, call.args) for call in calls],
        stop="tool_calls" if calls else reason,
        tokens=(last.usage_metadata.prompt_token_count, last.usage_metadata.candidates_token_count),
    )


@pytest.mark.integration
async def test_a_whole_answer_is_understood_like_a_stream(scripted: ScriptedAnswer, ask: Any):
    async with GoogleServer([scripted, Whole(answer=scripted)]) as server:
        assert await ask(server) == await ask(server)


@pytest.mark.slow
async def test_requests_are_what_the_sdk_would_send(conversation: Request, ask: Any):
    async with GoogleServer(["fine"]) as server:
        await ask(server, conversation, key="the-key")
    (request,) = server.requests
    assert request.headers["x-goog-api-key"] == "the-key"
    assert request.path == "/v1beta/models/m:streamGenerateContent"
    accept("google", request.body)


async def test_a_signature_goes_back_with_the_call_that_it_came_with(ask: Any):
    signed = answer(
        thought("let me see", signature="c2ln"),
        ToolCall(id="call_1", name="look"),
        ToolCall(id="call_2", name="look"),
    )
    async with GoogleServer([signed, "fine", "fine"]) as server:
        said = await ask(server)
        await ask(server, Request("", [said]))
        unsigned = AssistantMessage(content=said.calls)
        await ask(server, Request("", [unsigned]))
    assert said.content[0] == Thinking(text="let me see", signature="c2ln", provider="google")
    signatures = [
        [part.get("thoughtSignature") for part in request.body["contents"][0]["parts"]]
        for request in server.requests[1:]
    ]
    assert signatures == [["c2ln", None], ["skip_thought_signature_validator", None]]


@pytest.mark.parametrize(
    ("frame", "stop"),
    [
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "refusal"),
        ({"candidates": [{"finishReason": "PROHIBITED_CONTENT"}]}, "refusal"),
        ({"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL"}]}, "failed"),
        ({"candidates": [{"finishReason": "MAX_TOKENS"}], "usageMetadata": None}, "length"),
    ],
)
async def test_why_an_answer_ended(frame: dict[str, Any], stop: str, ask: Any):
    async with GoogleServer([Frames.of({"candidates": []}, frame)]) as server:
        assert (await ask(server)).stop_reason == stop


async def test_a_model_that_does_not_think_is_asked_again_without(ask: Any):
    refusal = HttpError(status=400, message="Thinking is not supported by this model.")
    async with GoogleServer([refusal, "fine"]) as server:
        assert (await ask(server)).text == "fine"
    first, second = (msgspec.json.encode(request.body) for request in server.requests)
    assert b"thinkingConfig" in first
    assert b"thinkingConfig" not in second
