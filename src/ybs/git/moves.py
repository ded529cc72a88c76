"""Restore and switch: move HEAD, the index and files step by step, so that no program of a repository runs."""

import asyncio
import errno
import os
import re
import shutil
import stat
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from ybs.core.errors import Refused
from ybs.git.client import Git
from ybs.git.hardening import GitError
from ybs.security.paths.git_names import repository_on_the_way
from ybs.security.paths.opening import OpenEntry, held
from ybs.security.paths.repository import Repository, under_way

_LINK, _REPOSITORY = "120000", "160000"  # the modes of a link, and of a repository within this one


class TreeSide(Struct, frozen=True):
    """A file of a tree: its mode (0 where there is none) and its content's name."""

    mode: str
    content: str

    @property
    def is_there(self) -> bool:
        """Whether the tree has the file."""
        return self.mode.strip("0") != ""

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return self.mode == _LINK


def is_on_branch(repository: Repository) -> bool:
    """Return whether HEAD is at a branch, be it one without a commit."""
    head = (repository.git_folder / "HEAD").read_bytes()
    return head.startswith(b"ref: refs/heads/")


async def differences(
    git: Git, old: str, new: str, *paths: str
) -> dict[str, tuple[TreeSide, TreeSide]]:
    """Return the files that differ between two trees, with both their sides."""
    words = ("--raw", "-z", "--no-renames", "--no-abbrev")
    printed = os.fsdecode(await git.run("diff", *words, old, new, "--", *paths))
    fields = printed.split("\0")
    found: dict[str, tuple[TreeSide, TreeSide]] = {}
    for facts, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old_content, new_content, _ = facts.removeprefix(":").split(" ")
        found[path] = (TreeSide(old_mode, old_content), TreeSide(new_mode, new_content))
    return found


async def set_entries(git: Git, entries: dict[str, TreeSide]) -> None:
    """Put files as a tree has them into the index; those that it has not go out first."""
    ordered = sorted(entries.items(), key=lambda row: row[1].is_there)
    lines = (f"{side.mode} {side.content}\t{path}\0" for path, side in ordered)
    stdin = b"".join(map(os.fsencode, lines))
    await git.run("update-index", "-z", "--index-info", stdin=stdin)


async def restore(git: Git, paths: list[str]) -> None:
    """Put files, in the work tree and in the index, back to the last commit. Raises GitError."""
    await git.refuse_unfit(paths)
    entries = await committed(git, paths)
    for path in paths:
        if path not in entries or entries[path].mode == _REPOSITORY:
            raise GitError(f"{path!r} is not a file of the last commit")
    await set_entries(git, {path: entries[path] for path in paths})
    await put_files(git, paths)
    await _refresh(git)


async def committed(git: Git, paths: Iterable[str]) -> dict[str, TreeSide]:
    """Return the files at and below some paths as the last commit has them."""
    printed = await git.run("ls-tree", "-r", "-z", "--full-tree", "HEAD", "--", *paths)
    entries: dict[str, TreeSide] = {}
    for line in filter(None, os.fsdecode(printed).split("\0")):
        facts, _, path = line.partition("\t")
        mode, _, content = facts.split(" ")
        entries[path] = TreeSide(mode, content)
    return entries


async def branches(git: Git) -> list[str]:
    """List the branches of this repository."""
    printed = await git.run("branch", "--list", "--format=%(refname:short)")
    return os.fsdecode(printed).splitlines()


async def make_branch(git: Git, name: str) -> None:
    """Make a branch where HEAD is, and go on on it; files and index stay. Raises GitError."""
    if await git.head():
        await git.run("branch", "--no-track", "--", name)
    await _go_to(git, name)


async def switch_branch(git: Git, name: str, changed: dict[str, tuple[TreeSide, TreeSide]]) -> None:
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


def _refuse_in_the_way(top: Path, changed: Mapping[str, tuple[TreeSide, TreeSide]]) -> None:
    """Refuse to overwrite a file that git ignores: it would not mind."""
    for path, (here, there) in changed.items():
        if there.is_there and not here.is_there and os.path.lexists(top / path):
            raise GitError(f"{path!r} is not in this branch's last commit and would be overwritten")


