"""Recovery: what to do when the model is stuck in errors or says nothing (Yips' "pivot")."""

from itertools import takewhile

from ybs.core.errors import StopTurn
from ybs.core.events import Noticed
from ybs.core.messages import AssistantMessage, ToolResult, UserMessage
from ybs.core.ports import Guard, Turn

ERRORS_BEFORE_PIVOT = 3
ERRORS_BEFORE_STOP = 12

PIVOT = (
    "{count} tool calls in a row failed. Stop and read the errors above. Find out why before the next call, then "
    "take another way. If you cannot, say in plain text what is in the way."
)
STOPPED = (
    "Stopped: {count} tool calls in a row failed. "
    "Try another model with /model, or say what to do differently."
)
EMPTY = "Your last message was empty. Go on with the task, or say in plain text that you are done."


class Recovery(Guard):
    """Speaks up after every third error in a row, ends the turn after the twelfth; wakes a silent model once."""

    async def before_step(self, turn: Turn) -> None:
        """Count the errors since the last call that worked."""
        count = errors_in_a_row(turn)
        if count >= ERRORS_BEFORE_STOP:
            raise StopTurn("loop", STOPPED.format(count=count))
        is_fresh = isinstance(turn.messages[-1], ToolResult)
        if is_fresh and count and count % ERRORS_BEFORE_PIVOT == 0:
            turn.say(UserMessage.of(PIVOT.format(count=count), origin="guard"))

    async def wants_more(self, turn: Turn) -> bool:
        """Ask a model that said nothing to go on, once; tell the person about a cut answer."""
        last = turn.messages[-1]
        if isinstance(last, AssistantMessage):
            if last.stop_reason == "length":
                turn.emit(Noticed(level="warning", text="The answer was cut at llm.max_tokens."))
            return False
        if any(isinstance(m, UserMessage) and m.text == EMPTY for m in turn.messages):
            turn.emit(Noticed(level="warning", text="The model sent an empty message twice."))
            return False
        turn.say(UserMessage.of(EMPTY, origin="guard"))
        return True


def errors_in_a_row(turn: Turn) -> int:
    """Count the failed calls at the end of the turn; refused ones neither count nor reset."""
    results = [m for m in turn.messages if isinstance(m, ToolResult) and not m.is_refused]
    return sum(1 for _ in takewhile(lambda result: result.is_error, reversed(results)))
