"""Plan an undo or redo, the wanted state of each path and its conflicts, and restore the paths. Links are not followed."""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ybs.checkpoints.states import ABSENT, Change, State, digest_of, state_at
from ybs.core.errors import Refused
from ybs.security.paths.git_names import means_repository
from ybs.security.paths.names import real_name
from ybs.security.paths.opening import OpenEntry, open_listed
from ybs.security.paths.roots import Roots

_OWN_RIGHTS = 0o700


class RestoreStep(Struct, kw_only=True):
    """One path: what should stand there now, and what is to stand there. `found` is what does."""

    expected: State
    target: State
    is_broken: bool = False  # somebody else changed it between two of the turns, or within one
    #: Why it cannot be brought there, without its subject; empty where it can.
    why_not: str = ""
    is_ignored: bool = False
    found: State = ABSENT


class RestorePlan(Struct, kw_only=True):
    """The steps that are to be done, by absolute path, and the paths that cannot be, or should not.

    `left` are ignored files that somebody changed since: programs do that all the time, so they stay and stop nothing.
    """

    steps: dict[str, RestoreStep]
    conflicts: list[str]
    unkept: list[str]
    left: list[str]


def joined(turns: Iterable[Mapping[str, Change]], *, is_redo: bool) -> dict[str, RestoreStep]:
    """Join the changes of turns, in the order in which they are undone or redone, to one step for each path."""
    steps: dict[str, RestoreStep] = {}
    for changes in turns:
        for path, change in changes.items():
            before, after = change.before, change.after
            expected, target = (before, after) if is_redo else (after, before)
            if (step := steps.get(path)) is None:
                step = steps[path] = RestoreStep(
                    expected=expected, target=target, is_ignored=change.is_ignored
                )
            elif step.target != expected:
                step.is_broken = True
            step.is_broken = step.is_broken or (change.is_broken and not is_redo)
            step.target = target
            why_not = change.why_not_redone if is_redo else change.why_not_undone
            step.why_not = step.why_not or why_not
            step.is_ignored = step.is_ignored and change.is_ignored
    return steps


def plan(
    roots: Roots,
    steps: dict[str, RestoreStep],
    look_at: Callable[[str], State],
    *,
    force: bool,
    is_resumed: bool,
) -> RestorePlan:
    """Look at every path. `is_resumed`: the same was begun before and broke off, so some is done already."""
    # Snapshots leave repositories out. A record that has some of them all the same is an old one.
    steps = {path: step for path, step in steps.items() if not _lies_in_repository(roots, path)}
    unkept = [path for path, step in steps.items() if step.why_not]
    steps = {path: step for path, step in steps.items() if not step.why_not}
    changed: list[str] = []
    todo: dict[str, RestoreStep] = {}
    for path, step in steps.items():
        step.found = look_at(path)
        if step.found == step.target:
            continue
        todo[path] = step
        if not force and (step.is_broken or not _is_fit(step, is_resumed=is_resumed)):
            changed.append(path)
    left = [path for path in changed if steps[path].is_ignored]
    for path in left:
        del todo[path], steps[path]
    conflicts = [path for path in changed if path in todo]
    checks = _Checks(roots, steps)
    conflicts += [path for path in todo if path not in conflicts and checks.forbid(path)]
    return RestorePlan(steps=todo, conflicts=sorted(conflicts), unkept=unkept, left=left)


def overwriting(
    steps: Mapping[str, RestoreStep], earlier: Mapping[str, Change]
) -> Iterable[tuple[str, Change]]:
    """Return what a forced undo does to each path, so that it can be taken back.

    `earlier` is the same of one that broke off: what that had already done is not the person's own state.
    """
    for path in sorted(steps.keys() | earlier.keys()):
        step, begun = steps.get(path), earlier.get(path)
        if step is None:
            yield path, earlier[path]
            continue
        before = step.found
        if begun is not None and _is_half_way(before, begun):
            before = begun.before
        yield path, Change(path=path, before=before, after=step.target)


def _is_half_way(found: State, begun: Change) -> bool:
    if found in (begun.after, ABSENT) or found.kind == begun.before.kind == "folder":
        return True
    return found.kind == begun.after.kind == "folder" and found.mode == _OWN_RIGHTS


