"""Recovery: what to do when the model is stuck in errors or says nothing (Yips' "pivot")."""

from ybs.core.errors import ModelError, StopTurn
from ybs.core.events import Noticed
from ybs.core.messages import AssistantMessage, Message, ToolResult, UserMessage
from ybs.core.ports import Guard, Turn
from ybs.core.remedies import Remedy
from ybs.guards.loops import DIFFERENTLY, said_since

FAILED_BEFORE_PIVOT = 3
FAILED_BEFORE_STOP = 12
PIVOT = (
    "Every call of your last {count} steps failed or was refused. Stop and read the results above. Find out why "
    "before the next call, then take another way. If you cannot, say in plain text what is in the way."
)
STOPPED = "Stopped: every tool call of the last {count} steps failed or was refused."
EMPTY = "Your last message was empty. Go on with the task, or say in plain text that you are done."
SILENT = "The model sent an empty message twice."
OTHERWISE = (Remedy("do", "ask in other words"), Remedy("change_model"))
CUT_OFF = (
    "The answer was cut off: it reached llm.max_tokens, or the end of the model's window. "
    "Ask for the rest, or allow longer answers."
)


class Recovery(Guard):
    """Speaks up after every third step in a row in which nothing worked, and ends the turn after the twelfth.

    A step counts as a whole, since a model reads the errors of one message together. A model that says nothing is woken once.
    """

    def __init__(self) -> None:
        self._turn: Turn | None = None
        self._failed_steps = 0
        self._read: Message | None = None

    async def before_step(self, turn: Turn) -> None:
        """Count the steps since the last call that worked."""
        messages = turn.messages
        new = None if turn is not self._turn else said_since(self._read, messages)
        if new is None:
            self._turn, self._failed_steps, new = turn, 0, messages
        results = [m for m in new if isinstance(m, ToolResult)]
        self._read = messages[-1]
        if not results:
            return
        if not all(result.is_error for result in results):
            self._failed_steps = 0
            return
        self._failed_steps += 1
        count = self._failed_steps
        if count >= FAILED_BEFORE_STOP:
            raise StopTurn("loop", STOPPED.format(count=count), remedies=DIFFERENTLY)
        if count % FAILED_BEFORE_PIVOT == 0:
            turn.say(UserMessage.of(PIVOT.format(count=count), origin="guard"))

    async def wants_more(self, turn: Turn) -> bool:
        """Ask a model that said nothing to go on, once; tell the person about a cut answer."""
        messages = turn.messages
        last = messages[-1] if messages else None
        if isinstance(last, AssistantMessage):
            if last.stop_reason == "length":
                turn.emit(Noticed(level="warning", text=CUT_OFF))
                return False
            if last.text.strip():
                return False
        if any(isinstance(m, UserMessage) and m.text == EMPTY for m in messages):
            raise ModelError(SILENT, remedies=OTHERWISE)
        turn.say(UserMessage.of(EMPTY, origin="guard"))
        return True
