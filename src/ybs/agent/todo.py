"""The steps that a model has noted, read back from a conversation."""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from ybs.core.lazy import lazy
from ybs.core.messages import Message, ToolResult, UserMessage

#: Stands before the steps where they are said anew.
STEPS: Final = "Your steps:\n"
_SAID = lazy(rf"^{STEPS}((?:\[[ >x]\] .*(?:\n|\Z))+)", re.MULTILINE)


class _Noted(msgspec.Struct):
    """What a call of todo shows of itself."""

    steps: str


def steps_in(messages: Sequence[Message]) -> str:
    """Return the steps that the model noted last: by its own call, or as a compaction said them anew."""
    steps = ""
    for message in messages:
        match message:
            case ToolResult(name="todo", is_error=False):
                # A dry run has none, and a hand may have spoiled it.
                with suppress(msgspec.MsgspecError):
                    steps = msgspec.json.decode(message.display, type=_Noted).steps
            case UserMessage(origin="guard"):
                found = _SAID().search(message.words)
                steps = found[1].strip() if found else steps
            case _:
                pass
    return steps
