"""edit_file: one text in a file replaced by another."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from ybs.core.errors import ToolError
from ybs.core.ports import Effect, ToolOutput
from ybs.tools.built_in import plural
from ybs.tools.changes import Change, ChangingTool
from ybs.tools.diff import diff_of
from ybs.tools.document import Document, is_binary, printable
from ybs.tools.matcher import Match, find, line_of

_SHOWN_PLACES = 10


class Arguments(Struct, frozen=True, kw_only=True):
    """What edit_file takes."""

    path: str
    old_text: Annotated[str, Meta(description="exact lines of the file, without line numbers")]
    new_text: str
    replace_all: bool = False


class EditFile(ChangingTool):
    """Edits."""

    name: ClassVar[str] = "edit_file"
    effect: ClassVar[Effect] = "edit"
    arguments: ClassVar[type[Struct]] = Arguments

    def change(self, arguments: Arguments) -> Change:
        """Find the place and put the new text there. Raises ToolError unless the place is certain."""
        path = self.workspace.roots.resolve(arguments.path, is_write=True)
        shown = self.workspace.roots.show(path)
        before = self.before(path, shown)
        if before is None:
            raise ToolError(f"{shown} does not exist. Use write_file to create it.")
        if is_binary(before):
            raise ToolError(f"{shown} is a binary file; it cannot be edited as text")
        document = Document(before)
        match = _match(document, arguments, shown)
        raw = document.replaced(match.spans, arguments.new_text)
        return Change(
            path=path,
            shown=shown,
            before=before,
            after=document.encoded(raw, shown),
            diff=diff_of(document.raw, raw, shown),
            replacements=len(match.spans),
        )

    async def run(self, arguments: Arguments, print_live: Callable[[str], None]) -> ToolOutput:
        """Write the edited file."""
        del print_live
        change = self.planned(arguments)
        self.write(change)
        count = change.replacements
        display: dict[str, Any] = {
            "success": True,
            "replacements": count,
            "error": None,
            **change.display,
        }
        return ToolOutput(
            output=f"Edited {change.shown}: {plural(count, 'replacement')} ({change.diff.counts} lines).",
            summary=f"Edited {change.shown} ({change.diff.counts})",
            display=display,
        )


def _match(document: Document, arguments: Arguments, shown: str) -> Match:
    old = arguments.old_text.replace("\r\n", "\n")
    if not old:
        how = "Use write_file to fill it" if not document.text else "Give the text to be replaced"
        raise ToolError(f"old_text is empty; nothing was changed. {how}.")
    if old == arguments.new_text.replace("\r\n", "\n"):
        raise ToolError("old_text and new_text are the same; nothing was changed.")
    match = find(document.text, old)
    if not match.spans:
        near = f" The nearest lines:\n{printable(match.nearest)}" if match.nearest else ""
        raise ToolError(
            f"old_text was not found in {shown}; nothing was changed. It must be exact, with every space. "
            f"Read the file again and copy the lines without their numbers.{near}"
        )
    if len(match.spans) > 1 and not arguments.replace_all:
        places = ", ".join(
            str(line_of(document.text, start)) for start, _ in match.spans[:_SHOWN_PLACES]
        )
        raise ToolError(
            f"old_text occurs {len(match.spans)} times in {shown}, in lines {places}; nothing was changed. "
            "Take more lines around it to make it unique, or set replace_all to change every place."
        )
    return match
