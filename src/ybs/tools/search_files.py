"""search_files: the lines that a regular expression matches, with the lines around them."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from ybs.core.errors import ToolError
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.tools.built_in import BuiltInTool, plural, positive
from ybs.tools.list_files import compiled_glob, pattern_of
from ybs.tools.walk import Deadline, Walk

MOST_RESULTS = 2000
MOST_CONTEXT = 20
LONGEST_SHOWN = 300
TIME_LIMIT_SECONDS = 30.0


class Arguments(Struct, frozen=True, kw_only=True):
    """What search_files takes."""

    pattern: Annotated[str, Meta(description="regular expression")]
    path: Annotated[str, Meta(description="folder or file")] = "."
    file_pattern: Annotated[str, Meta(description="glob of files, e.g. *.py")] = ""
    context_lines: int = 2
    max_results: int = 50


class Match(Struct):
    """One matching line with the lines around it; its number counts from 1."""

    file: str
    line: int
    content: str
    context_before: list[str]
    context_after: list[str]


class Found(Struct):
    """What a search found: the first matches, and how many lines match in all."""

    matches: list[Match]
    total: int = 0
    was_cut: bool = False


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

    def _search(self, arguments: Arguments, deadline: Deadline) -> Found:
        from ybs.tools.line_search import Searcher
        from ybs.tools.ripgrep import counts, program

        searcher = Searcher(arguments.pattern)
        start = self.workspace.roots.resolve(arguments.path)
        folder, paths, was_cut = self._candidates(start, arguments.file_pattern, deadline)
        found = Found(matches=[], was_cut=was_cut)
        rg = program(self.workspace.roots)
        counted = counts(rg, arguments.pattern, folder, paths, deadline) if rg else None
        shown = self.workspace.roots.show(folder)
        prefix = "" if shown == "." else f"{shown.rstrip('/')}/"
        most = min(arguments.max_results, MOST_RESULTS)
        for path in paths if counted is None else [path for path in paths if path in counted]:
            if deadline.is_over:
                found.was_cut = True
                break
            if counted is not None and len(found.matches) >= most:
                found.total += counted[path] if searcher.is_text(folder / path) else 0
                continue
            lines = searcher.lines_of(folder / path)
            for index in searcher.matching(lines):
                found.total += 1
                if len(found.matches) < most:
                    context = arguments.context_lines
                    found.matches.append(_match(prefix + path, lines, index, context))
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

    def _output(self, found: Found, arguments: Arguments) -> ToolOutput:
        blocks = list(_blocks(found.matches))
        shown = _within(blocks, self.workspace.max_output_chars - 300)
        is_truncated = found.was_cut or found.total > len(shown)
        parts = shown[:] or ["No matches."]
        if found.total > len(shown):
            parts.append(
                f"[{len(shown)} of {found.total:,} matches shown; narrow the pattern, path or file_pattern]"
            )
        if found.was_cut:
            parts.append("[the search took too long and was ended early; narrow `path`]")
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


def _match(file: str, lines: list[str], index: int, context: int) -> Match:
    context = max(0, min(context, MOST_CONTEXT))
    return Match(
        file=file,
        line=index + 1,
        content=_shortened(lines[index]),
        context_before=[_shortened(line) for line in lines[max(index - context, 0) : index]],
        context_after=[_shortened(line) for line in lines[index + 1 : index + 1 + context]],
    )


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST_SHOWN else f"{line[:LONGEST_SHOWN]} [...]"


def _blocks(matches: Sequence[Match]) -> Iterator[str]:
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
