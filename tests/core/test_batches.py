"""Which calls run together."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from ybs.core.batches import batches
from ybs.core.messages import ToolCall


def make(kinds: str) -> list[ToolCall]:
    """Make a call for each letter; capitals write, equal letters are equal calls."""
    return [ToolCall(id=str(at), name=kind) for at, kind in enumerate(kinds)]


def reads(call: ToolCall) -> bool:
    return call.name.islower()


def run_in_turn(kinds: str) -> list[list[str]]:
    """List the batches; a group is the letter of its calls, as often as they share one run."""
    made = batches(make(kinds), reads)
    return [["".join(call.name for call in group) for group in batch] for batch in made]


def test_neighbours_that_read_share_a_batch_and_writers_stand_alone():
    assert run_in_turn("abCDefG") == [["a", "b"], ["C"], ["D"], ["e", "f"], ["G"]]


def test_equal_neighbours_share_one_run():
    assert run_in_turn("abaBBb") == [["aa", "b"], ["BB"], ["b"]]


def test_a_read_behind_a_write_is_a_read_of_its_own():
    assert run_in_turn("aBa") == [["a"], ["B"], ["a"]]


def test_equal_writers_with_another_between_them_both_run():
    assert run_in_turn("ABA") == [["A"], ["B"], ["A"]]


def test_no_calls_make_no_batch():
    assert run_in_turn("") == []


def test_calls_are_the_same_by_name_arguments_and_broken_text_but_not_by_id():
    first = ToolCall(id="1", name="look", arguments=Raw(b'{"a":1}'))
    assert first.is_same_call(ToolCall(id="2", name="look", arguments=Raw(b'{"a":1}')))
    assert not first.is_same_call(ToolCall(id="1", name="look", arguments=Raw(b'{"a":2}')))
    assert not first.is_same_call(ToolCall(id="1", name="see", arguments=Raw(b'{"a":1}')))
    broken = ToolCall(id="1", name="look", invalid="{")
    assert not broken.is_same_call(ToolCall(id="1", name="look", invalid="["))


@given(st.text(alphabet="abcABC", max_size=20))
def test_every_call_is_in_exactly_one_group_of_its_kind(kinds: str):
    calls = make(kinds)
    groups = [group for batch in batches(calls, reads) for group in batch]
    assert sorted(int(call.id) for group in groups for call in group) == list(range(len(kinds)))
    assert all(call.is_same_call(group[0]) for group in groups for call in group)
