"""Merge the paths that a sub-agent changed in its copy: the rules for each path. Nothing is written."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ybs.checkpoints.planning import RestoreStep, plan
from ybs.checkpoints.states import ABSENT, Change, State
from ybs.conductor.contents import Contents, path_in, plain
from ybs.core.wording import listed, plural
from ybs.security.paths.git_names import repository_on_the_way
from ybs.security.paths.path_text import lies_in_one
from ybs.security.paths.roots import Roots

_SPECIAL_RIGHTS = 0o7000
#: The lines of both have to be merged.
NEEDS_LINES: Literal["lines"] = "lines"
#: What a path is to be, that its lines have to be merged first, or why it stays as it is.
Fate: TypeAlias = "State | Literal['lines'] | Clash"


class Clash(Struct, frozen=True):
    """Why a path of the project stays as it is, although the sub-agent changed it."""

    why: str


SAME_LINES = Clash("both changed the same lines")


def changes_in(
    base: Mapping[str, State],
    now: Contents,
    look_at: Callable[[str], State],
    *,
    shown: Iterable[str],
    named: Set[str],
) -> tuple[list[Change], list[str]]:
    """Return what is another one in a copy than it was at first, and the ignored files and bulk folders that stay there.

    What was only `shown` in it never counts. What git ignores is a by-product, unless a tool `named` it.
    """
    found = dict(now.states)
    for path in (base.keys() | named) - found.keys():
        found[path] = plain(
            look_at(path)
        )  # gone, or not listed, such as a pipe, or in a bulk folder
    outside = set(shown)
    bulk = [path for path in now.bulk if not lies_in_one(path, outside)]
    changes: list[Change] = []
    left = [f"{path}/" for path in bulk]
    for path in sorted(found):
        before, after = base.get(path, ABSENT), found[path]
        if before == after or lies_in_one(path, outside):
            continue
        is_in_bulk = lies_in_one(path, bulk)
        if path not in named and (is_in_bulk or path in now.ignored):
            left += [path] if after.kind != "folder" and not is_in_bulk else []
            continue
        changes.append(Change(path=path, before=before, after=after))
    return changes, sorted(left)


def fate_of(change: Change, ours: State) -> Fate:
    """Return what is to stand at a path where `ours` stands in the project now."""
    before, after = change.before, change.after
    if after.kind == "other":
        return Clash("it is not a file, a folder or a link now")
    if after.mark:
        return Clash(f"the file is too large to be merged ({after.size:,} bytes)")
    if ours in (before, after):
        return after
    kinds = {before.kind, ours.kind, after.kind}
    if kinds == {"folder"}:
        return _with_mode(ours, before, ours, after)
    if kinds == {"file"} and ours.digest and before.digest:
        return _fate_of_file(before, ours, after)
    return _clash_of(before, ours, after)


def _clash_of(before: State, ours: State, after: State) -> Clash:
    if before == ABSENT:
        return Clash("created on both sides with different content")
    if ours == ABSENT:
        return Clash("it was deleted in the project meanwhile")
    if after == ABSENT:
        return Clash("the sub-agent deleted it, and it has changed in the project")
    return Clash("both changed it")


def _fate_of_file(before: State, ours: State, after: State) -> Fate:
    if ours.digest in (before.digest, after.digest):
        return _with_mode(after, before, ours, after)
    if after.digest == before.digest:
        return _with_mode(ours, before, ours, after)
    mode = _with_mode(ours, before, ours, after)
    return mode if isinstance(mode, Clash) else NEEDS_LINES


def with_lines(change: Change, ours: State, digest: str, size: int) -> Fate:
    """Return what is to stand where the lines of both were merged."""
    merged = replace(change.after, digest=digest, size=size)
    return _with_mode(merged, change.before, ours, change.after)


def _with_mode(content: State, before: State, ours: State, after: State) -> "State | Clash":
    """Return the content with the mode that one of the two changed."""
    if after.mode in (before.mode, ours.mode):
        return replace(content, mode=ours.mode)
    if ours.mode == before.mode:
        return replace(content, mode=after.mode)
    return Clash("both changed its mode")


def steps_to(
    roots: Roots,
    changes: Sequence[Change],
    fates: Mapping[str, State],
    found: Mapping[str, State],
    clashes: dict[str, Clash],
) -> dict[str, RestoreStep]:
    """Return what is to be done to bring the project's paths to their fates, by absolute path.

    A path that cannot be brought there becomes a clash, and so does what lies below one, and what would lie in a repository then.
    """
    spread_clashes(changes, clashes)
    clashes.update(_in_repositories(roots, fates, clashes))
    while True:
        spread_clashes(changes, clashes)
        steps = {
            path_in(roots.folder, path): RestoreStep(
                expected=found[path], target=_keeping_rights(fate, found[path])
            )
            for path, fate in fates.items()
            if path not in clashes
        }
        made = plan(
            roots,
            dict(steps),
            lambda path: found[path[len(path_in(roots.folder, "")) :]],
            force=False,
            is_resumed=False,
        )
        in_the_way = [path[len(path_in(roots.folder, "")) :] for path in made.conflicts]
        if not in_the_way:
            return made.steps
        why = Clash("another file there or above it is in the way")
        clashes.update(dict.fromkeys(in_the_way, why))


def _in_repositories(
    roots: Roots, fates: Mapping[str, State], clashes: Mapping[str, Clash]
) -> dict[str, Clash]:
    """Return what would lie in a folder that git takes for a repository once all of it is there, whoever wrote the rest of that."""
    there = [path for path, fate in fates.items() if path not in clashes and fate.kind != "absent"]
    outer = {path: path_in(roots.folder, path) for path in there}
    coming = {path.casefold() for path in outer.values()}
    why = Clash("git would take the folder around it for a repository")
    return {
        path: why
        for path, real in outer.items()
        if repository_on_the_way(real, str(roots.folder), coming)
    }


def spread_clashes(changes: Sequence[Change], clashes: dict[str, Clash]) -> None:
    """Have what lies below a clash be one, too, and what was moved to one: of a folder and of a move all is merged, or nothing."""
    count = -1
    while count != len(clashes):
        count = len(clashes)
        kept_out = {_held(change.after) for change in changes if change.path in clashes} - {None}
        for change in changes:
            if change.path in clashes:
                continue
            if lies_in_one(change.path, clashes):
                clashes[change.path] = Clash("what lies above it was not merged")
            elif _held(change.before) in kept_out and change.after.kind in ("absent", "folder"):
                clashes[change.path] = Clash("it was moved to where it could not be merged")


def _held(state: State) -> tuple[str, ...] | None:
    """Return what moves with a file or a link; None where that is nothing. A move changes the last time in a mark."""
    if not (state.target or (state.kind == "file" and state.size)):
        return None
    return state.target, state.digest, state.mark.rpartition(" ")[0]


def _keeping_rights(target: State, found: State) -> State:
    rights = found.mode & _SPECIAL_RIGHTS if target.kind == found.kind else 0
    return replace(target, mode=target.mode | rights) if rights else target


#: Of so many paths the names are told.
MOST_NAMED = 40
#: What of the differences is shown, of one and of all of them.
MOST_DIFF_CHARS = 2_000
MOST_DIFF_CHARS_OF_ALL = 8_000


class Conflict(Struct, frozen=True, kw_only=True):
    """A path that stays as it is in the project: why, where the sub-agent's version is kept, and how the two differ."""

    path: str
    why: str
    kept: str = ""
    diff: str = ""


