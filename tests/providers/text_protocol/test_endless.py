"""Answers that never end, as a model of half a billion parameters was seen to write them."""

from collections.abc import AsyncGenerator

from rows import every_row
from ybs.core.events import AssistantSaid, Event, TextStreamed
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.text_calls import TextCalls
from ybs.providers.text_protocol import repeats_itself

SEEN = "".join(rf"\nnew_text is there (line {n})" for n in range(1, 60))
REQUEST = Request("", [UserMessage.of("go")])


@every_row(
    "text, is_endless",
    [
        ("", False),
        ("x", False),
        ("a b c " * 20, False),
        ("a b c " * 200, True),
        (SEEN, True),
        (SEEN[:600], False),
        ("A whole answer first. " + SEEN, True),
        (SEEN + " and then something else that ends it, as it should be", False),
        ("".join(f"INSERT INTO users VALUES ({n}, 'name');\n" for n in range(20)), False),
        ("".join(f"{n}. the {chr(97 + n)} word of the list\n" for n in range(26)), False),
        ("".join(f"line {n} says {n * n:x} and {n % 7}\n" for n in range(90)), False),
    ],
)
def test_the_same_over_and_over_is_seen_and_a_long_list_is_not(text: str, is_endless: bool):
    assert repeats_itself(text) is is_endless


async def test_the_answer_is_ended_and_half_a_call_in_it_is_not_made():
    is_closed = False

    async def pieces() -> AsyncGenerator[Event, None]:
        nonlocal is_closed
        try:
            yield TextStreamed(text="I change it.\n```json\n")
            yield TextStreamed(text='{"name": "edit_file", "arguments": {"new_text": "')
            for number in range(100_000):
                yield TextStreamed(text=rf"\nnew_text is there (line {number})")
        finally:
            is_closed = True

    events = [event async for event in TextCalls().read(pieces(), REQUEST)]
    said = events[-1]
    assert isinstance(said, AssistantSaid)
    assert (said.message.stop_reason, said.message.calls) == ("length", ())
    assert said.message.text == "I change it.\n"
    assert is_closed
    assert len(events) < 5
