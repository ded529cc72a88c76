"""`.gitignore` files: what git would leave out (https://git-scm.com/docs/gitignore)."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from ybs.core.errors import ToolError
from ybs.tools.files import read_bytes

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MOST_STARS = 3  # in one part of a path: matching takes (length of the name) to their power
STARS = re.compile(r"(?<!\\)\*{2,}")
_HIGHEST = 30  # folders above the project that are looked at for the repository's top


class Ignore:
    """The rules of one folder and those above it. The nearest file that says something about a path wins."""

    def __init__(self, folder: str, above: "Ignore | None" = None) -> None:
        self._spec = _spec_of(folder)
        self._prefix = f"{folder.rstrip('/')}/"
        self._above = above if above is None or above._spec else above._above

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Tell whether the absolute path is left out; folders above it are not looked at."""
        rules: Ignore | None = self
        while rules is not None:
            if rules._spec is not None:
                name = path[len(rules._prefix) :] + ("/" if is_folder else "")
                verdict = rules._spec.check_file(name).include
                if verdict is not None:
                    return verdict
            rules = rules._above
        return False

    @property
    def is_empty(self) -> bool:
        """Tell whether there is no rule at all, here or above."""
        return self._spec is None and self._above is None


def ignore_above(folder: Path) -> Ignore | None:
    """Return the rules of the folders above, up to the top of the repository that `folder` lies in."""
    parents: list[Path] = []
    here = folder
    while not (here / ".git").exists():
        here = here.parent
        if here == here.parent or len(parents) > _HIGHEST:
            return None
        parents.append(here)
    rules: Ignore | None = None
    for parent in reversed(parents):
        rules = Ignore(str(parent), rules)
    return rules


def _spec_of(folder: str) -> "GitIgnoreSpec | None":
    path = Path(folder, ".gitignore")
    if not path.is_file():
        return None
    try:
        text = read_bytes(path, str(path))[0].decode("utf-8", "replace")
    except ToolError:  # it may not be read, or is a link, which git does not follow either
        return None
    from pathspec import GitIgnoreSpec  # slow to load, and only needed where there are rules

    lines = [_bounded(line) for line in text.splitlines()]
    try:
        spec = GitIgnoreSpec.from_lines(lines)
    except (ValueError, re.error):  # git passes over a line that makes no sense
        spec = GitIgnoreSpec.from_lines(line for line in lines if _makes_sense(line))
    return spec if len(spec) else None


def _bounded(line: str) -> str:
    """Return the line with a bounded cost of matching, or nothing: hostile rules must not stop the walk."""
    if line.count("*") <= MOST_STARS:
        return line
    parts = [part if part == "**" else STARS.sub("*", part) for part in line.split("/")]
    is_costly = parts.count("**") > MOST_STARS or any(
        part.count("*") > MOST_STARS for part in parts
    )
    return "" if is_costly else "/".join(parts)


def _makes_sense(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except (ValueError, re.error):
        return False
    return True
