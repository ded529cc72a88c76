"""What a small model gets besides: requests in an order that shares their beginning, a look ahead, and an end to its turns."""

from collections.abc import Callable

from ybs.agent.next_call import Guided
from ybs.agent.prefix import SharedPrefix
from ybs.agent.read_ahead import ReadAhead, missing_in
from ybs.context.prompt import rules
from ybs.core.messages import ToolCall
from ybs.core.ports import Guard, Model
from ybs.guards.endings import Endings
from ybs.security.paths.roots import Roots


def supported(
    brief: Callable[[str], str],
    roots: Roots,
    reads_only: Callable[[ToolCall], bool],
    *,
    is_tiny: bool = False,
) -> tuple[Callable[[Model], Model], tuple[Guard, ...]]:
    """Return what puts around a small model what helps it, and the guards that go with that.

    `brief` returns what of the documents goes with some words, `reads_only` whether a call changes nothing. A tiny model is
    told what it may write next as well.
    """
    endings = Endings(reads_only)

    def note(words: str) -> str:
        return " ".join(missing_in(words, roots))

    def around(model: Model) -> Model:
        ordered = SharedPrefix(model, rules(is_short=True), brief, note, repeats=is_tiny)
        return endings.bounding(ReadAhead(Guided(ordered) if is_tiny else ordered, roots))

    return around, (endings,)
