"""A change to one file: worked out once, shown to the person, then written if nothing moved in between."""

from errno import EEXIST
from pathlib import Path
from typing import Any

from msgspec import Struct

from ybs.core.errors import ToolError
from ybs.core.ports import Preview
from ybs.security.paths.names import shown_name
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.editing.diff import Diff, diff_of
from ybs.tools.reading.document import TextFile, is_binary
from ybs.tools.reading.files import failure, read_if_there, remark_on, write_atomically
from ybs.tools.workspace import Workspace


class FileEdit(Struct, frozen=True, kw_only=True):
    """What a file holds before (None: it does not exist) and after, and the difference to be shown.

    `replacements` counts the places of an edit; `overlooked` names what differed from the text asked for.
    """

    path: Path
    shown: str
    before: bytes | None
    after: bytes
    diff: Diff
    replacements: int = 0
    overlooked: tuple[str, ...] = ()

    @property
    def preview(self) -> Preview:
        """The change as the person sees it before saying yes."""
        verb = "Create" if self.before is None else "Edit" if self.replacements else "Overwrite"
        return Preview(
            title=f"{verb} {self.shown} ({self.diff.counts}){self.fuzzy}",
            body=self.diff.text,
            paths=(shown_name(str(self.path)),),
        )

    @property
    def fuzzy(self) -> str:
        """What the person is told of an edit that was not exact; empty if it was."""
        return f" (fuzzy: {', '.join(self.overlooked)})" if self.overlooked else ""

    @property
    def display(self) -> dict[str, Any]:
        """The difference as the screen shows it after the write."""
        return {"diff": self.diff.text, "added": self.diff.added, "removed": self.diff.removed}


class ChangingTool(BuiltInTool):
    """Base of the tools that write. The change that was previewed is the one that is written."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._planned: tuple[Any, FileEdit] | None = None

    def change(self, arguments: Any) -> FileEdit:
        """Work the change out without making it. Raises ToolError."""
        raise NotImplementedError

    def preview(self, arguments: Any) -> Preview:
        """Show the difference."""
        change = self.change(arguments)
        self._planned = (arguments, change)
        return change.preview

    def planned(self, arguments: Any) -> FileEdit:
        """Return the change that was previewed for these very arguments, or work it out."""
        planned, self._planned = self._planned, None
        if planned is not None and planned[0] is arguments:
            return planned[1]
        return self.change(arguments)

    def before(self, path: Path, shown: str) -> bytes | None:
        """Return what the file holds now. Raises ToolError if that is not what this session read."""
        try:
            with self.workspace.roots.held(path) as place:
                data, status = read_if_there(place, shown)
        except (FileNotFoundError, NotADirectoryError):
            return None  # nor is its folder there
        except OSError as error:
            raise failure(error, shown) from error
        if data is not None and status is not None:
            self.workspace.reads.check(path, status, data, shown)
        return data

    def write(self, change: FileEdit) -> str:
        """Make the change, in a folder that is made if need be; return what else it does, mostly nothing.

        What is compared and what is replaced lie in one folder that is held open. Raises ToolError and
        leaves all as it was.
        """
        path, shown = change.path, change.shown
        try:
            with self.workspace.roots.held(path, make_folders=change.before is None) as place:
                data, status = read_if_there(place, shown)
                if data != change.before:
                    raise ToolError(
                        f"{shown} changed on disk in the meantime; nothing was written. Read it again."
                    )
                written = write_atomically(place, change.after, shown)
        except NotADirectoryError as error:
            raise failure(FileExistsError(EEXIST, ""), shown) from error
        except OSError as error:
            raise failure(error, shown) from error
        self.workspace.reads.note(path, written, change.after)
        return remark_on(status)


def text_diff(before: bytes | None, after: bytes, shown: str) -> Diff:
    """Compare what a file holds; a binary one has no lines to show."""
    if is_binary(before or b"") or is_binary(after):
        return Diff(f"Binary file {shown}: {len(before or b''):,} -> {len(after):,} bytes", 0, 0)
    return diff_of(TextFile(before or b"").raw, TextFile(after).raw, shown)
