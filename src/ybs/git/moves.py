"""Restore and switch: move HEAD, the index and files step by step, so that no program of a repository runs."""

import asyncio
import errno
import os
import shutil
import stat
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from msgspec import Struct

from ybs.core.errors import Refused
from ybs.git.client import Git
from ybs.git.hardening import GitError
from ybs.security.paths.opening import OpenEntry, held
from ybs.security.paths.repository import Repository, under_way

_REPOSITORY = "160000"  # the mode of a repository within this one


class TreeSide(Struct, frozen=True):
    """A file of a tree: its mode (0 where there is none) and its content's name."""

    mode: str
    content: str

    @property
    def is_there(self) -> bool:
        """Whether the tree has the file."""
        return self.mode.strip("0") != ""


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
    printed = await git.run("ls-tree", "-r", "-z", "--full-tree", "HEAD", "--", *paths)
    entries: dict[str, TreeSide] = {}
    for line in filter(None, os.fsdecode(printed).split("\0")):
        facts, _, path = line.partition("\t")
        mode, _, content = facts.split(" ")
        entries[path] = TreeSide(mode, content)
    for path in paths:
        if path not in entries or entries[path].mode == _REPOSITORY:
            raise GitError(f"{path!r} is not a file of the last commit")
    await set_entries(git, {path: entries[path] for path in paths})
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
    """Make folders in the work tree where they are missing. Raises GitError."""
    try:
        for name in names:
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
    fresh = place.beside(f".ybs-{os.urandom(8).hex()}.tmp")
    try:
        status = source.status()
        if status is not None and stat.S_ISLNK(status.st_mode):
            target = os.readlink(source.name, dir_fd=source.folder)
            os.symlink(target, fresh.name, dir_fd=fresh.folder)
        else:
            with open(source.open(_READ), "rb") as old, open(fresh.open(_NEW), "wb") as new:  # noqa: PTH123 - descriptors
                shutil.copyfileobj(old, new)
                os.fchmod(new.fileno(), stat.S_IMODE(os.fstat(old.fileno()).st_mode))
        fresh.replace(place)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise


def _remove(top: Path, name: str) -> None:
    """Remove a file, and the folders that it leaves empty. Raises OSError."""
    path = top / name
    with suppress(FileNotFoundError, NotADirectoryError), held(path) as place:
        place.unlink()
    with suppress(OSError):
        while (path := path.parent) != top:
            with held(path) as place:
                os.rmdir(place.name, dir_fd=place.folder)
