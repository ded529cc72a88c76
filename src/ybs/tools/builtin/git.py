"""git: looks at the repository, commits, makes and switches branches, puts files back."""

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from ybs.core.errors import ToolError
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.core.wording import plural
from ybs.security.paths.named_paths import NamedPaths
from ybs.security.paths.names import shown_name
from ybs.security.policy.case import Subject
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.builtin.git_arguments import GitArguments
from ybs.tools.workspace import Workspace

if TYPE_CHECKING:
    # The first request needs none of it.
    from ybs.tools.builtin.git_plan import GitPlan, WorkTree

#: What destroys nothing: an "always" stands for all such calls.
_ALIKE = ("add", "commit", "branch")


class GitTool(BuiltInTool):
    """Git without the programs that a repository names. What only looks needs no question."""

    name: str = "git"
    effect: Effect = "delete"  # the most that it does; see `Subject.only_reads`
    arguments: ClassVar[type[Struct]] = GitArguments

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._tree: WorkTree | None = None
        self._shown: dict[GitArguments, GitPlan] = {}

    @property
    def tree(self) -> "WorkTree":
        """The repository around the project."""
        from ybs.tools.builtin.git_plan import WorkTree

        self._tree = self._tree or WorkTree(self.workspace)
        return self._tree

    def preview(self, arguments: GitArguments) -> Preview:
        """Show what would be done. It blocks, so it is called in a thread."""
        plan = self._shown[arguments] = self._planned(arguments)
        paths = tuple(shown_name(f"{self.tree.top}/{name}") for name in plan.names)
        writes = paths if plan.changes_files else ()
        line = plan.command_line
        return Preview(
            title=plan.title, body=plan.body, paths=paths, writes=writes, command_line=line
        )

    def subject(self, arguments: GitArguments) -> Subject:
        """Name the files, and the command of git that does the same."""
        plan = self._shown.get(arguments) or self._planned(arguments)
        roots, top = self.workspace.roots, self.tree.git.repository().work_tree
        written = plan.names if plan.changes_files else ()
        later = (roots.autorun_part(top / name) for name in written)
        return Subject(
            paths=tuple(map(self.tree.show, plan.names)),
            named=NamedPaths(roots, ((str(top / name), top / name) for name in plan.names)),
            command_line=plan.command_line,
            detail="switch" if plan.is_switch else plan.action,
            is_alike=plan.action in _ALIKE,
            autorun_part=next(filter(None, later), ""),
            only_reads=plan.only_reads,
            is_plain=True,
            destroys=plan.destroys,
        )

    async def run(self, arguments: GitArguments, print_live: Callable[[str], None]) -> ToolOutput:
        """Do it, if it still is what was shown."""
        from ybs.tools.builtin.git_plan import done, plan_of

        del print_live
        shown = self._shown.pop(arguments, None)
        plan = await plan_of(self.tree, arguments)
        if shown is not None and shown != plan and not plan.only_reads:
            raise ToolError("The repository changed in the meantime; nothing was done. Look again.")
        text = await done(self.tree, arguments, plan)
        return ToolOutput(
            output=text,
            summary=_summary(plan.action, text) if plan.only_reads else text,
            display={"success": True, "action": plan.action, "output": text},
        )

    def _planned(self, arguments: GitArguments) -> "GitPlan":
        import asyncio

        from ybs.tools.builtin.git_plan import plan_of

        return asyncio.run(plan_of(self.tree, arguments))


def _summary(action: str, text: str) -> str:
    first, *rest = text.splitlines()
    if action == "status":
        count = len(rest) if rest != ["no changes"] else 0
        return f"{first.removeprefix('## ')}: {plural(count, 'change')}"
    return f"{action}: {plural(len(rest) + 1, 'line')}" if rest else first
