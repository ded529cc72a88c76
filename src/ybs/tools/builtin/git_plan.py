"""Plan and run the actions of the git tool: each is shown before it is done."""

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from textwrap import indent
from typing import TYPE_CHECKING

from msgspec import Struct

from ybs.core.errors import ToolError
from ybs.core.wording import listed, plural
from ybs.git import moves as git_moves
from ybs.git.client import StatusLine
from ybs.git.hardening import plain_message
from ybs.git.hooks import AFTER_CHECKOUT, COMMIT_HOOKS, left_undone
from ybs.security.paths.git_names import repository_on_the_way
from ybs.security.paths.path_text import above, quoted
from ybs.security.paths.repository import under_way
from ybs.security.unicode import printable

if TYPE_CHECKING:
    from ybs.tools.builtin.git_arguments import GitArguments
from collections.abc import Sequence
from pathlib import Path

from ybs.core.errors import Refused
from ybs.core.lazy import lazy
from ybs.git.client import Git
from ybs.security.paths.opening import read_whole
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
        self.git = Git(host.environ, self.folder, sandbox=workspace.git_sandbox)
        self._told: set[str] = set()

    async def told_once(self, hooks: Sequence[str]) -> str:
        """Return what git itself would have done with these hooks and signatures, the first time that it holds."""
        said = await left_undone(self.git, hooks)
        if not said or said in self._told:
            return ""
        self._told.add(said)
        return f" {said}"

    def message_of(self, arguments: "GitArguments") -> str:
        """Return the text of a call without secrets: it is kept in every copy of the repository."""
        return plain_message(self._workspace.mask(arguments.text or ""))

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

    def check_free(self, changed: Mapping[str, git_moves.TreeSide], verb: str) -> None:
        """Raise ToolError where tools may not write, for links, and for what makes a repository with what comes beside it.

        `changed` says what each file is to be. Files are judged one by one, and links and repositories give others a meaning.
        """
        there = (name for name, side in changed.items() if side.is_there)
        paths = (f"{self.top}/{each}" for name in there for each in (name, *above(name)))
        coming = set(map(str.casefold, paths))
        closed = [
            name
            for name, side in changed.items()
            if side.is_link
            or Path(self.top, name).is_symlink()
            or not self.permits(name, is_write=True)
            or repository_on_the_way(f"{self.top}/{name}", self.top, coming)
        ]
        if closed:
            raise ToolError(
                f"This would change {self.listed(closed)}: tools may not write there, or it is a link, or git would "
                f"take a folder for a repository. The person can {verb}, or allow run_shell with outside: true."
            )

    def scope(self, paths: Iterable[str] = (), *, is_write: bool = False) -> list[str]:
        """Return the names of what a model names; the project's folder where it names nothing."""
        return [self.name_of(path, is_write=is_write) for path in paths] or [
            self.name_of(".", is_write=False)
        ]

    async def changes(self, scope: Sequence[str]) -> tuple[str, list[StatusLine]]:
        """Return git's line about the branch, and the differences from the last commit."""
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
        return listed(quoted(self.show(name)) for name in names)

    async def described(self, rows: Sequence[StatusLine], *, is_staged: bool = False) -> str:
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
        self.rows: list[StatusLine] = []
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
        data = read_whole(gitmodules, _MOST_BYTES)
    except OSError:  # mostly there is none
        return []
    except ValueError as error:
        raise ToolError(f"The submodules are not known: {error}") from error
    return [os.fsdecode(name.strip(b'"')) for name in _PATH().findall(data)]


def _within(name: str, scope: Sequence[str]) -> list[str]:
    """Return what of the scope a submodule holds, counted from its top; nothing where it is none of it."""
    if any(each in (".", name) or name.startswith(f"{each}/") for each in scope):
        return ["."]
    return [each.removeprefix(f"{name}/") for each in scope if each.startswith(f"{name}/")]


def _word(row: StatusLine, counts: dict[str, str]) -> str:
    if row.letters == "??" or row.letters[0] == "A":
        return f"new {counts.get(row.path, '')}".rstrip()
    return "gone" if "D" in row.letters else counts.get(row.path, "changed")