class Merged(Struct, frozen=True, kw_only=True):
    """What of a sub-agent's changes is in the project now, and what is not.

    `paths` were changed, `left` are files that git ignores and that no tool named; `problem` says why nothing, or not all, could be merged, and
    `notes` what the person cannot take back.
    """

    paths: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    left: tuple[str, ...] = ()
    problem: str = ""
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The words for the model; empty where nothing was changed."""
        parts: list[str] = []
        if self.paths:
            parts.append(f"Merged into the project: {listed(self.paths, MOST_NAMED)}.")
        if self.conflicts:
            parts += _conflicts(self.conflicts)
        if self.left:
            parts.append(f"Not merged (ignored by git): {listed(self.left, MOST_NAMED)}.")
        return "\n".join([*parts, *self.notes])


def _conflicts(conflicts: Sequence[Conflict]) -> list[str]:
    lines = [
        f"NOT merged, the project keeps its own version ({plural(len(conflicts), 'path')}); decide which parts of each are wanted and edit the "
        "project's file:"
    ]
    room = MOST_DIFF_CHARS_OF_ALL
    for conflict in conflicts[:MOST_NAMED]:
        kept = f" The sub-agent's version: {conflict.kept}" if conflict.kept else ""
        lines.append(f"- {conflict.path}: {conflict.why}.{kept}")
        if diff := _cut(conflict.diff, min(room, MOST_DIFF_CHARS)):
            room -= len(diff)
            lines.append(diff)
    if len(conflicts) > MOST_NAMED:
        kept = [conflict.kept for conflict in conflicts[MOST_NAMED:] if conflict.kept]
        lines.append(
            f"- and {plural(len(conflicts) - MOST_NAMED, 'more path')}; kept: {' '.join(kept)}"
        )
    return lines


def _cut(diff: str, most: int) -> str:
    if len(diff) <= most:
        return diff
    whole = diff[:most].rpartition("\n")[0]
    return f"{whole}\n[the rest of the difference is not shown]" if whole else ""
