"""The goal and the steps that a model has noted, read back from a conversation."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from ybs.core.lazy import lazy
from ybs.core.messages import Message, ToolResult, UserMessage

#: Stands before the goal, and before the steps, where they are said anew.
GOAL: Final = "Your goal: "
STEPS: Final = "Your steps:\n"
_SAID = lazy(rf"^{STEPS}((?:\[[ >x]\] .*(?:\n|\Z))+)", re.MULTILINE)


class _Noted(msgspec.Struct):
    """What a call of set_thought or todo shows of itself."""

    thought: str = ""
    steps: str = ""


def thought_in(messages: Sequence[Message]) -> str:
    """Return what the model had in mind last: by its own call, or as a compaction said it anew."""
    return _last(messages, "set_thought", lambda noted: noted.thought, _goal_said)


def steps_in(messages: Sequence[Message]) -> str:
    """Return the steps that the model noted last: by its own call, or as a compaction said them anew."""
    return _last(messages, "todo", lambda noted: noted.steps, _steps_said)


def _goal_said(words: str) -> str:
    last = words.rpartition("\n")[2]
    return last.removeprefix(GOAL) if last.startswith(GOAL) else ""


def _steps_said(words: str) -> str:
    found = _SAID().search(words)
    return found[1].strip() if found else ""


def _last(
    messages: Sequence[Message],
    tool: str,
    noted: Callable[[_Noted], str],
    said: Callable[[str], str],
) -> str:
    text = ""
    for message in messages:
        match message:
            case ToolResult(is_error=False) if message.name == tool:
                # A dry run has none, and a hand may have spoiled it.
                with suppress(msgspec.MsgspecError):
                    text = noted(msgspec.json.decode(message.display, type=_Noted))
            case UserMessage(origin="guard"):
                text = said(message.words) or text
            case _:
                pass
    return text
