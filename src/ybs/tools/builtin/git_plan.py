"""What each action of the git tool would do, shown before it is done, and the doing."""

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from ybs.core.errors import ToolError
from ybs.core.wording import listed, plural
from ybs.git import moves as git_moves
from ybs.git.client import Change
from ybs.git.hardening import plain_message
from ybs.git.hooks import AFTER_CHECKOUT, COMMIT_HOOKS, left_undone
from ybs.security.paths.repository import under_way
from ybs.security.unicode import printable
from ybs.tools.builtin.work_tree import WorkTree

if TYPE_CHECKING:
    from ybs.tools.builtin.git_arguments import Arguments

_MOST_COMMITS = 20
#: What no branch is called: see git-check-ref-format(1).
_NO_BRANCH = re.compile(
    r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|/\.|@\{|\.lock(?:/|$)|^[-/.]|[/.]$|^(?:@|HEAD)$"
)
_READING = ("status", "diff", "log")


class Plan(Struct, frozen=True, kw_only=True):
    """What a call is about to do. It is made anew before it is done, and must then be the same.

    `names` are the files, counted from the top of the work tree; `marks` tell their state.
    """

    action: str
    title: str
    body: str = ""
    names: tuple[str, ...] = ()
    only_reads: bool = False
    is_switch: bool = False
    destroys: str = ""
    marks: tuple[tuple[int, int], ...] = ()


async def plan_of(tree: WorkTree, arguments: "Arguments") -> Plan:
    """Plan a call. Raises ToolError where it cannot work anyway; it changes nothing."""
    action, text = arguments.action or "status", plain_message(arguments.text or "")
    paths = arguments.paths or ()
    if action in _READING:
        tree.scope(paths)
        return Plan(action=action, title=f"Look at git {action}", only_reads=True)
    if action == "branch":
        return await _plan_branch(tree, text)
    if what := under_way(tree.git.repository()):
        raise ToolError(f"{what} is under way; end it with run_shell and outside: true first")
    if action == "commit":
        return await _plan_commit(tree, paths, text)
    if action == "add":
        rows = await _changed(tree, paths)
        title = f"Stage {_files(tree, rows)}"
        return Plan(action=action, title=title, body=await tree.described(rows), names=_names(rows))
    return await _plan_restore(tree, paths)


async def _plan_commit(tree: WorkTree, paths: tuple[str, ...], message: str) -> Plan:
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
    body = f"{printable(message)}\n\n{body}\n\n{await left_undone(tree.git, COMMIT_HOOKS)}".rstrip()
    return Plan(action="commit", title=title, body=body, names=_names(rows))


async def _plan_restore(tree: WorkTree, paths: tuple[str, ...]) -> Plan:
    if not paths:
        raise ToolError("Name in `paths` what to restore.")
    rows = await _changed(tree, paths, is_write=True)
    held = [row for row in rows if row.letters != "??" and row.letters[0] != "A"]
    if not held:
        shown = tree.listed(_names(rows))
        raise ToolError(f"Not in the last commit: {shown}. delete_file deletes files.")
    names = _names(held)
    return Plan(
        action="restore",
        title=f"Restore {_files(tree, held)} to the last commit",
        body=await tree.described(held),
        names=names,
        destroys=f"throws away changes that are not committed, in {tree.listed(names)}",
        marks=tuple(_mark(f"{tree.top}/{name}") for name in names),
    )


async def _plan_branch(tree: WorkTree, name: str) -> Plan:
    if not name:
        return Plan(action="branch", title="List the branches", only_reads=True)
    if name == await tree.git.branch():
        raise ToolError(f"{name} is the branch already.")
    if name not in await git_moves.branches(tree.git):
        if _NO_BRANCH.search(name):
            raise ToolError(f"{printable(name)} is not a valid name for a branch.")
        return Plan(action="branch", title=f"Make branch {name} and switch to it")
    changed = await git_moves.differences(tree.git, "HEAD", f"refs/heads/{name}")
    if closed := [each for each in changed if not tree.permits(each, is_write=True)]:
        raise ToolError(
            f"Switching would change {tree.listed(closed)}, where tools may not write. "
            "The person can switch."
        )
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
    return Plan(action="branch", title=title, body=body, names=tuple(changed), is_switch=True)


async def done(tree: WorkTree, arguments: "Arguments", plan: Plan) -> str:
    """Do what was planned and say what came of it. Raises ToolError."""
    git, text, paths = tree.git, plain_message(arguments.text or ""), arguments.paths or ()
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


async def _branch(tree: WorkTree, name: str, plan: Plan) -> str:
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
) -> list[Change]:
    """Return what has changed of that. Raises ToolError where nothing has."""
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


def _side_word(here: git_moves.Side, there: git_moves.Side) -> str:
    if not there.is_there:
        return "gone"
    return "changed" if here.is_there else "new"


def _names(rows: Iterable[Change]) -> tuple[str, ...]:
    return tuple(row.path for row in rows)


def _files(tree: WorkTree, rows: list[Change]) -> str:
    return tree.listed(_names(rows)) if len(rows) < 3 else plural(len(rows), "file")


def _mark(path: str) -> tuple[int, int]:
    try:
        status = os.lstat(path)
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
