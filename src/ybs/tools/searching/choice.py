"""Match files by globs: `**`, braces, several globs with commas between them, and `!` to exclude."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from ybs.core.cutting import shortened
from ybs.core.errors import ToolError
from ybs.security.paths.names import appearance_of
from ybs.tools.searching.ignore import MOST_STARS, STARS

_MOST_GLOB_STARS = 4  # in one part of a path
_MOST_CHOICES = 4  # pairs of braces
_MOST_NAMES = 50  # in them all
_BETWEEN = re.compile(r",\s*(?![^{]*\})")
_NAME = re.compile(r"\*\*/([\w.-]+)")
_ENDING = re.compile(r"(?:\*\*/)?\*(\.[\w.-]*)?(?:\{([\w.,-]+)\})?")


class GlobChoice:
    """A glob that was read, and that may name the folder `below` which it chooses whole. `is_deep` tells whether it looks below the folders that it names.

    Raises ToolError for one that leads out of the folder, makes no sense or would cost too much.
    """

    def __init__(self, text: str, below: Path = Path(), *, names_anywhere: bool = False) -> None:
        globs = _split(text.replace(f"{below}/", "") if len(below.parts) > 1 else text)
        wanted = [glob for glob in globs if not glob.startswith("!")] or ["**"]
        unwanted = [
            _anywhere(plain(glob[1:])).removesuffix("/**") for glob in globs if glob[:1] == "!"
        ]
        self.globs = [plain(glob) for glob in wanted]
        if names_anywhere:
            self.globs = [_anywhere(glob) for glob in self.globs]
        self.is_deep = any("**" in glob or "{" in glob for glob in self.globs)
        self.depth = None if self.is_deep else max(glob.count("/") for glob in self.globs)
        self._endings = _endings(self.globs)
        self._wanted = [_compiled(glob).fullmatch for glob in self.globs]
        self._left_out = [_leaver_out(glob) for glob in unwanted]

    @property
    def endings(self) -> tuple[str, ...] | None:
        """The ends of names that alone decide, if there are such; None for any file."""
        return self._endings

    def of(self, paths: Iterable[str]) -> list[str]:
        """Return the chosen paths, relative to the folder."""
        if self._endings is not None:
            endings = self._endings
            found = (
                list(paths) if "" in endings else [path for path in paths if path.endswith(endings)]
            )
        elif len(self._wanted) == 1:
            fits = self._wanted[0]
            found = [path for path in paths if fits(path)]
        else:
            found = [path for path in paths if any(fits(path) for fits in self._wanted)]
        for is_left_out in self._left_out:
            found = [path for path in found if not is_left_out(path)]
        return found

    def of_appearance(self, paths: Iterable[str]) -> list[str]:
        """Return the paths that only look as if they were chosen."""
        fits = [_compiled(appearance_of(glob)).fullmatch for glob in self.globs]
        alike = [path for path in paths if any(fit(appearance_of(path)) for fit in fits)]
        return [path for path in alike if not self.of([path])]


def _leaver_out(glob: str) -> Callable[[str], object]:
    """Return what tells whether a path is left out: by its own name, or as something within a folder."""
    endings = _endings([glob])
    if endings and len(endings) == 1:
        ending, within = endings[0], f"{endings[0]}/"
        return lambda path: path.endswith(ending) or within in path
    if name := _NAME.fullmatch(glob):
        wanted = f"/{name[1]}/"
        return lambda path: wanted in f"/{path}/"
    return re.compile(f"(?:{_compiled(glob).pattern})(?:/.*)?", re.DOTALL).fullmatch


def plain(text: str) -> str:
    """Return the glob in its plain form. Raises ToolError for one that leads out of the folder."""
    pattern = re.sub(r"/{2,}", "/", text.strip()).removeprefix("./")
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise ToolError(f"The pattern {text!r} leads out of the folder; give the folder as `path`")
    if pattern in ("", "."):
        return "*"
    return f"{pattern}**" if pattern.endswith("/") else pattern


def _split(text: str) -> list[str]:
    """Split at commas where each part is surely a glob of its own: a name may hold a comma."""
    parts = [part for part in _BETWEEN.split(text.strip()) if part]
    are_globs = all(part.startswith("!") or "*" in part or "?" in part for part in parts)
    return parts if len(parts) > 1 and are_globs else [text.strip()]


def _anywhere(glob: str) -> str:
    return glob if "/" in glob or glob == "**" else f"**/{glob}"


def _endings(globs: list[str]) -> tuple[str, ...] | None:
    """Return the ends of names where the globs ask for nothing else, in any folder."""
    found: list[str] = []
    for glob in globs:
        match = re.fullmatch(_ENDING, glob)
        if glob == "**":
            found.append("")
        elif match and glob.startswith("**/"):
            found += [(match[1] or "") + name for name in (match[2] or "").split(",")]
        else:
            return None
    return tuple(found)


def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a glob. Raises ToolError where it makes no sense."""
    from ybs.security.paths import globs  # not needed before the first call

    parts = [part if part == "**" else STARS().sub("*", part) for part in pattern.split("/")]
    is_costly = (
        parts.count("**") > MOST_STARS
        or any(part.count("*") > _MOST_GLOB_STARS for part in parts)
        or pattern.count("{") > _MOST_CHOICES
        or pattern.count(",") > _MOST_NAMES
    )
    if is_costly:
        raise ToolError(
            f"The pattern {shortened(pattern, 100)!r} has too many * or {{}}. Write it simpler."
        )
    try:
        return globs.compiled("/".join(parts), names_too=True)
    except re.error as error:
        raise ToolError(f"The pattern {pattern!r} makes no sense: {error}") from error
