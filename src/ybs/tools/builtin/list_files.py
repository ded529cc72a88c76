"""list_files: the files that a glob pattern matches."""

import asyncio
from collections.abc import Callable
from heapq import nsmallest
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta, Struct

from ybs.core.errors import ToolError
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.core.wording import plural
from ybs.security.paths.names import shown_name
from ybs.tools.builtin.base import BuiltInTool, positive
from ybs.tools.listing import within
from ybs.tools.searching.walk import Deadline, Walk, left_out

if TYPE_CHECKING:
    from ybs.tools.searching.choice import GlobChoice

MOST_RESULTS = 10_000
TIME_LIMIT_SECONDS = 30.0


class ListFilesArguments(Struct, frozen=True, kw_only=True):
    """What list_files takes."""

    pattern: Annotated[str, Meta(description="glob: **/*.py or src/*.{ts,tsx}")]
    path: str = "."
    max_results: int = 100
    include_ignored: bool = False


class ListFiles(BuiltInTool):
    """Lists."""

    name: str = "list_files"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = ListFilesArguments
    rare: ClassVar[frozenset[str]] = frozenset({"max_results", "include_ignored"})

    def preview(self, arguments: ListFilesArguments) -> Preview:
        """Name pattern and folder."""
        folder, _ = self.target(arguments)
        return Preview(
            title=f"List {arguments.pattern} in {arguments.path}", paths=(shown_name(str(folder)),)
        )

    async def run(
        self, arguments: ListFilesArguments, print_live: Callable[[str], None]
    ) -> ToolOutput:
        """Walk the folder in a thread and return the paths, sorted.

        The order is that of the paths, not newest first: it needs no look at each file, and the same question
        has the same answer until files come or go, which keeps the prompt's prefix the same as well.
        """
        del print_live
        from ybs.tools.searching.choice import GlobChoice  # not needed before the first call

        most = positive(arguments.max_results, "max_results", at_most=MOST_RESULTS)
        folder, start = self.target(arguments)
        if not folder.is_dir():
            raise ToolError(f"{start} is not a folder; give a folder as `path`")
        choice = GlobChoice(arguments.pattern, folder)
        deadline = Deadline(TIME_LIMIT_SECONDS)
        walk = Walk(
            self.workspace.roots,
            folder,
            deadline=deadline,
            depth=choice.depth,
            includes_ignored=arguments.include_ignored,
        )
        prefix = "" if start == "." else f"{start.rstrip('/')}/"
        try:
            listing = await asyncio.to_thread(_listing, walk, choice, prefix, most)
            pattern = arguments.pattern
            is_flat = "/" not in pattern and "**" not in pattern
            advice = f" `**/{pattern}` looks in all folders below." if is_flat else ""
            if not listing[1] and not arguments.include_ignored:
                roots = self.workspace.roots
                unseen = await asyncio.to_thread(left_out, roots, folder, choice, deadline)
                advice = f"\n{unseen}" if unseen else advice
        finally:
            deadline.cancel()
        return self._output(listing, most, advice, was_cut=walk.was_cut)

    def _output(
        self, listing: tuple[list[str], int, list[str]], most: int, advice: str, *, was_cut: bool
    ) -> ToolOutput:
        files, total, folders = listing
        shown = within(files, self.workspace.max_output_chars - 500)
        is_truncated = was_cut or len(shown) < total
        parts = ["\n".join(shown)] if shown else [f"No files match.{advice}"]
        if folders:
            parts.append("Folders: " + " ".join(within(folders[:most], 300)))
        if len(shown) < total:
            parts.append(
                f"[{len(shown)} of {total:,} files shown; narrow the pattern or raise max_results]"
            )
        if was_cut:
            parts.append("[the search took too long and was ended early; narrow `path`]")
        display: dict[str, Any] = {
            "files": shown,
            "total_matches": total,
            "truncated": is_truncated,
        }
        if folders:
            display["folders"] = folders[:most]
        return ToolOutput(output="\n".join(parts), summary=plural(total, "file"), display=display)


def _listing(
    walk: Walk, choice: "GlobChoice", prefix: str, most: int
) -> tuple[list[str], int, list[str]]:
    """Return the first of the files, how many there are, and the folders that match."""
    files = choice.of(walk.paths())
    # Few of many need no sorting of them all.
    first = nsmallest(most, files) if most * 20 < len(files) else sorted(files)[:most]
    folders = [] if choice.depth is None else sorted(choice.of(walk.folders))
    return (
        [prefix + shown_name(path) for path in first],
        len(files),
        [f"{prefix}{shown_name(path)}/" for path in folders],
    )
