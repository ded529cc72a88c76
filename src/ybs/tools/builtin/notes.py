"""set_thought and todo: the goal of a model, and its steps and how far each is, before its eyes and the person's."""

from collections.abc import Callable
from typing import ClassVar

from msgspec import Struct

from ybs.core.cutting import shortened
from ybs.core.errors import ToolError
from ybs.core.lazy import lazy
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.security.policy.case import Subject
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.workspace import Workspace

LONGEST_THOUGHT = 200  # characters
MOST_STEPS = 40
_LONGEST_STEP = 160  # characters
_STEP = lazy(r"\s*(?:[-*+]|\d+[.)])?\s*(?:\[(.?)\]|(☐|☑|✅|☒))?\s*(.*)")
_DONE, _DOING = "xX✓✔✅☑☒", ">~-*/.o▶"


class _Note(BuiltInTool):
    """Hands a text on, in place of the one before. It changes nothing but what is shown."""

    effect: Effect = "read"

    def __init__(self, workspace: Workspace, put: Callable[[str], None]) -> None:
        """`put` gets the text; an empty one means that there is none any more."""
        super().__init__(workspace)
        self._put = put

    def subject(self, arguments: Struct) -> Subject:
        """Say that there is nothing to judge."""
        del arguments
        return Subject(is_plain=True)

    def _noted(self, name: str, text: str, summary: str) -> ToolOutput:
        self._put(text)
        return ToolOutput(
            output="Noted." if text else "Cleared.",
            summary=summary if text else "cleared",
            display={"success": True, name: text},
        )


class Thought(Struct, frozen=True, kw_only=True):
    """What set_thought takes."""

    text: str


class SetThought(_Note):
    """Notes the goal."""

    name: str = "set_thought"
    arguments: ClassVar[type[Struct]] = Thought

    def preview(self, arguments: Thought) -> Preview:
        """Show the thought."""
        thought = thought_of(arguments.text)
        return Preview(title=f"Thought: {thought}" if thought else "No thought any more")

    async def run(self, arguments: Thought, print_live: Callable[[str], None]) -> ToolOutput:
        """Keep it."""
        del print_live
        thought = thought_of(arguments.text)
        return self._noted("thought", thought, thought)


def thought_of(text: str) -> str:
    """Return the thought as one printable line. Raises ToolError for one that is too long."""
    from ybs.security.unicode import printable  # the first request needs none of it

    line = " ".join(printable(text).split())
    if len(line) > LONGEST_THOUGHT:
        raise ToolError(
            f"The thought has {len(line):,} characters and may have {LONGEST_THOUGHT}. "
            "Say the goal in one short sentence."
        )
    return line


class Steps(Struct, frozen=True, kw_only=True):
    """What todo takes: `[ ] open`, `[>] doing`, `[x] done`, a step per line."""

    steps: str


class Todo(_Note):
    """Notes the steps."""

    name: str = "todo"
    arguments: ClassVar[type[Struct]] = Steps

    def preview(self, arguments: Steps) -> Preview:
        """Show the list."""
        return Preview(title="Note the steps", body=checklist(arguments.steps))

    async def run(self, arguments: Steps, print_live: Callable[[str], None]) -> ToolOutput:
        """Keep it."""
        del print_live
        steps = checklist(arguments.steps)
        return self._noted("steps", steps, count_of(steps))


def checklist(text: str) -> str:
    """Return a list of steps in one form: `[ ]`, `[>]` or `[x]` before each. Raises ToolError for one that is too long."""
    from ybs.security.unicode import printable

    lines: list[str] = []
    for line in printable(text).splitlines():
        found = _STEP().fullmatch(line)
        if found is None or not found[3].strip():
            continue
        mark = found[1] or found[2] or " "
        sign = "x" if mark in _DONE else ">" if mark in _DOING else " "
        step = " ".join(found[3].split())
        lines.append(f"[{sign}] {shortened(step, _LONGEST_STEP)}")
    if len(lines) > MOST_STEPS:
        raise ToolError(f"There are {len(lines)} steps. Sum them up in {MOST_STEPS} at most.")
    return "\n".join(lines)


def count_of(steps: str) -> str:
    """Return how many steps of a list are done."""
    lines = steps.splitlines()
    return f"{sum(line.startswith('[x]') for line in lines)} of {len(lines)} done"
