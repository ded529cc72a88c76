"""What every Model keeps: the fakes of the tests and the real adapters against scripted servers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import TypeAlias

import msgspec
import pytest

from parrot import ParrotServer, install_parrot
from rows import every_row
from scripted import (
    AnthropicServer,
    ChaosModel,
    Entry,
    GoogleServer,
    HttpError,
    Interrupted,
    MistralServer,
    OllamaServer,
    OpenAIServer,
    ResponsesServer,
    ScriptedServer,
)
from ybs.config.host import Host
from ybs.config.schema import AgentLimits, Config, Endpoint, LlmSettings
from ybs.core.errors import ModelError, ProviderDown
from ybs.core.events import (
    AssistantSaid,
    Event,
    TextStreamed,
    ThinkingStreamed,
    ToolCallStreamed,
)
from ybs.core.messages import (
    AssistantMessage,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from ybs.core.ports import Model, Request, ToolSpec
from ybs.providers.registry import create_model
from ybs.testing import (
    Failing,
    ScriptedModel,
    answer,
    broken_call,
    call,
    thought,
)
from ybs.testing.model import Cue

LONG = "A text that is long enough for every wire format to be in the middle of it."
REQUEST = Request("be brief", [UserMessage.of("hello")])
LOOK = ToolSpec(
    name="look",
    description="Look at something.",
    parameters=msgspec.Raw(b'{"type":"object","properties":{"at":{"type":"string"}}}'),
)

#: Makes a model that plays the entries.
Make: TypeAlias = Callable[..., Awaitable[Model]]


def as_cue(entry: Entry) -> Cue:
    """Say what a server's fault is for a model in the same process."""
    match entry:
        case HttpError():
            return ProviderDown(entry.message)
        case Interrupted(how="break"):
            return Failing("A text that ", ProviderDown("broke off"))
        case Interrupted(how="stall"):
            return LONG
        case str() | ToolCall():
            return entry
        case _:
            assert isinstance(entry, type(answer()))
            return entry


async def make_fake(*script: Entry) -> Model:
    return ScriptedModel([as_cue(entry) for entry in script])


async def make_chaos(*script: Entry) -> Model:
    return ChaosModel(await make_fake(*script), seed=1, rate=0)


def make_remote(kind: type[ScriptedServer], stack: AsyncExitStack) -> Make:
    async def make(*script: Entry) -> Model:
        server = await stack.enter_async_context(kind(script))
        config = Config(
            llm=LlmSettings(provider="own", model="some-model"),
            providers={"own": Endpoint(endpoint=server.url, wire=kind.wire.name)},
            agent=AgentLimits(retry_attempts=0),
        )
        model = create_model(Host.of({}), config)
        stack.push_async_callback(model.aclose)
        return model

    return make


SERVERS = {
    kind.wire.name: kind
    for kind in (
        *(OpenAIServer, ResponsesServer, OllamaServer),
        *(AnthropicServer, GoogleServer, MistralServer),
    )
}


@pytest.fixture(params=["scripted", "chaos", *SERVERS, "parrot"])
async def make(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Make]:
    """Give a maker of models, one for each implementation; `parrot` is the package in examples/provider."""
    async with AsyncExitStack() as stack:
        match request.param:
            case "scripted":
                yield make_fake
            case "chaos":
                yield make_chaos
            case "parrot":
                install_parrot(tmp_path, monkeypatch)
                yield make_remote(ParrotServer, stack)
            case name:
                yield make_remote(SERVERS[name], stack)


async def collect(
    model: Model, request: Request = REQUEST, begun: asyncio.Event | None = None
) -> list[Event]:
    events: list[Event] = []
    async with aclosing(model.stream(request)) as stream:
        async for event in stream:
            events.append(event)
            if begun is not None:
                begun.set()
    return events


def message_of(events: list[Event]) -> AssistantMessage:
    assert isinstance(events[-1], AssistantSaid)
    assert sum(isinstance(event, AssistantSaid) for event in events) == 1
    return events[-1].message


async def test_an_error_before_output_is_a_model_error_and_the_model_lives(make: Make):
    model = await make(HttpError(status=503, message="busy"), "back again")
    with pytest.raises(ModelError, match="busy"):
        await collect(model)
    assert message_of(await collect(model)).text == "back again"


async def test_a_broken_stream_is_a_model_error_after_the_pieces_that_came(make: Make):
    model = await make(Interrupted(how="break", answer=LONG, after_frames=4), "back again")
    events: list[Event] = []
    with pytest.raises(ModelError) as caught:
        await collect_into(events, model)
    assert caught.value.temporary
    text = "".join(event.text for event in events if isinstance(event, TextStreamed))
    assert text
    assert LONG.startswith(text)
    assert not any(isinstance(event, AssistantSaid) for event in events)
    assert message_of(await collect(model)).text == "back again"


