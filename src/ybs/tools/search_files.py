"""search_files: the lines that a regular expression matches, with the lines around them."""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta, Struct

from ybs.core.errors import ToolError
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.tools.built_in import BuiltInTool, plural, positive
from ybs.tools.list_files import compiled_glob, pattern_of
from ybs.tools.walk import Deadline, Walk

if TYPE_CHECKING:
    from ybs.tools.engine import Found, Match

MOST_RESULTS = 2000
MOST_CONTEXT = 20
_NOTE_ROOM = 300
_MOST_NAMES = 3  # of files that were not searched
LONGEST_NAME = 80
_ESCAPED = re.compile(r"\\[|(){}+?]")
TIME_LIMIT_SECONDS = 30.0


class Arguments(Struct, frozen=True, kw_only=True):
    """What search_files takes."""

    pattern: Annotated[str, Meta(description="regular expression")]
    path: Annotated[str, Meta(description="folder or file")] = "."
    file_pattern: Annotated[str, Meta(description="glob of files, e.g. *.py")] = ""
    context_lines: int = 2
    max_results: int = 50


class SearchFiles(BuiltInTool):
    """Searches."""

    name: ClassVar[str] = "search_files"
    effect: ClassVar[Effect] = "read"
    arguments: ClassVar[type[Struct]] = Arguments
    rare: ClassVar[frozenset[str]] = frozenset({"context_lines", "max_results"})

    def preview(self, arguments: Arguments) -> Preview:
        """Name pattern and place."""
        place = self.workspace.roots.resolve(arguments.path)
        return Preview(title=f"Search {arguments.pattern} in {arguments.path}", paths=(str(place),))

    async def run(self, arguments: Arguments, print_live: Callable[[str], None]) -> ToolOutput:
        """Search in a thread, so that the terminal stays alive."""
        del print_live
        positive(arguments.max_results, "max_results", at_most=MOST_RESULTS)
        deadline = Deadline(TIME_LIMIT_SECONDS)
        try:
            found = await asyncio.to_thread(self._search, arguments, deadline)
        finally:
            deadline.cancel()
        return self._output(found, arguments)

    def _search(self, arguments: Arguments, deadline: Deadline) -> "Found":
        from ybs.tools.engine import Wanted, find
        from ybs.tools.ripgrep import program

        start = self.workspace.roots.resolve(arguments.path)
        folder, paths, was_cut = self._candidates(start, arguments.file_pattern, deadline)
        wanted = Wanted(
            pattern=arguments.pattern,
            context=max(0, min(arguments.context_lines, MOST_CONTEXT)),
            most=min(arguments.max_results, MOST_RESULTS),
        )
        found = find(wanted, folder, paths, program(self.workspace.roots), deadline)
        found.was_cut = found.was_cut or was_cut
        shown = self.workspace.roots.show(folder)
        prefix = "" if shown == "." else f"{shown.rstrip('/')}/"
        for match in found.matches:
            match.file = prefix + match.file
        return found

    def _candidates(
        self, start: Path, file_pattern: str, deadline: Deadline
    ) -> tuple[Path, list[str], bool]:
        """Return the folder, the files in it to look at, and whether looking for them ended early."""
        if not start.is_dir():
            if not start.exists():
                raise ToolError(f"{self.workspace.roots.show(start)} does not exist")
            return start.parent, [start.name], False
        pattern = pattern_of(file_pattern) if file_pattern else "**"
        fits = compiled_glob(
            pattern if "/" in pattern or pattern == "**" else f"**/{pattern}"
        ).fullmatch
        walk = Walk(self.workspace.roots, start, deadline=deadline)
        return start, sorted(entry.path for entry in walk.files() if fits(entry.path)), walk.was_cut

    def _output(self, found: "Found", arguments: Arguments) -> ToolOutput:
        blocks = list(_blocks(found.matches))
        shown = _within(blocks, self.workspace.max_output_chars - _NOTE_ROOM)
        is_truncated = found.was_cut or found.total > len(shown)
        parts = shown[:] or ["No matches."]
        if found.total > len(shown):
            parts.append(
                f"[{len(shown)} of {found.total:,} matches shown; narrow the pattern, path or file_pattern]"
            )
        parts += _remarks(found, arguments.pattern)
        display: dict[str, Any] = {
            "matches": found.matches[: len(shown)],
            "total_matches": found.total,
            "truncated": is_truncated,
        }
        files = len({match.file for match in found.matches})
        summary = f"{plural(found.total, 'match')} for {arguments.pattern}"
        if found.total and not is_truncated:
            summary += f" in {plural(files, 'file')}"
        return ToolOutput(output="\n".join(parts), summary=summary, display=display)


def _remarks(found: "Found", pattern: str) -> Iterator[str]:
    """Yield what the model has to know beside the matches."""
    if found.was_cut:
        yield "[the search took too long and was ended early; narrow `path` or write the pattern simpler]"
    if found.skipped:
        yield f"[not searched, could not be read: {_names(found.skipped)}]"
    if found.shortened:
        yield f"[only the beginning of very long lines was searched in: {_names(found.shortened)}]"
    if not found.total and (escaped := _ESCAPED.search(pattern)):
        yield (
            f"[`{escaped[0]}` means the character `{escaped[0][1]}` itself; as an operator it has no backslash]"
        )


def _names(files: Iterable[str]) -> str:
    names = list(files)
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(name[:LONGEST_NAME] for name in names[:_MOST_NAMES]) + more


def _blocks(matches: "Sequence[Match]") -> Iterator[str]:
    """Yield the text of each match: the file's name once, then `12:` for matches, `12-` for lines around."""
    file, last = "", 0
    for match, following in zip_longest(matches, matches[1:]):
        lines: list[str] = []
        if match.file != file:
            file, last = match.file, 0
            lines.append(file)
        is_near = following is not None and following.file == file
        until = (
            following.line if following is not None and is_near else match.line + MOST_CONTEXT + 1
        )
        first = match.line - len(match.context_before)
        before = enumerate(match.context_before, first)
        lines += [f"{number}-\t{line}" for number, line in before if number > last]
        lines.append(f"{match.line}:\t{match.content}")
        after = list(enumerate(match.context_after, match.line + 1))[: until - match.line - 1]
        lines += [f"{number}-\t{line}" for number, line in after]
        last = match.line + len(after)
        yield "\n".join(lines)


def _within(blocks: list[str], budget: int) -> list[str]:
    for count, text in enumerate(blocks):
        budget -= len(text) + 1
        if budget < 0 and count:
            return blocks[:count]
    return blocks
