"""What moves HEAD, the index or files step by step, so that no program of a repository runs: restore, switch, take back."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ybs.git.checkout import make_folders, put_files
from ybs.git.client import Git
from ybs.git.hardening import GitError
from ybs.security.paths.repository import Repository, under_way

#: The tree without files, by the length of its name; git knows it without being told.
_EMPTY_TREE = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
_REPOSITORY = "160000"  # the mode of a repository within this one
_FAR_ENOUGH = 50  # commits that are looked through for one of ybs's


class Side(Struct, frozen=True):
    """A file of a tree: its mode (0 where there is none) and its content's name."""

    mode: str
    content: str

    @property
    def is_there(self) -> bool:
        """Whether the tree has the file."""
        return self.mode.strip("0") != ""


class Known(Struct, frozen=True):
    """A commit among the latest: its tree, its first parent (empty: none) and that one's tree, its title."""

    name: str
    tree: str
    parent: str
    parent_tree: str
    title: str


def is_on_branch(repository: Repository) -> bool:
    """Return whether HEAD is at a branch, be it one without a commit."""
    head = (repository.git_folder / "HEAD").read_bytes()
    return head.startswith(b"ref: refs/heads/")


async def differences(git: Git, old: str, new: str, *paths: str) -> dict[str, tuple[Side, Side]]:
    """Return the files that differ between two trees, with both their sides."""
    words = ("--raw", "-z", "--no-renames", "--no-abbrev")
    printed = os.fsdecode(await git.run("diff", *words, old, new, "--", *paths))
    fields = printed.split("\0")
    found: dict[str, tuple[Side, Side]] = {}
    for facts, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old_content, new_content, _ = facts.removeprefix(":").split(" ")
        found[path] = (Side(old_mode, old_content), Side(new_mode, new_content))
    return found


async def latest(git: Git) -> list[Known]:
    """Return the latest commits of HEAD's own line, the newest first."""
    count = str(_FAR_ENOUGH + 1)
    printed = await git.run("log", "--first-parent", "-n", count, "--format=%H %T %P%x09%s", "HEAD")
    rows: list[tuple[str, str, str, str]] = []
    for line in printed.decode(errors="replace").splitlines():
        ids, _, title = line.partition("\t")
        name, tree, parent = [*ids.split(), ""][:3]
        rows.append((name, tree, parent, title))
    trees = [*(tree for _, tree, _, _ in rows[1:]), ""]
    known = [
        Known(name, tree, parent, older if parent else _EMPTY_TREE[len(name)], title)
        for (name, tree, parent, title), older in zip(rows, trees, strict=True)
    ]
    return known[:_FAR_ENOUGH]


async def set_back(git: Git, commit: str, *, is_redo: bool = False) -> bool:
    """Add a commit that takes another one back, or with `is_redo` does it again; the work tree is not touched.

    It is done only where HEAD has just what that commit made (or with `is_redo`, what was there before it), and not
    while anything is under way. What else is in the index stays.
    """
    repository = git.repository()
    if under_way(repository) or not is_on_branch(repository):
        return False
    commits = await latest(git)
    found = next((each for each in commits if each.name == commit), None)
    if found is None:
        return False
    old, new = found.tree, found.parent_tree
    if is_redo:
        old, new = new, old
    if commits[0].tree != old or old == new:
        return False
    await _add_commit(git, commits[0].name, found, (old, new), is_redo=is_redo)
    return True


async def _add_commit(
    git: Git, head: str, of: Known, trees: tuple[str, str], *, is_redo: bool
) -> None:
    old, new = trees
    word, verb = (
        ("Reapply", "does commit {} again") if is_redo else ("Revert", "takes back commit {}")
    )
    message = f'{word} "{of.title}"\n\nThis {verb.format(of.name)}.\n'
    changed = await differences(git, old, new)
    printed = await git.run("diff", "--cached", "--name-only", "-z", "--no-renames", old)
    staged = set(os.fsdecode(printed).split("\0"))
    made = await git.run("commit-tree", "-p", head, new, stdin=message.encode(errors="replace"))
    name = made.decode().strip()
    await _set_entries(git, {p: after for p, (_, after) in changed.items() if p not in staged})
    await git.run("update-ref", "-m", f"commit: {word}", "HEAD", name, head)


