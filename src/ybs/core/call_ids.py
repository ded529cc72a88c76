"""Ids of tool calls that are unique in a session, whichever of its agents asks and whatever a provider gives."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from msgspec.structs import replace

from ybs.core.conversation import with_own_ids
from ybs.core.envelope import MAIN
from ybs.core.events import AssistantSaid, Event, ToolCallStreamed
from ybs.core.messages import AssistantMessage, ToolCall
from ybs.core.ports import Model, Request
from ybs.core.wrapper import ModelWrapper


class CallIds:
    """The ids that the calls of one session have had."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    def reserve(self, ids: Iterable[str]) -> None:
        """Give none of these ids to a call from now on: earlier calls of the session have them."""
        self._taken.update(ids)

    def naming(self, model: Model, agent: str = MAIN) -> Model:
        """Return the model with calls whose ids are unique. Those of a sub-agent begin with its name."""
        return _NamingModel(model, self, agent)

    def take(self, given: str, agent: str) -> str:
        """Return the id for a call to which the provider gave this one."""
        wanted = given if agent == MAIN else f"{agent}-{given}"
        made, number = wanted, self._counts.get(wanted, 1)
        while made in self._taken:
            number += 1
            made = f"{wanted}_{number}"
        self._counts[wanted] = number
        self._taken.add(made)
        return made


class _NamingModel(ModelWrapper):
    """A Model whose calls have ids of their own, in pieces and in the whole message alike."""

    def __init__(self, model: Model, ids: CallIds, agent: str) -> None:
        super().__init__(model)
        self._ids, self._agent = ids, agent

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream the answer of the wrapped model."""
        taken: dict[str, str] = {}
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                if isinstance(event, ToolCallStreamed):
                    own = self._own(event.id, taken)
                    yield event if own == event.id else replace(event, id=own)
                elif isinstance(event, AssistantSaid) and event.parts:
                    yield self._named(event, taken)
                else:
                    yield event

    def _own(self, given: str, taken: dict[str, str]) -> str:
        own = taken.get(given)
        if own is None:
            own = taken[given] = self._ids.take(given, self._agent)
        return own

    def _named(self, event: AssistantSaid, taken: dict[str, str]) -> AssistantSaid:
        message: AssistantMessage = with_own_ids(event.message)
        content = tuple(
            replace(part, id=self._own(part.id, taken)) if isinstance(part, ToolCall) else part
            for part in message.content
        )
        return AssistantSaid.of(replace(message, content=content))
