"""set_thought: the goal that the model works towards, in one line that stays before its eyes."""

from collections.abc import Callable
from typing import ClassVar

from msgspec import Struct

from ybs.core.errors import ToolError
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.security.policy.policy import Subject
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.workspace import Workspace

LONGEST_THOUGHT = 200  # characters


class Arguments(Struct, frozen=True, kw_only=True):
    """What set_thought takes."""

    text: str


class SetThought(BuiltInTool):
    """Hands the thought on, in place of the one before. It changes nothing but what the model is told."""

    name: str = "set_thought"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = Arguments

    def __init__(self, workspace: Workspace, put: Callable[[str], None]) -> None:
        """`put` gets the thought; an empty text means that there is none any more."""
        super().__init__(workspace)
        self._put = put

    def subject(self, arguments: Arguments) -> Subject:
        """Say that there is nothing to judge."""
        del arguments
        return Subject(is_plain=True)

    def preview(self, arguments: Arguments) -> Preview:
        """Show the thought."""
        thought = thought_of(arguments.text)
        return Preview(title=f"Thought: {thought}" if thought else "No thought any more")

    async def run(self, arguments: Arguments, print_live: Callable[[str], None]) -> ToolOutput:
        """Keep it."""
        del print_live
        thought = thought_of(arguments.text)
        self._put(thought)
        return ToolOutput(
            output="Noted." if thought else "Cleared.",
            summary=thought or "cleared",
            display={"success": True, "thought": thought},
        )


def thought_of(text: str) -> str:
    """Return the thought as one legible line. Raises ToolError for one that is too long."""
    from ybs.security.unicode import printable  # the first request needs none of it

    line = " ".join(printable(text).split())
    if len(line) > LONGEST_THOUGHT:
        raise ToolError(
            f"The thought has {len(line):,} characters and may have {LONGEST_THOUGHT}. "
            "Say the goal in one short sentence."
        )
    return line
