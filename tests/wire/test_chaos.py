"""Streams that are cut, doubled, reordered, slow, too large or garbage: a ModelError or the right message, and never a hang.

What an event stream promises is that nothing is missing in its middle. Where pieces are lost, doubled or swapped all the same,
only a format that repeats the whole can show it: that is OpenAI's Responses. Of the others it is tested that nothing breaks.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rows import every_row
from scripted import (
    AnthropicServer,
    GoogleServer,
    MistralServer,
    OllamaServer,
    OpenAIServer,
    ResponsesServer,
)
from scripted.response import Asked, respond
from ybs.core.errors import ModelError
from ybs.core.events import AssistantSaid
from ybs.core.messages import AssistantMessage, Usage, UserMessage
from ybs.core.ports import Request
from ybs.providers.http.client import HttpClient
from ybs.providers.http.failures import Site
from ybs.providers.http.transport import HttpRequest
from ybs.providers.remote import RemoteModel, Retry
from ybs.providers.wire.adapter import RequestOptions
from ybs.providers.wires import adapter_of
from ybs.testing import answer, call, thought

WIRES = {
    kind.wire.name: kind.wire
    for kind in (
        *(OpenAIServer, ResponsesServer, AnthropicServer),
        *(GoogleServer, MistralServer, OllamaServer),
    )
}
#: Repeats the whole answer at its end, so that a missing piece shows.
TELLS_THE_WHOLE = "openai-responses"
ANSWER = answer(
    thought("let me see, carefully", signature="c2ln"),
    "The answer is forty two, grüße 🦀.",
    call("look", at="ü 🦀"),
    call("take", what="that"),
    chunk_size=5,
    usage=Usage(input_tokens=9, output_tokens=8),
)
BODY = {"stream": True, "model": "m", "stream_options": {"include_usage": True}}
#: No example takes nearly as long; a hang would last until the limit of the test.
HANG_SECONDS = 5
GARBAGE = (
    *(b"\xff\xfe\n\n", b'data: {"a": \n\n', b"<html>\n\n", b"data: [1]\n\n", b"data: null\n\n"),
    *(b'data: {"choices":"x","type":5,"candidates":[[]],"message":7}\n\n', b'{"choices":[null]}\n'),
    *(b"data: " + b"[" * 3_000 + b"\n\n", b'data: {"type":"message","content":[[],7]}\n\n', b"\0" * 9),
)  # fmt: skip

Chunks: TypeAlias = Sequence[bytes]
each_wire = pytest.mark.parametrize("wire", WIRES)


class Played:
    """A transport and its response in one: every request gets these chunks."""

    def __init__(self, chunks: Chunks) -> None:
        self.status = 200
        self.headers: Mapping[str, str] = {}
        self._chunks = chunks

    async def warm_up(self) -> None:
        """Do nothing."""

    async def send(self, call: HttpRequest) -> "Played":
        del call
        return self

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        for chunk in self._chunks:
            await asyncio.sleep(0)
            yield chunk

    async def aclose(self) -> None:
        """Do nothing."""


def pieces_of(wire: str) -> list[bytes]:
    """Return the answer as a server of that format streams it."""
    return [chunk for chunk in respond(WIRES[wire], ANSWER, Asked(BODY, 1)).chunks if chunk]


def words_in(pieces: Chunks) -> int:
    """Return the number of the first piece with words of the answer."""
    return next(number for number, piece in enumerate(pieces) if b"The " in piece)


async def heard(wire: str, chunks: Chunks) -> AssistantMessage | ModelError:
    """Return what is made of a stream. Any other error, and a second message, fails the test."""
    adapter = adapter_of(wire)
    site = Site(provider="own", endpoint="http://127.0.0.1:9", host="h")
    client = HttpClient(site, connections=Played(chunks))
    options = RequestOptions(model="m", quirks=adapter.quirks)
    model = RemoteModel(adapter, client, options, retry=Retry(attempts=0))
    try:
        async with asyncio.timeout(HANG_SECONDS):
            stream = model.stream(Request("", [UserMessage.of("hi")]))
            async with aclosing(stream) as events:
                said = [each async for each in events if isinstance(each, AssistantSaid)]
    except ModelError as error:
        return error
    (whole,) = said
    return whole.message


def outcome_of(wire: str, chunks: Chunks) -> Any:
    """Return what counts of a message, or None for a ModelError in words that can be shown."""
    found = asyncio.run(heard(wire, chunks))
    if isinstance(found, ModelError):
        assert str(found).replace("\n", "").isprintable()
        return None
    calls = [(each.name, bytes(each.arguments), each.invalid) for each in found.calls]
    return found.text, calls, found.stop_reason


def check(wire: str, harm: str, first: int, second: int) -> None:
    """Do one kind of harm to a stream; `first` and `second` say where."""
    pieces = pieces_of(wire)
    right = outcome_of(wire, pieces)
    assert right is not None
    at, to = first % len(pieces), second % len(pieces)
    found = outcome_of(wire, harmed(pieces, harm, at, to, first))
    is_certain = harm in ("cut", "bytes", "garbage", "slow") or wire == TELLS_THE_WHOLE
    if harm == "slow":
        assert found == right
    elif is_certain:
        assert found in (None, right), f"{harm} at {at}, {to}"


def harmed(pieces: Chunks, harm: str, at: int, to: int, first: int) -> Chunks:
    """Return a stream with one kind of harm done to it."""
    whole, changed = b"".join(pieces), list(pieces)
    match harm:
        case "cut":
            return pieces[:at]
        case "bytes":
            return [whole[: first % len(whole)]]
        case "slow":
            return [whole[n : n + 1 + to] for n in range(0, len(whole), 1 + to)]
        case "garbage":
            changed.insert(at, GARBAGE[to % len(GARBAGE)])
        case "double":
            changed.insert(to, pieces[at])
        case "swap":
            changed[at], changed[to] = changed[to], changed[at]
        case _:
            del changed[at]
    return changed


HARMS = ("cut", "bytes", "slow", "garbage", "double", "swap", "lose")
harms = st.tuples(st.sampled_from(HARMS), st.integers(0, 9_999), st.integers(0, 9_999))


@pytest.mark.integration
@each_wire
@given(harm=harms)
def test_a_harmed_stream_is_an_error_or_the_right_message(wire: str, harm: tuple[str, int, int]):
    check(wire, *harm)


@every_row("harm", ["lose", "double", "swap"])
def test_where_the_whole_is_repeated_no_wrong_words_pass(harm: str):
    words = words_in(pieces_of(TELLS_THE_WHOLE))
    check(TELLS_THE_WHOLE, harm, words, words + 1)


@pytest.mark.slow
@each_wire
@settings(max_examples=60)
@given(harm=harms)
def test_many_harmed_streams(wire: str, harm: tuple[str, int, int]):
    check(wire, *harm)


@pytest.mark.slow
@each_wire
@settings(max_examples=50)
@given(noise=st.lists(st.binary(max_size=200), max_size=8), at=st.integers(0, 99))
def test_noise_among_the_pieces_breaks_nothing(wire: str, noise: list[bytes], at: int):
    pieces = pieces_of(wire)
    outcome_of(wire, [*pieces[:at], *noise, *pieces[at:]])


@every_row("wire", list(WIRES))
async def test_an_answer_without_an_end_is_given_up(wire: str):
    pieces = pieces_of(wire)
    words = words_in(pieces)
    long = pieces[words].replace(b"The ", b"The " * 2_000)
    endless = [*pieces[:words], *[long] * 100]
    found = await heard(wire, endless)
    assert isinstance(found, ModelError)
    assert "did not stop" in str(found)


@pytest.mark.integration
@every_row("wire", list(WIRES))
async def test_a_line_without_an_end_is_given_up(wire: str):
    found = await heard(wire, [*pieces_of(wire)[:2], *[b"x" * 1_000_000] * 18])
    assert isinstance(found, ModelError)
    assert "16 MB" in str(found)
