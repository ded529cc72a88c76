"""A change to one file: worked out once, shown to the person, then written if nothing moved in between."""

from pathlib import Path
from typing import Any

from msgspec import Struct

from ybs.core.errors import ToolError
from ybs.core.ports import Preview
from ybs.tools.built_in import BuiltInTool
from ybs.tools.diff import Diff, diff_of
from ybs.tools.document import Document, is_binary
from ybs.tools.files import failure, read_if_there, write_atomically
from ybs.tools.workspace import Workspace


class Change(Struct, frozen=True, kw_only=True):
    """What a file holds before (None: it does not exist) and after, and the difference to be shown.

    `replacements` counts the places of an edit.
    """

    path: Path
    shown: str
    before: bytes | None
    after: bytes
    diff: Diff
    replacements: int = 0

    @property
    def preview(self) -> Preview:
        """The change as the person sees it before saying yes."""
        verb = "Create" if self.before is None else "Edit" if self.replacements else "Overwrite"
        return Preview(
            title=f"{verb} {self.shown} ({self.diff.counts})",
            body=self.diff.text,
            paths=(str(self.path),),
        )

    @property
    def display(self) -> dict[str, Any]:
        """The difference as the screen shows it after the write."""
        return {"diff": self.diff.text, "added": self.diff.added, "removed": self.diff.removed}


class ChangingTool(BuiltInTool):
    """Base of the tools that write. The change that was previewed is the one that is written."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._planned: tuple[Any, Change] | None = None

    def change(self, arguments: Any) -> Change:
        """Work the change out without making it. Raises ToolError."""
        raise NotImplementedError

    def preview(self, arguments: Any) -> Preview:
        """Show the difference."""
        change = self.change(arguments)
        self._planned = (arguments, change)
        return change.preview

    def planned(self, arguments: Any) -> Change:
        """Return the change that was previewed for these very arguments, or work it out."""
        planned, self._planned = self._planned, None
        if planned is not None and planned[0] is arguments:
            return planned[1]
        return self.change(arguments)

    def before(self, path: Path, shown: str) -> bytes | None:
        """Return what the file holds now. Raises ToolError if that is not what this session read."""
        data, status = read_if_there(path, shown)
        if data is not None and status is not None:
            self.workspace.reads.check(path, status, data, shown)
        return data

    def write(self, change: Change) -> None:
        """Make the change, in a folder that is made if need be. Raises ToolError and leaves all as it was."""
        self.workspace.roots.check_unmoved(change.path)
        if read_if_there(change.path, change.shown)[0] != change.before:
            raise ToolError(
                f"{change.shown} changed on disk in the meantime; nothing was written. Read it again."
            )
        try:
            change.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise failure(error, change.shown) from error
        self.workspace.roots.check_unmoved(change.path)
        write_atomically(change.path, change.after, change.shown)
        self.workspace.reads.note(change.path, change.path.stat(), change.after)


def text_diff(before: bytes | None, after: bytes, shown: str) -> Diff:
    """Compare what a file holds; a binary one has no lines to show."""
    if is_binary(before or b"") or is_binary(after):
        return Diff(f"Binary file {shown}: {len(before or b''):,} -> {len(after):,} bytes", 0, 0)
    return diff_of(Document(before or b"").raw, Document(after).raw, shown)
