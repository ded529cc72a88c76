"""The turns that can be taken back: where they stand after compactions and rewinds, and whose changes are whose."""

from ybs.core.events import (
    AssistantSaid,
    Compacted,
    Event,
    FilesChanged,
    FilesRestored,
    Replaced,
    Rewound,
    SessionStarted,
    TurnFinished,
    UserSaid,
)
from ybs.core.messages import Message, UserMessage
from ybs.transcripts.past_turns import NOWHERE
from ybs.transcripts.replay import Replay

DONE = TurnFinished(reason="done")


def turn(words: str, checkpoint: str = "") -> list[Event]:
    changed = [FilesChanged(checkpoint=checkpoint)] * bool(checkpoint)
    return [UserSaid(content=words), AssistantSaid(content="yes"), DONE, *changed]


def summed_up(*stays: Message) -> Compacted:
    summary = UserMessage.of("what was", origin="summary")
    return Compacted(messages=(summary, *stays), reason="asked", tokens_before=9, tokens_after=5)


def replayed(*events: Event) -> Replay:
    replay = Replay()
    for event in events:
        replay.add(event)
    return replay


def rounds_of(replay: Replay) -> list[tuple[str, int, str]]:
    return [
        (each.message.words, each.place, each.changed.checkpoint if each.changed else "")
        for each in replay.past_turns.open
    ]


def test_of_turns_with_the_same_words_a_compaction_leaves_the_newest():
    replay = replayed(*turn("go on", "1"), *turn("go on", "2"))
    replay.add(summed_up(*replay.messages[2:]))
    assert rounds_of(replay) == [("go on", NOWHERE, "1"), ("go on", 1, "2")]
    replay = replayed(*turn("go on", "1"), *turn("go on", "2"))
    replay.add(Replaced(messages=tuple(replay.messages[:2])))  # the last words were taken out
    assert rounds_of(replay) == [("go on", 0, "1")]


def test_a_compaction_brings_no_turn_back_that_was_taken_back():
    replay = replayed(*turn("one", "1"), *turn("two"), *turn("three", "3"))
    before = tuple(replay.messages)
    replay.add(FilesRestored(checkpoints=("3",)))
    replay.add(Rewound(keeps=4))
    replay.add(summed_up(*replay.messages[2:]))
    assert rounds_of(replay) == [("one", NOWHERE, "1"), ("two", 1, "")]
    replay.add(FilesRestored(checkpoints=("3",), is_redo=True))
    replay.add(Replaced(messages=before))
    assert rounds_of(replay) == [("one", 0, "1"), ("two", 2, ""), ("three", 4, "3")]


def test_what_a_turn_without_words_changed_is_its_own():
    """A command that the person typed and stopped: nothing was said, but files changed."""
    replay = replayed(*turn("one", "1"), TurnFinished(reason="interrupted"))
    replay.add(FilesChanged(checkpoint="2"))
    assert rounds_of(replay) == [("one", 0, "1"), ("", NOWHERE, "2")]
    for event in turn("three", "3"):
        replay.add(event)
    assert rounds_of(replay)[2:] == [("three", 2, "3")]


def test_words_after_a_rewind_into_a_turn_begin_another_one():
    """A copy has the end of a turn no more, of which only the beginning stayed."""
    begun = UserSaid(content="one"), AssistantSaid(content="a"), UserSaid(content="meanwhile")
    replay = replayed(*begun, Rewound(keeps=2), *turn("two", "2"))
    assert rounds_of(replay) == [("one", 0, ""), ("two", 2, "2")]


def test_a_turn_whose_words_are_gone_can_be_taken_back_as_long_as_its_files_are_as_it_left_them():
    replay = replayed(*turn("one", "1"), *turn("two"), *turn("three", "3"), Rewound(keeps=0))
    assert rounds_of(replay) == [("one", NOWHERE, "1"), ("three", NOWHERE, "3")]
    replay.add(FilesRestored(checkpoints=("3",)))
    assert rounds_of(replay) == [("one", NOWHERE, "1")]


def test_what_a_killed_turn_changed_is_its_own_before_and_after_the_session_goes_on():
    typed, killed = [DONE, FilesChanged(checkpoint="typed")], UserSaid(content="killed")
    left, again = FilesChanged(checkpoint="2"), SessionStarted(session="s", folder="/")
    wanted = [("one", 0, "1"), ("", NOWHERE, "typed"), ("killed", 2, "2")]
    for events in ([left], [again, left], [left, again], [DONE, again, left]):
        assert rounds_of(replayed(*turn("one", "1"), *typed, killed, *events)) == wanted
    replay = replayed(*turn("one", "1"), killed, Rewound(keeps=0), left)
    assert rounds_of(replay) == [("one", NOWHERE, "1"), ("", NOWHERE, "2")]
