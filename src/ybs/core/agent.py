"""The loop: ask the model, run the tools it asks for, until it asks for none.

Everything else is a value handed in: a Model, a Toolbox, Guards, an Emit. A feature is a new one of these.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

from msgspec.structs import replace

from ybs.core.batches import batches
from ybs.core.conversation import Conversation, Draft
from ybs.core.errors import NO_FAILURE, Failure, ModelError, StopTurn
from ybs.core.events import Emit, EndReason, RequestStarted, ToolFinished, ToolStarted, TurnFinished
from ybs.core.messages import ToolCall, ToolResult, UserMessage
from ybs.core.ports import Guard, Model, Request, Toolbox, Turn


class Agent:
    """A model, its tools and one conversation."""

    def __init__(
        self,
        model: Model,
        toolbox: Toolbox,
        emit: Emit,
        conversation: Conversation,
        guards: Sequence[Guard] = (),
    ) -> None:
        self.model, self.toolbox, self.emit = model, toolbox, emit
        self.conversation, self.guards = conversation, guards

    async def run(self, prompt: UserMessage) -> TurnFinished:
        """Take one turn. Whatever happens, the history can be sent again afterwards."""
        turn = Turn(self.conversation, self.emit)
        reason: EndReason = "error"
        failure = NO_FAILURE
        turn.say(prompt)
        try:
            while (calls := await self.step(turn)) or await turn.wants_more(self.guards):
                await self.answer(calls)
            reason = "done"
        except StopTurn as stop:
            reason, failure = stop.reason, Failure.of(stop)
        except ModelError as error:
            failure = Failure.of(error)
        except asyncio.CancelledError:
            reason = "interrupted"
            raise
        finally:
            finished = turn.finished(reason, failure)
            self.emit(finished)
        return finished

    async def step(self, turn: Turn) -> Sequence[ToolCall]:
        """Send the conversation, append the answer and return the calls in it."""
        for guard in self.guards:
            await guard.before_step(turn)
        history = self.conversation
        request = Request(history.system, history.messages, self.toolbox.specs())
        self.emit(RequestStarted(model=self.model.name, step=turn.steps + 1))
        draft = Draft(self.model.name)
        try:
            async with aclosing(self.model.stream(request)) as events:
                async for event in events:
                    self.emit(draft.add(event))
        finally:
            turn.add(draft)
        return draft.message.calls

    async def answer(self, calls: Sequence[ToolCall]) -> None:
        """Run the calls of one message and append their results in the order asked.

        Neighbours that only read run side by side; the others wait for their turn. Identical neighbours run once.
        """
        results: dict[str, ToolResult] = {}

        async def run(group: Sequence[ToolCall]) -> None:
            for call in group:
                self.emit(ToolStarted(id=call.id, name=call.name, arguments=call.arguments))
            result = await self.toolbox.run(group[0], self.emit)
            for call in group:
                results[call.id] = replace(result, call_id=call.id)
                self.emit(ToolFinished.of(results[call.id]))

        try:
            for batch in batches(calls, self.toolbox.is_read_only):
                async with asyncio.TaskGroup() as tasks:
                    for group in batch:
                        tasks.create_task(run(group))
        finally:
            for result in self.conversation.close_open_calls(results):
                self.emit(ToolFinished.of(result))
