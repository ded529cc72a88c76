"""memorize: a note that the model keeps for later sessions, if the person says yes."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.core.wording import plural
from ybs.security.policy.policy import Subject
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.workspace import Workspace


class MemorizeArguments(Struct, frozen=True, kw_only=True):
    """What memorize takes."""

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
