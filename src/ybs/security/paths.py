"""The folders that tools may work in: every path of a model is resolved and judged here.

Paths are compared part by part after links are resolved; blocked paths come before allowed ones.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ybs.config import paths as own
from ybs.core.errors import Refused, ToolError

LONGEST_PATH = 4096  # PATH_MAX of Linux
_MAGIC = ("/proc", "/dev", "/sys")
#: Files that other programs run by themselves later on, or that ybs takes settings from.
_RUNS_LATER = frozenset(
    {".vscode", ".idea", ".devcontainer", ".husky", ".githooks", ".envrc", ".gitmodules", ".ybs"}
    | {".ybs.json", ".mcp.json", ".cursor", ".claude", ".codex", ".gemini"}
)


class Roots:
    """The project's folder, the other folders allowed, and the paths that are blocked even inside them.

    `allowed` and `blocked` are a person's own settings: `~` means the home folder, and relative ones
    hang on the project's folder. All are resolved once, here; a root whose link changes later stays as it was.
    """

    def __init__(
        self,
        folder: Path,
        allowed: Sequence[str | Path] = ("./",),
        blocked: Sequence[str | Path] = (),
    ) -> None:
        self.folder = Path(os.path.realpath(folder))
        mine = (own.config_folder(), own.state_folder(), own.home_config_file())
        self._blocked = [_key(path) for path in self._expanded((*blocked, *mine))]
        self._roots: list[str] = []
        self._readable: list[str] = []
        for path in self._expanded(allowed):
            self.add(Path(path))

    def add(self, folder: Path, *, is_read_only: bool = False) -> None:
        """Allow one more folder. A read-only one may be read even where it lies in a blocked path."""
        (self._readable if is_read_only else self._roots).append(os.path.realpath(folder))

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that may be written in, resolved."""
        return tuple(Path(root) for root in self._roots)

    def resolve(self, path: str, *, is_write: bool = False, is_link_followed: bool = True) -> Path:
        """Return the absolute path with links resolved.

        `is_link_followed=False` leaves the last part as it is, so that a link itself can be deleted.
        Raises ToolError for a text that is no path here, Refused for a path that tools may not touch.
        """
        _check_text(path)
        asked = path if path.startswith("/") else f"{self.folder}/{path}"
        real = os.path.realpath(asked) if is_link_followed else _real_entry(asked)
        self._check_magic(path, asked, real)
        if not is_write and any(_lies_in(real, root) for root in self._readable):
            return Path(real)
        self._check_blocked(path, asked, real)
        if not any(_lies_in(real, root) for root in self._roots):
            raise Refused(
                f"{path} is outside the folders that ybs may work in ({self._root_names()}). "
                "The person can allow its folder with --add-dir DIR."
            )
        if is_write:
            self._check_git(path, real)
        return Path(real)

    def check_unmoved(self, path: Path) -> None:
        """Raise Refused if a folder of the resolved path has become a link since it was resolved."""
        if os.path.realpath(path) != str(path):
            raise Refused(f"{self.show(path)} changed while it was being used; nothing was written")

    def is_blocked(self, real: str) -> bool:
        """Tell whether the absolute path, its links resolved, lies in a blocked one."""
        key = _key(real)
        return any(_lies_in(key, blocked) for blocked in self._blocked)

    def holds_blocked(self, folder: Path) -> bool:
        """Tell whether a blocked path lies in the folder, or the folder in one."""
        key = _key(str(folder))
        return any(_lies_in(path, key) or _lies_in(key, path) for path in self._blocked)

    def show(self, path: Path) -> str:
        """Return the path as messages show it: relative to the project's folder where it lies in it."""
        text, folder = str(path), str(self.folder)
        if text == folder:
            return "."
        return text[len(folder.rstrip("/")) + 1 :] if _lies_in(text, folder) else text

    def runs_later(self, path: Path) -> str:
        """Return the part of the path that makes it a file which programs run by themselves, or nothing."""
        parts = self.show(path).casefold().split("/")
        if ".github/workflows" in "/".join(parts):
            return ".github/workflows"
        return next((part for part in parts if part in _RUNS_LATER), "")

    def _expanded(self, paths: Iterable[str | Path]) -> Iterable[str]:
        for path in paths:
            yield os.path.realpath(own.expand(str(path), self.folder))

    def _root_names(self) -> str:
        return ", ".join(
            self.show(Path(root)) if root != str(self.folder) else root for root in self._roots
        )

    def _check_magic(self, path: str, asked: str, real: str) -> None:
        for one in (os.path.normpath(asked), real):
            if any(_lies_in(one, folder) for folder in _MAGIC):
                raise Refused(
                    f"{path} is no ordinary file: files of /proc, /dev and /sys are not used"
                )

    def _check_blocked(self, path: str, asked: str, real: str) -> None:
        if self.is_blocked(real) or self.is_blocked(os.path.normpath(asked)):
            raise Refused(
                f"{path} is in a blocked path. Work without it; only the person's own settings "
                "(safety.sandbox_blocked_paths) can change that, --add-dir cannot."
            )

    def _check_git(self, path: str, real: str) -> None:
        # The names as asked count too: `.git` may be a link to a folder with another name.
        names = (*real.split("/"), *os.path.normpath(path).split("/"))
        if any(_means_git(name) for name in names):
            raise Refused(f"{path}: .git is read-only for file tools; use git commands instead")


def _check_text(path: str) -> None:
    if problem := _problem_of(path):
        shown = path if len(path) <= 80 else f"{path[:80]}..."
        raise ToolError(
            f"The path {shown!r} {problem}. Give a path relative to the project's folder."
        )


def _problem_of(path: str) -> str:
    scheme, is_address, _ = path.partition("://")
    problems = (
        (not path.strip(), "is empty"),
        (len(path) > LONGEST_PATH, f"is {len(path)} characters long; {LONGEST_PATH} are possible"),
        (not path.isprintable() and _has_control(path), "holds a control character"),
        (
            path.startswith("~"),
            "begins with ~, which is not expanded; a file of that name is ./~NAME",
        ),
        (
            path.startswith("$") and (path[1:2].isidentifier() or path[1:2] == "{"),
            "begins with $, and variables are not expanded; a file of that name is ./$NAME",
        ),
        (is_address and scheme.isalnum(), "is an address, not a path"),
        (
            not path.isascii() and not _can_be_encoded(path),
            "holds characters that no name can have",
        ),
    )
    return next((problem for is_so, problem in problems if is_so), "")


def _has_control(path: str) -> bool:
    return any(character < " " or character == "\x7f" for character in path)


def _can_be_encoded(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def _real_entry(asked: str) -> str:
    folder, name = os.path.split(asked.rstrip("/"))
    if name in ("", ".", ".."):
        return os.path.realpath(asked)
    return f"{os.path.realpath(folder).rstrip('/')}/{name}"


def _lies_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder if folder.endswith("/") else folder + "/")


def _key(path: str) -> str:
    """Return the path as a file system without regard for case and accents' spelling sees it."""
    if path.isascii():
        return path.lower()
    import unicodedata  # rarely needed, and it loads a table

    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _means_git(name: str) -> bool:
    # Windows and macOS take `.GIT`, `.git.`, `.git ` and `git~1` for the same folder.
    return name.rstrip(" .").casefold() in (".git", "git~1")
