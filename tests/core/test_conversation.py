"""The history: whatever is appended, it can be sent."""

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.core.conversation import CANCELLED, Conversation, Draft
from ybs.core.events import AssistantSaid, TextStreamed, ThinkingStreamed
from ybs.core.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage


def said(*ids: str, text: str = "") -> AssistantMessage:
    parts = (Text(text=text),) if text else ()
    return AssistantMessage(content=(*parts, *(ToolCall(id=i, name="look") for i in ids)))


def result(call_id: str) -> ToolResult:
    return ToolResult(call_id=call_id, name="look", output="seen")


def assert_can_be_sent(messages: list[Message], open_ids: set[str]) -> None:
    waiting: set[str] = set()
    for message in messages:
        if isinstance(message, ToolResult):
            waiting.remove(message.call_id)  # KeyError: answers nothing, or answers twice
            continue
        assert not waiting, "somebody spoke while a call was open"
        if isinstance(message, AssistantMessage):
            assert message.content
            waiting = {call.id for call in message.calls}
    assert waiting == open_ids


def test_a_result_of_no_open_call_is_refused():
    conversation = Conversation()
    with pytest.raises(ValueError, match="no open tool call has the id 'a'"):
        conversation.append(result("a"))
    conversation.append(said("a"))
    conversation.append(result("a"))
    with pytest.raises(ValueError, match="'a'"):
        conversation.append(result("a"))


@every_row("speaker", [UserMessage.of("stop"), said(text="well")])
def test_open_calls_are_answered_before_anyone_speaks(speaker: Message):
    conversation = Conversation(messages=[said("a", "b"), result("b"), speaker])
    cancelled = ToolResult(call_id="a", name="look", output=CANCELLED, is_error=True)
    assert list(conversation.messages)[2:] == [cancelled, speaker]


def test_an_empty_answer_is_not_kept_but_closes_open_calls():
    conversation = Conversation(messages=[said("a"), AssistantMessage(content=())])
    assert [type(m) for m in conversation.messages] == [AssistantMessage, ToolResult]


def test_closing_twice_does_nothing_the_second_time():
    conversation = Conversation(messages=[said("a")])
    assert [r.output for r in conversation.close_open_calls()] == [CANCELLED]
    assert conversation.close_open_calls() == []


def test_replacing_takes_another_history_and_keeps_the_system_prompt_unless_told():
    conversation = Conversation("old", [said("a")])
    conversation.replace([UserMessage.of("hello")])
    assert (conversation.system, conversation.open_calls) == ("old", ())
    conversation.replace([said("b")], system="new")
    assert conversation.system == "new"
    assert [call.id for call in conversation.open_calls] == ["b"]


steps = st.lists(
    st.one_of(
        st.just("user"),
        st.just("close"),
        st.just("empty"),
        st.integers(min_value=0, max_value=4),  # an answer with so many calls
        st.tuples(st.integers(min_value=0, max_value=5)),  # a result of the n-th call ever
    ),
    max_size=30,
)


@pytest.mark.integration
@given(steps)
def test_any_sequence_of_appends_keeps_the_history_valid(sequence: list[object]):
    conversation, made = Conversation(), 0
    for step in sequence:
        match step:
            case "user":
                conversation.append(UserMessage.of("hello"))
            case "close":
                conversation.close_open_calls()
            case "empty":
                conversation.append(AssistantMessage(content=()))
            case int():
                ids = [f"c{made + n}" for n in range(step)]
                made += step
                conversation.append(said(*ids, text="words"))
            case tuple():
                number = cast("tuple[int]", step)[0]
                open_ids = {call.id for call in conversation.open_calls}
                if (wanted := f"c{number}") in open_ids:
                    conversation.append(result(wanted))
                else:
                    with pytest.raises(ValueError, match="no open tool call"):
                        conversation.append(result(wanted))
            case _:
                raise AssertionError(step)
        open_ids = {call.id for call in conversation.open_calls}
        assert_can_be_sent(list(conversation.messages), open_ids)
    copy = Conversation(messages=conversation.messages)
    assert list(copy.messages) == list(conversation.messages)
    conversation.close_open_calls()
    assert_can_be_sent(list(conversation.messages), set())


def test_a_draft_of_pieces_is_cut_off_and_a_finished_one_is_not():
    draft = Draft("m")
    assert draft.is_cut_off is False
    assert draft.message == AssistantMessage(content=(), stop_reason="cut_off", model="m")
    draft.add(ThinkingStreamed(text="hm"))
    draft.add(TextStreamed(text="  "))
    assert draft.is_cut_off is False  # white space alone is nothing to keep
    draft.add(TextStreamed(text="words"))
    assert draft.is_cut_off is True
    assert draft.message.text == "  words"
    whole = said(text="  words and more")
    draft.add(AssistantSaid.of(whole))
    assert draft.is_cut_off is False
    assert draft.message == whole


def test_a_cut_leaves_what_a_history_of_the_first_messages_is():
    calls = tuple(ToolCall(id=name, name="x") for name in "ab")
    messages: list[Message] = [
        UserMessage.of("one"),
        AssistantMessage(content=calls, stop_reason="tool_calls"),
        ToolResult(call_id="b", name="x", output="2"),
        ToolResult(call_id="a", name="x", output="1"),
        AssistantMessage(content=(Text(text="done"),)),
        UserMessage.of("two"),
    ]
    for keeps in range(-1, 9):
        cut, made = Conversation("s", messages), Conversation("s", messages[: max(keeps, 0)])
        cut.cut(keeps)
        assert (cut.messages, cut.open_calls) == (made.messages, made.open_calls)


@every_row(
    ("ids", "own"),
    [
        (("a", "b"), ["a", "b"]),
        (("a", "a", "a"), ["a", "a_2", "a_3"]),
        (("a", "a_2", "a"), ["a", "a_2", "a_3"]),
        (("a", "a", "a_2"), ["a", "a_3", "a_2"]),
    ],
)
def test_calls_of_one_id_get_ids_of_their_own_in_the_event_and_in_the_message(ids, own):
    draft = Draft("m")
    event = draft.add(AssistantSaid.of(said(*ids, text="two")))
    assert isinstance(event, AssistantSaid)
    assert [call.id for call in event.message.calls] == own
    assert event.message == draft.message
