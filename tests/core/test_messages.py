"""Messages and events: encoding them and reading them back changes nothing."""

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from rows import every_row
from ybs.core.events import AssistantSaid, Event, ToolFinished, TurnFinished, UserSaid
from ybs.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)

IMAGE = Image(media_type="image/png", data=b"\x89PNG\x00\xff")
CALL = ToolCall(id="c1", name="look", arguments=Raw(b'{"a": 1}'))
BROKEN = ToolCall(id="c2", name="look", invalid='{"a": ')
USAGE = Usage(input_tokens=9, output_tokens=2, cached_tokens=5, cache_write_tokens=1, cost_usd=0.1)
MESSAGES: list[Message] = [
    UserMessage.of("grüße 🦀\n", IMAGE, origin="shell"),
    UserMessage(content=()),
    UserMessage(content=(Text(text=""),)),
    UserMessage.of("", IMAGE),
    UserMessage(content=(IMAGE, Text(text="behind it"))),
    AssistantMessage(
        content=(Thinking(text="hm", signature="s", provider="anthropic"), Text(text="a"), CALL),
        stop_reason="tool_calls",
        model="m",
        usage=USAGE,
    ),
    AssistantMessage(content=(Thinking(redacted="opaque"), BROKEN, Text(text="b"))),
    ToolResult(
        call_id="c1",
        name="look",
        output="",
        is_error=True,
        is_refused=True,
        summary="s",
        display=Raw(b'{"x":[1]}'),
        images=(IMAGE,),
        duration_seconds=0.5,
    ),
]


@every_row("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_a_message_survives_json(message: Message):
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


@every_row("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_a_message_survives_being_an_event(message: Message):
    match message:
        case UserMessage():
            event = UserSaid.of(message)
        case AssistantMessage():
            event = AssistantSaid.of(message)
        case ToolResult():
            event = ToolFinished.of(message)
    again = msgspec.json.decode(msgspec.json.encode(event), type=Event)
    assert again == event
    assert (again.result if isinstance(again, ToolFinished) else again.message) == message


def test_an_event_of_plain_text_says_it_once():
    message = AssistantMessage(content=(Text(text="a"),))
    encoded = msgspec.json.encode(AssistantSaid.of(message))
    assert msgspec.json.decode(encoded) == {"type": "assistant", "content": "a", "usage": {}}
    assert AssistantSaid.of(message).message == message
    assert AssistantSaid(content="").message == AssistantMessage(content=())


def test_text_and_calls_are_found_among_the_parts():
    message = next(one for one in MESSAGES if isinstance(one, AssistantMessage))
    assert isinstance(message, AssistantMessage)
    assert (message.text, message.calls) == ("a", (CALL,))
    assert UserMessage.of("grüße 🦀", IMAGE).text == "grüße 🦀"


def test_an_unknown_event_is_refused_by_its_type():
    with pytest.raises(msgspec.ValidationError, match="Invalid value 'nonsense'"):
        msgspec.json.decode(b'{"type":"nonsense"}', type=Event)


def test_defaults_are_left_out_of_the_transcript():
    assert (
        msgspec.json.encode(TurnFinished(reason="done")) == b'{"type":"turn_end","reason":"done"}'
    )
    said = msgspec.json.encode(UserMessage.of("a"))
    assert said == b'{"type":"user","content":[{"type":"text","text":"a"}]}'


def test_what_an_old_line_does_not_say_is_no_error():
    event = msgspec.json.decode(b'{"type":"turn_end","reason":"done"}', type=Event)
    assert event == TurnFinished(reason="done", message="", is_temporary=False)


@every_row("kind", [*get_args(Event), *get_args(Message), Text, Image, Thinking, ToolCall, Usage])
def test_who_is_told_of_something_cannot_change_it_for_the_others(kind: type[msgspec.Struct]):
    assert kind.__struct_config__.frozen
    with pytest.raises(TypeError, match="positional"):
        kind("x")


counts = st.integers(min_value=0, max_value=10**9)
usages = st.builds(
    Usage,
    input_tokens=counts,
    output_tokens=counts,
    cached_tokens=counts,
    cache_write_tokens=counts,
    cost_usd=st.none() | st.integers(min_value=0, max_value=100).map(float),
)


@pytest.mark.integration
@given(usages, usages, usages)
def test_usage_adds_up_in_any_grouping(a: Usage, b: Usage, c: Usage):
    assert (a + b) + c == a + (b + c)
    assert a + Usage() == a


def test_an_unknown_price_does_not_hide_a_known_one():
    assert (Usage(cost_usd=0.5) + Usage()).cost_usd == 0.5
    assert (Usage() + Usage()).cost_usd is None


def test_a_sum_says_whether_the_price_of_a_part_is_not_known():
    priced, free = Usage(input_tokens=1, cost_usd=0.5), Usage(input_tokens=1, cost_usd=0.0)
    unpriced = Usage(output_tokens=1)
    sums = [priced + free, priced + unpriced, unpriced + unpriced, priced + Usage()]
    assert [each.cost_is_partial for each in sums] == [False, True, False, False]
    assert (priced + unpriced + free).cost_is_partial
    assert (free + (priced + unpriced)).cost_usd == 0.5
