"""search_files: the lines that a regular expression matches, with the lines around them."""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta, Struct

from ybs.core.cutting import shortened
from ybs.core.errors import Refused, ToolError
from ybs.core.lazy import lazy
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.core.wording import plural
from ybs.security.paths.names import shown_name
from ybs.security.paths.roots import Roots
from ybs.tools.builtin.base import BuiltInTool, positive
from ybs.tools.listing import within
from ybs.tools.reading.files import failure, open_regular
from ybs.tools.searching.walk import Deadline, Walk, left_out
from ybs.tools.workspace import Workspace

if TYPE_CHECKING:
    from ybs.tools.searching.engine import LineMatch, Scope, SearchResult

MOST_RESULTS = 2000
MOST_CONTEXT = 20
_NOTE_ROOM = 300
_MOST_NAMES = 3  # of files that were not searched
LONGEST_NAME = 200
_ESCAPED = lazy(r"\\[|(){}+?]")
TIME_LIMIT_SECONDS = 30.0
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


class SearchFilesArguments(Struct, frozen=True, kw_only=True):
    """What search_files takes."""

    pattern: str
    path: str = "."
    file_pattern: Annotated[str, Meta(description="e.g. *.py or !*.js")] = ""
    context_lines: int = 2
    max_results: int = 50
    ignore_case: bool = False
    include_ignored: bool = False


class SearchFiles(BuiltInTool):
    """Searches."""

    name: str = "search_files"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = SearchFilesArguments
    rare: ClassVar[frozenset[str]] = frozenset(
        {"context_lines", "max_results", "ignore_case", "include_ignored"}
    )

    def preview(self, arguments: SearchFilesArguments) -> Preview:
        """Name pattern and place."""
        place, _ = self.target(arguments)
        return Preview(
            title=f"Search {arguments.pattern} in {arguments.path}", paths=(shown_name(str(place)),)
        )

    async def run(
        self, arguments: SearchFilesArguments, print_live: Callable[[str], None]
    ) -> ToolOutput:
        """Search in a thread, so that the terminal stays alive."""
        del print_live
        positive(arguments.max_results, "max_results", at_most=MOST_RESULTS)
        deadline = Deadline(TIME_LIMIT_SECONDS)
        try:
            found, matches = await asyncio.to_thread(self._search, arguments, deadline)
        finally:
            deadline.cancel()
        return self._output(found, matches, arguments)

    def _search(
        self, arguments: SearchFilesArguments, deadline: Deadline
    ) -> "tuple[SearchResult, list[LineMatch]]":
        from ybs.tools.searching import engine  # not needed before the first call
        from ybs.tools.searching.choice import GlobChoice

        roots = self.workspace.roots
        start, _ = self.target(arguments)
        pattern = engine.options_of(arguments.pattern, ignore_case=arguments.ignore_case)
        most = min(arguments.max_results, MOST_RESULTS)
        if start.is_dir():
            choice = GlobChoice(arguments.file_pattern or "**", start, names_anywhere=True)
            ignored = arguments.include_ignored
            scope = engine.Scope(start=start, choice=choice, most=most, includes_ignored=ignored)
            found = engine.find(pattern, scope, roots, deadline)
            if not found.total and not ignored:
                found.unseen = _unseen(roots, scope, deadline)
        elif start.exists():
            _check_file(roots, start)
            found = engine.find_in_file(pattern, start, most, roots, deadline)
            start = start.parent
        else:
            raise ToolError(f"{roots.show(start)} does not exist")
        shown = roots.show(start)
        prefix = "" if shown == "." else f"{shown.rstrip('/')}/"
        context = max(0, min(arguments.context_lines, MOST_CONTEXT))
        return found, _matches(self.workspace, found, start, prefix, context)

    def _output(
        self, found: "SearchResult", matches: "Sequence[LineMatch]", arguments: SearchFilesArguments
    ) -> ToolOutput:
        blocks = list(_blocks(matches))
        shown = within(blocks, self.workspace.max_output_chars - _NOTE_ROOM)
        is_truncated = found.was_cut or bool(found.slow) or found.total > len(shown)
        parts = shown[:] or ["No matches."]
        if found.total > len(shown):
            parts.append(
                f"[{len(shown)} of {found.total:,} matches in {plural(found.files, 'file')} shown; "
                "narrow the pattern, path or file_pattern]"
            )
        parts += _remarks(found, arguments.pattern)
        display: dict[str, Any] = {
            "matches": matches[: len(shown)],
            "total_matches": found.total,
            "total_files": found.files,
            "truncated": is_truncated,
        }
        summary = f"{plural(found.total, 'match')} for {arguments.pattern}"
        if found.total:
            summary += f" in {plural(found.files, 'file')}"
        return ToolOutput(output="\n".join(parts), summary=summary, display=display)


