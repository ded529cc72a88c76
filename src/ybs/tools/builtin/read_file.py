"""read_file: a file's lines with their numbers; of notebooks and PDFs a text made of them; or a picture."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from ybs.core.cutting import up_to_word
from ybs.core.errors import ToolError
from ybs.core.messages import Image
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.core.threads import in_thread
from ybs.core.wording import plural
from ybs.security.paths.names import shown_name
from ybs.security.paths.path_text import quoted
from ybs.tools.builtin.base import BuiltInTool, positive
from ybs.tools.reading.images import image_of, media_type_of
from ybs.tools.searching.walk import Deadline
from ybs.tools.workspace import Workspace

if TYPE_CHECKING:
    from ybs.tools.reading.content import FileContent  # both are loaded when the first file is read

LONGEST_LINE = 2000
_MOST_COUNTED = 900_000  # of a line that is much longer only a part may be held
MOST_LINES = 100_000
TIME_LIMIT_SECONDS = 30.0
_FAR = 10**12
_NOTE_ROOM = 250
_PDF, _NOTEBOOK = b"%PDF-", ".ipynb"
#: What the bytes at a file's beginning say about a binary one, and what can be done with it.
_KINDS = (
    (
        b"PK\x03\x04",
        "a zip archive (or an office document); run_shell with unzip -p shows its parts",
    ),
    (b"\x1f\x8b", "compressed with gzip; run_shell with zcat shows it"),
    (b"\x7fELF", "a program; run_shell with strings or objdump looks into it"),
    (b"SQLite format 3\0", "an SQLite database; run_shell with sqlite3 reads it"),
)
_OTHER_KIND = "binary; it has no lines to read. run_shell with xxd, strings or file looks into it"


class ReadFileArguments(Struct, frozen=True, kw_only=True):
    """What read_file takes."""

    path: str
    offset: Annotated[int, Meta(description="from 1; negative: from the end")] = 1
    limit: int = 500
    raw: Annotated[bool, Meta(description="a notebook's JSON")] = False


class _View(Struct, frozen=True):
    """What is shown of a file: lines from number `first` on, of `total`; and what to say about them."""

    lines: list[str]
    first: int
    total: int
    note: str = ""
    images: tuple[Image, ...] = ()


class ReadFile(BuiltInTool):
    """Reads."""

    name: str = "read_file"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = ReadFileArguments
    rare: ClassVar[frozenset[str]] = frozenset({"raw"})

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._last_made: tuple[tuple[Path, int], _View] | None = None

    def preview(self, arguments: ReadFileArguments) -> Preview:
        """Name the file."""
        path, shown = self.target(arguments)
        return Preview(title=f"Read {quoted(shown)}", paths=(shown_name(str(path)),))

    async def run(
        self, arguments: ReadFileArguments, print_live: Callable[[str], None]
    ) -> ToolOutput:
        """Read the lines asked for; the whole file counts as read by this session."""
        del print_live
        from ybs.tools.reading.content import LineRange, read  # not needed before the first call

        offset = max(min(arguments.offset or 1, _FAR), -_FAR)
        asked = LineRange(offset, positive(arguments.limit, "limit", at_most=MOST_LINES))
        path, shown = self.target(arguments)
        deadline = Deadline(TIME_LIMIT_SECONDS)
        try:
            content = await in_thread(lambda: read(self.workspace.roots, path, asked, deadline))
            self.workspace.reads.note(path, content.status, content.whole)
            if picture := _picture(content, shown):
                return self._remarked(picture, arguments)
            is_made = not arguments.raw and _may_be_made(path, content)
            made = await self._made(path, content, shown, deadline) if is_made else None
        finally:
            deadline.cancel()
        if made is None and content.is_binary:
            raise ToolError(_binary(content, shown))
        if made is None:
            view = _View(*content.lines(asked))
        else:
            first = asked.first(made.total)
            view = _View(
                made.lines[first - 1 :][: asked.limit], first, made.total, made.note, made.images
            )
        if self.workspace.may_show_key(view.lines):
            await in_thread(lambda: self.workspace.hide_keys(path))
        return self._remarked(self._output(view, shown, is_tail=offset < 0), arguments)

    def _remarked(self, output: ToolOutput, arguments: ReadFileArguments) -> ToolOutput:
        remark = self.remark_on(arguments).strip()
        return replace(output, output=f"{output.output}\n{remark}") if remark else output

    async def _made(
        self, path: Path, content: "FileContent", shown: str, deadline: Deadline
    ) -> _View | None:
        """Return the text made of the file, or None; what was made last is kept for its next part."""
        key = (path, hash(content.whole))
        if self._last_made is None or self._last_made[0] != key:
            made = await asyncio.to_thread(_made, path, content, shown, deadline)
            if made is None:
                return None
            self._last_made = (key, made)
        return self._last_made[1]

    def _output(self, view: _View, shown: str, *, is_tail: bool) -> ToolOutput:
        if view.first > max(view.total, 1):
            raise ToolError(
                f"{shown} has {plural(view.total, 'line')}; there is no line {view.first}"
            )
        budget = self.workspace.max_output_chars - _NOTE_ROOM - len(view.note)
        end = view.first + len(view.lines) - 1
        numbered = _fitting(view, budget, from_end=is_tail and end == view.total)
        first = end - len(numbered) + 1 if is_tail and end == view.total else view.first
        last = first + len(numbered) - 1
        content = "\n".join(numbered)
        is_whole = first == 1 and last >= view.total
        display = {"content": content, "total_lines": view.total, "truncated": not is_whole}
        what = plural(view.total, "line") if is_whole else f"lines {first}-{last} of {view.total}"
        notes = [content if view.total else "(the file is empty)"]
        if is_tail and first > 1:
            notes.append(f"[lines 1-{first - 1} not shown; see them with a smaller offset]")
        if last < view.total:
            notes.append(f"[lines {last + 1}-{view.total} not shown; go on with offset={last + 1}]")
        if any(
            len(line) > _longest(view) for line in view.lines[first - view.first :][: len(numbered)]
        ):
            notes.append(_LONG_NOTE)
        notes += [view.note] if view.note else []
        return ToolOutput(
            output="\n".join(notes),
            summary=f"{shown}: {what}",
            display=display,
            images=view.images if first == 1 else (),
        )


_LONG_NOTE = "[long lines were cut; limit=1 shows more of one, run_shell with `sed -n 5p FILE | cut -c2001-4000` any part]"


def _longest(view: _View) -> int:
    """Return the characters shown of a line; one that was asked for alone may have more."""
    return LONGEST_LINE if len(view.lines) > 1 else 4 * LONGEST_LINE


def _fitting(view: _View, budget: int, *, from_end: bool) -> list[str]:
    """Return the lines with their numbers that fit in the budget of characters, at least one."""
    longest = min(_longest(view), max(budget - 50, 100))
    numbered = _numbered(view, longest)
    if from_end:
        numbered.reverse()
    count = 0
    for line in numbered:
        budget -= len(line) + 1
        if budget < 0 and count:
            break
        count += 1
    kept = numbered[:count]
    return kept[::-1] if from_end else kept


def _numbered(view: _View, longest: int) -> list[str]:
    return [
        f"{number}\t{line if len(line) <= longest else _cut(line, longest)}"
        for number, line in enumerate(view.lines, view.first)
    ]


def _cut(line: str, longest: int) -> str:
    shown = up_to_word(line, longest)
    more = len(line) - len(shown)
    count = f"{more:,}" if more <= _MOST_COUNTED else f"over {_MOST_COUNTED:,}"
    return f"{shown} [... {count} more characters]"


def _picture(content: "FileContent", shown: str) -> ToolOutput | None:
    media_type = media_type_of(content.beginning)
    if not media_type:
        return None
    size = content.status.st_size
    image, pixels = image_of(content.whole, size, media_type, shown)
    return ToolOutput(
        output=f"{shown} is a picture ({media_type}, {pixels}, {size:,} bytes); it follows.",
        summary=f"{shown}: {media_type}",
        display={"content": "", "total_lines": 0, "truncated": False, "media_type": media_type},
        images=(image,),
    )


def _may_be_made(path: Path, content: "FileContent") -> bool:
    """Return whether it may be a notebook or a PDF, which takes a thread to find out."""
    return content.beginning.startswith(_PDF) or path.suffix.lower() == _NOTEBOOK


def _made(path: Path, content: "FileContent", shown: str, deadline: Deadline) -> _View | None:
    """Return the text made of a notebook or a PDF, from its first line on; None for anything else."""
    if content.beginning.startswith(_PDF):
        from ybs.tools.reading.pdf import text_of  # few files need it

        if content.whole is None:
            raise ToolError(f"{shown} is too large a PDF; use run_shell with pdftotext")
        pdf = text_of(content.whole, shown, deadline)
        lines = content.lines_of(pdf.text)
        late = "; the last ones were not reached" if pdf.was_cut else ""
        note = (
            f"[the text of a PDF of {plural(pdf.pages, 'page')}{late}; edit_file cannot change it]"
        )
        return _View(lines, 1, len(lines), note)
    if path.suffix.lower() == _NOTEBOOK and content.whole:
        from ybs.tools.reading.notebook import rendered  # few files need it

        if book := rendered(content.whole):
            lines = content.lines_of(book.text)
            return _View(lines, 1, len(lines), _NOTEBOOK_NOTE, book.images)
    return None


_NOTEBOOK_NOTE = "[a notebook, rendered; edit_file works on its JSON, which raw=true shows]"


def _binary(content: "FileContent", shown: str) -> str:
    kind = next(
        (words for mark, words in _KINDS if content.beginning.startswith(mark)), _OTHER_KIND
    )
    return f"{shown} ({plural(content.status.st_size, 'byte')}) is {kind}"
