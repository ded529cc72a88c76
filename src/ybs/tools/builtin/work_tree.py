"""The repository around the project, as far as tools may look: the project's folder, without blocked files."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ybs.core.errors import Refused, ToolError
from ybs.core.lazy import lazy
from ybs.core.wording import listed
from ybs.git.client import Change, Git
from ybs.git.hooks import left_undone
from ybs.security.paths.opening import read_beginning
from ybs.tools.workspace import Workspace

_GITLINK = "160000 "
_PATH = lazy(rb"(?m)^\s*path\s*=\s*(.*\S)")
_MOST_BYTES = 1_000_000
#: Submodules in submodules are looked at so far down.
_DEEPEST = 3


class WorkTree:
    """Names here are counted from the top of the work tree, as git has them. Everything may raise ToolError.

    With a `folder`, it is the work tree of a submodule.
    """

    def __init__(self, workspace: Workspace, folder: Path | None = None) -> None:
        self._workspace, self.roots = workspace, workspace.roots
        host = self.roots.host
        self.folder = folder or self.roots.folder
        self.git = Git(host.environ, self.folder, roots=host.roots, sandbox=workspace.git_sandbox)
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
        """The project's folder, or that of the submodule, counted from the top."""
        return os.path.relpath(self.folder, self.top)

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

    async def submodules(self, scope: Sequence[str]) -> list["Submodule"]:
        """Return the submodules there, and those within them, into which ybs's own git does not look by itself."""
        return await self._submodules(scope, _DEEPEST)

    async def _submodules(self, scope: Sequence[str], depth: int) -> list["Submodule"]:
        names = [name for name in _paths_in(f"{self.top}/.gitmodules") if _within(name, scope)]
        if not names:
            return []
        printed = os.fsdecode(await self.git.run("ls-files", "--stage", "-z", "--", *names))
        rows = (row.partition("\t") for row in printed.split("\0") if row.startswith(_GITLINK))
        found: list[Submodule] = []
        for facts, _, name in rows:
            if not (inner := _within(name, scope)) or not self.permits(name):
                continue  # it is not one that was asked for, or a link has taken its place
            if not _is_entry(f"{self.top}/{name}/.git"):
                continue  # it was never checked out; the repository around it would be looked at
            tree = WorkTree(self._workspace, Path(self.top, name))
            module = Submodule(tree, self.show(name), inner, facts.split()[1])
            await module.look()
            found.append(module)
            if depth and not module.trouble:
                found += await tree._submodules(inner, depth - 1)
        return found

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

    async def diff(self, scope: Sequence[str], *, is_staged: bool = False, prefix: str = "") -> str:
        """Return the difference to the last commit of what tools may read; with `is_staged`, of the index.

        The `prefix` goes before each path.
        """
        against = await self._against(is_staged=is_staged)
        listing = (*against, "--name-only", "--no-renames", "-z", "--", *scope)
        printed = os.fsdecode(await self.git.run("diff", *listing))
        names = [name for name in printed.split("\0") if name]
        seen = [name for name in names if self.permits(name)]
        if not seen:
            return ""
        where = scope if len(seen) == len(names) else seen
        words = (f"--relative={self._inner}/",) if self._inner != "." else ()
        if prefix:
            words = (*words, f"--src-prefix=a/{prefix}", f"--dst-prefix=b/{prefix}")
        return os.fsdecode(await self.git.run("diff", *against, *words, "--", *where))


class Submodule:
    """A submodule, looked at as a repository of its own: `rows` are its changes, `trouble` says why it could not be."""

    def __init__(self, tree: WorkTree, shown: str, scope: Sequence[str], recorded: str) -> None:
        self.tree, self.shown, self.scope, self._recorded = tree, shown, scope, recorded
        self.rows: list[Change] = []
        self.trouble = ""
        self.has_moved = False

    async def look(self) -> None:
        """Ask git what differs in it."""
        try:
            _, self.rows = await self.tree.changes(self.scope)
            self.has_moved = await self.tree.git.head() != self._recorded
        except ToolError as error:
            self.trouble = str(error)

    @property
    def lines(self) -> list[str]:
        """What a status says of it."""
        if self.trouble:
            return [f"?  {self.shown} (submodule, not looked at: {self.trouble})"]
        moved = [f" M {self.shown} (submodule, at another commit)"] if self.has_moved else []
        return [
            *moved,
            *(f"{row.letters} {self.tree.show(row.path)} (in a submodule)" for row in self.rows),
        ]

    async def diff(self) -> str:
        """Return the differences in its files, under their paths in the project, and what else there is to say."""
        at = f"{self.shown}/"
        rest = [line for line in self.lines if not line.endswith("(in a submodule)")]
        new = [self.tree.show(row.path) for row in self.rows if row.letters == "??"]
        rest += [f"New, and not shown: {listed(new)}"] if new else []
        has_text = len(new) < len(self.rows)
        text = await self.tree.diff(self.scope, prefix=at) if has_text else ""
        return text + "".join(f"{line}\n" for line in rest)


def _is_entry(path: str) -> bool:
    return os.path.lexists(path)


def _paths_in(gitmodules: str) -> list[str]:
    try:
        data = read_beginning(gitmodules, _MOST_BYTES) or b""
    except OSError:  # mostly there is none
        return []
    return [os.fsdecode(name.strip(b'"')) for name in _PATH().findall(data)]


def _within(name: str, scope: Sequence[str]) -> list[str]:
    """Return what of the scope a submodule holds, counted from its top; nothing where it is none of it."""
    if any(each in (".", name) or name.startswith(f"{each}/") for each in scope):
        return ["."]
    return [each.removeprefix(f"{name}/") for each in scope if each.startswith(f"{name}/")]


def _word(row: Change, counts: dict[str, str]) -> str:
    if row.letters == "??" or row.letters[0] == "A":
        return f"new {counts.get(row.path, '')}".rstrip()
    return "gone" if "D" in row.letters else counts.get(row.path, "changed")