async def _go_to(git: Git, name: str) -> None:
    await git.run("symbolic-ref", "-m", f"checkout: moving to {name}", "HEAD", f"refs/heads/{name}")


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


async def put_files(
    git: Git, names: Sequence[str], gone: Iterable[str] = (), *, index: str = ""
) -> None:
    """Put files into the work tree as the index has them, and take the `gone` ones away.

    Raises GitError; some of the files may be in their place by then.
    """
    top = git.repository().work_tree
    async with _made(git, names, index) as made:
        try:
            await asyncio.to_thread(_change, top, made, names, gone)
        except (OSError, Refused) as error:
            raise GitError(f"not all files could be put in their places: {error}") from error


@asynccontextmanager
async def _made(git: Git, names: Sequence[str], index: str) -> AsyncGenerator[Path, None]:
    """Have git make the files in a folder of its own."""
    folder = git.repository().git_folder / f"ybs-files-{os.urandom(6).hex()}"
    try:
        try:
            with held(folder) as place:
                os.mkdir(place.name, 0o700, dir_fd=place.folder)
        except (OSError, Refused) as error:
            raise GitError(f"git cannot write in its folder: {error}") from error
        stdin = b"".join(os.fsencode(name) + b"\0" for name in names)
        await git.run(
            "checkout-index", "-z", "--stdin", stdin=stdin, index=index, files=str(folder)
        )
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_folders(top: Path, names: Iterable[str]) -> None:
    """Make folders in the work tree where they are missing. Raises GitError, also where git would take the one around it for a repository."""
    for name in names:
        if repository_on_the_way(f"{top}/{name}", str(top)):
            raise GitError(f"git would take the folder around {name!r} for a repository")
        try:
            with held(top / name / "x", make_folders=True):
                pass
        except (OSError, Refused) as error:
            raise GitError(f"a folder could not be made: {error}") from error


def _change(top: Path, made: Path, names: Iterable[str], gone: Iterable[str]) -> None:
    # What is gone goes first: a folder can take the place of a file.
    for name in gone:
        _remove(top, name)
    for name in names:
        with held(made / name) as source, held(top / name, make_folders=True) as place:
            _move(source, place)


def _move(source: OpenEntry, place: OpenEntry) -> None:
    """Give what git made the other's place, in one step. Raises OSError."""
    with suppress(OSError):  # a folder in its place goes if it is empty
        os.rmdir(place.name, dir_fd=place.folder)
    try:
        source.replace(place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source, place)


def _copy(source: OpenEntry, place: OpenEntry) -> None:
    """Do it where the git folder lies on another disk."""
    with place.replaced_by(f".ybs-{os.urandom(8).hex()}.tmp") as fresh:
        status = source.status()
        if status is not None and stat.S_ISLNK(status.st_mode):
            target = os.readlink(source.name, dir_fd=source.folder)
            os.symlink(target, fresh.name, dir_fd=fresh.folder)
        else:
            with open(source.open(_READ), "rb") as old, open(fresh.open(_NEW), "wb") as new:  # noqa: PTH123 - descriptors
                shutil.copyfileobj(old, new)
                os.fchmod(new.fileno(), stat.S_IMODE(os.fstat(old.fileno()).st_mode))


def _remove(top: Path, name: str) -> None:
    """Remove a file, and the folders that it leaves empty. Raises OSError."""
    path = top / name
    with suppress(FileNotFoundError, NotADirectoryError), held(path) as place:
        place.unlink()
    with suppress(OSError):
        while (path := path.parent) != top:
            with held(path) as place:
                os.rmdir(place.name, dir_fd=place.folder)


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
        await _move_branch(git, head, head.parent, head.parent_tree, "undo")
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
        await _move_branch(git, head, commit, found.tree, "redo")
        return "moved"
    if head.tree != found.parent_tree or found.tree == found.parent_tree or found not in line:
        return "stays"
    is_own_revert = head.parent == commit and head.title == _revert_of(found)
    if is_own_revert and not await _is_on_remote(git, head.name):
        await _move_branch(git, head, commit, found.tree, "redo")
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


async def _move_branch(git: Git, head: _Known, name: str, tree: str, word: str) -> None:
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
