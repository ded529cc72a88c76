"""OpenAI Responses: server and adapter against the official SDK."""

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from scripted import Frames, HttpError, ResponsesServer, Whole
from scripted.responses import ResponsesWire
from sdk_requests import accept
from ybs.core.errors import ModelError
from ybs.core.messages import AssistantMessage, Text, Thinking, ToolCall, UserMessage
from ybs.core.ports import Request
from ybs.testing import ScriptedAnswer, answer, thought

if TYPE_CHECKING:
    from openai import AsyncOpenAI

#: Importing the SDK takes seconds on a busy machine.
pytestmark = pytest.mark.timeout(60)


def client_of(server: ResponsesServer) -> "AsyncOpenAI":
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    client = DefaultAsyncHttpxClient(verify=False)  # plain HTTP; reading certificates is slow
    return AsyncOpenAI(api_key="none", base_url=server.url, max_retries=0, http_client=client)


@pytest.mark.slow
async def test_every_event_and_every_whole_answer_is_one_of_the_sdk(scripted: ScriptedAnswer):
    from openai.types.responses import Response, ResponseStreamEvent
    from pydantic import TypeAdapter

    wire, message = ResponsesWire(), scripted.message("m", 1)
    for frame in wire.frames(scripted, message, {}):
        event = TypeAdapter[Any](ResponseStreamEvent).validate_python(frame)
        assert event.type == frame["type"]
        assert not event.model_extra, frame
    assert not Response.model_validate(wire.whole(scripted, message, {})).model_extra


@pytest.mark.slow
async def test_ybs_and_the_sdk_understand_a_stream_alike(scripted, ask, said_type):
    async with ResponsesServer([scripted, scripted]) as server, client_of(server) as client:
        async with client.responses.stream(model="m", input="hello") as stream:
            ended = ("response.completed", "response.incomplete")
            (final,) = [event.response async for event in stream if event.type in ended]
        ours = said_type.of(await ask(server))
    calls = [item for item in final.output if item.type == "function_call"]
    thoughts = [item for item in final.output if item.type == "reasoning"]
    assert final.usage is not None
    stop = "length" if final.status == "incomplete" else "end"
    assert ours == said_type(
        text=final.output_text,
        thinking="".join(each.text for item in thoughts for each in item.summary),
        calls=[(c.call_id, c.name, msgspec.json.decode(c.arguments)) for c in calls],
        stop="tool_calls" if calls else stop,
        tokens=(final.usage.input_tokens, final.usage.output_tokens),
    )


async def test_a_whole_answer_is_understood_like_a_stream(scripted: ScriptedAnswer, ask: Any):
    async with ResponsesServer([scripted, Whole(answer=scripted)]) as server:
        assert await ask(server) == await ask(server)


@pytest.mark.slow
async def test_requests_are_what_the_sdk_would_send(conversation: Request, ask: Any):
    async with ResponsesServer(["fine"]) as server:
        await ask(server, conversation, key="the-key")
    (request,) = server.requests
    assert request.headers["authorization"] == "Bearer the-key"
    assert request.body["store"] is False
    accept("openai-responses", request.body)


async def test_reasoning_goes_back_encrypted_before_the_call_that_it_led_to(ask: Any):
    sealed = answer(thought("let me see", signature="c2ln"), ToolCall(id="call_1", name="look"))
    foreign = Thinking(text="hm", signature="x", provider="anthropic")
    async with ResponsesServer([sealed, "fine"]) as server:
        said = await ask(server)
        history = [said, AssistantMessage(content=(foreign, Text(text="So.")))]
        await ask(server, Request("", history))
    (thinking, _) = said.content
    assert isinstance(thinking, Thinking)
    assert (thinking.text, thinking.provider) == ("let me see", "openai-responses")
    assert thinking.signature.endswith("|rs_0:c2ln")
    kinds = [
        (each["type"], each.get("encrypted_content")) for each in server.requests[1].body["input"]
    ]
    assert kinds == [("reasoning", "c2ln"), ("function_call", None), ("message", None)]


async def test_sealed_reasoning_goes_to_no_other_account_and_no_other_address(ask: Any):
    sealed = answer(thought("let me see", signature="c2ln"), ToolCall(id="call_1", name="look"))
    first_key, other_key = "sk-" + "a1" * 9, "sk-" + "b2" * 9
    async with ResponsesServer([sealed, *["fine"] * 3]) as server, ResponsesServer(["ok"]) as other:
        said = await ask(server, key=first_key)
        again = Request("", [UserMessage.of("hi"), said])
        await ask(other, again, key=first_key)
        for key in (other_key, None, first_key):
            await ask(server, again, key=key)
    bodies = [request.body for request in (*other.requests, *server.requests[1:])]
    assert ["c2ln" in str(body) for body in bodies] == [False, False, False, True]
    assert all("function_call" in str(body) for body in bodies)
    assert first_key not in str(said)


CALL = {"type": "function_call", "call_id": "call_1", "name": "look"}
BEGUN = {"type": "response.output_item.added", "output_index": 0, "item": {**CALL, "arguments": ""}}
WHOLE = {**CALL, "arguments": '{"at":"a"}'}
END = {"type": "response.completed", "response": {"status": "completed"}}


@pytest.mark.parametrize(
    "events",
    [
        [
            BEGUN,
            {
                "type": "response.function_call_arguments.done",
                "output_index": 0,
                "arguments": '{"at":"a"}',
            },
            {"type": "response.output_item.done", "output_index": 0, "item": WHOLE},
            END,
        ],
        [BEGUN, {"type": "response.output_item.done", "output_index": 0, "item": WHOLE}, END],
        [{"type": "response.output_item.done", "output_index": 0, "item": WHOLE}, END],
        [{"type": "response.completed", "response": {"status": "completed", "output": [WHOLE]}}],
    ],
    ids=["arguments done", "item done", "item done alone", "response completed"],
)
async def test_arguments_that_come_in_one_piece_at_the_end_are_read_once(events, ask):
    async with ResponsesServer([Frames.of(*events)]) as server:
        message = await ask(server)
    assert [(c.id, c.name, bytes(c.arguments)) for c in message.calls] == [
        ("call_1", "look", b'{"at":"a"}')
    ]


async def test_a_response_that_failed_says_why(ask: Any):
    error = {"code": "server_error", "message": "the engine broke"}
    failed = {"type": "response.failed", "response": {"status": "failed", "error": error}}
    async with ResponsesServer([Frames.of(failed)]) as server:
        with pytest.raises(ModelError, match="the engine broke"):
            await ask(server)


@pytest.mark.parametrize(
    "refusal",
    [
        "Encrypted content is not supported with this model.",
        "Unsupported parameter: 'reasoning.summary' is not supported with this model.",
    ],
)
async def test_a_model_that_does_not_reason_is_asked_again_without(refusal: str, ask: Any):
    async with ResponsesServer([HttpError(status=400, message=refusal), "fine"]) as server:
        assert (await ask(server, Request("", [UserMessage.of("hi")]))).text == "fine"
    assert [{"include", "reasoning"} & each.body.keys() for each in server.requests] == [
        {"include", "reasoning"},
        set(),
    ]
