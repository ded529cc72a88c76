import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.core.errors import ModelError
from ybs.core.events import TextStreamed, ThinkingStreamed, ToolCallStreamed
from ybs.core.messages import AssistantMessage, Text, Thinking, ToolCall, UserMessage
from ybs.providers.wire.assemble import Assembly


def draft(**more) -> Assembly:
    return Assembly("m", "openai", **more)


def arguments(assembly: Assembly) -> list[str]:
    return [bytes(call.arguments).decode() for call in assembly.message().calls]


def test_arguments_that_are_no_json_become_invalid_and_the_call_stays_sendable():
    d = draft()
    d.add_call_delta(0, id="a", name="read", arguments='{"path": "x')
    (call,) = d.message().calls
    assert call == ToolCall(id="a", name="read", invalid='{"path": "x')
    assert not d.has_whole_calls()


@every_row("text", ["[1]", "1", "null", "{} {}", '"words"', "{'a': 1}", "[" * 5000])
def test_arguments_that_are_no_object_become_invalid(text: str):
    d = draft()
    d.add_call_delta(0, id="a", name="read", arguments=text)
    (call,) = d.message().calls
    assert (bytes(call.arguments), call.invalid) == (b"{}", text)


@every_row("text", ["", "  \n", None])
def test_no_arguments_are_an_empty_object(text: str | None):
    d = draft()
    d.add_call_delta(0, id="a", name="read", arguments=text)
    assert arguments(d) == ["{}"]
    assert d.has_whole_calls()


def test_an_object_inside_a_json_string_is_unpacked():
    d = draft()
    d.add_call_delta(0, id="a", name="read", arguments='"{\\"path\\": \\"x\\"}"')
    assert arguments(d) == ['{"path": "x"}']


def test_an_object_is_taken_as_it_is():
    d = draft()
    d.add_call_delta(id="a", name="read", arguments={"path": "ü"})
    assert arguments(d) == ['{"path":"ü"}']


def test_pieces_of_two_calls_may_come_in_turns():
    d = draft()
    d.add_call_delta(0, id="a", name="read", arguments="")
    d.add_call_delta(1, id="b", name="list", arguments="{")
    d.add_call_delta(0, arguments='{"p":')
    d.add_call_delta(1, arguments="}")
    d.add_call_delta(0, arguments="1}")
    assert [c.id for c in d.message().calls] == ["a", "b"]
    assert arguments(d) == ['{"p":1}', "{}"]


def test_whole_calls_that_all_have_index_zero_are_told_apart():
    d = draft()
    d.add_call_delta(0, id="", name="read", arguments='{"p":1}')
    d.add_call_delta(0, id="", name="read", arguments='{"p":2}')
    d.add_call_delta(0, id="", name="list", arguments="")
    assert arguments(d) == ['{"p":1}', '{"p":2}', "{}"]


def test_another_id_under_the_same_index_begins_a_call():
    d = draft()
    d.add_call_delta(0, id="a", name="read")
    d.add_call_delta(0, id="b", name="read", arguments="{}")
    assert [c.id for c in d.message().calls] == ["a", "b"]


def test_id_and_name_repeated_in_every_piece_are_one_call():
    d = draft()
    for piece in ('{"p"', ":1", "}", ""):
        d.add_call_delta(0, id="a", name="read", arguments=piece)
    assert arguments(d) == ['{"p":1}']


def test_without_an_index_the_id_finds_the_call():
    d = draft()
    d.add_call_delta(id="a", name="read", arguments="{")
    d.add_call_delta(id="b", name="read", arguments="{")
    d.add_call_delta(id="a", arguments='"p":1}')
    d.add_call_delta(id="b", arguments='"p":2}')
    assert arguments(d) == ['{"p":1}', '{"p":2}']


def test_without_index_and_id_a_piece_belongs_to_the_last_call():
    d = draft()
    d.add_call_delta(name="read", arguments="{")
    d.add_call_delta(arguments="}")
    d.add_call_delta(7, arguments="")
    assert arguments(d) == ["{}"]


