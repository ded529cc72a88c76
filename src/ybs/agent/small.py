"""What a small model gets besides: requests in an order that shares their beginning, a look ahead, and an end to its turns."""

from collections.abc import Callable

from ybs.agent.prefix import SharedPrefix
from ybs.agent.read_ahead import ReadAhead, missing_in
from ybs.context.prompt import rules
from ybs.core.messages import ToolCall
from ybs.core.ports import Guard, Model
from ybs.guards.endings import Endings
from ybs.security.paths.roots import Roots


def supported(
    brief: Callable[[str], str], roots: Roots, reads_only: Callable[[ToolCall], bool]
) -> tuple[Callable[[Model], Model], tuple[Guard, ...]]:
    """Return what puts around a small model what helps it, and the guards that go with that.

    `brief` returns what of the documents goes with some words, `reads_only` whether a call changes nothing.
    """
    endings = Endings(reads_only)

    def note(words: str) -> str:
        return " ".join(missing_in(words, roots))

    def around(model: Model) -> Model:
        ordered = SharedPrefix(model, rules(is_short=True), brief, note)
        return endings.bounding(ReadAhead(ordered, roots))

    return around, (endings,)
