"""What sub-agents tell stands in the same file as the main agent's part and does not disturb it."""

from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, json

from ybs.core.envelope import MAIN
from ybs.core.events import (
    AssistantSaid,
    Compacted,
    Event,
    Replaced,
    Rewound,
    SystemPrompted,
    Titled,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.core.messages import ToolCall, Usage
from ybs.transcripts.line import decoded, encoded
from ybs.transcripts.log import Log
from ybs.transcripts.reading import read
from ybs.transcripts.replay import Replay
from ybs.transcripts.store import SessionStore

AT = datetime(2026, 1, 18, tzinfo=UTC)
CALL = ToolCall(id="call_1", name="read_file", arguments=Raw(b"{}"))
MINE: list[Event] = [
    SystemPrompted(content="Be brief."),
    UserSaid(content="Look around."),
    AssistantSaid(content="", parts=(CALL,), stop_reason="tool_calls", usage=Usage(input_tokens=5)),
    ToolStarted(id="call_1", name="read_file", arguments=Raw(b"{}")),
    ToolFinished(id="call_1", name="read_file", success=True, output="one"),
    AssistantSaid(content="It says one.", usage=Usage(input_tokens=7)),
    TurnFinished(reason="done", usage=Usage(input_tokens=12)),
    UserSaid(content="And now?"),
    AssistantSaid(content="Nothing.", usage=Usage(input_tokens=9)),
    TurnFinished(reason="done", usage=Usage(input_tokens=9)),
]
#: A turn of a sub-agent, with call ids like the main agent's and all that rewrites a conversation.
THEIRS: list[Event] = [
    SystemPrompted(content="You explore."),
    UserSaid(content="Find it."),
    AssistantSaid(
        content="", parts=(CALL,), stop_reason="tool_calls", usage=Usage(input_tokens=100)
    ),
    ToolStarted(id="call_1", name="read_file", arguments=Raw(b"{}")),
    ToolFinished(id="call_1", name="read_file", success=False, output="gone"),
    Compacted(messages=(), reason="full", tokens_before=9, tokens_after=1),
    Replaced(messages=()),
    Rewound(keeps=0),
    AssistantSaid(content="Found.", usage=Usage(input_tokens=50)),
    Titled(title="theirs"),
    TurnFinished(reason="done", usage=Usage(input_tokens=170)),  # with a summary
]


def line_of(event: Event, agent: str) -> bytes:
    return encoded(event, number=1, parent=0, at=AT, agent=agent)


def test_only_a_sub_agent_is_named_in_a_line():
    assert b"agent" not in line_of(UserSaid(content="a"), MAIN)
    for name in ("explore-1", 'a "b"\\\n', "\udc80"):
        data = line_of(UserSaid(content="a"), name)
        assert data.count(b"\n") == 1
        assert json.decode(data)["agent"] == name.replace("\udc80", "?")
        line = decoded(data)
        assert line is not None
        assert (line.agent, line.said) == (name.replace("\udc80", "?"), UserSaid(content="a"))


def test_a_line_that_names_no_agent_is_the_main_agents():
    for more in (b"", b',"agent":""', b',"agent":"main"'):
        line = decoded(b'{"type":"user","content":"a"' + more + b"}")
        assert line is not None
        assert line.agent == MAIN


@given(st.lists(st.booleans(), min_size=len(MINE + THEIRS), max_size=len(MINE + THEIRS)))
def test_a_sub_agents_turn_leaves_the_conversation_as_it_is_wherever_it_comes(order: list[bool]):
    alone, both = Replay(), Replay()
    for number, event in enumerate(MINE, 1):
        alone.add(event, number)
    mine, theirs = [*MINE], [*THEIRS]
    for is_mine in order:
        said, agent = (mine, MAIN) if (is_mine and mine) or not theirs else (theirs, "explore")
        if said:
            both.add(said.pop(0), agent=agent)
    assert both.messages == alone.messages
    assert (both.system, both.title, both.last_answer) == ("Be brief.", "", "Nothing.")
    assert both.restorable() is None
    assert [each.place for each in both.past_turns.open] == [
        each.place for each in alone.past_turns.open
    ]
    assert alone.usage == Usage(input_tokens=21)
    assert both.usage == Usage(input_tokens=21 + 170)
    told = sum((each.others for each in both.turns), Usage())
    assert [each.words for each in both.turns] == ["Look around.", "And now?"]
    assert told.input_tokens in (0, 170)  # it is not part of a turn if it ended behind the last one


def written(path: Path) -> Log:
    log = Log(path)
    for event in MINE[:3]:
        log.add(event)
    for event in THEIRS:
        log.add(event, agent="explore-1")
    for event in MINE[3:]:
        log.add(event)
    return log


def test_a_file_tells_who_said_what_and_its_copies_do_too(tmp_path: Path):
    store = SessionStore(tmp_path / "sessions")
    name = store.create()
    written(store.folder / f"{name}.jsonl").close()
    copies = store.copy(name, "copy", title="A copy"), store.fork(store.read(name))
    for each in (name, *copies):
        transcript = store.read(each)
        told = transcript.events
        assert {envelope.session for envelope in told} == {each}
        assert [e.event for e in told if e.agent == "explore-1"] == THEIRS
        assert [e.event for e in told if e.is_main][: len(MINE)] == MINE
        assert [message.text for message in transcript.replay.messages[-2:]] == [
            "And now?",
            "Nothing.",
        ]
        assert transcript.replay.usage == Usage(input_tokens=21 + 170)
        assert transcript.replay.turns[0].others == Usage(input_tokens=170)


def test_going_back_to_before_or_behind_a_sub_agents_turn_keeps_the_right_messages(tmp_path: Path):
    for keeps in (0, 1, 3, 4, 5, 6):
        path = tmp_path / f"{keeps}.jsonl"
        log = written(path)
        before = read(path)
        log.add(Rewound(keeps=keeps), parent=before.replay.line_of(keeps))
        log.add(UserSaid(content="again"))
        log.close()
        after = read(path)
        assert after.replay.messages[:-1] == before.replay.messages[:keeps], keeps
        alone = Replay()
        for envelope in after.events:
            if not isinstance(envelope.event, Rewound):
                alone.add(envelope.event, agent=envelope.agent)
        assert alone.messages == after.replay.messages, keeps


def test_what_a_sub_agent_said_is_not_found_as_said_in_the_session(tmp_path: Path):
    store = SessionStore(tmp_path / "sessions")
    written(store.folder / f"{store.create()}.jsonl").close()
    assert [hit.excerpt for hit in store.search("nothing")] == ["Nothing."]
    assert store.search("find it") == store.search("theirs") == []
