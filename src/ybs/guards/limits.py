"""Limits of a turn: steps, money and time. Reaching one ends the turn with reason `limit`."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from time import monotonic

from ybs.core.errors import StopTurn
from ybs.core.events import Emit, Event
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Guard, Model, Request, Toolbox, ToolSpec, Turn


class Limits(Guard):
    """Stops before a request that would go over a limit. None means no limit.

    `spent_usd` tells what the session has cost so far; `max_cost_usd` is a limit of the session, the others
    are limits of one turn.
    """

    def __init__(
        self,
        *,
        max_steps: int,
        max_cost_usd: float | None = None,
        max_seconds: float | None = None,
        spent_usd: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.max_steps = max_steps
        self.max_cost_usd = max_cost_usd
        self.max_seconds = max_seconds
        self._spent_usd = spent_usd

    async def before_step(self, turn: Turn) -> None:
        """Raise StopTurn at a limit."""
        if turn.steps >= self.max_steps:
            raise StopTurn(
                "limit",
                f"Stopped after {turn.steps} steps (agent.max_iterations). Say “go on” to continue.",
            )
        spent = self._spent_usd() + (turn.usage.cost_usd or 0.0)
        if self.max_cost_usd is not None and spent >= self.max_cost_usd:
            raise StopTurn(
                "limit", f"Stopped at ${spent:.2f} of ${self.max_cost_usd:.2f} (max cost)."
            )
        if self.max_seconds is not None and turn.elapsed_seconds >= self.max_seconds:
            raise StopTurn("limit", _time_is_up(self.max_seconds))


class Deadline:
    """The moment at which the running turn must be over; it begins with each turn."""

    def __init__(self, max_seconds: float) -> None:
        self.max_seconds = max_seconds
        self._ends_at = monotonic() + max_seconds

    def begin(self) -> None:
        """Start the clock of a new turn."""
        self._ends_at = monotonic() + self.max_seconds

    def left_seconds(self) -> float:
        """Time that is left, never below zero."""
        return max(0.0, self._ends_at - monotonic())


class TimedModel(Model):
    """A Model that is cut off when the turn's time is up."""

    def __init__(self, model: Model, deadline: Deadline) -> None:
        self._model, self._deadline = model, deadline

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._model.name

    @property
    def window(self) -> int:
        """The wrapped model's window."""
        return self._model.window

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream until the deadline, then raise StopTurn."""
        async with aclosing(self._model.stream(request)) as events:
            while True:
                try:
                    async with asyncio.timeout(self._deadline.left_seconds()):
                        event = await anext(events)
                except StopAsyncIteration:
                    return
                except TimeoutError as error:
                    raise StopTurn("limit", _time_is_up(self._deadline.max_seconds)) from error
                yield event


class TimedToolbox(Toolbox):
    """A Toolbox whose calls are stopped when the turn's time is up."""

    def __init__(self, toolbox: Toolbox, deadline: Deadline) -> None:
        self._toolbox, self._deadline = toolbox, deadline

    def specs(self) -> Sequence[ToolSpec]:
        """List the wrapped toolbox's tools."""
        return self._toolbox.specs()

    def is_read_only(self, call: ToolCall) -> bool:
        """Ask the wrapped toolbox."""
        return self._toolbox.is_read_only(call)

    async def run(self, call: ToolCall, emit: Emit) -> ToolResult:
        """Run the call, or answer that the time is up."""
        try:
            async with asyncio.timeout(self._deadline.left_seconds()):
                return await self._toolbox.run(call, emit)
        except TimeoutError:
            text = _time_is_up(self._deadline.max_seconds)
            return ToolResult(call_id=call.id, name=call.name, output=text, is_error=True)


class DryRun(Guard):
    """Ends a turn after its first step: the calls were shown, none was made."""

    async def before_step(self, turn: Turn) -> None:
        """Raise StopTurn from the second step on."""
        if turn.steps:
            raise StopTurn("dry_run", "Dry run: the calls above were not executed.")


def _time_is_up(seconds: float) -> str:
    return f"Stopped after {seconds:g} s, the time limit of a turn."