def test_the_same_id_for_two_whole_calls_without_index_makes_two_calls():
    d = draft()
    d.add_call_delta(id="call", name="read", arguments='{"p":1}')
    d.add_call_delta(id="call", name="read", arguments='{"p":2}')
    first, second = d.message().calls
    assert first.id == "call"
    assert second.id not in ("", "call")
    assert arguments(d) == ['{"p":1}', '{"p":2}']


def test_the_same_id_under_two_indexes_makes_two_calls():
    d = draft()
    d.add_call_delta(0, id="call", name="read", arguments="")
    d.add_call_delta(1, id="call", name="read", arguments="")
    d.add_call_delta(0, arguments='{"p":1}')
    d.add_call_delta(1, arguments='{"p":2}')
    assert len({c.id for c in d.message().calls}) == 2
    assert arguments(d) == ['{"p":1}', '{"p":2}']


def test_a_name_that_comes_late_is_kept():
    d = draft()
    d.add_call_delta(0, id="a")
    d.add_call_delta(0, name="read", arguments="{}")
    assert d.message().calls == (ToolCall(id="a", name="read"),)


def test_a_call_without_a_name_gets_one_so_that_it_can_be_sent_back():
    d = draft()
    d.add_call_delta(0, id="a", arguments="{}")
    assert d.message().calls[0].name == "unknown"


def test_ids_are_made_and_do_not_collide_with_the_history():
    history = [
        UserMessage.of("hi"),
        AssistantMessage(
            content=(ToolCall(id="call_1", name="x"), ToolCall(id="call_3", name="x"))
        ),
    ]
    d = draft(messages=history)
    d.add_call(name="read", arguments={})
    d.add_call(id="call_1", name="read", arguments="{}")
    d.add_call(id="new", name="read")
    ids = [c.id for c in d.message().calls]
    assert ids[-1] == "new"
    assert len({*ids, "call_1", "call_3"}) == 5


def test_ids_are_the_same_when_the_same_answer_comes_again():
    def ids() -> list[str]:
        d = draft()
        d.add_call(name="a")
        d.add_call(name="b")
        return [c.id for c in d.message().calls]

    assert ids() == ids() == ["call_1", "call_2"]


def test_fifty_calls_at_once_are_fifty_calls():
    d = draft()
    for n in range(50):
        d.add_call_delta(n, id="", name="read", arguments=f'{{"n":{n}}}')
    message = d.message()
    assert len({c.id for c in message.calls}) == 50
    assert message.stop_reason == "tool_calls"


def test_a_model_that_never_stops_is_stopped():
    d = draft(max_tokens=10)
    with pytest.raises(ModelError, match="m did not stop"):
        [d.add_text("x" * 10_000) for _ in range(100)]


def test_arguments_without_end_are_stopped_too():
    d = draft(max_tokens=10)
    with pytest.raises(ModelError, match="did not stop"):
        [d.add_call_delta(0, name="write", arguments="x" * 10_000) for _ in range(100)]


def test_a_long_answer_within_its_tokens_passes():
    d = draft(max_tokens=100_000)
    d.add_text("x" * 1_000_000)
    assert len(d.message().text) == 1_000_000


def test_pieces_give_events_and_empty_pieces_give_none():
    d = draft()
    assert d.add_text("") == d.add_thinking("") == ()
    assert d.is_empty
    assert d.add_text("a") == (TextStreamed(text="a"),)
    assert d.add_thinking("b") == (ThinkingStreamed(text="b"),)
    assert d.add_call_delta(0, id="i", name="n") == ()
    assert d.add_call_delta(0, arguments="{}") == (ToolCallStreamed(id="i", name="n", text="{}"),)
    assert d.add_call(name="o", arguments={}) == (
        ToolCallStreamed(id="call_2", name="o", text="{}"),
    )


def test_parts_stand_in_the_order_in_which_they_began():
    d = draft()
    d.add_thinking("t1")
    d.add_thinking("t2")
    d.add_text("a")
    d.add_text("b")
    d.add_call(id="c", name="read")
    d.add_text("d")
    assert d.message().content == (
        Thinking(text="t1t2", provider="openai"),
        Text(text="ab"),
        ToolCall(id="c", name="read"),
        Text(text="d"),
    )