async def _set_entries(git: Git, entries: dict[str, Side]) -> None:
    """Put files as a tree has them into the index; those that it has not go out first."""
    ordered = sorted(entries.items(), key=lambda row: row[1].is_there)
    lines = (f"{side.mode} {side.content}\t{path}\0" for path, side in ordered)
    stdin = b"".join(map(os.fsencode, lines))
    await git.run("update-index", "-z", "--index-info", stdin=stdin)


async def restore(git: Git, paths: list[str]) -> None:
    """Put files, in the work tree and in the index, back to the last commit. Raises GitError."""
    await git.refuse_unfit(paths)
    printed = await git.run("ls-tree", "-r", "-z", "--full-tree", "HEAD", "--", *paths)
    entries: dict[str, Side] = {}
    for line in filter(None, os.fsdecode(printed).split("\0")):
        facts, _, path = line.partition("\t")
        mode, _, content = facts.split(" ")
        entries[path] = Side(mode, content)
    for path in paths:
        if path not in entries or entries[path].mode == _REPOSITORY:
            raise GitError(f"{path!r} is no file of the last commit")
    await _set_entries(git, {path: entries[path] for path in paths})
    await put_files(git, paths)
    await _refresh(git)


async def branches(git: Git) -> list[str]:
    """List the branches of this repository."""
    printed = await git.run("branch", "--list", "--format=%(refname:short)")
    return os.fsdecode(printed).splitlines()


async def make_branch(git: Git, name: str) -> None:
    """Make a branch where HEAD is, and go on on it; files and index stay. Raises GitError."""
    if await git.head():
        await git.run("branch", "--no-track", "--", name)
    await _go_to(git, name)


async def switch_branch(git: Git, name: str, changed: dict[str, tuple[Side, Side]]) -> None:
    """Put the files as another branch has them, and go on on it; `changed` is what differs from HEAD there.

    Changes that are not committed go along. Raises GitError, with nothing changed, where one would be overwritten.
    """
    if what := under_way(git.repository()):
        raise GitError(f"{what} is under way; it must be ended first")
    top = git.repository().work_tree
    await git.refuse_unfit(list(changed))
    _refuse_in_the_way(top, changed)
    target = f"refs/heads/{name}"
    async with git.index_of(target) as index:
        await git.refuse_unfit(list(changed), index)
        await git.run("read-tree", "-m", "-n", "HEAD", target)  # it says what would be lost
        come = [path for path, (_, there) in changed.items() if there.is_there]
        gone = [path for path, (_, there) in changed.items() if not there.is_there]
        await put_files(git, come, gone, index=index)
    await git.run("read-tree", "-i", "-m", "HEAD", target)
    await _go_to(git, name)
    await _refresh(git)
    make_folders(top, await _repositories_within(git, top))


async def _repositories_within(git: Git, top: Path) -> list[str]:
    if not (top / ".gitmodules").is_file():  # mostly
        return []
    rows = os.fsdecode(await git.run("ls-files", "--stage", "-z")).split("\0")
    entries = (row.partition("\t") for row in rows if row)
    return [path for facts, _, path in entries if facts.startswith(_REPOSITORY)]


async def _refresh(git: Git) -> None:
    """Have the index know the files again, so that the next status need not read them."""
    with suppress(GitError):  # it also fails for files that differ
        await git.run("update-index", "-q", "--refresh")


def _refuse_in_the_way(top: Path, changed: Mapping[str, tuple[Side, Side]]) -> None:
    """Refuse to overwrite a file that git ignores: it would not mind."""
    for path, (here, there) in changed.items():
        if there.is_there and not here.is_there and os.path.lexists(top / path):
            raise GitError(f"{path!r} is not in this branch's last commit and would be overwritten")


async def _go_to(git: Git, name: str) -> None:
    await git.run("symbolic-ref", "-m", f"checkout: moving to {name}", "HEAD", f"refs/heads/{name}")
