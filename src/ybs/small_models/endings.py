"""Endings: for small models, which announce instead of doing, claim what they did not do, and do not stop when they are done."""

import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.core.decoding import from_json
from ybs.core.errors import StopTurn
from ybs.core.events import AssistantSaid, Event
from ybs.core.lazy import lazy
from ybs.core.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage
from ybs.core.ports import Guard, Model, Request, Turn
from ybs.core.wrapper import ModelWrapper
from ybs.guards.loops import DIFFERENTLY
from ybs.tools.shell.programs import has_hint

ANNOUNCED: Final = (
    "You said what you will do, and called no tool. Call the tool now, or give the answer itself."
)
CLAIMED: Final = (
    "So far nothing was changed and nothing was run. Call the tool that does it. "
    "If it cannot be done, say in plain words what is in the way."
)
AGAIN: Final = (
    "The command did not run, and the line behind its exit code says how to run it. "
    "Call the tool again that way."
)
KNOWN: Final = (
    "You have this result already. Do the next step, or answer in plain words, without a tool."
)
UNPROVEN: Final = "Nothing that was run since the change says so. Run it, then say what came of it."
UNDONE: Final = "Your last edit took your own change back. Make the change once more, then answer in plain words."
LAST: Final = "Stop here: call no tool. Answer in one plain sentence what you found or did."
STOPPED: Final = "Stopped: the model repeated the same calls and came to no answer."

_FIRST: Final = r"(?:I\s+(?:will|shall|need\s+to|have\s+to|must|should|am\s+going\s+to)|I'll|I'm\s+going\s+to|Let\s+me|Let's)"
_DOING: Final = (
    r"I\s+(?:now\s+)?(?:add|append|change|check|correct|create|delete|edit|find|fix|look|list|make|open|read|remove|rename"
    r"|replace|run|search|set|start|update|write)\b"
)
_ANNOUNCES = lazy(
    rf"(?:^|[.!:\n]\s*|\b(?:first|next|now|then|so),?\s+)(?:{_FIRST}|{_DOING})", re.IGNORECASE
)
_PASSES = lazy(
    r"(?i)\b(?:tests?|test\s+suite|checks?|build)\b[^.\n]{0,60}\b(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?)\b"
)
_SAYS_NO = lazy(r"(?i)n['\u2019]t\b|\b(?:no|not|cannot|unable|missing)\b")


_Results: TypeAlias = dict[str, ToolResult]
#: The calls of one answer, and all results by the ids of their calls.
_Step: TypeAlias = tuple[Sequence[ToolCall], _Results]


