"""A change to one file: worked out once, shown to the person, then written if nothing moved in between."""

from errno import EEXIST
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ybs.core.changes import FileChange
from ybs.core.errors import ToolError
from ybs.core.ports import Preview
from ybs.security.paths.names import shown_name
from ybs.security.paths.path_text import quoted
from ybs.tools.builtin.base import BuiltInTool, PerCall
from ybs.tools.editing.diff import Diff, change_of, diff_of
from ybs.tools.reading.document import TextFile, is_binary, printable
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
            title=f"{verb} {quoted(self.shown)} ({self.diff.counts}){self.fuzzy}",
            body=self.diff.text,
            is_diff=True,
            paths=(shown_name(str(self.path)),),
        )

    @property
    def fuzzy(self) -> str:
        """What the person is told of an edit that was not exact; empty if it was."""
        return f" (fuzzy: {', '.join(self.overlooked)})" if self.overlooked else ""

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """The change as it is reported after the write; none where the file stays as it was."""
        if self.before == self.after:
            return ()
        return (file_change(self.before, self.after, self.shown, self.diff),)


class ChangingTool(BuiltInTool):
    """Base of the tools that write. The change that was previewed is the one that is written."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._planned: PerCall[FileEdit] = PerCall()

    def change(self, arguments: Any) -> FileEdit:
        """Work the change out without making it. Raises ToolError."""
        raise NotImplementedError

    def preview(self, arguments: Any) -> Preview:
        """Show the difference."""
        return self._planned.put(arguments, self.change(arguments)).preview

    def planned(self, arguments: Any) -> FileEdit:
        """Return the change that was previewed for these very arguments, or work it out."""
        return self._planned.pop(arguments) or self.change(arguments)

    def before(self, path: Path, shown: str) -> bytes | None:
        """Return the file's current content. Raises ToolError if it differs from the content that this session read."""
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
    """Compare what a file holds: its lines, and what tells of no line, so that no change shows nothing.

    A binary one has no lines to show; a text in its place is shown whole.
    """
    if is_binary(after) or (is_binary(before or b"") and not after):
        return Diff(f"Binary file {shown}: {len(before or b''):,} -> {len(after):,} bytes", 0, 0)
    old = b"" if before is None or is_binary(before) else before
    now, then = TextFile(old), TextFile(after)
    diff = diff_of(now.raw, then.raw, shown)
    if after and (form := _form_of(now)) != _form_of(then):
        note = f"{form} -> {_form_of(then)}"
    elif before is None or before == after or diff.text:
        return diff
    else:
        note = f"other bytes for the same text: {len(before):,} -> {len(after):,}"
    head = diff.text or f"--- {shown}\n+++ {shown}"
    return replace(diff, text=f"{head}\n\\ {note}")


def _form_of(file: TextFile) -> str:
    """Return what a file has besides its text: encoding, byte order mark and line ends."""
    crlf = len(file.raw) - len(file.text)
    ends = "" if not crlf else ", Windows line ends"
    if 0 < crlf < file.text.count("\n"):
        ends = ", some Windows line ends"
    return f"{file.encoding}{' with a byte order mark' if file.mark else ''}{ends}"


def check_text(text: str) -> None:
    """Raise ToolError for what would make a binary file of a text: of that nobody who is asked would see the lines."""
    if "\0" in text:
        raise ToolError(
            "The text holds a NUL character (U+0000), and no text file does; nothing was written. A command can write such bytes."
        )


def file_change(
    before: bytes | None, after: bytes | None, shown: str, diff: Diff | None = None
) -> FileChange:
    """Return what became of a file, None where there was or is none; `diff` is their difference where it is known."""
    old, new = before or b"", after or b""
    if is_binary(old) or is_binary(new):
        old_text, new_text = (None if data is None else "" for data in (before, after))
        omitted = f"binary file, {len(old):,} -> {len(new):,} bytes"
        return FileChange(path=shown, before=old_text, after=new_text, omitted=omitted)
    texts = [None if data is None else printable(TextFile(data).raw) for data in (before, after)]
    return change_of(shown, texts[0], texts[1], diff or text_diff(before, new, shown))
