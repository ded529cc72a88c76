"""Limits: steps and time of a turn, money of a session; reaching one ends the turn with reason `limit`. And the calls of one answer."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager
from math import inf
from typing import Final

from msgspec.structs import replace

from ybs.core.errors import StopTurn
from ybs.core.events import AssistantSaid, Emit, Event, Noticed
from ybs.core.messages import AssistantMessage, AssistantPart, ToolCall, ToolResult, UserMessage
from ybs.core.ports import Guard, Model, Request, Toolbox, Turn
from ybs.core.remedies import Remedy
from ybs.core.time_limits import time_limit_at
from ybs.core.wording import plural
from ybs.core.wrapper import ModelWrapper, ToolboxWrapper


class Limits(Guard):
    """Stops before a request that would go over a limit.

    `max_steps` is a turn's, `max_cost_usd` the session's (None: no limit). `spent_usd` tells what the session's
    earlier turns have cost.
    """

    def __init__(
        self,
        *,
        max_steps: int,
        max_cost_usd: float | None = None,
        spent_usd: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.max_steps, self.max_cost_usd, self.spent_usd = max_steps, max_cost_usd, spent_usd
        self._has_warned = False

    async def before_step(self, turn: Turn) -> None:
        """Raise StopTurn at a limit."""
        if turn.steps >= self.max_steps:
            steps = plural(turn.steps, "step")
            text = f"Stopped after {steps}, the limit for one turn."
            raise StopTurn("limit", text, remedies=(Remedy("raise_step_limit"),))
        if self.max_cost_usd is None:
            return
        self._warn_of_unknown_price(turn)
        spent = self.spent_usd() + (turn.usage.cost_usd or 0.0)
        if spent >= self.max_cost_usd:
            raise StopTurn(
                "limit", f"Stopped at ${spent:.2f} of ${self.max_cost_usd:.2f} (max cost)."
            )

    def _warn_of_unknown_price(self, turn: Turn) -> None:
        said = (m for m in reversed(turn.messages) if isinstance(m, AssistantMessage))
        last = next(said, None)
        if last is not None and last.usage.cost_usd is None and not self._has_warned:
            self._has_warned = True
            text = "The price of this model is not known, so the cost limit has no effect."
            turn.emit(Noticed(level="warning", text=text))


class TurnDeadline(Guard):
    """The moment at which a turn must be over. It waits while the person is asked; between turns there is none.

    As a guard it ends a turn before another request is sent, whose answer nobody would read.
    """

    def __init__(self, max_seconds: float) -> None:
        self.max_seconds = max_seconds
        self._ends_at = inf
        self._running: set[asyncio.Timeout] = set()
        self._pauses, self._paused_at = 0, 0.0

    @contextmanager
    def running(self) -> Generator[None]:
        """Run the clock of a turn."""
        now = self._paused_at = asyncio.get_running_loop().time()
        self._ends_at = now + self.max_seconds
        try:
            yield
        finally:
            self._ends_at = inf

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop the clock: whoever thinks about a question is not to be hurried. Pauses may overlap."""
        clock = asyncio.get_running_loop().time
        self._pauses += 1
        if self._pauses == 1:
            self._paused_at = clock()
            self._reschedule(None)
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self._ends_at += clock() - self._paused_at
                self._reschedule(self._ends_at)

    def _reschedule(self, when: float | None) -> None:
        for timeout in self._running:
            if not timeout.expired():
                timeout.reschedule(when)

    @asynccontextmanager
    async def timeout(self) -> AsyncGenerator[asyncio.Timeout]:
        """Run what must end with the turn. It follows the pauses, and raises TimeoutError."""
        has_none = self._pauses or self._ends_at == inf
        async with time_limit_at(None if has_none else self._ends_at) as timeout:
            self._running.add(timeout)
            try:
                yield timeout
            finally:
                self._running.discard(timeout)

    async def before_step(self, turn: Turn) -> None:
        """Raise StopTurn once the time is up."""
        del turn
        if not self._pauses and asyncio.get_running_loop().time() >= self._ends_at:
            raise StopTurn("limit", self.message)

    @property
    def message(self) -> str:
        """What the person and the model are told."""
        return f"Stopped after {self.max_seconds:g} s, the time limit of a turn."


