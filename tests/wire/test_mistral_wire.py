"""Mistral: adapter and server against the official SDK."""

from typing import Any

import pytest

from scripted import MistralServer, Whole
from scripted.openai import MistralWire
from sdk_requests import accept
from ybs.core.ports import Request
from ybs.testing import ScriptedAnswer

#: Importing the SDK takes seconds on a busy machine.
pytestmark = pytest.mark.timeout(60)


@pytest.mark.slow
async def test_requests_are_what_the_sdk_would_send(conversation: Request, ask: Any):
    async with MistralServer(["fine"]) as server:
        await ask(server, conversation, key="the-key")
    (request,) = server.requests
    assert request.headers["authorization"] == "Bearer the-key"
    accept("mistral", request.body)


@pytest.mark.slow
def test_every_frame_and_every_whole_answer_is_one_of_the_sdk(scripted: ScriptedAnswer):
    from mistralai.client.models import ChatCompletionResponse, CompletionChunk

    wire, message = MistralWire(), scripted.message("m", 1)
    for frame in wire.frames(scripted, message, {}):
        assert CompletionChunk.model_validate(frame).choices
    whole = ChatCompletionResponse.model_validate(wire.whole(scripted, message, {}))
    assert whole.choices


async def test_a_whole_answer_is_understood_like_a_stream(scripted: ScriptedAnswer, ask: Any):
    async with MistralServer([scripted, Whole(answer=scripted)]) as server:
        assert await ask(server) == await ask(server)
