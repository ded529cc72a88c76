"""The guards of a sub-agent: what it may use of tokens and money, and a last word before its budget ends."""

from collections.abc import Callable
from typing import Final

from ybs.conductor.budget import Budget, Used
from ybs.core.errors import StopTurn
from ybs.core.messages import UserMessage
from ybs.core.ports import Guard, Turn

LAST_WORD: Final = (
    "Your budget ends with your next answer. Call no tool: answer now with what you have found and done, "
    "and say what is missing."
)


class Spending(Guard):
    """Ends a turn before a request that could use more tokens or money than the budget has.

    `next_tokens` says how many tokens the next request and its answer may have. What an answer will cost is not known before;
    it is taken to be as dear as the dearest so far.
    """

    def __init__(self, budget: Budget, next_tokens: Callable[[Turn], int]) -> None:
        self._budget, self._next_tokens = budget, next_tokens
        self._before, self._dearest = 0.0, 0.0

    async def before_step(self, turn: Turn) -> None:
        """Raise StopTurn where the budget has no room for another request."""
        used, budget = Used.of(turn.steps, turn.usage), self._budget
        self._dearest = max(self._dearest, used.cost_usd - self._before)
        self._before = used.cost_usd
        if budget.cost_usd is not None and used.cost_usd + self._dearest > budget.cost_usd:
            text = f"its budget of ${budget.cost_usd:.4f} has no room for another answer"
            raise StopTurn("limit", text)
        if budget.tokens is None:
            return
        wanted = self._next_tokens(turn)
        if used.tokens + wanted > budget.tokens:
            text = (
                f"its budget of {budget.tokens:,} tokens has no room for another request, "
                f"which may take {wanted:,} with its answer"
            )
            raise StopTurn("limit", text)


class LastWord(Guard):
    """Says before the last request that there will be no other one, so that what was found is not lost."""

    def __init__(self, most_steps: int) -> None:
        self._most_steps = most_steps

    async def before_step(self, turn: Turn) -> None:
        """Say it once."""
        if turn.steps == self._most_steps - 1:
            turn.say(UserMessage.of(LAST_WORD, origin="guard"))
