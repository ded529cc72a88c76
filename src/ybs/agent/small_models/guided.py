"""A model that is told with each request what it may write next."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ybs.agent.small_models.next_call import grammar_of, needed_grammar_of
from ybs.core.events import AssistantSaid, Event
from ybs.core.messages import AssistantMessage, AssistantPart, ToolCall
from ybs.core.ports import Model, Request
from ybs.core.wrapper import ModelWrapper


class Guided(ModelWrapper):
    """A Model that is told what it may write next: always, if it is among the tiniest, else where what is due is sure."""

    def __init__(self, model: Model, *, is_tiny: bool) -> None:
        super().__init__(model)
        self._grammar_of = grammar_of if is_tiny else needed_grammar_of

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream the answer."""
        grammar = self._grammar_of(request)
        async with aclosing(self._model.stream(replace(request, grammar=grammar))) as events:
            async for event in events:
                if grammar and isinstance(event, AssistantSaid):
                    event = AssistantSaid.of(_with_line_ends(event.message))
                yield event


def _with_line_ends(message: AssistantMessage) -> AssistantMessage:
    """Return an answer whose new files end with a line end, and whose edits with none that the old text has not.

    A grammar lets a model end a line as it is used to.
    """
    return replace(message, content=tuple(map(_part_of, message.content)))


def _part_of(part: AssistantPart) -> AssistantPart:
    if not isinstance(part, ToolCall) or part.invalid:
        return part
    try:
        arguments = msgspec.json.decode(part.arguments, type=dict[str, object])
    except msgspec.MsgspecError:
        return part
    match part.name, arguments:
        case "write_file", {"content": str(text)} if text and not text.endswith("\n"):
            changed = {**arguments, "content": f"{text}\n"}
        case "edit_file", {"old_text": str(old), "new_text": str(new)} if new.endswith(
            "\n"
        ) and not old.endswith("\n"):
            changed = {**arguments, "new_text": new[:-1]}
        case _:
            return part
    return replace(part, arguments=Raw(msgspec.json.encode(changed)))
