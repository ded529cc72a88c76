"""Requests whose beginning is the same in all sessions of a model, so that a server which keeps what it has read reads it once.

Rules, tools and examples come first and never change. Folder, date and documents go with the person's words, and behind the
result of a tool stands what makes sense next.
"""

from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.agent.small_models.hints import (
    ANSWER,
    MEND,
    asked_again,
    hint_after,
    left_to_change,
)
from ybs.agent.small_models.intents import wants_change
from ybs.agent.small_models.mentions import command_to_run
from ybs.core.events import Event
from ybs.core.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage
from ybs.core.ports import Effect, Model, Request
from ybs.core.wrapper import ModelWrapper


class SharedPrefix(ModelWrapper):
    """A Model whose system prompt is `rules` alone: what follows them goes before the first words of the conversation.

    `brief` returns what of the documents goes with some words, `note` what is told behind them, and
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
            return f"({MEND.format(problem)})" if problem else ""
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
        return msgspec.json.decode(call.arguments, type=_Arguments).path
    except msgspec.MsgspecError:
        return ""