class Endings(Guard):
    """Reminds a model once of what it only announced or claimed, and ends what goes round in circles.

    `reads_only` says of a call that it changes and runs nothing, `wants_action` of a person's words that they ask for something to be changed or run.
    """

    def __init__(
        self, reads_only: Callable[[ToolCall], bool], wants_action: Callable[[str], bool]
    ) -> None:
        self._reads_only, self._wants_action = reads_only, wants_action
        self._turn: Turn | None = None
        self._told = self._seen = 0
        self.is_last_word = False

    def bounding(self, model: Model) -> Model:
        """Return the model without the calls of an answer that was to be the last word."""
        return _LastWordModel(model, self)

    async def before_step(self, turn: Turn) -> None:
        """Tell the model that it repeats itself; the second time its next answer is the last."""
        if turn is not self._turn:
            self._turn, self.is_last_word = turn, False
            self._told = self._seen = 0
        messages = turn.messages
        if len(messages) == self._seen:
            return
        self._seen = len(messages)
        problem = self._problem(_steps_of(messages))
        if not problem:
            return
        self._told += 1
        if self._told > 1:
            self.is_last_word, problem = True, LAST
        turn.say(UserMessage.of(problem, origin="guard"))
        self._seen += 1

    def _problem(self, steps: Sequence[_Step]) -> str:
        """Return what to tell the model about its last step; nothing where it got further."""
        if not steps:
            return ""
        *before, (calls, results) = steps
        if _takes_back(
            calls, [call for step, answers in before for call in _worked(step, answers)]
        ):
            return UNDONE
        for earlier, answers in reversed(before):
            if _key(earlier, answers) == _key(calls, results):
                return KNOWN
            if any(not self._reads_only(call) for call in _worked(earlier, answers)):
                break
        return ""

    async def wants_more(self, turn: Turn) -> bool:
        """Answer an announcement or a claim with a reminder, once in a turn."""
        messages = turn.messages
        last = messages[-1] if messages else None
        has_spoken_last = self._told > 1
        if has_spoken_last or not isinstance(last, AssistantMessage) or last.calls:
            return False
        told = {m.words for m in messages if isinstance(m, UserMessage) and m.origin == "guard"}
        if told & {ANNOUNCED, CLAIMED, AGAIN, UNPROVEN}:
            return False
        text = self._reminder(messages, last.text.strip())
        if text:
            turn.say(UserMessage.of(text, origin="guard"))
        return bool(text)

    def _reminder(self, messages: Sequence[Message], said: str) -> str:
        if not said or "?" in said:  # it asks the person
            return ""
        asked = [m.words for m in messages if isinstance(m, UserMessage) and m.origin == "person"]
        wants_action = any(map(self._wants_action, asked))
        if wants_action and _is_to_run_again(messages):
            return AGAIN
        worked = [
            call
            for calls, results in _steps_of(messages)
            for call in _worked(calls, results)
            if not self._reads_only(call)
        ]
        was_refused = any(isinstance(m, ToolResult) and m.is_refused for m in messages)
        if worked:
            is_unproven = _edit_of(worked[-1]) and _says_it_passes(said) and not was_refused
            return UNPROVEN if is_unproven else ""
        if _announces(said):
            return ANNOUNCED
        is_due = wants_action and not re.search(_SAYS_NO(), said)
        return CLAIMED if is_due and not was_refused else ""

    def last_word(self, message: AssistantMessage) -> AssistantMessage:
        """Return an answer without its calls. Raises StopTurn where nothing is said in it and nothing was done."""
        self.is_last_word = False
        if message.has_failed:
            return message
        texts = tuple(part for part in message.content if not isinstance(part, ToolCall))
        if message.text.strip():
            return replace(message, content=texts, stop_reason="end")
        done = [
            result.output.partition("\n")[0]
            for calls, results in _steps_of(self._turn.messages if self._turn else ())
            for call in _worked(calls, results)
            if not self._reads_only(call) and (result := results[call.id])
        ]
        if not done:
            raise StopTurn("loop", STOPPED, remedies=DIFFERENTLY)
        return replace(message, content=(Text(text=done[-1]),), stop_reason="end")


class _LastWordModel(ModelWrapper):
    """A Model whose answer has no calls where it was to be the last word."""

    def __init__(self, model: Model, endings: Endings) -> None:
        super().__init__(model)
        self._endings = endings

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream what the model streams."""
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                if self._endings.is_last_word and isinstance(event, AssistantSaid):
                    event = AssistantSaid.of(self._endings.last_word(event.message))
                yield event


def _is_to_run_again(messages: Sequence[Message]) -> bool:
    """Return whether the last command can be run in another way."""
    results = [each for each in messages if isinstance(each, ToolResult)]
    return bool(results) and results[-1].is_error and has_hint(results[-1].output)


def _says_it_passes(text: str) -> bool:
    return bool(re.search(_PASSES(), text)) and not re.search(_SAYS_NO(), text)


def _announces(text: str) -> bool:
    """Return whether an answer ends by saying what comes next: its last sentence, or all of a short one."""
    last = re.split(r"(?<=[.!])\s+|\n+", text.strip())[-1]
    return re.search(_ANNOUNCES(), last) is not None


def _steps_of(messages: Sequence[Message]) -> list[_Step]:
    results = {each.call_id: each for each in messages if isinstance(each, ToolResult)}
    return [(m.calls, results) for m in messages if isinstance(m, AssistantMessage) and m.calls]


def _worked(calls: Sequence[ToolCall], results: _Results) -> list[ToolCall]:
    return [call for call in calls if call.id in results and not results[call.id].is_error]


def _key(calls: Sequence[ToolCall], results: _Results) -> list[tuple[str, bytes, str]]:
    return [
        (call.name, call.invalid.encode() or bytes(call.arguments), results[call.id].output)
        for call in calls
        if call.id in results
    ]


def _takes_back(calls: Sequence[ToolCall], earlier: Sequence[ToolCall]) -> bool:
    """Return whether an edit is an earlier one the other way round."""
    edits = {
        (edit.path, edit.new_text, edit.old_text) for call in earlier if (edit := _edit_of(call))
    }
    return any(
        (edit := _edit_of(call)) and (edit.path, edit.old_text, edit.new_text) in edits
        for call in calls
    )


class _Edit(Struct, frozen=True, kw_only=True):
    """What an edit replaces."""

    path: str
    old_text: str
    new_text: str


def _edit_of(call: ToolCall) -> _Edit | None:
    try:
        return from_json(call.arguments, _Edit)
    except msgspec.MsgspecError:
        return None
