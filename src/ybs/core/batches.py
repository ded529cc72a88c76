"""Which tool calls of one message run side by side, and which need not run at all."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from ybs.core.messages import ToolCall


def first_of_kind(calls: Sequence[ToolCall]) -> dict[str, ToolCall]:
    """Map each call's id to the first call of the message that asks for the same thing."""
    return {call.id: next(c for c in calls if c.is_same_call(call)) for call in calls}


def side_by_side(
    calls: Iterable[ToolCall], is_read_only: Callable[[ToolCall], bool]
) -> Iterator[list[ToolCall]]:
    """Yield batches to run one after the other; only reading calls share one, repeats are left out."""
    distinct = {call.id: call for call in calls}.values()
    for may_share, group in groupby(distinct, is_read_only):
        batch = list(group)
        yield from [batch] if may_share else ([call] for call in batch)
