"""Taking up a turn whose process died: what never began runs now, and what did is told to the model and not run again."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

import msgspec
from msgspec import Struct

from ybs.core.decoding import from_json
from ybs.core.errors import ToolError
from ybs.core.events import ConfirmationAnswered, ConfirmationAsked, ToolStarted
from ybs.core.messages import ToolCall, UserMessage
from ybs.security.paths.roots import Roots
from ybs.session.journal import Journal
from ybs.session.main_agent import MainAgent
from ybs.tools.reading.files import remove_leftover

GO_ON = "ybs ended in the midst of this work and was started again. Go on where it stopped."
INTERRUPTED = (
    "These calls were interrupted, and were not run again: {names}. Look first at what they did."
)


def going_on(main: MainAgent) -> Callable[[], Awaitable[UserMessage]]:
    """Return what begins the turn anew: it runs the calls that may run, and says where things stand."""

    async def words() -> UserMessage:
        toolbox, calls = main.agent.toolbox, main.conversation.open_calls
        begun = _begun(main.journal)
        again = [call for call in calls if call.id not in begun or toolbox.is_read_only(call)]
        left = [call for call in calls if call not in again]
        remove_leftovers(main.environment.roots, left)
        await main.agent.answer(again)
        names = ", ".join(call.name for call in left)
        told = f"\n\n{INTERRUPTED.format(names=names)}" if left else ""
        return UserMessage.of(GO_ON + told, origin="guard")

    return words


def _begun(journal: Journal) -> set[str]:
    """Return the ids of the calls that may have done something: they were begun, and nobody was still asked about them."""
    begun, asked = set[str](), set[str]()
    for envelope in journal.earlier:
        match envelope.event:
            case ToolStarted(id=call):
                begun.add(call)
            case ConfirmationAsked(id=call):
                asked.add(call)
            case ConfirmationAnswered(id=call):
                asked.discard(call)
            case _:
                pass
    return begun - asked


class _Named(Struct):
    path: str


def remove_leftovers(roots: Roots, calls: Iterable[ToolCall]) -> None:
    """Remove temporary files that interrupted writes left beside the files of these calls, which never ended."""
    for call in calls:
        with suppress(msgspec.DecodeError, ToolError, OSError):
            path = from_json(call.arguments, _Named).path
            with roots.held(roots.resolve(path, is_write=True)) as place:
                remove_leftover(place)