def _unseen(roots: Roots, scope: "Scope", deadline: Deadline) -> str:
    """Say of a search that found nothing what it did not look at."""
    from ybs.tools.searching.ignore import rules_at

    walk = Walk(roots, scope.start, deadline=deadline, depth=scope.choice.depth)
    if scope.choice.endings != ("",) and not scope.choice.of(walk.paths()):
        return (
            left_out(roots, scope.start, scope.choice, deadline) or "[no file here has such a name]"
        )
    has_rules = (scope.start / ".gitignore").exists() or rules_at(roots.folder, scope.start).folders
    return "[files that git ignores were not searched; `include_ignored` searches them]" * bool(
        has_rules
    )


def _remarks(found: "SearchResult", pattern: str) -> Iterator[str]:
    """Yield notes for the model beside the matches."""
    if found.was_cut:
        yield "[the search took too long and was ended early; narrow `path` or write the pattern simpler]"
    if found.skipped:
        yield f"[not searched, could not be read: {names_of(found.skipped)}]"
    if found.large:
        yield f"[not searched, a line is too long: {names_of(found.large)}; use run_shell with grep]"
    if found.slow:
        yield f"[not searched to the end, the pattern takes too long there: {names_of(found.slow)}]"
    if found.binary:
        yield f"[matches not shown, in binary files: {names_of(found.binary)}; use run_shell with grep -an]"
    if not found.total:
        yield from _hints(found, pattern)


def _hints(found: "SearchResult", pattern: str) -> Iterator[str]:
    """Yield possible reasons for the lack of matches."""
    if found.unseen:
        yield found.unseen
    if not pattern.isascii():
        yield "[text beyond ASCII is found in UTF-8 and UTF-16 only]"
    if r"\n" in pattern:
        yield r"[a match lies within one line, so `\n` never matches; context_lines shows the lines around it]"
    elif escaped := _ESCAPED().search(pattern):
        yield (
            f"[`{escaped[0]}` means the character `{escaped[0][1]}` itself; as an operator it has no backslash]"
        )


def _check_file(roots: Roots, path: Path) -> None:
    """Raise ToolError for what is not an ordinary file, or is a blocked one under another name."""
    shown = roots.show(path)
    try:
        with roots.held(path) as place:
            os.close(open_regular(place, shown)[0])
    except OSError as error:
        raise failure(error, shown) from error


def _matches(
    workspace: Workspace, found: "SearchResult", start: Path, prefix: str, context: int
) -> "list[LineMatch]":
    """Read the lines that were found; files that cannot be read any more are told as skipped.

    They are opened as every file is that a model reads: by a walk that follows no link, and judged.
    """
    from ybs.tools.searching.engine import matches_in  # not needed before the first call

    matches: list[LineMatch] = []
    for path, places in found.places.items():
        try:
            with workspace.roots.held(start / path) as place:
                descriptor = place.open(_READ)
            here = matches_in(descriptor, prefix + shown_name(path), places, context)
            if workspace.may_show_key(_lines_of(here)):
                workspace.hide_keys(start / path)
            matches += here
        except (OSError, Refused):
            found.skipped.append(path)
    return matches


def _lines_of(matches: "Iterable[LineMatch]") -> Iterator[str]:
    for match in matches:
        yield from (*match.context_before, match.content, *match.context_after)


def names_of(files: Iterable[str]) -> str:
    """Name the first few of the files."""
    names = list(files)
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return (
        ", ".join(shortened(shown_name(name), LONGEST_NAME) for name in names[:_MOST_NAMES]) + more
    )


def _blocks(matches: "Sequence[LineMatch]") -> Iterator[str]:
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
