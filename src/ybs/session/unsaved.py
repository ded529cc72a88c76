"""The files that the person has open in an editor: what is not saved yet is what tools read and change.

Before a call looks at a file the editor is asked for it; where it holds another text than the disk, that is read in the file's
place (`Roots.unsaved`). Before an edit the text is saved, as the person would do it: so undo brings back what they saw. After it the
editor is handed the new text. Commands see what is saved.

An editor opens a path with the person's rights, and follows the links that it finds then. So while a command runs that could put one
there, it is neither asked nor handed anything: tools read and change what is saved.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.agent.hooks import TurnHook
from ybs.core.decoding import from_json
from ybs.core.errors import ToolError
from ybs.core.events import Emit
from ybs.core.hooks import CallToJudge, CallVerdict
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Effect
from ybs.core.threads import in_thread
from ybs.security.paths.roots import Roots
from ybs.tools.reading.document import TextFile, is_binary
from ybs.tools.reading.files import content_at, write_atomically
from ybs.tools.shell.path_leases import lent

_FORMATTED: Final = (
    "\nThe editor changed the file when it saved it. Read it again before you change it."
)


class OpenEditor(Protocol):
    """What holds the files. Neither call may take long, and neither raises."""

    @property
    def reads(self) -> bool:
        """Whether it can be asked for a text."""
        ...

    async def read(self, path: Path) -> str | None:
        """Return the text that it holds of a file; None where it does not say."""
        ...

    async def write(self, path: Path, text: str) -> None:
        """Have it hold a text of a file, saved, if it can."""
        ...


class _Named(Struct):
    """What names a file in the arguments of a call, as tools and models spell it."""

    path: str = ""
    file_path: str = ""


class Unsaved(TurnHook):
    """Knows what editors hold of the files of one session; of several, the one that came last is asked.

    `open_in` says where, once the session is open.
    """

    name = "the editor's files"
    loss = "the editor may hold another text than the disk"

    def __init__(self) -> None:
        self._editors: list[OpenEditor] = []
        self._roots_now: Callable[[], Roots] | None = None
        self._changing: dict[str, list[Path]] = {}

    def open_in(self, roots: Callable[[], Roots]) -> None:
        """Read and save below the folders that this returns, those of the session."""
        self._roots_now = roots

    def join(self, editor: OpenEditor) -> None:
        """Ask this editor from now on."""
        self._editors.append(editor)

    def leave(self, editor: OpenEditor) -> None:
        """Ask this editor no longer; what it held and did not save is not read any more."""
        if self.roots is not None:
            self.roots.unsaved.clear()
        self._editors.remove(editor)

    @property
    def roots(self) -> Roots | None:
        """The folders; None where nobody has files open in an editor."""
        return self._roots_now() if self._roots_now and self._editors else None

    @property
    def _editor(self) -> OpenEditor | None:
        return self._editors[-1] if self._editors else None

    async def before_turn(self, emit: Emit) -> None:
        """Forget what the editor held before."""
        del emit
        if self.roots is not None:
            self.roots.unsaved.clear()

    async def before_look(self, call: ToolCall) -> None:
        """Ask the editor for the file that a call names."""
        if (path := self._path_in(call)) is not None:
            await self.look(path)

    async def look(self, path: Path) -> None:
        """Ask the editor what it holds of a file, and have that read in its place where it is another text."""
        roots = self.roots
        if roots is None or (editor := self._editor) is None or not editor.reads:
            return
        roots.unsaved.pop(path, None)
        with lent(str(path)) as is_lent:
            try:
                saved = await self._saved(path)
            except (ToolError, OSError):
                return  # what no tool may read, no editor is asked for
            if not is_lent or (saved is not None and is_binary(saved)):
                return
            text = await editor.read(path)
        document = TextFile(saved or b"")
        if text is None or text.replace("\r\n", "\n") == document.text:
            return
        raw = document.rewritten(text)
        if not document.keeps(raw):
            document = TextFile(b"")
        roots.unsaved[path] = document.encoded(raw, roots.show(path))

    async def judge(self, case: CallToJudge) -> CallVerdict:
        """Say nothing about a call."""
        del case
        return CallVerdict()

    async def before_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Save what the editor holds of the files that are about to be changed.

        Where the person has gone on typing since the change was worked out, it is left as it is: the tool sees that and changes nothing.
        """
        if self.roots is None or effect not in ("write", "edit"):
            return
        self._changing[call.id] = changing = [*map(Path, paths)]
        for path in changing:
            before = self.roots.unsaved.get(path)
            await self.look(path)
            if before is not None and self.roots.unsaved.get(path) == before:
                await self._save(self.roots, path, self.roots.unsaved.pop(path))

    async def _save(self, roots: Roots, path: Path, data: bytes) -> None:
        if await self._handed(path, data) != data:
            await in_thread(partial(_write, roots, path, data))

    async def look_at(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Hand the editor what a call has changed. What it makes of that when it saves is part of the call."""
        if self.roots is None:
            return result
        if (path := self._path_in(call)) is not None:
            self.roots.unsaved.pop(path, None)
        is_same = True
        for path in self._changing.pop(call.id, ()):
            self.roots.unsaved.pop(path, None)
            data = None if result.is_error else await self._saved(path)
            if data is not None and not is_binary(data):
                is_same &= await self._handed(path, data) == data
        return result if is_same else replace(result, output=result.output + _FORMATTED)

    async def _handed(self, path: Path, data: bytes) -> bytes | None:
        """Hand the editor a text where that is safe, and return what the disk has then. Raises ToolError and OSError."""
        with lent(str(path)) as is_lent:
            if is_lent and (editor := self._editor) is not None:
                await self._saved(path)
                await editor.write(path, TextFile(data).raw)
            return await self._saved(path)

    def _path_in(self, call: ToolCall) -> Path | None:
        """Return the file that a call names, if tools may touch it."""
        if self.roots is None:
            return None
        try:
            given = from_json(call.arguments, _Named)
            name = given.path or given.file_path
            return self.roots.resolve(name) if name else None
        except (msgspec.DecodeError, ToolError, OSError):
            return None

    async def _saved(self, path: Path) -> bytes | None:
        """Return the file's content on the disk. Raises ToolError and OSError."""
        return (
            None if self.roots is None else await in_thread(partial(content_at, self.roots, path))
        )


def _write(roots: Roots, path: Path, data: bytes) -> None:
    with roots.held(path) as place:
        write_atomically(place, data, roots.show(path))
