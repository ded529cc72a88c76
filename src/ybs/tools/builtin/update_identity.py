"""update_identity: one line about itself that the model keeps for later sessions, if the person says yes."""

import asyncio
from collections.abc import Callable
from typing import ClassVar

from msgspec import Struct

from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.security.policy.policy import Subject
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.workspace import Workspace


class UpdateIdentityArguments(Struct, frozen=True, kw_only=True):
    """What update_identity takes."""

    text: str


class UpdateIdentity(BuiltInTool):
    """Appends. The line counts in every project from then on, so the person is asked in all modes but auto."""

    name: str = "update_identity"
    effect: Effect = "write"
    arguments: ClassVar[type[Struct]] = UpdateIdentityArguments

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

    def subject(self, arguments: UpdateIdentityArguments) -> Subject:
        """Name the file: what rules and grants cover is all of its lines."""
        del arguments
        return Subject(paths=("IDENTITY.md",), is_plain=True, is_own=True)

    def preview(self, arguments: UpdateIdentityArguments) -> Preview:
        """Show the line. Raises ToolError where it could not be kept anyway, so that nobody is asked for nothing."""
        line = self._draft(arguments.text)
        return Preview(title="Add a line to IDENTITY.md, for all later sessions", body=f"+{line}")

    async def run(
        self, arguments: UpdateIdentityArguments, print_live: Callable[[str], None]
    ) -> ToolOutput:
        """Keep it."""
        del print_live
        line = await asyncio.to_thread(self._append, arguments.text)
        return ToolOutput(
            output=f"Added to IDENTITY.md: {line}",
            summary=f"Added to IDENTITY.md: {line}",
            display={"success": True, "line": line},
        )
