"""What goes wrong on the wire: each fault, on each wire format, is a clear ModelError or no error at all."""

from contextlib import aclosing
from typing import Any

import pytest

from rows import every_row
from scripted import (
    AnthropicServer,
    Entry,
    GoogleServer,
    HttpError,
    Interrupted,
    Joined,
    OllamaServer,
    OpenAIServer,
    Recut,
    ResponsesServer,
    ScriptedServer,
    StreamingRefused,
    Whole,
    html_page,
)
from ybs.config.host import Host
from ybs.config.schema import AgentLimits, Config, Endpoint, LlmSettings
from ybs.core.errors import ModelError, RateLimited
from ybs.core.events import AssistantSaid, RequestRetried, TextStreamed
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.registry import create_model
from ybs.testing import answer, call

SERVERS = [OpenAIServer, ResponsesServer, OllamaServer, AnthropicServer, GoogleServer]
each_server = every_row("kind", SERVERS, ids=lambda kind: kind.wire.name)
EVERYTHING = answer("grüße 🦀 \u2028", call("look", at="ü 🦀"), chunk_size=1)
SEVEN_TIMES = "about seven pieces of this size each, or so"


def own(server: ScriptedServer) -> Endpoint:
    return Endpoint(endpoint=server.url, wire=server.wire.name)


@pytest.mark.integration
@each_server
@every_row(
    "fault",
    [
        Interrupted(how="break", answer=SEVEN_TIMES, after_frames=4),
        Interrupted(how="half_frame", answer=SEVEN_TIMES, after_frames=4),
        Interrupted(how="garbage", answer=SEVEN_TIMES, after_frames=4),
        Interrupted(how="garbage", answer=SEVEN_TIMES, after_frames=4, garbage='{"a": "\udcff"}'),
        Interrupted(how="garbage", answer=SEVEN_TIMES, after_frames=4, garbage="[1]"),
        Interrupted(how="error", answer=SEVEN_TIMES, after_frames=4),
        HttpError(status=500),
        HttpError(status=404, message="no such model"),
        HttpError(status=200, body=""),
        HttpError(status=200, body="\udcff\udcfe\x00"),
        HttpError(status=200, body="null"),
        html_page(502),
        html_page(200),
    ],
    ids=lambda fault: f"{type(fault).__name__}",
)
async def test_a_bad_answer_is_one_clear_error_in_two_lines_at_most(
    kind: type[ScriptedServer], fault: Entry, ask: Any
):
    async with kind([fault]) as server:
        with pytest.raises(ModelError) as caught:
            await ask(server)
    message = str(caught.value)
    assert 10 < len(message) < 600
    assert len(message.splitlines()) <= 2
    assert all(c.isprintable() or c == "\n" for c in message)


@each_server
async def test_too_many_requests_say_how_long_to_wait(kind: type[ScriptedServer], ask: Any):
    fault = HttpError(status=429, headers={"Retry-After": "7"})
    async with kind([fault]) as server:
        with pytest.raises(RateLimited) as caught:
            await ask(server)
    assert caught.value.retry_after_seconds == 7


@pytest.mark.integration
@each_server
async def test_two_values_on_one_line_are_two_frames(kind: type[ScriptedServer], ask: Any):
    async with kind([Joined(answer=EVERYTHING), EVERYTHING]) as server:
        joined, plain = await ask(server), await ask(server)
    assert joined.text == plain.text == "grüße 🦀 \u2028"


@pytest.mark.integration
@each_server
async def test_bytes_may_be_cut_anywhere_even_in_a_character(kind: type[ScriptedServer], ask: Any):
    async with kind([EVERYTHING]) as server:
        plain = await ask(server)
    cuts = [Recut(answer=EVERYTHING, at=tuple(range(first, 9000, 7))) for first in range(1, 8)]
    async with kind(cuts) as server:
        for _ in cuts:
            said = await ask(server)
            assert (said.text, said.stop_reason) == (plain.text, plain.stop_reason)
            assert [c.arguments for c in said.calls] == [c.arguments for c in plain.calls]


@each_server
async def test_streaming_refused_or_withheld_still_gives_the_answer(
    kind: type[ScriptedServer], ask: Any
):
    async with kind([StreamingRefused(), "in one piece", Whole(answer="whole")]) as server:
        assert (await ask(server)).text == "in one piece"
        assert (await ask(server)).text == "whole"
    streamed = [server.wire.is_streamed({**each.body, **server.wire.said_by_path(each.path)}) for each in server.requests]  # fmt: skip
    assert streamed == [True, False, True]


@each_server
async def test_closing_a_stream_hangs_up_so_that_the_server_stops_working(
    kind: type[ScriptedServer],
):
    fault = Interrupted(how="stall", answer=SEVEN_TIMES, after_frames=4)
    async with kind([fault]) as server:
        config = Config(llm=LlmSettings(provider="own", model="m"), providers={"own": own(server)})
        model = create_model(Host.of({}), config)
        async with aclosing(model.stream(Request("", [UserMessage.of("hi")]))) as events:
            assert isinstance(await anext(events), TextStreamed)
        await server.dropped()
        await model.aclose()


@each_server
async def test_an_answer_that_breaks_off_is_asked_for_anew(kind: type[ScriptedServer]):
    broken = Interrupted(how="break", answer=SEVEN_TIMES, after_frames=4)
    async with kind([broken, "whole"]) as server:
        config = Config(
            llm=LlmSettings(provider="own", model="m"),
            providers={"own": own(server)},
            agent=AgentLimits(retry_attempts=3, retry_backoff_base_ms=0),
        )
        model = create_model(Host.of({}), config)
        async with aclosing(model.stream(Request("", [UserMessage.of("hi")]))) as events:
            seen = [event async for event in events]
        await model.aclose()
    assert [event.pause for event in seen if isinstance(event, RequestRetried)] == ["backoff"]
    assert isinstance(seen[-1], AssistantSaid)
    assert seen[-1].content == "whole"
    first, again = (request.raw for request in server.requests)
    assert first == again
