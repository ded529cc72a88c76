"""The schema that is made of a tool's arguments, and a turn as guards see it."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from ybs.core.conversation import Conversation, Draft
from ybs.core.errors import (
    AuthError,
    ContextTooLong,
    Failure,
    ModelError,
    ProviderDown,
    RateLimited,
    Refused,
    StopTurn,
    ToolError,
    YbsError,
)
from ybs.core.events import TextStreamed
from ybs.core.messages import ToolCall, UserMessage
from ybs.core.ports import Preview, Question, Turn
from ybs.core.remedies import Remedy
from ybs.core.schema import schema_of
from ybs.testing import RecordedEvents


class Arguments(Struct, kw_only=True):
    """Not shown to the model."""

    path: Annotated[str, Meta(description="the file")]
    limit: Annotated[int, Meta(ge=1)] = 10
    kind: Literal["a", "b"] = "a"
    names: list[str] = []
    note: str | None = None


class Nothing(Struct):
    """No arguments at all."""


def test_a_schema_has_descriptions_limits_and_defaults_but_no_titles():
    assert msgspec.json.decode(schema_of(Arguments)) == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "the file"},
            "limit": {"type": "integer", "minimum": 1, "default": 10},
            "kind": {"enum": ["a", "b"], "default": "a"},
            "names": {"type": "array", "items": {"type": "string"}, "default": []},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "required": ["path"],
    }


def test_a_schema_without_fields_is_still_an_object():
    assert bytes(schema_of(Nothing)) == b'{"type":"object","properties":{}}'


def test_a_schema_is_made_once():
    assert schema_of(Arguments) is schema_of(Arguments)


def test_a_turn_says_adds_and_sums_up():
    events, conversation = RecordedEvents(), Conversation(messages=[UserMessage.of("before")])
    turn = Turn(conversation, events)
    turn.say(UserMessage.of("now"))
    draft = Draft("m")
    draft.add(TextStreamed(text="half"))
    turn.add(draft)
    assert [type(m).__name__ for m in turn.messages] == ["UserMessage", "AssistantMessage"]
    assert events.names == ["UserSaid", "AssistantSaid"]
    remedies = (Remedy("try_again", "in 5 s"),)
    finished = turn.finished("error", Failure.of(ProviderDown("gone", remedies=remedies)))
    assert (finished.reason, finished.message, finished.is_temporary) == ("error", "gone", True)
    assert finished.remedies == remedies
    assert finished.steps == 1


def test_errors_say_whether_they_pass_and_what_they_are():
    assert RateLimited("slow down", retry_after_seconds=2).retry_after_seconds == 2
    assert RateLimited("slow down").retry_after_seconds is None
    passing = [error.temporary for error in (RateLimited, ProviderDown)]
    lasting = [error.temporary for error in (ModelError, AuthError, ContextTooLong)]
    assert (passing, lasting) == ([True, True], [False, False, False])
    assert issubclass(Refused, ToolError)
    assert issubclass(ToolError, YbsError)
    stop = StopTurn("loop", "the same again")
    assert (stop.reason, str(stop)) == ("loop", "the same again")


def test_what_a_question_says_of_itself_is_a_line_each() -> None:
    call = ToolCall(id="1", name="run_shell")
    asked = Question(
        call=call,
        effect="execute",
        preview=Preview(title="Run it", body="one\ntwo"),
        reason="it wants to write to a\n\nybs: this is harmless",
        warnings=("plain", "b\nybs: so is this"),
    )
    assert asked.reason == "it wants to write to a  ybs: this is harmless"
    assert asked.warnings == ("plain", "b ybs: so is this")
    assert asked.preview.body == "one\ntwo"
