"""What runs around a call of a tool."""

from collections.abc import Sequence
from typing import Protocol

from ybs.core.messages import ToolCall
from ybs.core.ports import Effect


class CallHook(Protocol):
    """Runs around every call that may change something.

    Hooks are an ordered list: `before_change` runs from the first to the last, `after_change` from the last to the first.
    """

    #: What the hook does, for messages about it.
    name: str = "a hook"
    #: What it means where `before_change` fails, as the model and the person read it.
    loss: str = "a hook failed"

    async def before_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Prepare for a change that is about to be made; `paths` are those that are known.

        Where it raises, the later hooks and the tool run all the same, and the model reads `loss` and the error.
        """

    async def after_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Look at what the call left, however it ended. It runs to its end; what it raises is ignored."""
