"""Surveys that ybs made ahead for a small model: no model is sent them, and all else is sent as it is."""

from msgspec import Raw

from ybs.core.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage
from ybs.small_models.unseen import UNSEEN, SurveyFilter, without_unseen


def _looked(*ids: str) -> list[Message]:
    """Return a step with calls of these ids, and their results."""
    calls = [ToolCall(id=each, name="look", arguments=Raw(b"{}")) for each in ids]
    results = [ToolResult(call_id=each, name="look", output="x") for each in ids]
    return [AssistantMessage(content=(Text(text="I look."), *calls)), *results]


def test_only_the_steps_of_a_survey_are_left_out():
    survey = _looked(f"explore-1-{UNSEEN}1", f"{UNSEEN}2")
    others = [
        UserMessage.of("hi"),
        *_looked("call_1", "ahead_read_2"),
        AssistantMessage(content=(Text(text=f"{UNSEEN} is a name"),)),
    ]
    for place in (0, 1, 4, 5):  # between two steps
        messages = [*others[:place], *survey, *others[place:]]
        left = without_unseen(messages)
        assert len(left) == len(others)
        assert all(one is two for one, two in zip(left, others, strict=True))
    assert without_unseen(others) is others


def test_a_conversation_that_grows_or_is_rewritten_is_told_without_its_surveys():
    surveys = SurveyFilter()
    said: list[Message] = [UserMessage.of("hi"), *_looked("call_1")]
    assert surveys.left(said) is said
    survey = _looked(f"{UNSEEN}1")
    assert surveys.left([*said, *survey]) == said
    said = [*said, *_looked("call_2")]
    assert surveys.left(said) is said
    assert surveys.left([*survey, *said]) == said
    assert surveys.left(said[:1]) == said[:1]
    assert surveys.left([*said[:1], *survey, *said[1:]]) == said
