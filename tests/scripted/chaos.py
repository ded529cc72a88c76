"""ChaosModel: wraps a Model and makes it misbehave, the same way for the same seed."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from random import Random
from typing import Literal, TypeAlias, get_args

from msgspec.structs import replace

from ybs.core.errors import ProviderDown
from ybs.core.events import AssistantSaid, Event, TextStreamed
from ybs.core.messages import AssistantMessage, Text
from ybs.core.ports import Model, Request
from ybs.core.wrapper import ModelWrapper

Fault: TypeAlias = Literal["error_before", "error_after", "delay", "cut_off", "duplicate", "empty"]


class ChaosModel(ModelWrapper):
    """Passes requests on to `model`; each one goes wrong with the probability `rate`.

    `error_before` and `error_after` raise ProviderDown before or after some output, `delay` waits up to
    `max_delay_seconds` (through `sleep`, so a test need not wait), `cut_off` ends in the middle of the text,
    `duplicate` streams a piece twice, `empty` says nothing. `log` tells what was done to each request.
    """

    def __init__(
        self,
        model: Model,
        *,
        seed: int,
        rate: float = 0.3,
        faults: Sequence[Fault] = get_args(Fault),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        max_delay_seconds: float = 30,
    ) -> None:
        super().__init__(model)
        self._random, self._rate = Random(seed), rate
        self._faults, self._sleep, self._max_delay_seconds = faults, sleep, max_delay_seconds
        self.log: list[Fault | None] = []

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Answer, or misbehave."""
        is_faulty = self._random.random() < self._rate
        fault = self._random.choice(self._faults) if is_faulty else None
        self.log.append(fault)
        if fault == "error_before":
            raise ProviderDown("chaos: nobody answers")
        if fault == "delay":
            await self._sleep(self._random.uniform(0, self._max_delay_seconds))
        pieces = self._random.randint(1, 4)
        async with aclosing(self._model.stream(request)) as events:
            async for event in self._spoil(events, fault, pieces):
                yield event

    async def _spoil(
        self, events: AsyncGenerator[Event, None], fault: Fault | None, pieces: int
    ) -> AsyncGenerator[Event, None]:
        streamed: list[Event] = []
        async for event in events:
            if isinstance(event, AssistantSaid):
                if fault == "error_after":
                    raise ProviderDown("chaos: the connection broke")
                yield _spoil_message(event, fault, streamed)
                return
            if fault == "empty" or (fault == "cut_off" and len(streamed) >= pieces):
                continue
            yield event
            streamed.append(event)
            if fault == "duplicate" and len(streamed) == pieces:
                yield event
            if fault == "error_after" and len(streamed) >= pieces:
                raise ProviderDown("chaos: the connection broke")


def _spoil_message(
    said: AssistantSaid, fault: Fault | None, streamed: Sequence[Event]
) -> AssistantSaid:
    if fault not in ("cut_off", "empty"):
        return said
    text = "".join(event.text for event in streamed if isinstance(event, TextStreamed))
    content = (Text(text=text),) if text else ()
    message: AssistantMessage = replace(said.message, content=content, stop_reason="cut_off")
    return AssistantSaid.of(message if fault == "cut_off" else replace(message, stop_reason="end"))
