"""The repository around the project, as far as tools may look: the project's folder, without blocked files."""

import os
from collections.abc import Iterable, Sequence

from ybs.core.errors import Refused, ToolError
from ybs.core.wording import listed
from ybs.git.client import Change, Git
from ybs.git.hooks import left_undone
from ybs.tools.workspace import Workspace


class WorkTree:
    """Names here are counted from the top of the work tree, as git has them. Everything may raise ToolError."""

    def __init__(self, workspace: Workspace) -> None:
        self.roots = workspace.roots
        host = self.roots.host
        self.git = Git(
            host.environ, self.roots.folder, roots=host.roots, sandbox=workspace.git_sandbox
        )
        self._told: set[str] = set()

    async def told_once(self, hooks: Sequence[str]) -> str:
        """Return what git itself would have done with these hooks and signatures, the first time that it holds."""
        said = await left_undone(self.git, hooks)
        if not said or said in self._told:
            return ""
        self._told.add(said)
        return f" {said}"

    @property
    def top(self) -> str:
        """The top of the work tree."""
        return str(self.git.repository().work_tree)

    @property
    def _inner(self) -> str:
        """The project's folder, counted from the top."""
        return os.path.relpath(self.roots.folder, self.top)

    def name_of(self, path: str, *, is_write: bool) -> str:
        """Return the name of a path as a model writes it."""
        real = self.roots.resolve(path, is_write=is_write, is_link_followed=False)
        name = os.path.relpath(real, self.top)
        if name.startswith("../") or name == "..":
            raise ToolError(f"{self.roots.show(real)} is not in the repository around this project")
        return name

    def show(self, name: str) -> str:
        """Return a name as a model reads it."""
        return self.roots.show(self.git.repository().work_tree / name)

    def permits(self, name: str, *, is_write: bool = False) -> bool:
        """Return whether tools may touch the file, which no link on the way leads elsewhere."""
        path = f"{self.top}/{name}"
        try:
            real = self.roots.judge(path, is_write=is_write, is_link_followed=False)
        except Refused:
            return False
        return str(real) == path and not self.roots.is_blocked_link(path)

    def scope(self, paths: Iterable[str] = (), *, is_write: bool = False) -> list[str]:
        """Return the names of what a model names; the project's folder where it names nothing."""
        return [self.name_of(path, is_write=is_write) for path in paths] or [
            self.name_of(".", is_write=False)
        ]

    async def changes(self, scope: Sequence[str]) -> tuple[str, list[Change]]:
        """Return what git says of the branch, and what differs there from the last commit."""
        branch, rows = await self.git.look(*scope)
        return branch, [row for row in rows if self.permits(row.path)]

    def listed(self, names: Iterable[str]) -> str:
        """Name a few files."""
        return listed(map(self.show, names))

    async def described(self, rows: Sequence[Change], *, is_staged: bool = False) -> str:
        """Name each file with what a commit of it changes, one in a line; with `is_staged`, as the index has it."""
        counts = await self._counts([row.path for row in rows], is_staged=is_staged)
        return "\n".join(f"{self.show(row.path)}  {_word(row, counts)}" for row in rows)

    async def _counts(self, names: Sequence[str], *, is_staged: bool) -> dict[str, str]:
        """Say of each file how many lines differ from the last commit, such as `+3 -1`."""
        words = (
            *await self._against(is_staged=is_staged),
            "--numstat",
            "-z",
            "--no-renames",
            "--",
            *names,
        )
        rows = os.fsdecode(await self.git.run("diff", *words)).split("\0")
        counted = (row.split("\t", 2) for row in rows if row)
        return {
            path: "changed" if added == "-" else f"+{added} -{removed}"
            for added, removed, path in counted
        }

    async def _against(self, *, is_staged: bool) -> tuple[str, ...]:
        return ("HEAD",) if not is_staged and await self.git.head() else ("--cached",)

    async def diff(self, scope: Sequence[str], *, is_staged: bool = False) -> str:
        """Return the difference to the last commit of what tools may read; with `is_staged`, of the index."""
        against = await self._against(is_staged=is_staged)
        listing = (*against, "--name-only", "--no-renames", "-z", "--", *scope)
        printed = os.fsdecode(await self.git.run("diff", *listing))
        names = [name for name in printed.split("\0") if name]
        seen = [name for name in names if self.permits(name)]
        if not seen:
            return ""
        where = scope if len(seen) == len(names) else seen
        words = (f"--relative={self._inner}/",) if self._inner != "." else ()
        return os.fsdecode(await self.git.run("diff", *against, *words, "--", *where))


def _word(row: Change, counts: dict[str, str]) -> str:
    if row.letters == "??" or row.letters[0] == "A":
        return f"new {counts.get(row.path, '')}".rstrip()
    return "gone" if "D" in row.letters else counts.get(row.path, "changed")
