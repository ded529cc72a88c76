"""What came of a merge, and how the model that delegated reads it."""

from collections.abc import Sequence

from msgspec import Struct

from ybs.core.wording import listed, plural

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
