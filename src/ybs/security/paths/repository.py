"""Locate a repository by looking at names, so that git is told and looks for nothing itself."""

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePath

from msgspec import Struct

from ybs.config.host import COPIES
from ybs.core.lazy import lazy
from ybs.security.paths.opening import read_whole

_MOST_BYTES, _MOST_SETTINGS = 4096, 1_000_000
#: So many names of branches that lead to others are followed, as by git.
_MOST_STEPS = 5
_COMMIT = lazy("[0-9a-f]{40}|[0-9a-f]{64}")
#: As git writes it for a submodule. `git_settings` reads all that git may, and is too long to load at each start.
_WORK_TREE = lazy(rb"(?im)^\[core\][^\[]*?^[ \t]*worktree[ \t]*=(.*)")
#: What git itself makes as plain files; it would wait at a pipe, and write through a link.
_FILES = ("HEAD", "config", "config.worktree", "index", "packed-refs", "ORIG_HEAD", "shallow")
#: All below them is written by git, by names that it finds there; of `objects` and `lfs` the folders in them are.
_TREES, _TOPS = ("logs", "refs", "rr-cache"), ("objects", "lfs")
#: Through these git writes nothing. `hooks` is a link where somebody keeps them elsewhere, the other is git's own socket.
_UNWRITTEN = frozenset(("hooks", "fsmonitor--daemon.ipc"))
#: Folders that name other repositories, or are some.
_OTHERS = ("remotes", "branches", "modules")
#: What git's own folder may hold. Other programs keep settings there that say what they run and where they send logins (`glab-cli/config.yml`).
_NAMES = lazy(
    r"(?:[A-Z_]+|branches|commondir|config|config\.worktree|description|fsmonitor--daemon|fsmonitor--daemon\.ipc|gc\.log|gc\.pid|gitdir|hooks|index"
    r"|info|lfs|locked|logs|modules|objects|packed-refs|rebase-apply|rebase-merge|refs|reftable|remotes|rr-cache|sequencer|shallow|sharedindex\.[0-9a-f]+"
    r"|worktrees)(?:\.lock)?"
)
#: What git leaves in its folder while something is under way there that the next commit would end.
_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisection",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "sequencer": "a series of picks",
}


class Repository(Struct, frozen=True):
    """A work tree, its git folder, and the folder that holds settings and objects (the same but for worktrees)."""

    work_tree: Path
    git_folder: Path
    common_folder: Path

    @property
    def config_files(self) -> list[Path]:
        """The files of the repository's own settings."""
        files = (self.common_folder / "config", self.git_folder / "config.worktree")
        return [file for file in files if os.path.lexists(file)]

    @property
    def variables(self) -> dict[str, str]:
        """What has git take this repository, and look for none itself."""
        return {
            "GIT_DIR": str(self.git_folder),
            "GIT_COMMON_DIR": str(self.common_folder),
            "GIT_WORK_TREE": str(self.work_tree),
        }


def mark_of(folder: Path) -> str:
    """Return by what the `.git` of a folder is known again, and what is under way there; empty where git cannot be used."""
    try:
        return " ".join((number_of(folder), *_begun(find_repository(folder))))
    except (OSError, ValueError, RuntimeError):
        return ""


def number_of(folder: Path) -> str:
    """Return the number of a folder's own `.git`. Raises OSError where there is none."""
    return str((folder / ".git").lstat().st_ino)


def find_repository(folder: Path) -> Repository:
    """Return the repository around a folder. A sub-agent's copy of a project is in none, also where the home folder is one.

    Raises ValueError where there is none, or one that is put together as git itself never does, such as a `.git` that leads
    to a git folder which does not name this work tree in turn, and OSError.
    """
    folder = folder.resolve()
    for parent in (folder, *folder.parents):
        if parent.name == COPIES:
            break
        mark = parent / ".git"
        try:
            mode = mark.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        if stat.S_ISDIR(mode):
            return _checked(Repository(parent, mark, mark))
        if stat.S_ISREG(mode):
            return _checked(_linked(parent, mark))
        raise ValueError(f"{mark} is a link or not a regular file, which git does not create")
    raise ValueError("it is not in a repository")


def is_in_repository(folder: Path) -> bool:
    """Return whether git can be used in a folder, as far as a look at names tells."""
    try:
        find_repository(folder)
    except (OSError, ValueError, RuntimeError):
        return False
    return True


def _linked(work_tree: Path, mark: Path) -> Repository:
    """Follow the file that a worktree or a submodule has in the place of its git folder, which has to lead back: anybody can write the file."""
    words = _read(mark)
    if not words.startswith("gitdir:"):
        raise ValueError(f"{mark} names no git folder")
    git_folder = common = (work_tree / words.removeprefix("gitdir:").strip()).resolve(strict=True)
    if git_folder.parent.name == "worktrees":
        common = git_folder.parent.parent
        back, named = (git_folder / _read(git_folder / name) for name in ("gitdir", "commondir"))
        is_its = back.resolve() == mark and named.resolve() == common
    elif "/.git/modules/" in str(git_folder):
        is_its = work_tree in _named_by(Repository(work_tree, git_folder, common))
    else:
        raise ValueError(
            f"{mark} leads to {git_folder}, which belongs neither to a worktree nor to a submodule"
        )
    if not is_its:
        raise ValueError(f"{git_folder} does not belong to {mark}")
    return Repository(work_tree, git_folder, common)


def _named_by(repository: Repository) -> Iterator[Path]:
    """Yield the work trees that the repository's own settings name."""
    for file in repository.config_files:
        for row in _WORK_TREE().findall(read_whole(file, _MOST_SETTINGS)):
            name = os.fsdecode(row.strip().strip(b'"'))
            yield (repository.git_folder / name).resolve()


