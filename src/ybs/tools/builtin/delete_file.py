"""delete_file: one file, or a link, removed."""

import os
import stat
from collections.abc import Callable
from errno import ENOENT
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from ybs.core.changes import FileChange
from ybs.core.errors import ToolError
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.core.wording import plural
from ybs.security.paths.names import remark_on_name, shown_name
from ybs.security.paths.opening import OpenEntry, stamp_of
from ybs.security.paths.path_text import path_of, quoted
from ybs.security.policy.case import Subject
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.editing.changes import file_change, text_diff
from ybs.tools.reading.files import failure, read_bytes
from ybs.tools.workspace import Workspace

_SHOWN_BYTES = 1_000_000


class DeleteFileArguments(Struct, frozen=True, kw_only=True):
    """What delete_file takes."""

    path: str


class DeleteFile(BuiltInTool):
    """Deletes. Of a link it deletes the link, not what it leads to."""

    name: str = "delete_file"
    effect: Effect = "delete"
    arguments: ClassVar[type[Struct]] = DeleteFileArguments
    follows_link: ClassVar[bool] = False

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._shown: dict[DeleteFileArguments, tuple[int, ...]] = {}

    def subject(self, arguments: DeleteFileArguments) -> Subject:
        """Give the path, and why undo would not bring it back."""
        path, shown = self.target(arguments)
        _, why = self.workspace.first_lost((str(path),), is_named=True)
        destroys = f"undo cannot bring back {shown}: {why}" if why else ""
        return replace(super().subject(arguments), destroys=destroys)

    def preview(self, arguments: DeleteFileArguments) -> Preview:
        """Show what would be gone."""
        path, shown = self.target(arguments)
        try:
            with self.workspace.roots.held(path) as place:
                status = _status(place, shown)
                kind = _kind(place, status)
                body = kind or text_diff(read_bytes(place, shown)[0], b"", shown).text
        except OSError as error:
            raise failure(error, shown) from error
        self._shown[arguments] = stamp_of(status)
        paths = (shown_name(str(path)),)
        return Preview(title=f"Delete {quoted(shown)}", body=body, is_diff=not kind, paths=paths)

    async def run(
        self, arguments: DeleteFileArguments, print_live: Callable[[str], None]
    ) -> ToolOutput:
        """Delete it."""
        del print_live
        path, shown = self.target(arguments)
        try:
            with self.workspace.roots.held(path) as place:
                status = _status(place, shown)
                stamp = stamp_of(status)
                if self._shown.pop(arguments, stamp) != stamp:
                    raise ToolError(
                        f"{shown} changed in the meantime; it was not deleted. Look at it again."
                    )
                change = _change(place, status, shown)
                place.unlink()
        except OSError as error:
            raise failure(error, shown) from error
        self.workspace.reads.forget(path)
        return ToolOutput(
            output=f"Deleted {shown}.{remark_on_name(path_of(arguments.path), path)}",
            summary=f"Deleted {shown}",
            display={"success": True, "path": shown},
            changes=(change,),
        )


def _status(place: OpenEntry, shown: str) -> os.stat_result:
    """Return the status of the entry itself. Raises ToolError for a folder, OSError where nothing is."""
    status = place.status()
    if status is None:
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{shown} is a folder; delete_file deletes files only")
    return status


def _change(place: OpenEntry, status: os.stat_result, shown: str) -> FileChange:
    if kind := _kind(place, status):
        return FileChange(path=shown, before="", after=None, omitted=kind)
    return file_change(read_bytes(place, shown)[0], None, shown)


def _kind(place: OpenEntry, status: os.stat_result) -> str:
    """Return a description of the file, if its contents are not shown."""
    if stat.S_ISLNK(status.st_mode):
        return f"a link to {shown_name(os.readlink(place.name, dir_fd=place.folder))}"
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file"
    if status.st_size > _SHOWN_BYTES:
        return f"a file of {plural(status.st_size, 'byte')}"
    return ""
