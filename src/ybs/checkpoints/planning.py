"""The plan of an undo or redo: the wanted state of each path, and its conflicts. Nothing is written."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from ybs.checkpoints.states import ABSENT, Change, State, state_at
from ybs.core.errors import Refused
from ybs.security.paths.git_names import means_repository
from ybs.security.paths.opening import open_listed
from ybs.security.paths.roots import Roots

_OWN_RIGHTS = 0o700


class RestoreStep(Struct, kw_only=True):
    """One path: what should stand there now, and what is to stand there. `found` is what does."""

    expected: State
    target: State
    is_broken: bool = False  # somebody else changed it between two of the turns, or within one
    is_kept: bool = True
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
            step.is_kept = step.is_kept and (change.is_kept if is_redo else change.can_be_undone)
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
    unkept = [path for path, step in steps.items() if not step.is_kept]
    steps = {path: step for path, step in steps.items() if step.is_kept}
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
