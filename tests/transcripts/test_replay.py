"""What events leave behind, live and from the file alike."""

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ybs.core.conversation import CANCELLED, Conversation
from ybs.core.events import (
    AssistantSaid,
    Compacted,
    ConfirmationAnswered,
    Event,
    FilesChanged,
    FilesRestored,
    Noticed,
    Replaced,
    Rewound,
    SessionEnded,
    SessionStarted,
    SystemPrompted,
    Titled,
    ToolFinished,
    TurnFinished,
    UserSaid,
)
from ybs.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from ybs.transcripts.log import Log
from ybs.transcripts.reading import read
from ybs.transcripts.replay import Replay

STARTED = SessionStarted(session="s", folder="/p", config={"provider": "x", "model": "m"})


def asked(*ids: str) -> AssistantSaid:
    calls = tuple(ToolCall(id=each, name="read_file") for each in ids)
    return AssistantSaid(content="", parts=calls, stop_reason="tool_calls", model="m")


def answered(call_id: str, output: str = "done") -> ToolFinished:
    return ToolFinished(id=call_id, name="read_file", success=True, output=output)


def replayed(*events: Event) -> Replay:
    replay = Replay()
    for number, event in enumerate(events, 1):
        replay.add(event, number)
    return replay


def words_of(messages: list[Message]) -> list[str]:
    return [each.output if isinstance(each, ToolResult) else each.text for each in messages]


def before_compactions(replay: Replay) -> list[list[Message]]:
    return [each.before for each in replay._compactions]


def state_of(replay: Replay) -> dict[str, Any]:
    return {
        "messages": replay.messages,
        "before": before_compactions(replay),
        "restorable": replay.restorable(),
        "lines": [replay.line_of(keeps) for keeps in range(-1, len(replay.messages) + 2)],
        "turns": replay.turns,
        "rounds": replay.past_turns.open,
        "usage": replay.usage,
        "checkpoints": replay.checkpoints,
        "facts": (
            replay.title,
            replay.last_answer,
            replay.system,
            replay.started,
            replay.config,
        ),
    }


