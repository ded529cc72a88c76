"""Takes commits of ybs's own back, and makes them again: by moving the branch where nobody else can have the commit."""

import os
import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ybs.git.client import Git
from ybs.git.moves import differences, is_on_branch, set_entries
from ybs.security.paths.repository import under_way

#: The branch was `moved` to another commit, a commit was `added`, or all `stays` as it is.
How: TypeAlias = Literal["moved", "added", "stays"]
#: The tree without files, by the length of its name; git knows it without being told.
_EMPTY_TREE = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
_FAR_ENOUGH = 50  # commits that are looked through for one of ybs's
_NAME = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class _Known(Struct, frozen=True):
    """A commit among the latest: its tree, its first parent (empty: none) and that one's tree, its title."""

    name: str
    tree: str
    parent: str
    parent_tree: str
    title: str


async def take_back(git: Git, commit: str) -> How:
    """Take ybs's commit back; the work tree is not touched.

    Where HEAD is at it and no remote has it, the branch goes back to the commit before; the reflog keeps it. Else a
    commit is added that reverts it, if HEAD has just what it made. What else is in the index stays. Raises GitError.
    """
    if not _can_move(git, commit):
        return "stays"
    line = await _latest(git)
    head = line[0]
    if head.name == commit and head.parent and not await _is_on_remote(git, commit):
        await _move(git, head, head.parent, head.parent_tree, "undo")
        return "moved"
    found = next((each for each in line if each.name == commit), None)
    if found is None or head.tree != found.tree or found.tree == found.parent_tree:
        return "stays"
    message = f"{_revert_of(found)}\n\nThis takes back commit {commit}.\n"
    await _add(git, head, found.parent_tree, message)
    return "added"


async def bring_back(git: Git, commit: str) -> How:
    """Make ybs's commit again after it was taken back, in the way in which that was done. Raises GitError."""
    if not _can_move(git, commit):
        return "stays"
    line, (found, *_) = await _latest(git), await _latest(git, commit, count=1)
    head = line[0]
    if head.name == found.parent:
        await _move(git, head, commit, found.tree, "redo")
        return "moved"
    if head.tree != found.parent_tree or found.tree == found.parent_tree or found not in line:
        return "stays"
    is_own_revert = head.parent == commit and head.title == _revert_of(found)
    if is_own_revert and not await _is_on_remote(git, head.name):
        await _move(git, head, commit, found.tree, "redo")
        return "moved"
    message = f'Reapply "{found.title}"\n\nThis does commit {commit} again.\n'
    await _add(git, head, found.tree, message)
    return "added"


def _can_move(git: Git, commit: str) -> bool:
    repository = git.repository()
    is_name = _NAME.fullmatch(commit) is not None
    return is_name and not under_way(repository) and is_on_branch(repository)


def _revert_of(commit: _Known) -> str:
    return f'Revert "{commit.title}"'


async def _latest(git: Git, start: str = "HEAD", *, count: int = _FAR_ENOUGH) -> Sequence[_Known]:
    """Return the latest commits of one line, the newest first."""
    words = ("--first-parent", "-n", str(count + 1), "--format=%H %T %P%x09%s")
    printed = await git.run("log", *words, start)
    rows: list[tuple[str, str, str, str]] = []
    for line in printed.decode(errors="replace").splitlines():
        ids, _, title = line.partition("\t")
        name, tree, parent = [*ids.split(), ""][:3]
        rows.append((name, tree, parent, title))
    trees = [*(tree for _, tree, _, _ in rows[1:]), ""]
    known = [
        _Known(name, tree, parent, older if parent else _EMPTY_TREE[len(name)], title)
        for (name, tree, parent, title), older in zip(rows, trees, strict=True)
    ]
    return known[:count]


async def _is_on_remote(git: Git, commit: str) -> bool:
    """Return whether a branch of a remote has the commit, as far as is known here."""
    return bool((await git.run("branch", "--remotes", "--contains", commit)).strip())


async def _move(git: Git, head: _Known, name: str, tree: str, word: str) -> None:
    """Have the branch and the index be at another commit; both are as they were where that fails half-way."""
    await _put_into_index(git, head.tree, tree)
    await git.run("update-ref", "--create-reflog", "-m", f"ybs: {word}", "HEAD", name, head.name)


async def _add(git: Git, head: _Known, tree: str, message: str) -> None:
    words = ("commit-tree", "-p", head.name, tree)
    name = (await git.run(*words, stdin=message.encode(errors="replace"))).decode().strip()
    await _put_into_index(git, head.tree, tree)
    title = f"commit: {message.split()[0]}"
    await git.run("update-ref", "-m", title, "HEAD", name, head.name)


async def _put_into_index(git: Git, old: str, new: str) -> None:
    """Put into the index what differs between two trees; what is staged besides stays."""
    changed = await differences(git, old, new)
    printed = await git.run("diff", "--cached", "--name-only", "-z", "--no-renames", old)
    staged = set(os.fsdecode(printed).split("\0"))
    await set_entries(git, {p: after for p, (_, after) in changed.items() if p not in staged})