_MOST_COMMITS = 20
#: What no branch is called: see git-check-ref-format(1).
_NO_BRANCH = re.compile(
    r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|/\.|@\{|\.lock(?:/|$)|^[-/.]|[/.]$|^(?:@|HEAD)$"
)
_READING = ("status", "diff", "log")


class GitPlan(Struct, frozen=True, kw_only=True):
    """What a call is about to do. It is made anew before it is done, and must then be the same.

    `names` are the files, counted from the top of the work tree; `marks` tell their state. `commands` are the words of those of git that do
    the same in the project's folder; none where nothing changes.
    """

    action: str
    title: str
    commands: tuple[tuple[str, ...], ...] = ()
    body: str = ""
    names: tuple[str, ...] = ()
    only_reads: bool = False
    is_switch: bool = False
    destroys: str = ""
    marks: tuple[tuple[int, int], ...] = ()

    @property
    def changes_files(self) -> bool:
        """Whether the files are changed, and not only what git keeps of them."""
        return bool(self.destroys) or self.is_switch

    @property
    def command_line(self) -> str:
        """A line of commands of git that does the same; empty where nothing changes."""
        return " && ".join(shlex.join(("git", *words)) for words in self.commands)


async def plan_of(tree: WorkTree, arguments: "GitArguments") -> GitPlan:
    """Plan a call. Raises ToolError where it cannot work anyway; it changes nothing."""
    action, text = arguments.action or "status", tree.message_of(arguments)
    paths = arguments.paths or ()
    if action in _READING:
        tree.scope(paths)
        return GitPlan(action=action, title=f"Look at git {action}", only_reads=True)
    if action == "branch":
        return await _plan_branch(tree, text)
    if what := under_way(tree.git.repository()):
        raise ToolError(f"{what} is under way; end it with run_shell and outside: true first")
    if action == "commit":
        return await _plan_commit(tree, paths, text)
    if action == "add":
        rows = await _changed(tree, paths)
        title = f"Stage {_files(tree, rows)}"
        return GitPlan(
            action=action,
            title=title,
            commands=(("add", "--", *map(tree.show, _names(rows))),),
            body=await tree.described(rows),
            names=_names(rows),
        )
    return await _plan_restore(tree, paths)


async def _plan_commit(tree: WorkTree, paths: tuple[str, ...], message: str) -> GitPlan:
    if not message:
        raise ToolError("Say in `text` what the commit does.")
    is_index = not paths
    if is_index:
        _, all_rows = await tree.git.look()  # the index has no part that could be left out
        rows = [row for row in all_rows if row.letters[0] not in " ?"]
        if not rows:
            raise ToolError("Nothing is staged. Name in `paths` what to commit.")
    else:
        rows = await _changed(tree, paths)
    body = await tree.described(rows, is_staged=is_index)
    title = f"Commit {_files(tree, rows)}"
    # As git's log has it: no line of the message begins as one of a diff does.
    said = indent(printable(message), "    ")
    body = f"{said}\n\n{body}\n\n{await left_undone(tree.git, COMMIT_HOOKS)}".rstrip()
    commands = (("commit", "-m", message),)
    if not is_index:  # what git does not know yet is staged as well
        new = [row for row in rows if row.letters == "??"]
        commands = ((*commands[0], "--", *map(tree.show, _names(rows))),)
        commands = (("add", "--", *map(tree.show, _names(new))), *commands) if new else commands
    return GitPlan(action="commit", title=title, commands=commands, body=body, names=_names(rows))


async def _plan_restore(tree: WorkTree, paths: tuple[str, ...]) -> GitPlan:
    if not paths:
        raise ToolError("Name in `paths` what to restore.")
    rows = await _changed(tree, paths, is_write=True)
    held = [row for row in rows if row.letters != "??" and row.letters[0] != "A"]
    if not held:
        shown = tree.listed(_names(rows))
        raise ToolError(f"Not in the last commit: {shown}. delete_file deletes files.")
    names = _names(held)
    tree.check_free(await git_moves.committed(tree.git, names), "restore")
    return GitPlan(
        action="restore",
        title=f"Restore {_files(tree, held)} to the last commit",
        commands=(
            ("restore", "--source=HEAD", "--staged", "--worktree", "--", *map(tree.show, names)),
        ),
        body=await tree.described(held),
        names=names,
        destroys=f"throws away changes that are not committed, in {tree.listed(names)}",
        marks=tuple(_mark(f"{tree.top}/{name}") for name in names),
    )


async def _plan_branch(tree: WorkTree, name: str) -> GitPlan:
    if not name:
        return GitPlan(action="branch", title="List the branches", only_reads=True)
    if name == await tree.git.branch():
        raise ToolError(f"{name} is the branch already.")
    if name not in await git_moves.branches(tree.git):
        if _NO_BRANCH.search(name):
            raise ToolError(f"{printable(name)} is not a valid name for a branch.")
        title = f"Make branch {name} and switch to it"
        return GitPlan(action="branch", title=title, commands=(("switch", "-c", name),))
    changed = await git_moves.differences(tree.git, "HEAD", f"refs/heads/{name}")
    tree.check_free({path: there for path, (_, there) in changed.items()}, "switch")
    _, rows = await tree.git.look()
    if lost := [row.path for row in rows if row.path in changed]:
        raise ToolError(
            f"Switching would overwrite changes in {tree.listed(lost)}. Commit or restore them first."
        )
    lines = [
        f"{tree.show(path)}  {_side_word(here, there)}" for path, (here, there) in changed.items()
    ]
    title = f"Switch to branch {name}, where {plural(len(changed), 'file')} differ"
    title += "s" * (len(changed) == 1)
    body = "\n".join(lines)
    return GitPlan(
        action="branch",
        title=title,
        commands=(("switch", name),),
        body=body,
        names=tuple(changed),
        is_switch=True,
    )


async def done(tree: WorkTree, arguments: "GitArguments", plan: GitPlan) -> str:
    """Do what was planned and say what came of it. Raises ToolError."""
    git, text, paths = tree.git, tree.message_of(arguments), arguments.paths or ()
    files = tree.listed(plan.names)
    match plan.action:
        case "branch":
            said = await _branch(tree, text, plan)
        case "add":
            await git.add(*plan.names)
            said = f"Staged {files}."
        case "commit":
            commit = await git.commit(text, *(plan.names if paths else ()))
            said = f"Committed {files} as {commit[:7]}.{await tree.told_once(COMMIT_HOOKS)}"
        case "restore":
            await git_moves.restore(git, list(plan.names))
            said = f"Restored {files} to the last commit."
        case _:
            look = {"diff": _diff, "log": _log}.get(plan.action, _status)
            said = await look(tree, tree.scope(paths))
    return said


async def _branch(tree: WorkTree, name: str, plan: GitPlan) -> str:
    if plan.only_reads:
        now = await tree.git.branch()
        names = await git_moves.branches(tree.git)
        return "\n".join(f"{'*' if each == now else ' '} {each}" for each in names) or "None yet."
    if plan.is_switch:
        changed = await git_moves.differences(tree.git, "HEAD", f"refs/heads/{name}")
        await git_moves.switch_branch(tree.git, name, changed)
        return f"Switched to {name}.{await tree.told_once((AFTER_CHECKOUT,))}"
    await git_moves.make_branch(tree.git, name)
    return f"Made {name} and switched to it.{await tree.told_once((AFTER_CHECKOUT,))}"


async def _status(tree: WorkTree, scope: list[str]) -> str:
    branch, rows = await tree.changes(scope)
    lines = [f"{row.letters} {tree.show(row.path)}" for row in rows]
    lines += [line for module in await tree.submodules(scope) for line in module.lines]
    what = under_way(tree.git.repository())
    heads = [f"## {branch}", *([f"{what} is under way"] if what else [])]
    return "\n".join([*heads, *(lines or ["no changes"])])


async def _diff(tree: WorkTree, scope: list[str]) -> str:
    text = await tree.diff(scope)
    _, rows = await tree.changes(scope)
    new = [row.path for row in rows if row.letters == "??"]
    more = f"New, and not shown: {tree.listed(new)}\n" if new else ""
    inner = [await module.diff() for module in await tree.submodules(scope)]
    return f"{text}{more}{''.join(inner)}".rstrip() or "No changes."


async def _log(tree: WorkTree, scope: list[str]) -> str:
    if not await tree.git.head():
        return "There is no commit yet."
    words = ("-n", f"{_MOST_COMMITS}", "--format=%h %as %an: %s")
    return os.fsdecode(await tree.git.run("log", *words, "--", *scope)).rstrip() or "No commits."


async def _changed(
    tree: WorkTree, paths: tuple[str, ...], *, is_write: bool = False
) -> list[StatusLine]:
    """Return the changed paths of the scope. Raises ToolError if there are none."""
    _, rows = await tree.changes(tree.scope(paths, is_write=is_write))
    # A folder among them is a repository of its own.
    rows = [row for row in rows if not row.path.endswith("/")]
    rows = [row for row in rows if tree.permits(row.path, is_write=is_write)]
    if not rows:
        modules = await tree.submodules(tree.scope(paths))
        inner = [module.shown for module in modules if module.rows]
        but = f" The submodule {listed(inner)} has changes, and is a repository of its own."
        where = ", ".join(paths) or "the project"
        raise ToolError(f"Nothing has changed in {where}.{but if inner else ''}")
    return rows


def _side_word(here: git_moves.TreeSide, there: git_moves.TreeSide) -> str:
    if not there.is_there:
        return "gone"
    return "changed" if here.is_there else "new"


def _names(rows: Iterable[StatusLine]) -> tuple[str, ...]:
    return tuple(row.path for row in rows)


def _files(tree: WorkTree, rows: list[StatusLine]) -> str:
    return tree.listed(_names(rows)) if len(rows) < 3 else plural(len(rows), "file")


def _mark(path: str) -> tuple[int, int]:
    try:
        status = os.lstat(path)
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
