"""The form of an answer: JSON that fits the person's schema, asked for, checked, and asked for again where it does not fit."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import msgspec
from msgspec import Raw

from ybs.core.errors import ModelError
from ybs.core.events import Event
from ybs.core.messages import AssistantMessage, UserMessage
from ybs.core.ports import Guard, Model, Request, Turn
from ybs.core.remedies import Remedy
from ybs.core.wrapper import ModelWrapper
from ybs.guards.json_schema import JsonSchema

#: How often a model that gave another answer is asked again.
MOST_TRIES: Final = 2
_MOST_TOLD: Final = 10
_FENCE: Final = "```"
ASKED: Final = (
    "Your last message, when the work is done, must be one JSON value that fits this JSON Schema, and nothing else: no words "
    "around it, no code fence.\n{schema}"
)
AGAIN: Final = "Your answer does not fit the JSON Schema:\n{problems}\nAnswer again, with the corrected JSON value alone."
WRONG: Final = "The answer does not fit the output schema after {tries} tries: {problem}."


class AnswerForm(Guard):
    """Asks for an answer that fits a schema, and ends the turn with ModelError where there is none after some tries."""

    def __init__(self, schema: JsonSchema) -> None:
        self._schema = schema
        self.raw = Raw(msgspec.json.encode(schema.root))
        self._turn: Turn | None = None
        self._tries = 0

    @property
    def is_corrected(self) -> bool:
        """Whether an answer was given that did not fit, so that nothing but a better one is missing."""
        return self._tries > 0

    def read(self, text: str) -> tuple[bytes, list[str]]:
        """Return the JSON of an answer, and what does not fit; a code fence around all of it is forgiven."""
        text = text.strip()
        if text.startswith(_FENCE) and text.endswith(_FENCE) and text.count(_FENCE) == 2:
            text = text.partition("\n")[2].removesuffix(_FENCE).strip()
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            return b"", [f"it is not JSON: {error}"]
        return text.encode(), self._schema.problems(value)

    def around(self, model: Model) -> Model:
        """Return the model, told of the schema with each request."""
        return _FormedModel(model, self)

    async def before_step(self, turn: Turn) -> None:
        """Ask for the form at the beginning of a turn."""
        if turn is not self._turn:
            self._turn, self._tries = turn, 0
            turn.say(UserMessage.of(ASKED.format(schema=bytes(self.raw).decode()), origin="guard"))

    async def wants_more(self, turn: Turn) -> bool:
        """Ask again where the answer does not fit."""
        last = turn.messages[-1] if turn.messages else None
        _, problems = self.read(last.text if isinstance(last, AssistantMessage) else "")
        if not problems:
            return False
        if self._tries == MOST_TRIES:
            said = WRONG.format(tries=self._tries + 1, problem=problems[0])
            raise ModelError(said, remedies=(Remedy("change_model"),))
        self._tries += 1
        told = "\n".join(f"- {each}" for each in problems[:_MOST_TOLD])
        turn.say(UserMessage.of(AGAIN.format(problems=told), origin="guard"))
        return True


class _FormedModel(ModelWrapper):
    """Sends the schema with each request, and no tools with one that only corrects an answer."""

    def __init__(self, model: Model, form: AnswerForm) -> None:
        super().__init__(model)
        self._form = form

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream the wrapped model's answer."""
        tools = () if self._form.is_corrected else request.tools
        formed = Request(request.system, request.messages, tools, self._form.raw)
        async with aclosing(self._model.stream(formed)) as events:
            async for event in events:
                yield event
