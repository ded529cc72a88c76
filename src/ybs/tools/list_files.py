"""list_files: the files that a glob pattern matches."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from ybs.core.errors import ToolError
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.tools.built_in import BuiltInTool, plural, positive
from ybs.tools.ignore import MOST_STARS, STARS
from ybs.tools.walk import Deadline, Walk

MOST_RESULTS = 10_000
TIME_LIMIT_SECONDS = 30.0
_MOST_GLOB_STARS = 4  # in one part of a path
_MOST_CHOICES = 4  # pairs of braces
_MOST_NAMES = 50  # in them all


class Arguments(Struct, frozen=True, kw_only=True):
    """What list_files takes."""

    pattern: Annotated[str, Meta(description="glob, e.g. **/*.py or src/*.{ts,tsx}")]
    path: Annotated[str, Meta(description="folder to start in")] = "."
    max_results: int = 100


class ListFiles(BuiltInTool):
    """Lists."""

    name: ClassVar[str] = "list_files"
    effect: ClassVar[Effect] = "read"
    arguments: ClassVar[type[Struct]] = Arguments
    rare: ClassVar[frozenset[str]] = frozenset({"max_results"})

    def preview(self, arguments: Arguments) -> Preview:
        """Name pattern and folder."""
        folder = self.workspace.roots.resolve(arguments.path)
        return Preview(title=f"List {arguments.pattern} in {arguments.path}", paths=(str(folder),))

    async def run(self, arguments: Arguments, print_live: Callable[[str], None]) -> ToolOutput:
        """Walk the folder in a thread and return the paths, sorted."""
        del print_live
        most = positive(arguments.max_results, "max_results", at_most=MOST_RESULTS)
        folder = self.workspace.roots.resolve(arguments.path)
        if not folder.is_dir():
            raise ToolError(
                f"{self.workspace.roots.show(folder)} is no folder; give a folder as `path`"
            )
        pattern = pattern_of(arguments.pattern)
        deadline = Deadline(TIME_LIMIT_SECONDS)
        try:
            files, folders, was_cut = await asyncio.to_thread(
                self._found, folder, pattern, deadline
            )
        finally:
            deadline.cancel()
        return self._output(sorted(files), sorted(folders), most, was_cut=was_cut)

    def _found(
        self, folder: Path, pattern: str, deadline: Deadline
    ) -> tuple[list[str], list[str], bool]:
        fits = compiled_glob(pattern).fullmatch
        start = self.workspace.roots.show(folder)
        prefix = "" if start == "." else f"{start.rstrip('/')}/"
        depth = None if "**" in pattern or "{" in pattern else pattern.count("/")
        walk = Walk(self.workspace.roots, folder, deadline=deadline, depth=depth)
        files = [prefix + entry.path for entry in walk.files() if fits(entry.path)]
        folders = (
            [] if depth is None else [prefix + path + "/" for path in walk.folders if fits(path)]
        )
        return files, folders, walk.was_cut

    def _output(
        self, files: list[str], folders: list[str], most: int, *, was_cut: bool
    ) -> ToolOutput:
        shown = _within(files[:most], self.workspace.max_output_chars - 500)
        is_truncated = was_cut or len(shown) < len(files)
        parts = ["\n".join(shown)] if shown else ["No files match."]
        if folders:
            parts.append("Folders: " + " ".join(_within(folders[:most], 300)))
        if len(shown) < len(files):
            parts.append(
                f"[{len(shown)} of {len(files):,} files shown; narrow the pattern or raise max_results]"
            )
        if was_cut:
            parts.append("[the search took too long and was ended early; narrow `path`]")
        display: dict[str, Any] = {
            "files": shown,
            "total_matches": len(files),
            "truncated": is_truncated,
        }
        if folders:
            display["folders"] = folders[:most]
        return ToolOutput(
            output="\n".join(parts), summary=plural(len(files), "file"), display=display
        )


def pattern_of(text: str) -> str:
    """Return the glob in its plain form. Raises ToolError for one that leads out of the folder."""
    pattern = re.sub(r"/{2,}", "/", text.strip()).removeprefix("./")
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise ToolError(f"The pattern {text!r} leads out of the folder; give the folder as `path`")
    if pattern in ("", "."):
        return "*"
    return f"{pattern}**" if pattern.endswith("/") else pattern


def compiled_glob(pattern: str) -> re.Pattern[str]:
    """Compile a glob. Raises ToolError where it makes no sense."""
    from ybs.security import globs  # not needed before the first call

    parts = [part if part == "**" else STARS.sub("*", part) for part in pattern.split("/")]
    is_costly = (
        parts.count("**") > MOST_STARS
        or any(part.count("*") > _MOST_GLOB_STARS for part in parts)
        or pattern.count("{") > _MOST_CHOICES
        or pattern.count(",") > _MOST_NAMES
    )
    if is_costly:
        raise ToolError(f"The pattern {pattern[:100]!r} has too many * or {{}}. Write it simpler.")
    try:
        return globs.compiled("/".join(parts))
    except re.error as error:
        raise ToolError(f"The pattern {pattern!r} makes no sense: {error}") from error


def _within(paths: list[str], budget: int) -> list[str]:
    """Return as many of the paths as fit in the budget of characters, at least one."""
    for count, path in enumerate(paths):
        budget -= len(path) + 1
        if budget < 0 and count:
            return paths[:count]
    return paths
