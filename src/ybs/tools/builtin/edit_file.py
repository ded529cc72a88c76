"""edit_file: one text in a file replaced by another."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, ClassVar, assert_never

from msgspec import Meta, Struct

from ybs.core.cutting import shortened, whole_words
from ybs.core.errors import ToolError
from ybs.core.lazy import lazy
from ybs.core.ports import Effect, ToolOutput
from ybs.core.wording import plural
from ybs.tools.editing.changes import ChangingTool, FileEdit, check_text
from ybs.tools.editing.diff import diff_of
from ybs.tools.editing.syntax import flaw_made
from ybs.tools.reading.document import TextFile, is_binary, printable
from ybs.tools.workspace import Workspace

if TYPE_CHECKING:
    from ybs.tools.editing.matcher import EditMatch, Refusal

_SHOWN_PLACES = 10
_SHOWN_LINES = 40
#: Of a line around what is wrong.
_SHOWN_CHARS = 200
#: The three lines around the texts of a SEARCH/REPLACE block, as models write them.
_BLOCK_SIGNS = (
    lazy(r"[ \t]*<{5,9}[ \t]*(?:SEARCH|ORIGINAL|HEAD)[ \t]*:?[ \t]*", re.IGNORECASE),
    lazy(r"={5,9}[ \t]*"),
    lazy(r"[ \t]*>{5,9}[ \t]*(?:REPLACE|UPDATED)[ \t]*", re.IGNORECASE),
)


class EditFileArguments(Struct, frozen=True, kw_only=True):
    """What edit_file takes."""

    path: str
    old_text: Annotated[str, Meta(description="exact lines, without line numbers")]
    new_text: str
    replace_all: bool = False


class EditFile(ChangingTool):
    """Edits."""

    name: str = "edit_file"
    effect: Effect = "edit"
    arguments: ClassVar[type[Struct]] = EditFileArguments

    def __init__(self, workspace: Workspace, *, checks_syntax: bool = False) -> None:
        """Make the tool. With `checks_syntax` it refuses an edit after which a file cannot be read any more."""
        super().__init__(workspace)
        self._checks_syntax = checks_syntax

    def change(self, arguments: EditFileArguments) -> FileEdit:
        """Find the place and put the new text there. Raises ToolError unless the place is certain."""
        check_text(arguments.new_text)
        path, shown = self.target(arguments)
        before = self.before(path, shown)
        if before is None:
            raise ToolError(f"{shown} does not exist. Use write_file to create it.")
        if is_binary(before):
            raise ToolError(f"{shown} is a binary file; it cannot be edited as text")
        document = TextFile(before)
        match = _match(document, arguments, shown)
        raw = document.replaced([(place.start, place.stop, place.new) for place in match.places])
        if self._checks_syntax:
            _check(shown, document.raw, raw)
        return FileEdit(
            path=path,
            shown=shown,
            before=before,
            after=document.encoded(raw, shown),
            diff=diff_of(document.raw, raw, shown),
            replacements=match.count,
            overlooked=match.how,
        )

    async def run(
        self, arguments: EditFileArguments, print_live: Callable[[str], None]
    ) -> ToolOutput:
        """Write the edited file."""
        del print_live
        change = self.planned(arguments)
        self.write(change)
        count = change.replacements
        done = (
            f"Edited {change.shown}: {plural(count, 'replacement')} ({change.diff.counts} lines)."
        )
        return ToolOutput(
            output=f"{done}{self.remark_on(arguments)}{_now(change)}",
            summary=f"Edited {change.shown} ({change.diff.counts}){change.fuzzy}",
            display={"success": True, "replacements": count, "error": None},
            changes=change.changes,
        )


def _now(change: FileEdit) -> str:
    """Tell the model what was overlooked, and show what the lines are now."""
    if not change.overlooked:
        return ""
    lines = [line for line in change.diff.text.split("\n")[2:] if not line.startswith(("-", "\\"))]
    shown = "\n".join(line if line.startswith("@@") else line[1:] for line in lines[:_SHOWN_LINES])
    more = f"\n[{len(lines) - _SHOWN_LINES} more lines]" if len(lines) > _SHOWN_LINES else ""
    how = ", ".join(change.overlooked)
    return f" Matched although old_text differed in: {how}. The lines are now:\n{shown}{more}"


def _check(shown: str, before: str, after: str) -> None:
    """Raise ToolError where the file could be read before the edit and not after it."""
    if (flaw := flaw_made(shown, before, after)) is None:
        return
    lines = list(enumerate(after.splitlines(), 1))[max(0, flaw.line - 3) : flaw.line + 2]
    around = "\n".join(
        f"{number}\t{whole_words(printable(line), _SHOWN_CHARS)}" for number, line in lines
    )
    raise ToolError(
        f"Nothing was changed: {shown} could not be read any more ({flaw.why} in line {flaw.line}):\n{around}\n"
        "Give in old_text all the lines that are to go, and in new_text what is to stand in their place."
    )


def _match(document: TextFile, arguments: EditFileArguments, shown: str) -> "EditMatch":
    from ybs.tools.editing.matcher import Refusal, find  # only an edit needs it

    old, new = _texts(arguments, document.text)
    if "<U+" in old:
        from ybs.security.marks import (
            unmarked_edit,  # signs of invisible characters, as read_file shows them
        )

        old, new = unmarked_edit(old, new, document.text)
    if not old:
        how = "Use write_file to fill it" if not document.text else "Give the text to be replaced"
        raise ToolError(f"old_text is empty; nothing was changed. {how}.")
    found = find(document.text, old, new, replace_all=arguments.replace_all)
    if isinstance(found, Refusal):
        raise ToolError(_words(found, shown))
    return found


def _texts(arguments: EditFileArguments, text: str) -> tuple[str, str]:
    """Return the old and the new text, also when both stand in old_text as one SEARCH/REPLACE block."""
    old, new = arguments.old_text, arguments.new_text
    lines = old.replace("\r\n", "\n").split("\n")
    if (new and new != old) or "<<<<<" not in old or "\n".join(lines) in text:
        return old, new
    starts, middles, ends = (
        [at for at, line in enumerate(lines) if sign().fullmatch(line)] for sign in _BLOCK_SIGNS
    )
    if not (starts and ends):
        return old, new
    if len(starts) > 1:
        raise ToolError(
            "old_text holds several blocks; nothing was changed. Make one call for each."
        )
    # An underline of a heading may look like the middle; that has seven signs.
    if len(middles) > 1:
        middles = [at for at in middles if lines[at].rstrip() == "=" * 7]
    if len(middles) != 1 or not starts[0] < middles[0] < ends[0]:
        raise ToolError(
            "the block in old_text has no middle, one line of `=======`; nothing was changed"
        )
    halves = lines[starts[0] + 1 : middles[0]], lines[middles[0] + 1 : ends[0]]
    old, new = ("".join(f"{line}\n" for line in half) for half in halves)
    return old, new


def _words(refusal: "Refusal", shown: str) -> str:
    """Return why the edit was refused and what to do."""
    lines = ", ".join(str(number) for number in sorted(refusal.lines)[:_SHOWN_PLACES])
    lines += ", ..." if len(refusal.lines) > _SHOWN_PLACES else ""
    match refusal.reason:
        case "unchanged":
            return (
                "old_text and new_text are the same for this file; nothing was changed. "
                "Go on, or give the new lines in new_text."
            )
        case "applied":
            where = f" (line {lines})" if lines else ""
            return (
                f"{shown} has this change already: new_text is there{where}; nothing was changed. "
                "Go on; if another place is meant, read the file again and copy more lines around it."
            )
        case "placeholder":
            return (
                f"new_text leaves code out: {shortened(printable(refusal.placeholder), 100)!r}; nothing was changed. "
                "Write every line in full, or choose a smaller old_text."
            )
        case "ambiguous":
            count = len(refusal.lines)
            where = (
                f"occurs {count} times in {shown}, in lines {lines}"
                if refusal.is_exact
                else f"is not in {shown} as it stands, and {count} places come near it, in lines {lines}"
            )
            choice = ", or set replace_all to change every place" if refusal.is_exact else ""
            return (
                f"old_text {where}; nothing was changed. "
                f"Copy it exactly, with more lines around it to make it unique{choice}."
            )
        case "numbers" | "indentation":
            return _doubt(refusal, shown, lines)
        case "absent":
            dots = shortened(printable(refusal.placeholder), 100)
            write = f" Write out the lines that {dots!r} stands for." if dots else ""
            near = f" The nearest lines:\n{printable(refusal.nearest)}" if refusal.nearest else ""
            return (
                f"old_text was not found in {shown}; nothing was changed. "
                f"Read the file again and copy the lines as they are, without their numbers.{write}{near}"
            )
        case _:
            assert_never(refusal.reason)


def _doubt(refusal: "Refusal", shown: str, lines: str) -> str:
    """Return the ambiguous parts."""
    if refusal.reason == "indentation":
        return (
            f"old_text begins within the indentation of line {lines} of {shown}, so it is not certain how far "
            "the lines of new_text are indented; nothing was changed. "
            "Give both texts again with the whole indentation of every line."
        )
    near = f" The lines as they are:\n{printable(refusal.nearest)}" if refusal.nearest else ""
    return (
        "It is not certain which numbers in old_text and new_text are line numbers; nothing was changed. "
        f"Give both texts without line numbers.{near}"
    )
