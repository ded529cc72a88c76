"""Reading a transcript that was torn, spoiled, edited by hand or rewound."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from rows import every_row
from ybs.config import private_file
from ybs.config.private_file import Unsafe
from ybs.core.errors import YbsError
from ybs.core.events import Event, Rewound, SessionEnded, ToolFinished, ToolStarted, UserSaid
from ybs.core.messages import AssistantMessage, ToolResult
from ybs.transcripts.line import encoded
from ybs.transcripts.log import Log
from ybs.transcripts.reading import Transcript, read

AT = datetime(2026, 1, 18, tzinfo=UTC)


def line(event: Event | str, number: int, parent: int) -> bytes:
    event = UserSaid(content=event) if isinstance(event, str) else event
    return encoded(event, number=number, parent=parent, at=AT)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session-1.jsonl"


def written(path: Path, *lines: bytes) -> Transcript:
    path.write_bytes(b"".join(lines))
    path.chmod(0o600)
    return read(path)


def chain_of(transcript: Transcript) -> list[tuple[int, int]]:
    return [(each.event, each.parent) for each in transcript.chain]


def words_of(events: Iterable[Event]) -> list[str]:
    return [event.content if isinstance(event, UserSaid) else "rewind" for event in events]


def said_in(transcript: Transcript) -> list[str]:
    return [each.text for each in transcript.replay.messages if not isinstance(each, ToolResult)]


def test_a_branch_that_was_left_is_in_the_file_and_not_in_the_chain(path: Path):
    log = Log(path)
    for word in "abcdef":
        log.add(UserSaid(content=word))
    log.add(Rewound(keeps=3), parent=3)
    log.add(UserSaid(content="g"))
    log.close()
    transcript = read(path)
    assert words_of(each.event for each in transcript.events) == ["a", "b", "c", "rewind", "g"]
    assert len(transcript.lines) == transcript.last == 8
    assert said_in(transcript) == ["a", "b", "c", "g"]


def test_a_torn_last_line_costs_that_line_alone(path: Path):
    torn = line("c", 3, 2)[:-9]
    transcript = written(path, line("a", 1, 0), line("b", 2, 1), torn)
    assert (said_in(transcript), transcript.damaged, transcript.last) == (["a", "b"], 1, 2)
    log = Log(path, last=transcript.last)
    log.add(UserSaid(content="d"))
    log.close()
    transcript = read(path)
    assert (said_in(transcript), transcript.damaged) == (["a", "b", "d"], 1)
    assert chain_of(transcript) == [(1, 0), (2, 1), (3, 2)]


@every_row(
    "spoiled",
    [b"\0" * 90 + b"\n", b"}{\n", b'{"type":"user"}\n', b"\xff\n", line("b", 2, 1)[9:], b'"\n'],
)
def test_a_damaged_line_in_the_middle_is_counted_and_passed_over(path: Path, spoiled: bytes):
    transcript = written(path, line("a", 1, 0), spoiled, b"\n", line("c", 3, 2), line("d", 4, 3))
    assert (said_in(transcript), transcript.damaged) == (["a", "c", "d"], 1)
    assert chain_of(transcript) == [(1, 0), (3, 1), (4, 3)]


def test_zeros_before_a_line_do_not_take_it_with_them(path: Path):
    transcript = written(path, line("a", 1, 0), b"\0" * 4_096 + line("b", 2, 1))
    assert (said_in(transcript), transcript.damaged) == (["a", "b"], 0)


def test_what_was_rewound_stays_so_where_a_line_that_was_kept_is_damaged(path: Path):
    rewound = line(Rewound(keeps=2), 4, 2)
    transcript = written(
        path, line("a", 1, 0)[5:], line("b", 2, 1), line("c", 3, 2), rewound, line("d", 5, 4)
    )
    assert said_in(transcript) == ["b", "d"]


def test_a_type_of_another_version_stands_in_the_chain_and_tells_nothing(path: Path):
    unknown = b'{"timestamp":"t","type":"telepathy","v":2,"event":2,"parent":1}\n'
    transcript = written(path, line("a", 1, 0), unknown, line("b", 3, 2))
    assert ([line.said for line in transcript.lines].count(None), transcript.damaged) == (1, 0)
    assert chain_of(transcript) == [(1, 0), (2, 1), (3, 2)]
    assert words_of(each.event for each in transcript.events) == ["a", "b"]


@every_row(
    "links, expected",
    [
        ([(1, 0), (2, 3), (3, 2)], [(1, 0), (2, 1), (3, 2)]),  # forward, and a circle
        ([(1, 1), (2, 2)], [(1, 0), (2, 1)]),  # itself
        ([(5, 0), (7, 6), (9, 7)], [(5, 0), (7, 5), (9, 7)]),  # lines were deleted
        ([(1, 0), (2, 1), (2, 1), (3, 2)], [(1, 0), (2, 1), (3, 2), (4, 3)]),  # copied
        ([(3, 2), (2, 1), (1, 0)], [(3, 0), (4, 3), (5, 4)]),  # turned round
        ([(0, 0), (0, 0)], [(1, 0), (2, 1)]),  # without numbers
        ([(1, 0), (10**40, 1), (2, 1)], [(1, 0), (2, 1), (3, 2)]),
        ([(1, 0), (2, -7)], [(2, 0)]),  # begins anew
    ],
)
def test_numbers_that_a_hand_has_spoiled_make_a_chain_all_the_same(path, links, expected):
    transcript = written(path, *(line("x", number, parent) for number, parent in links))
    assert chain_of(transcript) == expected


def test_the_specifications_own_lines_are_a_transcript(path: Path):
    transcript = written(
        path,
        b'{"timestamp":"2026-01-18T14:30:25Z","type":"system","content":"You are"}\n',
        b'{"timestamp":"2026-01-18T14:30:30Z","type":"user","content":"Read it"}\n',
        b'{"timestamp":"2026-01-18T14:30:33Z","type":"assistant","content":"I have"}\n',
        b'{"timestamp":"2026-01-18T14:31:00Z","type":"session_end","reason":"exit","message_count":2}',
    )
    assert said_in(transcript) == ["Read it", "I have"]
    assert transcript.replay.system == "You are"
    assert transcript.events[-1].event == SessionEnded(reason="exit", message_count=2)


@pytest.mark.integration
@given(st.lists(st.binary(max_size=40) | st.sampled_from([line("a", 1, 0), line("b", 2, 1)])))
def test_no_file_makes_reading_fail_in_another_way_than_in_words(tmp_path_factory, pieces):
    path = tmp_path_factory.mktemp("any") / "session.jsonl"
    with suppress(YbsError):
        transcript = written(path, *pieces)
        assert transcript.chain[-1].event == transcript.last


def test_a_file_with_nothing_to_read_is_an_error_in_words(path: Path):
    with pytest.raises(YbsError, match=r"the session file .*session-1\.jsonl does not exist"):
        read(path)
    with pytest.raises(YbsError, match="not a session file: it is empty"):
        written(path)
    with pytest.raises(YbsError, match="not a session file: none of its 2 lines can be read"):
        written(path, b"ELF\0\n", b"\n", b"hello")


def test_f02_a_link_is_not_read(path: Path, tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_bytes(line("mine", 1, 0))
    path.symlink_to(secret)
    with pytest.raises(Unsafe):
        read(path)


def test_a_file_is_read_line_by_line_whatever_its_size(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(private_file, "read")  # which has a limit
    large = ToolFinished(id="1", name="x", success=True, output="x" * 1_000_000)
    transcript = written(path, line(large, 1, 0), line("a", 2, 1))
    assert transcript.lines[0].said == large
    assert said_in(transcript) == ["a"]


SPECIFIED = b"""\
{"timestamp":"2026-01-18T14:30:22Z","type":"session_start","config":{"provider":"anthropic","model":"c"}}
{"timestamp":"2026-01-18T14:30:25Z","type":"system","content":"You are a helpful AI coding assistant..."}
{"timestamp":"2026-01-18T14:30:30Z","type":"user","content":"Read the README file"}
{"timestamp":"2026-01-18T14:30:31Z","type":"tool_call","id":"call_123","name":"read_file","arguments":{"path":"README.md"}}
{"timestamp":"2026-01-18T14:30:31Z","type":"tool_result","id":"call_123","success":true,"output":"# My Project\\n..."}
{"timestamp":"2026-01-18T14:30:33Z","type":"assistant","content":"I've read your README."}
{"timestamp":"2026-01-18T14:30:40Z","type":"user","content":"And the two others"}
{"timestamp":"2026-01-18T14:30:41Z","type":"assistant","content":"Here they are."}
{"timestamp":"2026-01-18T14:30:41Z","type":"tool_call","id":"a","name":"read_file","arguments":{"path":"A"}}
{"timestamp":"2026-01-18T14:30:41Z","type":"tool_call","id":"b","name":"read_file","arguments":"no object"}
{"timestamp":"2026-01-18T14:30:41Z","type":"tool_result","id":"b","success":false,"output":"there is none"}
{"timestamp":"2026-01-18T14:30:41Z","type":"tool_result","id":"a","success":true,"output":"A"}
{"timestamp":"2026-01-18T14:30:42Z","type":"tool_call","id":"a","name":"list_files","arguments":{}}
{"timestamp":"2026-01-18T14:31:00Z","type":"session_end","reason":"user_exit","message_count":6}
"""


def test_calls_and_results_in_the_specifications_own_lines_are_in_the_conversation(path: Path):
    transcript = written(path, SPECIFIED)
    assert transcript.damaged == 0
    messages = transcript.replay.messages
    assert [type(each).__name__ for each in messages] == [
        *("UserMessage", "AssistantMessage", "ToolResult", "AssistantMessage"),
        *("UserMessage", "AssistantMessage", "ToolResult", "ToolResult", "AssistantMessage"),
    ]
    first, result, said = messages[1:4]
    assert isinstance(first, AssistantMessage)
    assert [(call.id, call.name, bytes(call.arguments)) for call in first.calls] == [
        ("call_123", "read_file", b'{"path":"README.md"}')
    ]
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.name, result.output) == (
        *("call_123", "read_file"),
        "# My Project\n...",
    )
    assert isinstance(said, AssistantMessage)
    assert (said.text, said.calls) == ("I've read your README.", ())
    both, a, b = messages[5:8]
    assert isinstance(both, AssistantMessage)
    assert both.text == "Here they are."
    assert [bytes(call.arguments) for call in both.calls] == [b'{"path":"A"}', b"{}"]
    assert both.stop_reason == "tool_calls"
    assert isinstance(a, ToolResult)
    assert isinstance(b, ToolResult)
    assert [(a.call_id, a.is_error), (b.call_id, b.is_error)] == [("a", False), ("b", True)]
    last = messages[-1]
    assert isinstance(last, AssistantMessage)
    assert [call.name for call in last.calls] == ["list_files"]  # open: it gets an answer


def test_a_call_whose_answer_is_damaged_stays_with_its_result(path: Path):
    call = ToolStarted(id="c", name="look", arguments=Raw(b'{"a":1}'))
    transcript = written(
        path,
        line("words", 1, 0),
        b'{"type":"assistant","parts":[{"torn\n',
        line(call, 3, 2),
        line(ToolFinished(id="c", name="look", success=True, output="seen"), 4, 3),
    )
    assert transcript.damaged == 1
    assert [type(each).__name__ for each in transcript.replay.messages] == [
        *("UserMessage", "AssistantMessage", "ToolResult")
    ]
