"""todo: the list of a model's steps and how far each is, before its eyes and the person's."""

from collections.abc import Callable
from typing import ClassVar

from msgspec import Struct

from ybs.core.errors import ToolError
from ybs.core.lazy import lazy
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.security.policy.policy import Subject
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.workspace import Workspace

MOST_STEPS = 40
_LONGEST_STEP = 160  # characters
_STEP = lazy(r"\s*(?:[-*+]|\d+[.)])?\s*(?:\[(.?)\]|(☐|☑|✅|☒))?\s*(.*)")
_DONE, _DOING = "xX✓✔✅☑☒", ">~-*/.o▶"


class Arguments(Struct, frozen=True, kw_only=True):
    """What todo takes: `[ ] open`, `[>] doing`, `[x] done`, a step per line."""

    steps: str


class Todo(BuiltInTool):
    """Hands the list on, in place of the one before. It changes nothing but what the model and the person are shown."""

    name: str = "todo"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = Arguments

    def __init__(self, workspace: Workspace, put: Callable[[str], None]) -> None:
        """`put` gets the list; an empty text means that there is none any more."""
        super().__init__(workspace)
        self._put = put

    def subject(self, arguments: Arguments) -> Subject:
        """Say that there is nothing to judge."""
        del arguments
        return Subject(is_plain=True)

    def preview(self, arguments: Arguments) -> Preview:
        """Show the list."""
        return Preview(title="Note the steps", body=checklist(arguments.steps))

    async def run(self, arguments: Arguments, print_live: Callable[[str], None]) -> ToolOutput:
        """Keep it."""
        del print_live
        steps = checklist(arguments.steps)
        self._put(steps)
        return ToolOutput(
            output="Noted." if steps else "Cleared.",
            summary=count_of(steps) if steps else "cleared",
            display={"success": True, "steps": steps},
        )


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
        lines.append(f"[{sign}] {step[:_LONGEST_STEP]}")
    if len(lines) > MOST_STEPS:
        raise ToolError(f"There are {len(lines)} steps. Sum them up in {MOST_STEPS} at most.")
    return "\n".join(lines)


def count_of(steps: str) -> str:
    """Say how many steps of a list are done."""
    lines = steps.splitlines()
    return f"{sum(line.startswith('[x]') for line in lines)} of {len(lines)} done"
