"""Group the tool calls of one message: those that run side by side, and those that share one run."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from ybs.core.messages import ToolCall


def batches(
    calls: Iterable[ToolCall], is_read_only: Callable[[ToolCall], bool]
) -> Iterator[list[list[ToolCall]]]:
    """Yield batches to run one after the other, each a list of groups to run side by side.

    The calls of a group ask for the same thing, so one run answers them all. Only neighbours are grouped: a call
    that stands behind a writing one may see something else than the same call before it.
    """
    for may_share, neighbours in groupby(calls, is_read_only):
        groups: list[list[ToolCall]] = []
        known: dict[object, list[ToolCall]] = {}
        for call in neighbours:
            twins = known.get(call.question)
            if twins is not None and (may_share or twins is groups[-1]):
                twins.append(call)
            else:
                groups.append([call])
                known[call.question] = groups[-1]
        yield from [groups] if may_share else ([group] for group in groups)
