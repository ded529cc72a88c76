"""What hooks have to say about the end of a turn."""

from typing import Literal

from ybs.agent.user_hooks.definitions import EventName
from ybs.agent.user_hooks.hooks import UserHooks
from ybs.core.errors import StopTurn
from ybs.core.messages import AssistantMessage, UserMessage
from ybs.core.ports import Guard, Turn

#: A hook that never lets a turn end is not asked for ever.
MOST_IN_A_ROW = 8


class HookGuard(Guard):
    """Asks hooks whether a turn may end, and ends one where they say so. It stands behind all others.

    `event` is `SubagentStop` for an agent that works for another one.
    """

    def __init__(self, hooks: UserHooks, event: Literal["Stop", "SubagentStop"] = "Stop") -> None:
        self._hooks = hooks
        self._event: EventName = event
        self._turn: Turn | None = None
        self._count = 0

    async def before_step(self, turn: Turn) -> None:
        """End the turn where a hook said so. Raises StopTurn."""
        if self._hooks.ending is not None:
            raise StopTurn("limit", f"A hook ended the turn: {self._hooks.ending}")
        if turn is not self._turn:
            self._turn, self._count = turn, 0

    async def wants_more(self, turn: Turn) -> bool:
        """Go on where a hook blocks the end, with what it says."""
        last = turn.messages[-1] if turn.messages else None
        if not isinstance(last, AssistantMessage) or self._count >= MOST_IN_A_ROW:
            return False  # another guard goes on already
        facts = {"stop_hook_active": self._count > 0, "last_assistant_message": last.text}
        answer = await self._hooks.fire(self._event, facts)
        if answer.blocked is None or answer.ending is not None:
            return False
        self._count += 1
        turn.say(UserMessage.of(f"A hook of the person says: {answer.blocked}", origin="guard"))
        return True
