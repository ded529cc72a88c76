"""Which calls run together."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from ybs.core.batches import first_of_kind, side_by_side
from ybs.core.messages import ToolCall


def make(kinds: str) -> list[ToolCall]:
    """Make a call for each letter; capitals write, equal letters are equal calls."""
    return [ToolCall(id=str(at), name=kind) for at, kind in enumerate(kinds)]


def reads(call: ToolCall) -> bool:
    return call.name.islower()


def batches(kinds: str) -> list[str]:
    return [
        "".join(call.name for call in batch)
        for batch in side_by_side(first_of_kind(make(kinds)).values(), reads)
    ]


def test_neighbours_that_read_share_a_batch_and_writers_stand_alone():
    assert batches("abCDefG") == ["ab", "C", "D", "ef", "G"]


def test_repeats_are_left_out_wherever_they_stand():
    assert batches("aaBaBb") == ["a", "B", "b"]


def test_no_calls_make_no_batch():
    assert batches("") == []


def test_calls_are_the_same_by_name_arguments_and_broken_text_but_not_by_id():
    first = ToolCall(id="1", name="look", arguments=Raw(b'{"a":1}'))
    assert first.is_same_call(ToolCall(id="2", name="look", arguments=Raw(b'{"a":1}')))
    assert not first.is_same_call(ToolCall(id="1", name="look", arguments=Raw(b'{"a":2}')))
    assert not first.is_same_call(ToolCall(id="1", name="see", arguments=Raw(b'{"a":1}')))
    broken = ToolCall(id="1", name="look", invalid="{")
    assert not broken.is_same_call(ToolCall(id="1", name="look", invalid="["))


@settings(deadline=None)
@given(st.text(alphabet="abcABC", max_size=20))
def test_every_distinct_call_runs_exactly_once_in_the_order_asked(kinds: str):
    assert "".join(batches(kinds)) == "".join(dict.fromkeys(kinds))
    firsts = first_of_kind(make(kinds))
    assert all(firsts[call.id].name == call.name for call in make(kinds))