def test_signed_and_redacted_thinking_are_parts_of_their_own():
    d = draft()
    d.add_thinking("one")
    d.sign_thinking("s1")
    d.end_part()
    d.add_thinking("two")
    d.sign_thinking("s2")
    d.add_redacted("secret")
    d.end_part()
    d.add_text("text")
    d.end_part()
    assert d.message().content == (
        Thinking(text="one", signature="s1", provider="openai"),
        Thinking(text="two", signature="s2", provider="openai"),
        Thinking(redacted="secret", provider="openai"),
        Text(text="text"),
    )


def test_a_signature_without_text_is_kept():
    d = draft()
    d.sign_thinking("only")
    assert d.message().content == (Thinking(signature="only", provider="openai"),)


def test_the_stop_reason_fits_the_calls():
    with_calls, without, long = draft(), draft(), draft()
    with_calls.add_call(name="read")
    with_calls.stop("end")
    without.add_text("hi")
    without.stop("tool_calls")
    long.add_call(name="read")
    long.stop("length")
    reasons = [d.message().stop_reason for d in (with_calls, without, long)]
    assert reasons == ["tool_calls", "end", "length"]


def test_counts_that_come_later_leave_the_others():
    d = draft()
    d.set_usage(input_tokens=5, cached_tokens=2)
    d.set_usage(output_tokens=7, cache_write_tokens=1)
    usage = d.message().usage
    counts = (
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_tokens,
        usage.cache_write_tokens,
    )
    assert counts == (5, 7, 2, 1)


@pytest.mark.integration
@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(0, 3),
            st.sampled_from(["", "a", "b"]),
            st.sampled_from(["", "x", "y"]),
            st.sampled_from(["", "{", "}", "{}", "["]),
        )
    )
)
def test_whatever_comes_the_message_can_be_sent_back(pieces):
    d = draft()
    for index, given_id, name, text in pieces:
        d.add_call_delta(index, id=given_id, name=name, arguments=text)
    calls = d.message().calls
    assert len({c.id for c in calls}) == len(calls)
    assert all(c.id and c.name and bytes(c.arguments).startswith(b"{") for c in calls)


@every_row(
    ("pieces", "names"),
    [
        # The same call again, whole, in the last chunk: it runs once.
        ([(0, "c1", "read", '{"a": 1}'), (0, "c1", "read", '{"a":1}')], ["read"]),
        ([(0, "c1", "read", '{"a"'), (0, "", "", ": 1}"), (0, "c1", "read", '{"a": 1}')], ["read"]),
        ([(0, "c1", "read", "{}"), (1, "c1", "read", "{}")], ["read"]),
        ([(0, "c1", "a", "{}"), (1, "c2", "b", "{}"), (0, "c1", "a", "{}"), (1, "c2", "b", "{}")], ["a", "b"]),
        # Another call is another one.
        ([(0, "c1", "read", '{"a": 1}'), (0, "c2", "read", '{"a": 1}')], ["read", "read"]),
        ([(0, "c1", "read", '{"a": 1}'), (0, "c1", "read", '{"a": 2}')], ["read", "read"]),
        # A name that comes in two pieces.
        ([(0, "c1", "read_", ""), (0, "", "file", ""), (0, "", "", "{}")], ["read_file"]),
        ([(0, "c1", "read_", ""), (0, "c1", "read_file", "{}")], ["read_file"]),
        ([(0, "c1", "read", ""), (0, "c2", "write", "{}")], ["read", "write"]),
        ([(0, "c1", "read", "{}"), (0, "", "write", "{}")], ["read", "write"]),
    ],
)  # fmt: skip
def test_a_call_repeated_whole_runs_once_and_a_name_may_come_in_pieces(pieces, names):
    d = draft()
    for index, id, name, arguments in pieces:
        d.add_call_delta(index, id=id, name=name, arguments=arguments)
    calls = d.message().calls
    assert [call.name for call in calls] == names
    assert not any(call.invalid for call in calls)
