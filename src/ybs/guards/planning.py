"""Planning: in the mode `plan` the model is told once how a plan is to end, so that the person can decide on it."""

from collections.abc import Callable

from ybs.core.messages import UserMessage
from ybs.core.ports import Guard, Turn

HOW = (
    "The mode is plan: you can read, and run commands that change nothing; nothing is changed. Ask first what you cannot find out. When you know what to do, "
    "end your answer with the heading `Plan:` and numbered steps: the files, what changes, how it is checked. The person then decides."
)


class Planning(Guard):
    """Tells the model about the mode. `is_planning` says whether it is in force."""

    def __init__(self, is_planning: Callable[[], bool]) -> None:
        self._is_planning = is_planning
        self._is_told = False

    async def before_step(self, turn: Turn) -> None:
        """Say it when the mode has begun."""
        is_planning = self._is_planning()
        if is_planning and not self._is_told:
            turn.say(UserMessage.of(HOW, origin="context"))
        self._is_told = is_planning
