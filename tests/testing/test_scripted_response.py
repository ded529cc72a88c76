"""From a script's entry to bytes, for each wire format."""

import msgspec
import pytest

from rows import every_row
from scripted import (
    Frames,
    HttpError,
    Interrupted,
    Joined,
    Recut,
    StreamingRefused,
    Whole,
    html_page,
)
from scripted.anthropic import AnthropicWire
from scripted.ollama import OllamaWire
from scripted.openai import OpenAIWire
from scripted.response import Asked, Response, respond
from scripted.wire import Wire
from ybs.core.messages import Thinking, ToolCall
from ybs.testing import (
    answer,
    broken_call,
    call,
    thought,
)

WIRES: list[Wire] = [OpenAIWire(), OllamaWire(), AnthropicWire()]
STREAMED = Asked({"stream": True, "model": "m"}, 1)
each_wire = every_row("wire", WIRES, ids=lambda wire: wire.name)


def body_of(response: Response) -> bytes:
    return b"".join(response.chunks)


@each_wire
def test_a_broken_connection_stops_in_the_middle_of_a_frame(wire: Wire):
    whole = respond(wire, "some text", STREAMED)
    broken = respond(wire, Interrupted(how="break", answer="some text", after_frames=1), STREAMED)
    assert broken.is_broken
    assert broken.chunks[0] == whole.chunks[0]
    assert len(broken.chunks) == 2
    assert whole.chunks[1].startswith(broken.chunks[1])
    assert len(broken.chunks[1]) < len(whole.chunks[1])


@each_wire
def test_a_half_frame_ends_as_if_all_were_well(wire: Wire):
    half = respond(wire, Interrupted(how="half_frame", after_frames=1), STREAMED)
    assert not half.is_broken
    assert not half.chunks[-1].endswith(b"\n")


@each_wire
def test_a_stall_pauses_after_the_frames_and_has_the_rest_ready(wire: Wire):
    stalled = respond(wire, Interrupted(how="stall", answer="some text", after_frames=2), STREAMED)
    assert stalled.pauses_after == 2
    assert stalled.chunks == respond(wire, "some text", STREAMED).chunks


@each_wire
def test_garbage_stands_where_a_frame_should_and_the_rest_follows(wire: Wire):
    entry = Interrupted(how="garbage", answer="some text", after_frames=1, garbage="{\udcff")
    chunks = respond(wire, entry, STREAMED).chunks
    assert b"{\xff" in chunks[1]
    assert chunks[2:] == respond(wire, "some text", STREAMED).chunks[1:]


@each_wire
def test_an_error_in_mid_stream_is_a_frame_and_the_last_one(wire: Wire):
    entry = Interrupted(how="error", after_frames=1, kind="overloaded_error", message="too much")
    response = respond(wire, entry, STREAMED)
    assert (response.status, len(response.chunks)) == (200, 2)
    assert b"too much" in response.chunks[-1]


@each_wire
def test_recut_bytes_are_the_same_bytes_in_other_pieces(wire: Wire):
    whole = body_of(respond(wire, "grüße 🦀", STREAMED))
    cut = whole.index("🦀".encode()) + 2
    recut = respond(wire, Recut(answer="grüße 🦀", at=(cut, 5)), STREAMED)
    assert len(recut.chunks) == 3
    assert recut.chunks[1].endswith("🦀".encode()[:2])
    assert body_of(recut) == whole


@each_wire
def test_joined_frames_have_two_values_on_one_line(wire: Wire):
    whole = respond(wire, "some text", STREAMED)
    joined = respond(wire, Joined(answer="some text"), STREAMED)
    assert len(joined.chunks) < len(whole.chunks)
    line = next(line for line in joined.chunks[0].splitlines() if b"{" in line)
    with pytest.raises(msgspec.DecodeError, match="trailing characters"):
        msgspec.json.decode(line.removeprefix(b"data: "))


@each_wire
def test_errors_have_the_wire_formats_own_shape_or_the_body_given(wire: Wire):
    plain = respond(
        wire, HttpError(status=429, message="slow", headers={"Retry-After": "2"}), STREAMED
    )
    assert (plain.status, plain.headers["retry-after"]) == (429, "2")
    assert "slow" in str(msgspec.json.decode(body_of(plain))["error"])
    html = respond(wire, html_page(), STREAMED)
    assert html.headers == {"content-type": "text/html"}
    assert body_of(html).startswith(b"<html>")
    nothing = respond(wire, HttpError(status=200, body=""), STREAMED)
    assert body_of(nothing) == b""


@each_wire
def test_a_refusal_to_stream_is_an_error(wire: Wire):
    refused = respond(wire, StreamingRefused(), STREAMED)
    assert refused.status == 400
    assert b"streaming is not supported" in body_of(refused)


@each_wire
@every_row("said", ["text", call("look", a=1)])
def test_an_answer_is_whole_when_streaming_was_not_asked_for_or_is_withheld(wire, said):
    unasked = respond(wire, said, Asked({"stream": False, "model": "m"}, 1))
    assert isinstance(said, str | ToolCall)
    withheld = respond(wire, Whole(answer=said), STREAMED)
    assert unasked == withheld
    assert not unasked.is_chunked
    assert msgspec.json.decode(body_of(unasked))["model"] == "m"


@each_wire
def test_exact_frames_are_sent_as_they_are(wire: Wire):
    response = respond(wire, Frames.of({"type": "odd", "n": 1}, is_ended=False), STREAMED)
    assert len(response.chunks) == 1
    assert b'{"type":"odd","n":1}' in response.chunks[0]
    ended = respond(wire, Frames.of({"n": 1}), STREAMED)
    assert body_of(ended).endswith(wire.end_mark)


@each_wire
def test_nothing_that_was_said_is_lost_in_the_frames(wire: Wire):
    entry = answer(
        thought("pondering"),
        "telling",
        call("look", path="a"),
        broken_call("see", '{"x'),
        chunk_size=99,
    )
    body = body_of(respond(wire, entry, STREAMED)).decode()
    for word in ("pondering", "telling", "look", "call_1_1", "see", "call_1_2"):
        assert word in body
    whole = body_of(respond(wire, Whole(answer=entry), STREAMED)).decode()
    for word in ("pondering", "telling", "look", "see"):
        assert word in whole


def test_redacted_thinking_is_a_block_of_its_own():
    entry = answer(Thinking(redacted="opaque"), Thinking(text="open", signature="sig"))
    body = body_of(respond(AnthropicWire(), entry, STREAMED)).decode()
    assert '"type":"redacted_thinking","data":"opaque"' in body
    assert '"signature_delta","signature":"sig"' in body


def test_openai_gives_usage_only_when_asked():
    wire = OpenAIWire()
    assert b"usage" not in body_of(respond(wire, "hi", STREAMED))
    asked = Asked({"stream": True, "stream_options": {"include_usage": True}}, 1)
    assert b'"total_tokens":15' in body_of(respond(wire, "hi", asked))


def test_ollama_streams_unless_told_not_to():
    assert respond(OllamaWire(), "hi", Asked({}, 1)).is_chunked
    assert not respond(OpenAIWire(), "hi", Asked({}, 1)).is_chunked
    assert not respond(AnthropicWire(), "hi", Asked({}, 1)).is_chunked


@each_wire
def test_unknown_paths_have_no_facts(wire: Wire):
    assert wire.facts("/nowhere", ["m"]) is None
