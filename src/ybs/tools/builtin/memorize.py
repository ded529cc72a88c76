"""memorize: a note that the model keeps for later sessions, if the person says yes."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Protocol

from msgspec import Struct

from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.core.wording import plural
from ybs.security.policy.policy import Subject
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.workspace import Workspace


class Arguments(Struct, frozen=True, kw_only=True):
    """What memorize takes."""

    text: str


class NoteDraft(Protocol):
    """A note as it would be kept."""

    @property
    def text(self) -> str:
        """All of it, without secrets."""
        ...

    @property
    def place(self) -> str:
        """Where it would lie, as the person writes it."""
        ...


class Keeper(Protocol):
    """Keeps notes. Both block and raise ToolError."""

    def draft(self, text: str) -> NoteDraft:
        """Return what `keep` would write."""
        ...

    def keep(self, text: str) -> Path:
        """Write a note and return its file."""
        ...


class Memorize(BuiltInTool):
    """Keeps a note. Later sessions read it, so the person is asked in every mode that asks at all."""

    name: str = "memorize"
    effect: Effect = "write"
    arguments: ClassVar[type[Struct]] = Arguments

    def __init__(self, workspace: Workspace, keeper: Callable[[], Keeper]) -> None:
        """`keeper` is called when the first note is wanted."""
        super().__init__(workspace)
        self._keeper = keeper

    def subject(self, arguments: Arguments) -> Subject:
        """Stand for all notes: what rules and grants cover is the tool, not one text."""
        del arguments
        return Subject(paths=("memories",), is_plain=True, is_own=True)

    def preview(self, arguments: Arguments) -> Preview:
        """Show the text and where it would go."""
        draft = self._keeper().draft(arguments.text)
        body = "\n".join(f"+{line}" for line in draft.text.split("\n"))
        return Preview(title=f"Keep this for later sessions ({draft.place})", body=body)

    async def run(self, arguments: Arguments, print_live: Callable[[str], None]) -> ToolOutput:
        """Keep it."""
        del print_live
        file = await asyncio.to_thread(lambda: self._keeper().keep(arguments.text))
        size = plural(len(arguments.text.split()), "word")
        return ToolOutput(
            output="Kept for later sessions.",
            summary=f"Kept {size} as {file.name}",
            display={"success": True, "file": str(file)},
        )
