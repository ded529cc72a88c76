"""repo_map: the files and names of the project that a query is about."""

from collections.abc import Awaitable, Callable
from typing import ClassVar

from msgspec import Struct

from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.core.wording import plural
from ybs.security.policy.case import Subject
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.workspace import Workspace


class RepoMapArguments(Struct, frozen=True, kw_only=True):
    """What repo_map takes."""

    query: str


class RepoMapTool(BuiltInTool):
    """Shows the map. `ask` gives its text and raises ToolError where none can be made."""

    name: str = "repo_map"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = RepoMapArguments

    def __init__(self, workspace: Workspace, ask: Callable[[str], Awaitable[str]]) -> None:
        super().__init__(workspace)
        self._ask = ask

    def subject(self, arguments: RepoMapArguments) -> Subject:
        """Name the project's folder. Raises Refused where tools may not read it."""
        del arguments
        roots = self.workspace.roots
        return Subject(paths=(roots.show(roots.resolve(".")),))

    def preview(self, arguments: RepoMapArguments) -> Preview:
        """Name what the map is to be about."""
        return Preview(title=f"Map {arguments.query}".rstrip())

    async def run(
        self, arguments: RepoMapArguments, print_live: Callable[[str], None]
    ) -> ToolOutput:
        """Have the map made."""
        del print_live
        text = await self._ask(arguments.query)
        return ToolOutput(output=text, summary=plural(len(text.splitlines()), "line"))
