"""Conflicts of a merge: the sub-agent's version is kept where tools can read it, and compared with the project's."""

from contextlib import suppress

from ybs.agent.environment import ToolEnvironment
from ybs.checkpoints.states import Change, State, state_at
from ybs.conductor.merged import Conflict
from ybs.conductor.merging import Clash
from ybs.conductor.origin import Origin
from ybs.core.errors import YbsError
from ybs.security.paths.names import shown_name
from ybs.tools.editing.changes import text_diff

#: Larger files are not compared.
MOST_COMPARED_BYTES = 200_000
#: A line has about so many bytes.
_USUAL_LINE = 40


class Conflicts:
    """Keeps what cannot be merged of the copy that `inside` is."""

    def __init__(self, origin: Origin, inside: ToolEnvironment) -> None:
        self._origin, self._inside = origin, inside
        #: Whether something is in the copy alone, so that it stays as long as the session.
        self.need_copy = False

    def of(self, change: Change, clash: Clash) -> Conflict:
        """Return the conflict, with both versions kept. Raises OSError."""
        return Conflict(
            path=self._origin.shown(change),
            why=clash.why,
            kept=self._kept(change),
            diff=self._difference(change),
        )

    def _difference(self, change: Change) -> str:
        with suppress(YbsError, OSError):
            return self.compared(change)
        return ""  # there is no room to read the project's file

    def compared(self, change: Change) -> str:
        """Return how the sub-agent's version differs from the project's; empty where there are no lines to compare. Raises YbsError and OSError."""
        origin = self._origin
        ours = state_at(origin.roots, origin.path(change.path), origin.take)
        if {ours.kind, change.after.kind} - {"file", "absent"}:
            return ""
        mine, its = self._content(ours), self._content(change.after)
        return "" if mine == its else text_diff(mine, its or b"", origin.shown(change)).text

    def lines_changed(self, change: Change) -> int:
        """Return how many lines a change takes away and adds; of what has none, or is too large to compare, by its size. Raises OSError."""
        before, after = self._content(change.before), self._content(change.after)
        if before is None and after is None:
            return max(change.before.size, change.after.size) // _USUAL_LINE + 1
        diff = text_diff(before, after or b"", change.path)
        return max(diff.added + diff.removed, 1)

    def keep_copy(self) -> str:
        """Have the tools of the session read the copy from now on; return where it is."""
        folder, environment = self._inside.folder, self._origin.environment
        if not self.need_copy:
            self.need_copy = True
            environment.roots.add(folder, is_read_only=True)
            environment.sandbox.show(folder)
        return shown_name(str(folder))

    def _content(self, state: State) -> bytes | None:
        if not state.digest or state.size > MOST_COMPARED_BYTES:
            return None
        return self._origin.get(state.digest)

    def _kept(self, change: Change) -> str:
        """Keep a file where long outputs are kept, a large one in the copy; return where it is, or what stands for it."""
        if change.after.kind == "link":
            return f"a link to {change.after.target}"
        if change.after.kind != "file":
            return "deleted" if change.after.kind == "absent" else ""
        if change.after.digest and self._origin.environment.incognito.may_write:
            with suppress(YbsError, OSError):
                return self._put_away(change.after)
        return f"{self.keep_copy()}/{shown_name(change.path)}"

    def _put_away(self, state: State) -> str:
        descriptor, path = self._origin.environment.workspace.shells.outputs.create()
        with open(descriptor, "wb") as file:  # noqa: PTH123 - opened by descriptor
            file.write(self._origin.get(state.digest) or b"")
        return str(path)
