"""ScriptedModel: a Model that plays a list of answers and records what it was asked."""

import inspect
from asyncio import sleep
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ybs.core.errors import ModelError
from ybs.core.events import (
    AssistantSaid,
    Event,
    TextStreamed,
    ThinkingStreamed,
    ToolCallStreamed,
)
from ybs.core.messages import AssistantMessage, Text, Thinking, ToolCall
from ybs.core.ports import Request
from ybs.testing.script import ScriptedAnswer, ScriptOver, as_answer


class Failing(Struct, frozen=True):
    """An answer that breaks off: all its pieces are streamed, then the error is raised."""

    answer: str | ScriptedAnswer
    error: ModelError


#: What a ScriptedModel can say. A ModelError is raised before any output.
Line: TypeAlias = str | ToolCall | AssistantMessage | ScriptedAnswer | ModelError | Failing
#: A line, or a function of the request that gives one; it may be a coroutine that waits.
Cue: TypeAlias = Line | Callable[[Request], Line | Awaitable[Line]]


class ScriptedModel:
    """Plays its script, one entry a request. Raises ScriptOver when there is no more.

    `requests` holds the requests it got, as they were then.
    """

    def __init__(
        self, script: Iterable[Cue] = (), *, name: str = "scripted", window: int = 32_768
    ) -> None:
        self.name, self.window = name, window
        self.requests: list[Request] = []
        self._script = list(script)

    @property
    def left(self) -> int:
        """How many entries were not played yet."""
        return max(0, len(self._script) - len(self.requests))

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Play the next entry."""
        frozen = replace(request, messages=tuple(request.messages), tools=tuple(request.tools))
        self.requests.append(frozen)
        number = len(self.requests)
        if number > len(self._script):
            raise ScriptOver(
                f"the script of {self.name!r} has {len(self._script)} answers; request {number} came. "
                f"Its last message: {frozen.messages[-1:]}"
            )
        line = await _line_of(self._script[number - 1], frozen)
        if isinstance(line, ModelError):
            raise line
        error = line.error if isinstance(line, Failing) else None
        whole = as_answer(line.answer if isinstance(line, Failing) else line)
        message = whole.message(self.name, number)
        for event in _chunks(whole, message):
            await sleep(
                0
            )  # a real stream lets others run, and can be cancelled, between two pieces
            yield event
        if error is not None:
            raise error
        yield AssistantSaid.of(message)


async def _line_of(cue: Cue, request: Request) -> Line:
    if not callable(cue):
        return cue
    line = cue(request)
    return await line if inspect.isawaitable(line) else line


def _chunks(whole: ScriptedAnswer, message: AssistantMessage) -> Iterator[Event]:
    for part in message.content:
        match part:
            case Text():
                for piece in whole.chunks(part.text):
                    yield TextStreamed(text=piece)
            case Thinking():
                for piece in whole.chunks(part.text):
                    yield ThinkingStreamed(text=piece)
            case ToolCall():
                for piece in whole.chunks(part.invalid or bytes(part.arguments).decode()):
                    yield ToolCallStreamed(id=part.id, name=part.name, text=piece)
