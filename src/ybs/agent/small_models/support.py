"""What a small model gets besides: requests in an order that shares their beginning, a look ahead, and an end to its turns."""

from collections.abc import Callable

from ybs.agent.small_models.guided import Guided
from ybs.agent.small_models.intents import wants_action
from ybs.agent.small_models.prefix import SharedPrefix
from ybs.agent.small_models.read_ahead import ReadAhead, missing_in
from ybs.agent.small_models.validity import problem_in
from ybs.context.prompt import rules
from ybs.core.messages import ToolCall
from ybs.core.ports import Guard, Model
from ybs.guards.endings import Endings
from ybs.providers.sizes import GUIDED_BILLIONS, TINY_BILLIONS
from ybs.security.paths.roots import Roots


def supported(
    brief: Callable[[str], str],
    roots: Roots,
    reads_only: Callable[[ToolCall], bool],
    *,
    billions: float | None = None,
) -> tuple[Callable[[Model], Model], tuple[Guard, ...]]:
    """Return what puts around a small model what helps it, and the guards that go with that.

    `brief` returns what of the documents goes with some words, `reads_only` whether a call changes nothing. The smallest models,
    by their parameters in `billions`, are told what they may write next as well.
    """
    endings = Endings(reads_only, wants_action)
    is_tiny = billions is not None and billions <= TINY_BILLIONS
    is_guided = billions is not None and billions <= GUIDED_BILLIONS

    def note(words: str) -> str:
        return " ".join(missing_in(words, roots))

    def problem(path: str) -> str:
        return problem_in(path, roots)

    def around(model: Model) -> Model:
        ordered = SharedPrefix(model, rules(is_short=True), brief, note, problem, repeats=is_tiny)
        ahead = Guided(ordered, is_tiny=is_tiny) if is_guided else ordered
        return endings.bounding(ReadAhead(ahead, roots))

    return around, (endings,)
