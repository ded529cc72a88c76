"""write_file: a whole file, new or in place of an old one."""

from collections.abc import Callable
from typing import ClassVar

from msgspec import Struct

from ybs.core.cutting import shortened
from ybs.core.errors import ToolError
from ybs.core.ports import Effect, ToolOutput
from ybs.core.wording import plural
from ybs.tools.editing.changes import ChangingTool, FileEdit, check_text, text_diff
from ybs.tools.reading.document import TextFile, is_binary, printable
from ybs.tools.workspace import Workspace

#: A file of so many lines and bytes may be written anew by a model that has not read it.
_SMALL_LINES, _SMALL_BYTES = 50, 4_000


class WriteFileArguments(Struct, frozen=True, kw_only=True):
    """What write_file takes."""

    path: str
    content: str


class WriteFile(ChangingTool):
    """Writes."""

    name: str = "write_file"
    effect: Effect = "write"
    arguments: ClassVar[type[Struct]] = WriteFileArguments

    def __init__(self, workspace: Workspace, *, keeps_unread: bool = False) -> None:
        """Make the tool. With `keeps_unread` it refuses to replace a file that the session has not read, but for a small one."""
        super().__init__(workspace)
        self._keeps_unread = keeps_unread

    def change(self, arguments: WriteFileArguments) -> FileEdit:
        """Compare the content with what is there. A text that is there keeps its encoding and line ends."""
        if arguments.path.endswith(("/", "/.")):
            raise ToolError(f"{arguments.path!r} names a folder; give the file's whole path")
        check_text(arguments.content)
        path, shown = self.target(arguments)
        before = self.before(path, shown)
        if before is not None and self._keeps_unread and not self.workspace.reads.knows(path):
            _check_small(before, shown)
        document = TextFile(b"" if before is None or is_binary(before) else before)
        content = arguments.content
        if "<U+" in content and document.text:
            from ybs.security.marks import unmarked  # of characters that nobody sees

            content = unmarked(content, document.text)
        _check_whole(content, document.text, shown)
        content = document.rewritten(content) if document.raw else content
        if not document.keeps(content):
            document = TextFile(b"")  # a whole new text need not stay with the old encoding
        after = document.encoded(content, shown)
        diff = text_diff(before, after, shown)
        return FileEdit(path=path, shown=shown, before=before, after=after, diff=diff)

    async def run(
        self, arguments: WriteFileArguments, print_live: Callable[[str], None]
    ) -> ToolOutput:
        """Write the file, and the folders it needs."""
        del print_live
        change = self.planned(arguments)
        remark = self.write(change)
        how = "Created" if change.before is None else "Overwrote"
        was = "" if change.before is None else f", which had {plural(len(change.before), 'byte')}"
        return ToolOutput(
            output=f"{how} {change.shown}{was}: {plural(len(change.after), 'byte')} written.{remark}{self.remark_on(arguments)}",
            summary=f"{how} {change.shown} ({change.diff.counts})",
            display={"success": True, "bytes_written": len(change.after)},
            changes=change.changes,
        )


def _check_small(before: bytes, shown: str) -> None:
    """Raise ToolError for a file that holds too much to be lost unread."""
    lines = before.count(b"\n")
    if lines > _SMALL_LINES or len(before) > _SMALL_BYTES:
        raise ToolError(
            f"{shown} is there already ({plural(lines, 'line')}, {plural(len(before), 'byte')}) and was not read in "
            "this session; it was not written. Read it first, then change a part with edit_file or write it whole."
        )


def _check_whole(content: str, text: str, shown: str) -> None:
    """Refuse a new text that leaves out code of the old one. Raises ToolError."""
    from ybs.tools.editing.placeholders import placeholder_in  # only a write needs it

    if text and (left_out := placeholder_in(content, old=text, text=text)):
        raise ToolError(
            f"the content leaves code out: {shortened(printable(left_out), 100)!r}; {shown} was not written. "
            "Write the complete text, or use edit_file for a part of it."
        )