class TimedModel(ModelWrapper):
    """A Model that is cut off when the turn's time is up."""

    def __init__(self, model: Model, deadline: TurnDeadline) -> None:
        super().__init__(model)
        self._deadline = deadline

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream until the deadline, then raise StopTurn."""
        async with aclosing(self._model.stream(request)) as events:
            while True:
                try:
                    async with self._deadline.timeout():
                        event = await anext(events)
                except StopAsyncIteration:
                    return
                except TimeoutError as error:
                    raise StopTurn("limit", self._deadline.message) from error
                yield event


class TimedToolbox(ToolboxWrapper):
    """A Toolbox whose calls are stopped when the turn's time is up."""

    def __init__(self, toolbox: Toolbox, deadline: TurnDeadline) -> None:
        super().__init__(toolbox)
        self._deadline = deadline

    async def run(self, call: ToolCall, emit: Emit) -> ToolResult:
        """Run the call; one that is stopped is answered with what its tool left, and that the time is up."""
        try:
            async with self._deadline.timeout() as timeout:
                result = await self._toolbox.run(call, emit)
        except TimeoutError:
            text = self._deadline.message
            return ToolResult(call_id=call.id, name=call.name, output=text, is_error=True)
        if timeout.expired():
            text = f"{result.output}\n[{self._deadline.message}]"
            return replace(result, output=text, is_error=True)
        return result


class DryRun(Guard):
    """Ends a turn after its first step: the calls were shown, none was made."""

    async def before_step(self, turn: Turn) -> None:
        """Raise StopTurn from the second step on."""
        if turn.steps:
            raise StopTurn("dry_run", "Dry run: the calls above were not executed.")


#: Models that work side by side ask for ten or twenty; more in one answer is a model that repeats itself, or a hostile server.
MOST_CALLS: Final = 100
TOLD = (
    "Your last answer asked for {asked:,} calls. Only the first {most} were run; the others were left out and had no effect. "
    "Look at the results, then ask for what is still needed, fewer at a time."
)
NOTICED = "The model asked for {asked:,} calls in one answer; only the first {most} are run."


class CallLimit(Guard):
    """Leaves out the calls of an answer beyond the bound, before anything else sees them."""

    def __init__(self) -> None:
        self.asked = 0

    def bounding(self, model: Model) -> Model:
        """Return the model with answers of so many calls at most."""
        return _BoundedModel(model, self)

    async def before_step(self, turn: Turn) -> None:
        """Tell the model what became of the calls that were left out."""
        if asked := self.asked:
            self.asked = 0
            text = TOLD.format(asked=asked, most=MOST_CALLS)
            turn.say(UserMessage.of(text, origin="guard"))


class _BoundedModel(ModelWrapper):
    """A Model whose answers have so many calls at most."""

    def __init__(self, model: Model, limit: CallLimit) -> None:
        super().__init__(model)
        self._limit = limit

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream what the model streams, its message without the calls beyond the bound."""
        self._limit.asked = 0  # of a turn that was stopped
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                if isinstance(event, AssistantSaid) and len(event.message.calls) > MOST_CALLS:
                    asked = self._limit.asked = len(event.message.calls)
                    text = NOTICED.format(asked=asked, most=MOST_CALLS)
                    yield Noticed(level="warning", text=text)
                    event = AssistantSaid.of(bounded(event.message))
                yield event


def bounded(message: AssistantMessage) -> AssistantMessage:
    """Return the message without its calls beyond the bound."""
    content: list[AssistantPart] = []
    count = 0
    for part in message.content:
        count += isinstance(part, ToolCall)
        if count <= MOST_CALLS or not isinstance(part, ToolCall):
            content.append(part)
    return replace(message, content=tuple(content))
