"""memorize and update_identity: what a model keeps for later sessions, of the project and of itself, if the person says yes."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.core.wording import plural
from ybs.security.policy.case import Subject
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.workspace import Workspace


class MemorizeArguments(Struct, frozen=True, kw_only=True):
    """What memorize and update_identity take."""

    text: str


class Memorize(BuiltInTool):
    """Keeps a note. Later sessions read it, so the person is asked in every mode that asks at all."""

    name: str = "memorize"
    effect: Effect = "write"
    arguments: ClassVar[type[Struct]] = MemorizeArguments

    def __init__(
        self,
        workspace: Workspace,
        keep: Callable[[str], Path],
        draft: Callable[[str], tuple[str, str]],
    ) -> None:
        """`keep` writes a note and returns its file, `draft` says what it would write and where. Both raise ToolError, and block."""
        super().__init__(workspace)
        self._keep, self._draft = keep, draft

    def subject(self, arguments: MemorizeArguments) -> Subject:
        """Stand for all notes: what rules and grants cover is the tool, not one text."""
        del arguments
        return Subject(paths=("memories",), is_plain=True, is_own=True)

    def preview(self, arguments: MemorizeArguments) -> Preview:
        """Show the text and where it would go."""
        text, place = self._draft(arguments.text)
        body = "\n".join(f"+{line}" for line in text.split("\n"))
        return Preview(title=f"Keep this for later sessions ({place})", body=body)

    async def run(
        self, arguments: MemorizeArguments, print_live: Callable[[str], None]
    ) -> ToolOutput:
        """Keep it."""
        del print_live
        file = await asyncio.to_thread(self._keep, arguments.text)
        size = plural(len(arguments.text.split()), "word")
        return ToolOutput(
            output="Kept for later sessions.",
            summary=f"Kept {size} as {file.name}",
            display={"success": True, "file": str(file)},
        )


class UpdateIdentity(BuiltInTool):
    """Appends. The line counts in every project from then on, so the person is asked in all modes but auto."""

    name: str = "update_identity"
    effect: Effect = "write"
    arguments: ClassVar[type[Struct]] = MemorizeArguments

    def __init__(
        self,
        workspace: Workspace,
        append: Callable[[str], str],
        draft: Callable[[str], str],
    ) -> None:
        """`append` keeps a line and returns it as it was kept; `draft` returns what it would be.

        Both may block and raise ToolError.
        """
        super().__init__(workspace)
        self._append, self._draft = append, draft

    def subject(self, arguments: MemorizeArguments) -> Subject:
        """Name the file: what rules and grants cover is all of its lines."""
        del arguments
        return Subject(paths=("IDENTITY.md",), is_plain=True, is_own=True)

    def preview(self, arguments: MemorizeArguments) -> Preview:
        """Show the line. Raises ToolError where it could not be kept anyway, so that nobody is asked for nothing."""
        line = self._draft(arguments.text)
        return Preview(title="Add a line to IDENTITY.md, for all later sessions", body=f"+{line}")

    async def run(
        self, arguments: MemorizeArguments, print_live: Callable[[str], None]
    ) -> ToolOutput:
        """Keep it."""
        del print_live
        line = await asyncio.to_thread(self._append, arguments.text)
        return ToolOutput(
            output=f"Added to IDENTITY.md: {line}",
            summary=f"Added to IDENTITY.md: {line}",
            display={"success": True, "line": line},
        )
