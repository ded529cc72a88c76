"""Files of a commit put into the work tree: git makes them in its own folder, and a walk that follows no link moves them.

Git itself would write by path, and a command of the model that still runs can exchange a folder on the way with a link:
out of the project, or to `.git` and other places in it where no tool may write.
"""

import asyncio
import errno
import os
import shutil
import stat
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from ybs.core.errors import Refused
from ybs.git.client import Git
from ybs.git.hardening import GitError
from ybs.security.paths.opening import Place, held

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


def _move(source: Place, place: Place) -> None:
    """Give what git made the other's place, in one step. Raises OSError."""
    with suppress(OSError):  # a folder in its place goes if it is empty
        os.rmdir(place.name, dir_fd=place.folder)
    try:
        source.replace(place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source, place)


def _copy(source: Place, place: Place) -> None:
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
