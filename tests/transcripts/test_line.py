"""One line of a transcript: what is written can be read, and what cannot be read harms nothing."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator
from msgspec import Raw

from rows import every_row
from some_events import KINDS, one_of_each
from ybs.core.events import (
    AssistantSaid,
    Event,
    Replaced,
    SessionEnded,
    SessionStarted,
    SystemPrompted,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from ybs.core.messages import AssistantMessage, Text, ToolCall, UserMessage
from ybs.transcripts.line import TranscriptLine, decoded, encoded, lines_in, told

AT = datetime(2026, 1, 18, 14, 30, 22, 123_999, tzinfo=UTC)
HEADER = ("timestamp", "v", "event", "parent")


def written(event: Event, number: int = 17, parent: int = 16) -> bytes:
    return encoded(event, number=number, parent=parent, at=AT)


def said(line: bytes) -> Any:
    read = decoded(line)
    assert read is not None, line
    return read.said


@pytest.mark.integration
@given(one_of_each)
def test_every_event_comes_back_as_it_was(events: tuple[Event, ...]):
    for event in events:
        line = written(event)
        assert line.count(b"\n") == 1
        assert line.endswith(b"\n")
        expected = TranscriptLine(
            event=17, parent=16, timestamp="2026-01-18T14:30:22.123Z", said=event
        )
        assert decoded(line) == expected


SCHEMA = Path(__file__).parents[2] / "docs" / "events.schema.json"


@pytest.mark.integration
@settings(max_examples=20, deadline=None)
@given(one_of_each)
def test_every_line_is_as_the_published_schema_says(events: tuple[Event, ...]):
    judge: Any = Draft202012Validator(json.loads(SCHEMA.read_text()))
    for event in events:
        heard = told(event, session="s", at=AT, agent="explore-1", started_by="call_1")
        for line in (written(event), heard):
            assert judge.is_valid(json.loads(line)), line
    assert not judge.is_valid({"timestamp": "", "v": 1, "type": "tool_result", "id": 1})


@pytest.mark.parametrize("half", ["\ud800", "name-\udcff"])
def test_half_a_character_breaks_no_line(half: str):
    event = UserSaid(content=half)
    for line in (written(event), told(event, session=half, at=AT)):
        assert json.loads(line)["content"] == half[:-1] + "?"


def test_no_field_of_an_event_has_a_name_of_the_header():
    fields = {name for kind in KINDS for name in kind.__struct_encode_fields__}
    assert "content" in fields
    assert fields.isdisjoint((*HEADER, "type"))


def test_the_names_are_those_of_the_specification_and_stand_in_its_order():
    expected = {
        "session_start": ["config"],
        "system": ["content"],
        "user": ["content"],
        "tool_call": ["id", "name", "arguments"],
        "tool_result": ["id", "success", "output"],
        "assistant": ["content"],
        "session_end": ["reason", "message_count"],
    }
    events: list[Event] = [
        SessionStarted(session="s", folder="/p", config={"provider": "x"}),
        SystemPrompted(content="You are"),
        UserSaid(content="Read it"),
        ToolStarted(id="call_1", name="read_file", arguments=Raw(b'{"path":"README.md"}')),
        ToolFinished(id="call_1", name="read_file", success=True, output="# My"),
        AssistantSaid(content="I have"),
        SessionEnded(reason="user_exit", message_count=6),
    ]
    for event in events:
        data = json.loads(written(event))
        names = list(data)
        assert names[:2] == ["timestamp", "type"]
        assert names[-3:] == ["v", "event", "parent"]
        assert [name for name in names if name in expected[data["type"]]] == expected[data["type"]]
    assert {json.loads(written(event))["type"] for event in events} == expected.keys()


def test_the_time_is_written_as_utc():
    at = datetime(2026, 1, 18, 2, tzinfo=timezone(timedelta(hours=5)))
    line = encoded(SystemPrompted(content=""), number=1, parent=0, at=at)
    assert line.startswith(b'{"timestamp":"2026-01-17T21:00:00.000Z","type":"system",')


def test_arguments_stay_as_they_came_beside_half_a_surrogate():
    event = ToolStarted(id="1", name="\ud83d", arguments=Raw(b'{"x" : 1.0}'))
    assert bytes(said(written(event)).arguments) == b'{"x" : 1.0}'


def test_half_a_surrogate_is_replaced_wherever_it_stands():
    half = "a\ud83d"
    call = ToolCall(id="1", name=half, arguments=Raw(b'{"x":"a\\ud83d"}'), invalid=half)
    messages = (UserMessage.of(half), AssistantMessage(content=(Text(text=half), call)))
    mended = ToolCall(id="1", name="a?", arguments=Raw(b'{"x":"a?"}'), invalid="a?")
    pairs: list[tuple[Event, Event]] = [
        (UserSaid(content=half), UserSaid(content="a?")),
        (
            SessionStarted(session=half, folder=half, config={half: half}),
            SessionStarted(session="a?", folder="a?", config={"a?": "a?"}),
        ),
        (
            Replaced(messages=messages),
            Replaced(messages=(UserMessage.of("a?"), AssistantMessage(content=(Text(text="a?"), mended)))),
        ),
    ]  # fmt: skip
    for event, expected in pairs:
        assert said(written(event)) == expected


@every_row(
    "given, kept",
    [
        (b'{\n  "path": "a",\r\n\t"b": [1,\n2]\n}', b'{"path":"a","b":[1,2]}'),
        (b'{"a":"\\ud800"}', b'{"a":"?"}'),
        (b'{"a":"\\ud800",\n"b":1}', b'{"a":"?","b":1}'),
        (b'{"a":"one\ntwo"}', b'{"a":"one\\ntwo"}'),
        (b'{"a":NaN}', b'{"a":null}'),
        (b"", b'""'),
        (b'{"a":', b'"{\\"a\\":"'),
        (b'{"a":1}}', b'"{\\"a\\":1}}"'),
        (b"\xff", '"\ufffd"'.encode()),
        (b"[" * 5_000, b'"' + b"[" * 5_000 + b'"'),
    ],
)
def test_arguments_that_are_no_json_of_one_line_do_not_spoil_the_line(given: bytes, kept: bytes):
    line = written(ToolStarted(id="1", name="x", arguments=Raw(given)))
    assert line.count(b"\n") == 1
    assert bytes(said(line).arguments) == kept


@every_row(
    "data",
    [
        b"",
        b"\n",
        b"\0\0\0\n",
        b"null",
        b"[]",
        b'{"type":"user"}',  # no content
        b'{"type":"user","content":1}',
        b'{"type":"user","content":"x"',
        b'{"type":"user","content":"x"}{"type":"user","content":"y"}',
        b'{"type":"user","content":"x","event":"seven"}',
        b'{"type":"user","content":"\xff"}',
        b'{"type":"user","content":"\\ud800"}',
        b'{"content":"x"}',
        b'{"type":"user","content":"x","parts":' + b"[" * 100_000,
        b'{"type":"user","con\0tent":"x"}',
        b"\xff\xfe\x00",
        written(UserSaid(content="x"))[:-9],
        b"# a remark of the person",
    ],
)
def test_what_cannot_be_read_is_nothing(data: bytes):
    assert decoded(data) is None


def test_a_line_is_found_behind_zeros_and_before_a_carriage_return():
    line = written(UserSaid(content="x"))
    assert said(b"\0" * 100 + line[:-1] + b"\r\n") == UserSaid(content="x")


def test_a_type_or_field_of_another_version_harms_nothing():
    line = b'{"timestamp":"t","type":"telepathy","v":2,"event":3,"parent":2,"content":[1]}'
    assert decoded(line) == TranscriptLine(event=3, parent=2, timestamp="t", said=None)
    assert said(b'{"type":"user","content":"x","mood":"good","v":9}') == UserSaid(content="x")


def test_the_specifications_own_lines_can_be_read():
    line = b'{"timestamp":"2026-01-18T14:30:30Z","type":"user","content":"Read the README file"}\n'
    expected = UserSaid(content="Read the README file")
    assert decoded(line) == TranscriptLine(
        event=0, parent=0, timestamp="2026-01-18T14:30:30Z", said=expected
    )


def test_numbers_below_zero_are_none():
    line = b'{"type":"user","content":"x","event":-3,"parent":-1}'
    read = decoded(line)
    assert read is not None
    assert (read.event, read.parent) == (0, 0)


@pytest.mark.integration
def test_a_line_of_ten_megabytes_is_a_line():
    event = ToolFinished(id="1", name="x", success=True, output="x" * 10_000_000)
    assert said(written(event)) == event


def test_of_a_line_that_is_too_long_only_the_beginning_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr("ybs.transcripts.line.MOST_LINE_BYTES", 8)
    path = tmp_path / "long"
    path.write_bytes(b"1234567\nx" + b"y" * 99 + b"\nlast\n12345678")
    with path.open("rb") as file:
        assert list(lines_in(file)) == [b"1234567\n", b"xyyyyyyy", b"last\n", b"12345678"]
