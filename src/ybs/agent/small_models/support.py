"""What a small model gets besides: requests in an order that shares their beginning, a look ahead, and an end to its turns."""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ybs.agent.small_models.intents import wants_action
from ybs.agent.small_models.next_call import grammar_of, needed_grammar_of
from ybs.agent.small_models.prefix import SharedPrefix
from ybs.agent.small_models.read_ahead import ReadAhead, missing_in
from ybs.context.prompt import rules
from ybs.core.errors import Refused, ToolError
from ybs.core.events import AssistantSaid, Event
from ybs.core.messages import AssistantMessage, AssistantPart, ToolCall
from ybs.core.ports import Guard, Model, Request
from ybs.core.wrapper import ModelWrapper
from ybs.guards.endings import Endings
from ybs.providers.catalog import GUIDED_BILLIONS, TINY_BILLIONS
from ybs.security.paths.roots import Roots
from ybs.tools.editing.syntax import flaw_in, is_known


def supported(
    brief: Callable[[str], str],
    roots: Roots,
    reads_only: Callable[[ToolCall], bool],
    *,
    billions: float | None = None,
) -> tuple[Callable[[Model], Model], tuple[Guard, ...]]:
    """Return what puts around a small model what helps it, and the guards that go with that.

    `brief` returns what of the documents goes with some words, `reads_only` whether a call changes nothing. The smallest models,
    by their parameters in `billions`, are told what they may write next as well.
    """
    endings = Endings(reads_only, wants_action)
    is_tiny = billions is not None and billions <= TINY_BILLIONS
    is_guided = billions is not None and billions <= GUIDED_BILLIONS

    def note(words: str) -> str:
        return " ".join(missing_in(words, roots))

    def problem(path: str) -> str:
        return problem_in(path, roots)

    def around(model: Model) -> Model:
        ordered = SharedPrefix(model, rules(is_short=True), brief, note, problem, repeats=is_tiny)
        ahead = Guided(ordered, is_tiny=is_tiny) if is_guided else ordered
        return endings.bounding(ReadAhead(ahead, roots))

    return around, (endings,)


#: Larger files are not read for it.
MOST_BYTES: Final = 200_000


def problem_in(path: str, roots: Roots) -> str:
    """Return why a file of Python, JSON or TOML cannot be read as one; nothing where it can, or is something else."""
    if not is_known(path):
        return ""
    try:
        with roots.held(roots.resolve(path)) as place:
            descriptor = place.open(os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (ToolError, Refused, OSError):
        return ""
    flaw = flaw_in(path, data.decode(errors="replace")) if len(data) <= MOST_BYTES else None
    return f"{path} cannot be read: {flaw.why} in line {flaw.line}." if flaw else ""


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
