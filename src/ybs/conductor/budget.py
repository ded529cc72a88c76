"""Budgets: what a sub-agent may use, carved out of what the turn has left and never more than that."""

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct

from ybs.config.sections import Agents
from ybs.core.messages import Usage

_Number = TypeVar("_Number", int, float)


class Budget(Struct, frozen=True, kw_only=True):
    """The most that somebody may use; None: as much as there is."""

    steps: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None

    def within(self, other: "Budget") -> "Budget":
        """Return the smaller one of the two in each respect."""
        return Budget(
            steps=_least(self.steps, other.steps),
            tokens=_least(self.tokens, other.tokens),
            cost_usd=_least(self.cost_usd, other.cost_usd),
            seconds=_least(self.seconds, other.seconds),
        )

    def share(self, count: int) -> "Budget":
        """Return the equal part of each of so many. Time passes for all of them at once."""
        return Budget(
            steps=None if self.steps is None else self.steps // count,
            tokens=None if self.tokens is None else self.tokens // count,
            cost_usd=None if self.cost_usd is None else self.cost_usd / count,
            seconds=self.seconds,
        )

    def less(self, used: "Used") -> "Budget":
        """Return what is left of it; never less than nothing. Time is not counted here."""
        return Budget(
            steps=None if self.steps is None else max(0, self.steps - used.steps),
            tokens=None if self.tokens is None else max(0, self.tokens - used.tokens),
            cost_usd=None if self.cost_usd is None else max(0.0, self.cost_usd - used.cost_usd),
            seconds=self.seconds,
        )

    @property
    def missing(self) -> str:
        """What there is nothing of, so that nobody can begin with it; empty where there is something of each."""
        if self.steps is not None and self.steps < 1:
            return "requests"
        if self.tokens is not None and self.tokens < 1:
            return "tokens"
        if self.cost_usd is not None and self.cost_usd <= 0:
            return "money"
        return "time" if self.seconds is not None and self.seconds <= 0 else ""


class Used(Struct, frozen=True, kw_only=True):
    """What somebody has used."""

    steps: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    @classmethod
    def of(cls, steps: int, usage: Usage) -> "Used":
        """Return it of steps and what providers have counted."""
        tokens = usage.input_tokens + usage.output_tokens
        return cls(steps=steps, tokens=tokens, cost_usd=usage.cost_usd or 0.0)

    def __add__(self, other: "Used") -> "Used":
        return Used(
            steps=self.steps + other.steps,
            tokens=self.tokens + other.tokens,
            cost_usd=self.cost_usd + other.cost_usd,
        )


class Purse:
    """What the sub-agents of one turn share. What is reserved cannot be reserved again before it is settled."""

    def __init__(self) -> None:
        self._reserved: dict[str, Budget] = {}
        #: What sub-agents that have ended used.
        self.used = Used()

    def reserve(self, wanted: Sequence[tuple[str, Budget]], left: Budget) -> list[Budget]:
        """Reserve a budget for each name, and return them: what it wants, and at most an equal part of what is there.

        `left` is what the turn itself has left, before its sub-agents are counted.
        """
        given: list[Budget] = []
        for place, (name, want) in enumerate(wanted):
            budget = want.within(self.free(left).share(len(wanted) - place))
            self._reserved[name] = budget
            given.append(budget)
        return given

    def free(self, left: Budget) -> Budget:
        """Return what of a turn's rest is neither used nor reserved."""
        return left.less(self.committed)

    @property
    def committed(self) -> Used:
        """What is used or reserved."""
        return sum((_whole(each) for each in self._reserved.values()), self.used)

    def settle(self, name: str, used: Used) -> None:
        """Give back what a sub-agent has not used of its budget."""
        del self._reserved[name]
        self.used += used


def usual(agents: Agents) -> Budget:
    """Return the budget that the settings give a sub-agent."""
    return Budget(
        steps=agents.max_steps,
        tokens=agents.max_tokens,
        cost_usd=agents.max_cost_usd,
        seconds=agents.max_seconds,
    )


def _whole(budget: Budget) -> Used:
    return Used(steps=budget.steps or 0, tokens=budget.tokens or 0, cost_usd=budget.cost_usd or 0.0)


def _least(one: _Number | None, other: _Number | None) -> _Number | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