def _is_fit(step: RestoreStep, *, is_resumed: bool) -> bool:
    """Return whether what was found is what the turn left there, or what a broken off undo did."""
    found, expected, target = step.found, step.expected, step.target
    if found == expected or (is_resumed and found == ABSENT):
        return True
    if found.kind != "folder":
        return False
    if target == ABSENT:
        return expected.kind == "folder"  # it goes only if it is empty, so its mode does not count
    if is_resumed and target.kind == "folder":
        return True
    return any(
        state.kind == "folder" and found.mode == state.mode | _OWN_RIGHTS
        for state in (expected, target)
    )


class _Checks:
    """What no force overcomes: places where nothing may be written, and folders with foreign things in them."""

    def __init__(self, roots: Roots, steps: Mapping[str, RestoreStep]) -> None:
        self._roots, self._steps = roots, steps
        self._folders = [str(folder) for folder in roots.folders]

    def forbid(self, path: str) -> bool:
        """Return whether the path cannot be brought to its target."""
        step = self._steps[path]
        return (
            not is_ours(self._roots, path)
            or (step.target != ABSENT and not self._has_way(path))
            or (
                step.found.kind == "folder"
                and step.target.kind not in ("folder", "absent")
                and not self._empties(path)
            )
        )

    def _has_way(self, path: str) -> bool:
        """Return whether all above the path will be folders."""
        for above in map(str, Path(path).parents):
            if above in self._folders:
                return True
            step = self._steps.get(above)
            state = state_at(self._roots, above) if step is None else step.target
            if state.kind != "folder" and (step is not None or state.kind != "absent"):
                return False
        return True

    def _empties(self, path: str) -> bool:
        """Return whether all that is in the folder goes."""
        try:
            folder = open_listed(Path(path))
        except (OSError, Refused):
            return False
        try:
            names = os.listdir(folder)  # noqa: PTH208 - by descriptor
        finally:
            os.close(folder)
        return all(self._goes(f"{path}/{name}") for name in names)

    def _goes(self, path: str) -> bool:
        step = self._steps.get(path)
        if step is None or step.target != ABSENT:
            return False
        return step.found.kind != "folder" or self._empties(path)


def _lies_in_repository(roots: Roots, path: str) -> bool:
    tops = (f"{str(folder).rstrip('/')}/" for folder in roots.folders)
    below = next((path.removeprefix(top) for top in tops if path.startswith(top)), "")
    return any(map(means_repository, below.split("/")))


def is_ours(roots: Roots, path: str) -> bool:
    """Return whether an undo may write at a path; links that are on the way now are looked at when it is done."""
    if path != os.path.normpath(path) or any(map(means_repository, path.split("/"))):
        return False
    folders = [str(folder).rstrip("/") for folder in roots.folders]
    if path in folders or not any(path.startswith(f"{folder}/") for folder in folders):
        return False
    parent = os.path.dirname(path)  # noqa: PTH120 - texts throughout
    try:
        is_there = os.path.realpath(parent) == parent
    except OSError:  # a link that turned into a folder between two looks
        return False
    if not is_there:
        return not (roots.is_blocked(path) or roots.is_own_code(path))
    return leads_there(roots, path)


def leads_there(roots: Roots, path: str) -> bool:
    """Return whether a path means just itself, with no link on the way, and is not blocked or ybs's own code.

    A folder laid out as a repository is not an obstacle, unlike for a tool: what was there before may be there again.
    """
    try:
        is_itself = str(roots.judge(path, is_link_followed=False)) == path
    except Refused:
        return False
    return is_itself and not roots.is_own_code(path)


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
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
            name = f".ybs-undo-{digest_of(os.fsencode(place.name))[:16]}.tmp"
            with suppress(FileNotFoundError):
                place.beside(name).unlink()  # an undo that was killed left it
            with place.replaced_by(name) as fresh:
                if target.kind == "link":
                    os.symlink(real_name(target.target), fresh.name, dir_fd=fresh.folder)
                else:
                    self._write(fresh, status, target)
                self._check(path)

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