async def collect_into(events: list[Event], model: Model) -> None:
    async with aclosing(model.stream(REQUEST)) as stream:
        async for event in stream:
            events.append(event)  # noqa: PERF401 - what came before the error is the point


async def test_a_stream_can_be_closed_early_and_the_model_lives(make: Make):
    model = await make(Interrupted(how="stall", answer=LONG, after_frames=4), "back again")
    async with aclosing(model.stream(REQUEST)) as stream:
        assert isinstance(await anext(stream), TextStreamed)
    assert message_of(await collect(model)).text == "back again"


async def test_a_stream_can_be_cancelled_and_the_model_lives(make: Make):
    model = await make(Interrupted(how="stall", answer=LONG, after_frames=4), "back again")
    begun = asyncio.Event()
    task = asyncio.create_task(collect(model, begun=begun))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert message_of(await collect(model)).text == "back again"


async def test_the_message_comes_once_and_last_and_is_what_was_streamed(make: Make):
    script = answer(
        thought("first I think"),
        "then I speak, ünïcödé 🦀 and\n\n```python\ncode\t\n```\n",
        call("look", at='a ü 🦀 "quoted" \\ \n'),
        chunk_size=3,
    )
    events = await collect(await make(script))
    message = message_of(events)
    streamed = {
        kind: "".join(event.text for event in events if isinstance(event, kind))
        for kind in (ThinkingStreamed, TextStreamed, ToolCallStreamed)
    }
    thoughts = [part.text for part in message.content if isinstance(part, Thinking)]
    assert thoughts == [streamed[ThinkingStreamed]] == ["first I think"]
    assert message.text == streamed[TextStreamed]
    assert message.text == "then I speak, ünïcödé 🦀 and\n\n```python\ncode\t\n```\n"
    (asked,) = message.calls
    assert bytes(asked.arguments).decode() == streamed[ToolCallStreamed]
    assert msgspec.json.decode(asked.arguments) == {"at": 'a ü 🦀 "quoted" \\ \n'}
    assert message.stop_reason == "tool_calls"


async def test_the_order_of_the_parts_is_kept(make: Make):
    message = message_of(await collect(await make(answer(thought("hm"), "so", call("look")))))
    assert [type(part) for part in message.content] == [Thinking, Text, ToolCall]


async def test_every_call_has_an_id_of_its_own_and_an_object_of_arguments(make: Make):
    script = [answer(*(call("look", at=str(n)) for n in range(50))), answer(call("look"))]
    model = await make(*script)
    message = message_of(await collect(model))
    assert [msgspec.json.decode(c.arguments) for c in message.calls] == [
        {"at": str(n)} for n in range(50)
    ]
    results = [ToolResult(call_id=c.id, name=c.name, output="") for c in message.calls]
    later = message_of(await collect(model, Request("", [*REQUEST.messages, message, *results])))
    ids = [c.id for c in (*message.calls, *later.calls)]
    assert all(ids)
    assert len(set(ids)) == 51


async def test_broken_arguments_are_kept_beside_an_empty_object(make: Make):
    message = message_of(await collect(await make(broken_call("look", '{"at": "a'))))
    (asked,) = message.calls
    assert (asked.name, asked.invalid, bytes(asked.arguments)) == ("look", '{"at": "a', b"{}")


@every_row("reason", ["end", "length"])
async def test_the_reason_for_stopping_is_told(make: Make, reason: StopReason):
    message = message_of(await collect(await make(answer("text", stop_reason=reason))))
    assert message.stop_reason == reason


async def test_usage_and_the_models_name_stand_in_the_message(make: Make):
    usage = Usage(input_tokens=120, output_tokens=7)
    model = await make(answer("text", usage=usage))
    message = message_of(await collect(model))
    assert message.model == model.name
    counted = message.usage
    assert (counted.input_tokens, counted.output_tokens) == (120, 7)
    assert model.window > 0


async def test_an_empty_answer_is_an_empty_message(make: Make):
    events = await collect(await make(answer()))
    assert len(events) == 1
    assert message_of(events).content == ()


async def test_a_whole_conversation_can_be_sent_back(make: Make):
    script = [answer(thought("hm"), "I look.", call("look", at="a"), call("look", at="b")), "done"]
    model = await make(*script)
    messages = [*REQUEST.messages]
    said = message_of(await collect(model, Request("be brief", messages, [LOOK])))
    messages += [said]
    messages += [ToolResult(call_id=c.id, name=c.name, output="seen") for c in said.calls]
    messages += [UserMessage.of("go on", origin="guard")]
    assert message_of(await collect(model, Request("be brief", messages, [LOOK]))).text == "done"


async def test_two_streams_at_once_do_not_disturb_each_other(make: Make):
    model = await make(answer("one " * 9, chunk_size=2), answer("two " * 9, chunk_size=2))
    both = await asyncio.gather(collect(model), collect(model))
    assert sorted(message_of(events).text for events in both) == ["one " * 9, "two " * 9]