def _checked(repository: Repository) -> Repository:
    common, own = repository.common_folder, repository.git_folder
    if own == common and os.path.lexists(own / "commondir"):
        raise ValueError(f"{own} has a file named commondir, which only a worktree's may have")
    owners = {0, os.getuid(), repository.work_tree.stat().st_uid}
    for path in (own, common, own / "HEAD", common / "config"):
        facts = path.lstat()
        if stat.S_ISLNK(facts.st_mode) or facts.st_uid not in owners:
            raise ValueError(f"{path} is a link or somebody else's")
    for path in (common / "objects", common / "refs"):
        if not stat.S_ISDIR(path.lstat().st_mode):
            raise ValueError(f"{path} is not a folder")
    for path in (folder / name for folder in {own, common} for name in _FILES):
        if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
            raise ValueError(f"{path} is not a regular file")
    _check_branch(repository)
    return repository


def _check_branch(repository: Repository) -> None:
    """Raise ValueError where the branch is a link, which may name a commit of another repository, or a pipe."""
    words = _read(repository.git_folder / "HEAD")
    for _ in range(_MOST_STEPS):
        if not words.startswith("ref:"):
            return
        words = _ref(repository.common_folder, words.removeprefix("ref:").strip())


def _ref(folder: Path, name: str) -> str:
    """Return the content of a branch's file; empty if it has none."""
    path = folder
    for part in name.split("/"):
        path = path / part
        try:
            mode = path.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return ""
        if part == ".." or not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            raise ValueError(f"{path} is a link or not a regular file, which git does not create")
    return _read(path) if path.is_file() else ""


def commit_at_head(repository: Repository) -> str:
    """Return the commit that HEAD is at, in full, where plain files say so; empty where git must be asked.

    Raises ValueError and OSError.
    """
    words = _read(repository.git_folder / "HEAD")
    for _ in range(_MOST_STEPS):
        if not words.startswith("ref:"):
            break
        words = _ref(repository.common_folder, words.removeprefix("ref:").strip())
    return words if _COMMIT().fullmatch(words) else ""


def has_attributes(repository: Repository, paths: Iterable[str]) -> bool:
    """Return whether any file of the work tree or of git's folder may give these paths attributes."""
    folders = {parent for path in paths for parent in PurePath(path).parents}
    files = [repository.work_tree / folder / ".gitattributes" for folder in folders]
    return any(map(os.path.lexists, (repository.common_folder / "info/attributes", *files)))


def check_complete(repository: Repository) -> None:
    """Raise ValueError where objects lie in another repository, which a sandbox around this one does not show."""
    place = repository.common_folder / "objects/info/alternates"
    rows = read_whole(place, _MOST_BYTES).splitlines() if os.path.lexists(place) else []
    if not all(not row or row.startswith(b"#") for row in rows):
        raise ValueError(
            "some of its objects lie in another repository (objects/info/alternates), which ybs does not read; "
            "use git yourself"
        )


def check_writable(repository: Repository) -> None:
    """Raise ValueError where git, when it writes, would be led elsewhere: it follows links in its own folder."""
    for folder in {repository.git_folder, repository.common_folder}:
        _check_folder(folder, but=_UNWRITTEN)
        waiting = [folder / name for name in _TREES]
        while waiting:
            waiting += _check_folder(waiting.pop())
    for name in _TOPS:
        _check_folder(repository.common_folder / name)


def check_plain(repository: Repository, begun: Collection[str]) -> None:
    """Raise ValueError where git's own folder holds more than plain, known things.

    Those would be links, other repositories, what is not git's, or an operation of the names `begun`, which says itself what git runs as it goes on.
    """
    check_writable(repository)
    check_complete(repository)
    for folder in {repository.git_folder, repository.common_folder}:
        if others := sorted(name for name in os.listdir(folder) if not _NAMES().fullmatch(name)):  # noqa: PTH208 - names
            raise ValueError(f"{folder / others[0]} is not git's own: other programs may go by it")
    for folder in (repository.common_folder / name for name in _OTHERS):
        if folder.is_dir() and any(folder.iterdir()):
            raise ValueError(f"{folder} is not empty: it names other repositories")
    if name := next((name for name in _begun(repository) if name in begun), ""):
        raise ValueError(f"{_UNDER_WAY[name]} was under way when the session began")


def _check_folder(folder: Path, but: frozenset[str] = frozenset()) -> list[Path]:
    """Return the folders in a folder. Raises ValueError where anything else than files and folders is in it."""
    folders: list[Path] = []
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry))
            elif entry.name not in but and not entry.is_file(follow_symlinks=False):
                raise ValueError(
                    f"{entry.path} is a link or not a regular file, which git does not create"
                )
    return folders


def _read(path: Path) -> str:
    return read_whole(path, _MOST_BYTES).decode().strip()


def under_way(repository: Repository) -> str:
    """Return the unfinished operation of a repository, such as `a merge`; empty if there is none."""
    return next((_UNDER_WAY[name] for name in _begun(repository)), "")


def _begun(repository: Repository) -> Iterator[str]:
    return (name for name in _UNDER_WAY if os.path.lexists(repository.git_folder / name))


def elsewhere(top: Path, path: str) -> str:
    """Return why a path is none of this repository's; empty where it is."""
    parts = Path(path).parts
    if path.startswith("/") or ".." in parts or ".git" in map(str.lower, parts):
        return "is no path within the work tree, counted from its top"
    for depth in range(1, len(parts) + 1):
        if os.path.lexists(top.joinpath(*parts[:depth], ".git")):
            return "lies in a repository of its own; use git there yourself"
    return ""
