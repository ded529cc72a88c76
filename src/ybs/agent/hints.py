"""What makes sense after the result of a tool: a line for small models, which else stop too early or too late."""

from typing import Final

from ybs.core.messages import ToolResult
from ybs.core.ports import Effect

ACT: Final = "Now do what was asked for: make the next call."
ANSWER: Final = "If this answers the question, answer it in words now. If it is not in there, say so, or look elsewhere."
RAN: Final = "If this is all that was asked for, answer in words now. Else make the next call."
CHANGED: Final = "If nothing else was asked for, say so in words now."
#: In the place of the others, for a model that loses its task over what it reads.
ASKED: Final = "You were asked: {}"
#: After an edit where a command has failed before.
RUN_AGAIN: Final = "Now run again what failed."
RUN_FAILED: Final = "This failed. Find out why: read the code to blame, not the test."
FAILED: Final = "This failed. Read why. Take another way, or say in words what is in the way."
REFUSED: Final = "This is not allowed and will not be. Go on without it, or answer in words."


def hint_after(result: ToolResult, effect: Effect, *, is_due: bool, has_failed: bool) -> str:
    """Return the line behind a result.

    `is_due`: a change was asked for, and none was made yet. `has_failed`: the last command did.
    """
    if result.is_refused:
        return REFUSED
    if result.is_error:
        return RUN_FAILED if effect == "execute" and is_due else FAILED
    if effect == "read":
        return ACT if is_due else ANSWER
    if effect == "execute":
        return RAN
    return RUN_AGAIN if has_failed else CHANGED