class Life:
    """A session as it is lived: events go to a replay and to a file, as the session's journal sends them."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.path, self.chance, self.count = path, chance, 0
        self.replay, self.log = Replay(), Log(path)
        self.begin()

    def tell(self, *events: Event) -> None:
        for event in events:
            parent = self.replay.line_of(event.keeps) if isinstance(event, Rewound) else None
            self.replay.add(event, self.log.add(event, parent=parent))

    def next(self, word: str) -> str:
        self.count += 1
        return f"{word}{self.count}"

    def begin(self) -> None:
        self.tell(STARTED, SystemPrompted(content=self.next("system")))

    def take_turn(self) -> None:
        self.tell(UserSaid(content=self.next("prompt")))
        ids = [self.next("call") for _ in range(self.chance.randrange(3))]
        if ids:
            self.tell(asked(*ids))
            self.chance.shuffle(ids)
            self.tell(*(answered(each, self.next("output")) for each in ids))
        usage = Usage(input_tokens=3, output_tokens=self.count)
        self.tell(AssistantSaid(content=self.next("answer"), model="m", usage=usage))
        if self.chance.random() < 0.5:
            self.tell(FilesChanged(checkpoint=self.next("checkpoint"), paths=("a",)))
        self.tell(TurnFinished(reason="done"))

    def crash_in_a_turn(self) -> None:
        ids = [self.next("call") for _ in range(3)]
        self.tell(UserSaid(content=self.next("prompt")), asked(*ids), answered(ids[1]))
        self.resume()

    def resume(self) -> None:
        self.log.close()
        transcript = read(self.path)
        assert state_of(transcript.replay) == state_of(self.replay)
        self.replay, self.log = transcript.replay, Log(self.path, last=transcript.last)
        self.begin()

    def compact(self) -> None:
        kept = self.replay.messages[-self.chance.randrange(3) - 1 :]
        whole = Conversation()
        for message in (UserMessage.of(self.next("summary"), origin="summary"), *kept):
            if not isinstance(message, ToolResult):
                whole.append(message)
        messages = tuple(whole.messages)
        self.tell(
            Compacted(messages=messages, reason="full", tokens_before=9, tokens_after=1),
        )

    def rewind(self) -> None:
        said = enumerate(self.replay.messages)
        prompts = [place for place, each in said if getattr(each, "origin", "") == "person"]
        self.tell(Rewound(keeps=self.chance.choice(prompts or [0])))

    def rewind_anywhere(self) -> None:
        self.tell(Rewound(keeps=self.chance.randrange(len(self.replay.messages) + 1)))

    def restore(self) -> None:
        if (messages := self.replay.restorable()) is not None:
            self.tell(Replaced(messages=tuple(messages)))

    def rewind_and_think_better(self) -> None:
        before = tuple(self.replay.messages)
        self.rewind()
        self.tell(Replaced(messages=before))

    def undo_and_redo(self) -> None:
        names = tuple(change.checkpoint for change in reversed(self.replay.checkpoints[-2:]))
        self.tell(FilesRestored(checkpoints=names))
        if self.chance.random() < 0.5:
            self.tell(FilesRestored(checkpoints=names[:1], is_redo=True))

    def name(self) -> None:
        self.tell(Titled(title=self.next("title")), Noticed(level="info", text="named"))

    def end(self) -> None:
        count = len(self.replay.messages)
        self.tell(SessionEnded(reason="quit", message_count=count))
        self.resume()


DEEDS = ("take_turn", "compact", "rewind", "rewind_anywhere", "restore", "rewind_and_think_better",
         "undo_and_redo", "name", "crash_in_a_turn", "resume", "end")  # fmt: skip


@pytest.mark.integration
@given(st.lists(st.sampled_from((*DEEDS, *["take_turn"] * 5)), max_size=20), st.integers(0, 99))
@example(["crash_in_a_turn", "rewind_anywhere"], 0)  # back to where results had come and not all
def test_a_life_leaves_the_same_state_live_and_from_its_file(tmp_path_factory, deeds, seed):
    path = tmp_path_factory.mktemp("life") / "session.jsonl"
    life = Life(path, random.Random(seed))
    for deed in deeds:
        getattr(life, deed)()
    life.log.close()
    transcript = read(path)
    assert transcript.damaged == 0
    assert None not in [line.said for line in transcript.lines]
    assert state_of(transcript.replay) == state_of(life.replay)
    of_chain = replayed(*(each.event for each in transcript.events))  # what a copy of it holds
    assert of_chain.messages == life.replay.messages
    again = Conversation(messages=life.replay.messages)  # can be sent
    assert list(again.messages) == life.replay.messages


def test_results_stand_in_the_order_asked_whoever_finishes_first():
    replay = replayed(
        UserSaid(content="go"), asked("a", "b", "c"), answered("c", "3"), answered("a", "1")
    )
    assert words_of(replay.messages) == ["go", "", "1", "3"]
    replay.add(answered("b", "2"), 5)
    assert words_of(replay.messages) == ["go", "", "1", "2", "3"]
    assert [replay.line_of(keeps) for keeps in range(6)] == [0, 1, 4, 5, 5, 5]


def test_calls_that_nothing_answered_are_cancelled_when_somebody_speaks():
    replay = replayed(asked("a", "b"), answered("b"), UserSaid(content="well?"))
    assert words_of(replay.messages) == ["", "done", CANCELLED, "well?"]
    live = Conversation(messages=replayed(asked("a", "b"), answered("b")).messages)
    live.append(UserMessage.of("well?"))
    assert list(live.messages) == replay.messages


def test_results_that_have_come_are_not_lost_when_the_others_never_come():
    replay = replayed(asked("a", "b", "c"), answered("c"), answered("b"), Rewound(keeps=2))
    assert words_of(replay.messages) == ["", "done"]
    compacted = Compacted(messages=(), reason="full", tokens_before=2, tokens_after=1)
    replay = replayed(asked("a", "b"), answered("b"), compacted)
    assert [words_of(each) for each in before_compactions(replay)] == [["", "done"]]


def test_results_that_nobody_asked_for_and_second_ones_are_left_out():
    replay = replayed(
        answered("x"), asked("a", "b"), answered("a", "first"), answered("a", "second"),
        answered("x"), answered("b"), answered("a", "third"),
    )  # fmt: skip
    assert words_of(replay.messages) == ["", "first", "done"]


def test_an_answer_of_nothing_is_no_message():
    replay = replayed(UserSaid(content="hi"), AssistantSaid(content=""))
    assert words_of(replay.messages) == ["hi"]


def test_going_back_before_all_keeps_how_the_session_began():
    replay = replayed(STARTED, SystemPrompted(content="s"), UserSaid(content="a"))
    assert replay.line_of(0) == 2
    assert replay.line_of(1) == 3
    assert replay.line_of(99) == 3
    assert Replay().line_of(0) == 0


def test_the_line_to_go_back_to_is_on_the_branch_that_counts():
    replay = replayed(UserSaid(content="a"), UserSaid(content="b"), UserSaid(content="c"))
    replay.add(Rewound(keeps=1), 4)
    replay.add(UserSaid(content="d"), 5)
    assert [replay.line_of(keeps) for keeps in (1, 2)] == [4, 5]
    replay.add(Replaced(messages=tuple(replay.messages)), 6)
    replay.add(UserSaid(content="e"), 7)
    assert [replay.line_of(keeps) for keeps in (1, 2, 3)] == [6, 6, 7]
    assert [replay.count_until(number) for number in (5, 6, 7, 8)] == [0, 2, 3, 3]


def test_a_compaction_can_be_taken_back_with_what_was_said_since():
    summary = UserMessage.of("sum", origin="summary")
    compacted = Compacted(messages=(summary,), reason="full", tokens_before=2, tokens_after=1)
    replay = replayed(UserSaid(content="a"), AssistantSaid(content="b"), compacted)
    assert words_of(replay.messages) == ["sum"]
    replay.add(UserSaid(content="c"), 4)
    again = Compacted(messages=(summary, summary), reason="full", tokens_before=2, tokens_after=1)
    replay.add(again, 5)
    replay.add(UserSaid(content="d"), 6)
    assert [words_of(each) for each in before_compactions(replay)] == [["a", "b"], ["sum", "c"]]
    restored = replay.restorable()
    assert restored is not None
    assert words_of(restored) == ["sum", "c", "d"]
    replay.add(Replaced(messages=tuple(restored)), 7)
    restored = replay.restorable()
    assert restored is not None
    assert words_of(restored) == ["a", "b", "c", "d"]
    replay.add(Rewound(keeps=1), 8)
    assert replay.restorable() is not None
    replay.add(Rewound(keeps=0), 9)
    assert replay.restorable() is None
    assert before_compactions(replay) == []


def test_a_compaction_stays_in_force_when_turns_are_taken_back():
    first, second = (UserMessage.of(text, origin="summary") for text in ("sum", "both"))
    again = UserMessage.of("again")

    def compacted(*messages: UserMessage) -> Compacted:
        return Compacted(messages=messages, reason="full", tokens_before=2, tokens_after=1)

    replay = replayed(
        *(UserSaid(content="a"), compacted(first)),
        *(UserSaid(content="b"), UserSaid(content="again"), UserSaid(content="again")),
        compacted(second, again, again),
        *(UserSaid(content="c"), Rewound(keeps=3)),
    )
    assert [words_of(each) for each in before_compactions(replay)] == [
        ["a"],
        ["sum", "b", "again", "again"],
    ]
    replay.add(Rewound(keeps=2))  # what the compaction kept is cut
    replay.add(UserSaid(content="d"))
    restored = replay.restorable()
    assert restored is not None
    assert words_of(restored) == ["sum", "b", "again", "d"]
    replay.add(Replaced(messages=tuple(restored)))
    assert words_of(replay.restorable() or []) == ["a", "b", "again", "d"]


def test_messages_that_a_hand_has_spoiled_do_not_break_a_history():
    orphan = ToolResult(call_id="x", name="n", output="o")
    empty = AssistantMessage(content=())
    spoiled = Replaced(messages=(orphan, UserMessage.of("a"), empty, orphan))
    assert words_of(replayed(spoiled).messages) == ["a"]
    two = (UserSaid(content="a"), UserSaid(content="b"))
    assert words_of(replayed(*two, Rewound(keeps=-1)).messages) == []
    assert words_of(replayed(*two, Rewound(keeps=9)).messages) == ["a", "b"]


def test_a_turn_is_its_first_words_without_what_was_attached():
    picture = Image(media_type="image/png", data=b"x")
    parts = (Text(text="look " * 300), Text(text="<file>…</file>"), picture)
    replay = replayed(
        UserSaid.of(UserMessage(content=parts)),
        AssistantSaid(content="a", model="m1", usage=Usage(input_tokens=5, cost_usd=0.5)),
        UserSaid(content="a reminder", origin="guard"),
        AssistantSaid(content="b", model="m2", usage=Usage(input_tokens=6)),
        TurnFinished(reason="done", steps=2),
        UserSaid(content="lost in a crash"),
        STARTED,
        UserSaid(content="next"),
        TurnFinished(reason="error"),
    )
    first, second = replay.turns
    assert (len(first.words), first.model, first.finished.steps) == (1_000, "m2", 2)
    assert (second.words, second.model, second.finished.reason) == ("next", "", "error")
    assert replay.usage == Usage(input_tokens=11, cost_usd=0.5, cost_is_partial=True)
    replay.add(AssistantSaid(content="c", model="m", usage=Usage(input_tokens=4)))
    assert replay.usage == Usage(input_tokens=15, cost_usd=0.5, cost_is_partial=True)
    summed = Usage(input_tokens=9)  # with what a summary used, which no answer tells of
    replay.add(TurnFinished(reason="done", usage=summed))
    assert replay.usage == Usage(input_tokens=20, cost_usd=0.5, cost_is_partial=True)


def test_what_was_undone_is_not_in_force_until_it_is_done_again():
    one, two, three = (FilesChanged(checkpoint=name) for name in "123")
    replay = replayed(one, two, three, FilesRestored(checkpoints=("3", "2")))
    assert replay.checkpoints == [one]
    replay.add(FilesRestored(checkpoints=("2",), is_redo=True))
    assert replay.checkpoints == [one, two]
    replay.add(three)
    assert replay.checkpoints == [one, two, three]


def test_the_last_title_and_the_last_beginning_count():
    ended = SessionEnded(reason="quit", message_count=0)
    other = SessionStarted(session="s", folder="/q", config={"model": "n"})
    replay = replayed(STARTED, Titled(title="a"), Titled(title="b"), ended)
    assert (replay.title, replay.config) == ("b", STARTED.config)
    replay.add(other, 5)
    assert (replay.started, replay.config) == (STARTED, other.config)


def test_f04_grants_in_a_transcript_are_nothing_to_a_replay():
    granted = ConfirmationAnswered(id="1", is_allowed=True, grant="run_shell(*)")
    assert state_of(replayed(granted)) | {"lines": []} == state_of(Replay()) | {"lines": []}


def test_the_end_of_a_turn_stays_when_the_next_one_is_taken_back():
    replay = replayed(
        UserSaid(content="a"),
        AssistantSaid(content="yes"),
        TurnFinished(reason="done"),
        FilesChanged(checkpoint="c"),
        UserSaid(content="b"),
    )
    assert replay.line_of(2) == 4
    assert [replay.line_of(keeps) for keeps in (1, 3)] == [1, 5]
