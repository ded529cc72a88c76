"""Restore paths to the states of a plan: create and restore files first, delete last. Links are not followed."""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from ybs.checkpoints.planning import RestoreStep, is_ours, leads_there
from ybs.checkpoints.states import ABSENT, State, digest_of, state_at
from ybs.core.errors import Refused
from ybs.security.paths.names import real_name
from ybs.security.paths.opening import OpenEntry
from ybs.security.paths.roots import Roots

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_OWN_RIGHTS = 0o700
#: To wait for the disk after each of more files takes seconds; then it is done once, for all.
MOST_SYNCED = 50
#: Folders are made first and things go last, so that a full disk is met before anything is gone.
_ORDER = (("folder",), ("file", "link"), ("absent",))


class Restoring:
    """One undo or redo at work. Each path is looked at once more right before it is changed."""

    def __init__(
        self, roots: Roots, steps: Mapping[str, RestoreStep], get: Callable[[str], bytes | None]
    ) -> None:
        self._roots, self._steps, self._get = roots, steps, get
        #: Folders that should go and are still there, for they are not empty.
        self.stayed: list[str] = []
        self._has_many = len(steps) > MOST_SYNCED

    def do(self) -> None:
        """Do all steps. Raises OSError and Refused half-way; what is done then stays done."""
        folders, others, gone = (self._paths(*kinds) for kinds in _ORDER)
        _each(self._open_up, (*folders, *others, *gone))
        _each(self._clear, others)
        _each(self._make_folder, folders)
        _each(self._put, others)
        _each(self._remove, reversed(gone))
        for path in reversed(folders):
            self._change_mode(path, self._steps[path].target.mode)
        if self._has_many:
            os.sync()

    def _paths(self, *kinds: str) -> list[str]:
        """Return the paths that become such things; a folder comes before what is in it."""
        return sorted(path for path, step in self._steps.items() if step.target.kind in kinds)

    def _open_up(self, path: str) -> None:
        """Give ourselves the rights to work in a folder; its own mode comes last."""
        found = self._steps[path].found
        if found.kind == "folder" and found.mode & _OWN_RIGHTS != _OWN_RIGHTS:
            self._change_mode(path, found.mode | _OWN_RIGHTS)

    def _clear(self, path: str) -> None:
        """Remove a folder where a file or a link is to stand. The plan knows all that is in it."""
        if self._steps[path].found.kind != "folder":
            return
        for below in sorted(self._steps, reverse=True):
            if below.startswith(f"{path}/"):
                self._remove(below)
        with self._roots.held(self._checked(path)) as place:
            os.rmdir(place.name, dir_fd=place.folder)
        self._steps[path].found = ABSENT

    def _make_folder(self, path: str) -> None:
        found = self._steps[path].found
        if found.kind == "folder":
            return
        with self._roots.held(self._checked(path), make_folders=True) as place:
            if found != ABSENT:
                self._check(path)
                place.unlink()
            os.mkdir(place.name, _OWN_RIGHTS, dir_fd=place.folder)

    def _put(self, path: str) -> None:
        """Put a file or a link in its place, in one step."""
        step = self._steps[path]
        found, target = step.found, step.target
        with self._roots.held(self._checked(path), make_folders=True) as place:
            status = place.status()
            is_same = found.digest != "" and found.digest == target.digest
            if is_same and status is not None and status.st_nlink == 1:
                self._check(path)
                _set_mode(place, target.mode)
                return
            # Another name of the same file may lie outside: it keeps what it has.
            fresh = place.beside(f".ybs-undo-{digest_of(os.fsencode(place.name))[:16]}.tmp")
            with suppress(FileNotFoundError):
                fresh.unlink()  # an undo that was killed left it
            try:
                if target.kind == "link":
                    os.symlink(real_name(target.target), fresh.name, dir_fd=fresh.folder)
                else:
                    self._write(fresh, status, target)
                self._check(path)
                fresh.replace(place)
            except BaseException:
                with suppress(OSError):
                    fresh.unlink()
                raise

    def _write(self, place: OpenEntry, old: os.stat_result | None, target: State) -> None:
        data = self._get(target.digest)
        if data is None:
            raise Refused("a stored copy is damaged")
        descriptor = place.open(_NEW, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - it wraps the descriptor
            file.write(data)
            file.flush()
            if old is not None and old.st_uid != os.geteuid():
                with suppress(OSError):  # only the superuser gives files away
                    os.fchown(descriptor, old.st_uid, old.st_gid)
            os.fchmod(descriptor, target.mode)
            if not self._has_many:
                os.fsync(descriptor)

    def _remove(self, path: str) -> None:
        step = self._steps[path]
        if step.found == ABSENT:
            return
        with self._roots.held(self._checked(path)) as place:
            if step.found.kind == "folder":
                self._remove_folder(path, place, step.found.mode)
            else:
                self._check(path)
                place.unlink()
        step.found = ABSENT

    def _remove_folder(self, path: str, place: OpenEntry, mode: int) -> None:
        """Remove a folder if it is empty; what somebody else put there stays, and so does the folder."""
        try:
            os.rmdir(place.name, dir_fd=place.folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            _set_mode(place, mode)
            self.stayed.append(path)

    def _change_mode(self, path: str, mode: int) -> None:
        with self._roots.held(self._checked(path)) as place:
            _set_mode(place, mode)

    def _checked(self, path: str) -> Path:
        if not (is_ours(self._roots, path) and leads_there(self._roots, path)):
            raise Refused("it may no longer be written")
        return Path(path)

    def _check(self, path: str) -> None:
        """Raise Refused where somebody changed the path since the plan was made."""
        if state_at(self._roots, path) != self._steps[path].found:
            raise Refused(f"{self._roots.show(Path(path))} changed just now")


def _each(act: Callable[[str], None], paths: Iterable[str]) -> None:
    for path in paths:
        act(path)


def _set_mode(place: OpenEntry, mode: int) -> None:
    """Change the mode of a file or a folder, never through a link. Raises OSError."""
    try:
        descriptor = place.open(os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except PermissionError:
        if not hasattr(os, "O_PATH"):
            raise
        _set_mode_unread(place, mode)
        return
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


def _set_mode_unread(place: OpenEntry, mode: int) -> None:
    """Do it where we have no right to read, on Linux: by a descriptor that reads nothing."""
    descriptor = place.open(os.O_PATH)
    try:
        if stat.S_ISLNK(os.fstat(descriptor).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        os.chmod(f"/proc/self/fd/{descriptor}", mode)  # noqa: PTH101 - by descriptor
    finally:
        os.close(descriptor)
