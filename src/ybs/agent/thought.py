"""The goal that a model works towards, in its own words, read back from a conversation."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from ybs.core.messages import Message, ToolResult, UserMessage

#: Stands before the goal where it is said anew.
GOAL: Final = "Your goal: "


class _Noted(msgspec.Struct):
    """What a call of set_thought shows of itself."""

    thought: str


def thought_in(messages: Sequence[Message]) -> str:
    """Return what the model had in mind last: by its own call, or as a compaction said it anew."""
    thought = ""
    for message in messages:
        match message:
            case ToolResult(name="set_thought", is_error=False):
                # A dry run has none, and a hand may have spoiled it.
                with suppress(msgspec.MsgspecError):
                    thought = msgspec.json.decode(message.display, type=_Noted).thought
            case UserMessage(origin="guard"):
                last = message.words.rpartition("\n")[2]
                thought = last.removeprefix(GOAL) if last.startswith(GOAL) else thought
            case _:
                pass
    return thought
