"""Join the support for small models: requests that share a prefix, reading ahead, and an end to turns."""

import os
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.context.prompt import rules
from ybs.core.decoding import from_json
from ybs.core.errors import Refused, ToolError
from ybs.core.events import AssistantSaid, Event
from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ybs.core.ports import Effect, Guard, Model, Request
from ybs.core.wrapper import ModelWrapper
from ybs.providers.catalog import GUIDED_BILLIONS, TINY_BILLIONS
from ybs.security.paths.roots import Roots
from ybs.small_models.endings import Endings
from ybs.small_models.hints import (
    ANSWER,
    FIX,
    asked_again,
    hint_after,
    left_to_change,
)
from ybs.small_models.intents import wants_action, wants_change
from ybs.small_models.mentions import command_to_run
from ybs.small_models.next_call import grammar_of, needed_grammar_of
from ybs.small_models.read_ahead import ReadAhead, missing_in
from ybs.tools.editing.syntax import flaw_in, is_known


def supported(
    brief: Callable[[str], str],
    roots: Roots,
    reads_only: Callable[[ToolCall], bool],
    *,
    billions: float | None = None,
) -> tuple[Callable[[Model], Model], tuple[Guard, ...]]:
    """Return what puts around a small model what helps it, and the guards that go with that.

    `brief` returns the parts of the documents that concern some words, `reads_only` whether a call changes nothing. The smallest models,
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


class SharedPrefix(ModelWrapper):
    """A Model whose system prompt is `rules` alone: what follows them goes before the first words of the conversation.

    `brief` returns the parts of the documents that concern some words, `note` what is told behind them, and
    `problem` what is wrong with a file after a change. With `repeats` the words are
    told again behind what was found.
    """

    def __init__(
        self,
        model: Model,
        rules: str,
        brief: Callable[[str], str],
        note: Callable[[str], str] = lambda _words: "",
        problem: Callable[[str], str] = lambda _path: "",
        *,
        repeats: bool = False,
    ) -> None:
        super().__init__(model)
        self._rules, self._brief, self._note = rules, brief, note
        self._problem = problem
        self._repeats = repeats
        self._written: dict[tuple[str, UserMessage], UserMessage] = {}
        self._results: dict[str, tuple[ToolResult, ToolResult]] = {}

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream the answer to the same request in another order."""
        async with aclosing(self._model.stream(self._ordered(request))) as events:
            async for event in events:
                yield event

    def _ordered(self, request: Request) -> Request:
        """Return the request in the order that keeps its beginning; as it is where the prompt is not ybs's own."""
        if not request.system.startswith(self._rules):
            return request
        facts = request.system[len(self._rules) :].strip()
        effects: dict[str, Effect] = {tool.name: tool.effect for tool in request.tools}
        messages: list[Message] = []
        is_due = has_failed = has_run = False
        words = ""
        paths: dict[str, str] = {}
        changed: set[str] = set()
        for message in request.messages:
            if isinstance(message, UserMessage) and (message.origin == "person" or facts):
                is_due, has_failed, has_run = wants_change(message.words), False, False
                words, changed = message.words, set[str]()
                message, facts = self._introduced(facts, message), ""
            elif isinstance(message, ToolResult):
                effect = effects.get(message.name, "read")
                path = paths.get(message.call_id, "")
                if effect not in ("read", "execute") and not message.is_error:
                    changed.add(path)
                known = self._results.get(message.call_id)
                if known is None or known[0] is not message:
                    hint = hint_after(
                        message,
                        effect,
                        is_due=is_due,
                        has_failed=has_failed,
                        to_run="" if has_run else self._to_run(words, changed),
                    )
                    hint = self._special_hint(message, effect, words, path) or f"({hint})"
                    known = self._results[message.call_id] = (message, _hinted(message, hint))
                is_due = is_due and (effect == "read" or message.is_error)
                has_run = has_run or (effect == "execute" and bool(changed))
                has_failed = message.is_error if effect == "execute" else has_failed
                message = known[1]
            elif isinstance(message, AssistantMessage):
                paths |= {call.id: _path_of(call) for call in message.calls}
            messages.append(message)
        return replace(request, system=self._rules, messages=messages)

    def _to_run(self, words: str, changed: Collection[str]) -> str:
        """Return the command that is to be run after a change; empty where none is, or another file is to be changed first."""
        # Those to which the words are told again write words after a change.
        is_early = self._repeats or left_to_change(words, changed)
        return "" if is_early else command_to_run(words)

    def _special_hint(self, result: ToolResult, effect: Effect, words: str, path: str) -> str:
        """Return what stands behind a result in the place of the usual hint, if anything does."""
        if effect in ("edit", "write") and not result.is_error:
            problem = self._problem(path)
            return f"({FIX.format(problem)})" if problem else ""
        if self._repeats and effect in ("read", "execute"):
            return asked_again(words, result)
        if effect == "read" and not result.is_error and not wants_change(words):
            return f"({' '.join([asked_again(words, result), ANSWER])})"
        return ""

    def _introduced(self, facts: str, message: UserMessage) -> UserMessage:
        """Return a message with what is told before it; the same one each time, as what was sent is kept."""
        if (known := self._written.get((facts, message))) is not None:
            return known
        is_persons = message.origin == "person"
        told = [facts, self._brief(message.words) if is_persons else ""]
        texts = [Text(text=f"{text}\n\n") for text in told if text]
        note = self._note(message.words) if is_persons else ""
        behind = [Text(text=f"\n({note})")] if note else []
        content = (*texts, *message.content, *behind)
        made = replace(message, content=content) if texts or behind else message
        self._written[facts, message] = made
        return made


def _hinted(result: ToolResult, hint: str) -> ToolResult:
    """Return a result with what makes sense next."""
    return replace(result, output=f"{result.output.rstrip()}\n{hint}")


class _Arguments(Struct, frozen=True):
    """What is read of the arguments of a call."""

    path: str = ""


def _path_of(call: ToolCall) -> str:
    try:
        return from_json(call.arguments, _Arguments).path
    except msgspec.MsgspecError:
        return ""
