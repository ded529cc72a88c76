"""What hooks have to say about the end of a turn."""

from ybs.agent.user_hooks.definitions import EventName
from ybs.agent.user_hooks.hooks import UserHooks
from ybs.agent.user_hooks.names import names_of_kind
from ybs.core.errors import StopTurn
from ybs.core.messages import AssistantMessage, UserMessage
from ybs.core.ports import Guard, Turn

#: A hook that never lets a turn end is not asked for ever.
MOST_IN_A_ROW = 8


class HookGuard(Guard):
    """Asks hooks whether a turn may end, and ends one where they say so. It stands behind all others.

    An agent that works for another one has a name and is of a `kind`; hooks hear of its beginning as well.
    """

    def __init__(self, hooks: UserHooks, name: str = "", kind: str = "") -> None:
        self._hooks = hooks
        self._event: EventName = "SubagentStop" if kind else "Stop"
        self._names = names_of_kind(kind)
        self._facts = {"agent_id": name, "agent_type": self._names[0]} if self._names else {}
        self._turn: Turn | None = None
        self._count = 0

    async def before_step(self, turn: Turn) -> None:
        """End the turn where a hook said so. Raises StopTurn."""
        if self._hooks.ending is not None:
            raise StopTurn("limit", f"A hook ended the turn: {self._hooks.ending}")
        if turn is not self._turn:
            self._turn, self._count = turn, 0
            if self._facts:
                answer = await self._hooks.fire("SubagentStart", self._facts, self._names)
                if answer.context:
                    turn.say(UserMessage.of(answer.context, origin="context"))

    async def wants_more(self, turn: Turn) -> bool:
        """Go on where a hook blocks the end, with what it says."""
        last = turn.messages[-1] if turn.messages else None
        if not isinstance(last, AssistantMessage) or self._count >= MOST_IN_A_ROW:
            return False  # another guard goes on already
        facts = {"stop_hook_active": self._count > 0, "last_assistant_message": last.text}
        answer = await self._hooks.fire(self._event, {**facts, **self._facts}, self._names)
        if answer.blocked is None or answer.ending is not None:
            return False
        self._count += 1
        turn.say(UserMessage.of(f"A hook of the person says: {answer.blocked}", origin="guard"))
        return True
