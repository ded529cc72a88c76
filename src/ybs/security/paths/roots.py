"""The folders that tools may work in: every path of a model is resolved and judged here, and opened from here.

Paths are compared part by part after links are resolved; blocked paths come before allowed ones. What was judged
is then reached by a walk that follows no link (`opening`), and judged once more by what was opened.
"""

import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path

from ybs.config.host import Host, is_in_memory
from ybs.config.paths import SYSTEM
from ybs.core.errors import Refused
from ybs.core.remedies import Remedy
from ybs.security.paths import credentials
from ybs.security.paths.autorun import part_of
from ybs.security.paths.git_names import means_repository, plain, repository_on_the_way
from ybs.security.paths.home_links import targets_in
from ybs.security.paths.names import may_have_twins, shown_name, twins_of
from ybs.security.paths.opening import OpenEntry, held
from ybs.security.paths.own_code import OWN_CODE, code_in
from ybs.security.paths.path_text import lies_in, lies_in_one, path_of
from ybs.security.paths.second_names import BlockedFiles
from ybs.security.paths.steps import is_led_out, link_words, steps

# What the first path needs is loaded when it comes: a start has none.

_MAGIC = ("/proc", "/dev", "/sys")
_PROGRAMS = tuple(each for each in SYSTEM if each not in ("/etc", "/opt"))  # commands see them
#: Where systems keep what programs read and start in a home folder, as others do in hidden ones: macOS, and Ubuntu.
_OF_PROGRAMS = ("applications", "library", "snap")
#: What the running call alone may read outside of the folders. Each list is emptied as its call ends, for what the call may have left running.
_readable_by_call: ContextVar[tuple[list[str], ...]] = ContextVar("_readable_by_call", default=())


class OutsideRoots(Refused):
    """A path lies outside of the folders of `roots`, and in no blocked place."""

    def __init__(self, message: str, path: str, roots: "Roots") -> None:
        super().__init__(message, remedies=(Remedy("add_folder", os.path.dirname(path)),))  # noqa: PTH120
        self.path, self.roots = path, roots


class BlockedPath(Refused):
    """A path lies in a place that is blocked for every tool: `path` is where it leads, `reason` half a sentence."""

    def __init__(self, message: str, path: str, reason: str) -> None:
        super().__init__(message)
        self.path, self.reason = path, reason


def _leads_out(path: Path, tops: Sequence[str]) -> bool:
    """Return whether a path leads outside of some folders by a link that lies in one of them."""
    try:
        way = (os.path.realpath(path), *steps(str(path), has_turns=False))
    except (OSError, ValueError):  # it is replaced while it is looked at
        return True
    is_inside, *passed = (any(lies_in(each, top) for top in tops) for each in way)
    return any(passed) and not is_inside


class Roots:
    """The project's folder, the other folders allowed, and the paths that are blocked even inside them.

    `allowed` and `blocked` are a person's own settings: `~` means the home folder, and relative ones
    hang on the project's folder. All are resolved once, here; a root whose link changes later stays as it was, and one
    that leaves the project by a link is not allowed: settings are for all projects, and any may have such a link.
    The places of credentials are blocked without being named. The folder may be a copy of that of the `original` roots: then what
    is blocked there, or acted on later, is so in the copy, and rules mean that folder.
    """

    def __init__(
        self,
        host: Host,
        folder: Path,
        allowed: Sequence[str | Path] = ("./",),
        blocked: Sequence[str | Path] = (),
        *,
        original: "Roots | None" = None,
    ) -> None:
        self.host, self.folder = host, Path(os.path.realpath(folder))
        self._original = original
        #: The folder that rules and hooks mean.
        self.project = original.folder if original is not None else self.folder
        #: What an editor holds of files without having saved it, by the resolved path: it is read in place of the files.
        self.unsaved: dict[Path, bytes] = {}
        self._blocked = tuple(self._expanded(blocked))
        self._own = tuple(self._expanded(host.own_places))
        self._named = frozenset(_key(path) for path in self._blocked)
        self._roots: list[str] = []
        self._readable: list[str] = []
        self._reading: list[str] = []
        for path in (host.expand(str(each), self.folder) for each in allowed):
            if not is_led_out(host, path, self.folder):
                self.add(path)

    def add(self, folder: Path, *, is_read_only: bool = False) -> None:
        """Allow one more folder. A read-only one may be read even where it lies in a blocked path."""
        (self._readable if is_read_only else self._roots).append(os.path.realpath(folder))

    def add_named(self, folder: Path) -> None:
        """Allow a folder that the person has named. Raises Refused as `admitted` does."""
        self.add(self.admitted(folder))

    def admitted(self, folder: Path) -> Path:
        """Return a folder that the person has named, its links resolved. Raises Refused where a project's link leads there, and for a blocked one."""
        if is_led_out(self.host, folder, self.folder):
            raise Refused(f"{link_words(self.host, folder)}.")
        real = os.path.realpath(folder)
        if self.is_blocked(real):
            what = "keys, passwords or ybs's own files are there"
            raise Refused(f"{self.host.short(real)} cannot be added: {what}.")
        return Path(real)

    def add_reading(self, path: str) -> None:
        """Allow one more file or folder, its links resolved, to be read, but for what is blocked in it."""
        self._reading.append(path)

    @contextmanager
    def reading_once(self, path: str) -> Generator[None]:
        """Allow what runs here, and no call beside it, to read what `add_reading` would allow all to read."""
        paths = [path]
        token = _readable_by_call.set((*_readable_by_call.get(), paths))
        try:
            yield
        finally:
            paths.clear()
            _readable_by_call.reset(token)

    def may_read(self, real: str) -> bool:
        """Return whether a path outside of the folders may be read: where the system's programs and libraries lie, or allowed to all calls or this one."""
        allowed = (_PROGRAMS, self._reading, *_readable_by_call.get())
        return any(lies_in(real, each) for paths in allowed for each in paths)

    def holds(self, path: Path) -> bool:
        """Return whether the resolved path lies in one of the folders."""
        return any(lies_in(str(path), root) for root in self._roots)

    def leads_out(self, path: str | Path) -> bool:
        """Return whether a path leads outside by a link that lies in one of the folders, so that a project may have put it there."""
        return _leads_out(self.folder / path, self._roots)

    @property
    def reading(self) -> tuple[Path, ...]:
        """What every call may read outside of the folders."""
        return tuple(Path(path) for path in dict.fromkeys(self._reading))

    @property
    def blocked(self) -> tuple[str, ...]:
        """The paths that no tool gets at, absolute."""
        return self._blocked

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that may be written in, resolved."""
        return tuple(Path(root) for root in self._roots)

    @property
    def written(self) -> tuple[Path, ...]:
        """All folders that tools of the session write in: where this is a copy, those of the project too."""
        return (*self.folders, *(self._original.folders if self._original else ()))

    def everywhere(self) -> "Roots":
        """Return the roots of a person, who may name any file but the blocked ones."""
        return Roots(self.host, self.folder, ("/",), self._blocked)

    def resolve(self, path: str, *, is_write: bool = False, is_link_followed: bool = True) -> Path:
        r"""Return the absolute path with links resolved; `\xNN` in the text of a model stands for a byte.

        `is_link_followed=False` leaves the last part as it is, so that a link itself can be deleted. Where nothing
        is there, a path that looks the same is meant: the names of files from a Mac are decomposed, those of its
        screenshots have other spaces. Raises ToolError for a text that is not a path here, Refused for a path that
        tools may not touch, and where two look the same.
        """
        real = self.judge(path_of(path), is_write=is_write, is_link_followed=is_link_followed)
        twin = self._twin_of(str(real))
        if not twin:
            return real
        return self.judge(twin, is_write=is_write, is_link_followed=is_link_followed)

    def _twin_of(self, path: str) -> str:
        """Return the path that is there and looks the same; empty where this one is, or none. Raises Refused for two."""
        if os.path.lexists(path):
            return ""
        found, is_other = "", False
        parts = path.split("/")[1:]
        for count, part in enumerate(parts):
            name = part if os.path.lexists(f"{found}/{part}") else self._twin_in(found, part)
            if not name:  # from here on all is new
                return "/".join((found, *parts[count:])) if is_other else ""
            found, is_other = f"{found}/{name}", is_other or name != part
        return found

    def _twin_in(self, folder: str, name: str) -> str:
        """Return the one name in a folder that looks the same; empty where there is none. Raises Refused for two."""
        if not may_have_twins(name):
            return ""
        try:
            twins = sorted(twins_of(name, os.listdir(folder or "/")))  # noqa: PTH208 - a text
        except OSError:  # it may not be looked into
            return ""
        twins = [each for each in twins if not self.is_blocked(f"{folder}/{each}")]
        if len(twins) > 1:
            raise Refused(
                f"{shown_name(name)} is not there, and several names look like it: "
                f"{', '.join(map(ascii, twins))}. The person can rename them."
            )
        return "".join(twins)

    def judge(self, name: str, *, is_write: bool = False, is_link_followed: bool = True) -> Path:
        """Do what `resolve` does for a name as the system has it. Raises Refused."""
        asked = name if name.startswith("/") else f"{self.folder}/{name}"
        shown = shown_name(name)
        try:
            real = os.path.realpath(asked) if is_link_followed else _real_entry(asked)
        except OSError as error:  # a link that turned into a folder between two looks
            raise Refused(f"{shown} changed while it was being used; nothing was done") from error
        self._check_magic(shown, os.path.normpath(asked), real)
        if not is_write and self._is_readable(real):
            return Path(real)
        self._check_blocked(shown, os.path.normpath(asked), real)
        root = next((root for root in self._roots if lies_in(real, root)), None)
        if root is None and not is_write and self.may_read(real):
            return Path(real)
        if root is None:
            raise OutsideRoots(
                f"{shown} is outside the folders that ybs may work in ({self._root_names()}). "
                "The person can allow its folder.",
                real,
                self,
            )
        if is_write:
            if any(map(self.is_own_code, (real, os.path.normpath(asked)))):
                raise Refused(f"{shown} is read-only: {OWN_CODE}")
            _check_repository(name, real, root)
        return Path(real)

    def held(self, path: Path, *, make_folders: bool = False) -> AbstractContextManager[OpenEntry]:
        """Hold the folder of a path that `resolve` gave, to open what is in it; no link is followed.

        What is opened there is judged as well. Raises OSError, or Refused where the way has changed.
        """

        def judge(status: os.stat_result) -> None:
            self.check_file(path, status)

        unsaved = self.unsaved.get(path)
        return held(path, make_folders=make_folders, judge=judge, unsaved=unsaved)

    def check_file(self, path: Path, status: os.stat_result) -> None:
        """Raise Refused if the opened file is a blocked one under another name (a hard link)."""
        if self._is_blocked_link(str(path), status):
            raise Refused(
                f"{self.show(path)} is a hard link to a file of a blocked path. Work without it."
            )

    def is_blocked_link(self, real: str) -> bool:
        """Return whether the file is a blocked one under another name; for files that another program opens."""
        try:
            return self._is_blocked_link(real, os.lstat(real))
        except OSError:
            return False  # it has gone

    def is_blocked(self, real: str) -> bool:
        """Return whether the absolute path, its links resolved, lies in a blocked one."""
        key = _key(real)
        if lies_in_one(key, self._always) or lies_in_one(key, self._named):
            return True
        return self._original is not None and self._original.is_blocked(self._in_original(real))

    def is_own_code(self, path: str) -> bool:
        """Return whether the absolute path is of the code that ybs itself runs from."""
        code = frozenset(_key(each) for root in self._roots for each in code_in(root))
        return bool(code) and lies_in_one(_key(path), code)

    def blocked_in(self, folder: str) -> list[str]:
        """Return the blocked paths in a folder that are there now, and are not links that somebody has put there."""
        return [
            path
            for path in (*self._blocked, *self._never)
            if lies_in(path, folder) and os.path.lexists(path) and os.path.realpath(path) == path
        ]

    def holds_blocked(self, folder: Path) -> bool:
        """Return whether a blocked path lies in the folder, or the folder in one."""
        key = _key(str(folder))
        return self.is_blocked(str(folder)) or any(
            lies_in(path, key) for paths in (self._always, self._named) for path in paths
        )

    def show(self, path: Path) -> str:
        r"""Return the path as a model reads and writes it: relative in the project's folder, with `\xNN`."""
        return shown_name(self._relative(path))

    def autorun_part(self, path: Path, asked: str = "", *, is_link: bool = False) -> str:
        """Return the part of the path that makes it a file which other programs act on later, or nothing.

        The name as asked counts too, and so does what leads here: a link of such a name, settings of git, `PATH`. With `is_link`
        a link is to stand there, so that what is named below the path counts as well.
        """
        named = os.path.normpath(f"{self.folder}/{asked}" if asked[:1] != "/" else asked)
        if self._original is not None:
            outer = Path(self._in_original(str(path)))
            if part := self._original.autorun_part(outer, self._in_original(named)):
                return part
        own, said = (
            part_of([plain(part) for part in self.in_its_root(name).split("/")])
            for name in (str(path), named)
        )
        led = own or self._leading_to(str(path), is_link=is_link)
        return led or said or self._of_home(str(path))

    def _in_original(self, path: str) -> str:
        """Return the absolute path that one in a copy stands for; one from elsewhere as it is."""
        assert self._original is not None  # noqa: S101 - only a copy has paths that stand for others
        here, there = str(self.folder), str(self._original.folder).rstrip("/")
        return f"{there}{path[len(here) :]}" if lies_in(path, here) else path

    def _of_home(self, real: str) -> str:
        """Return the part of a path by which shells and programs read or start it, where a root holds all of the home folder.

        That is what is hidden there or in `~/Library`, what lies where PATH leads to (`~/npm` for `~/npm/bin`), and each executable file.
        """
        home = os.path.realpath(self.host.home)
        if not any(lies_in(home, root) and lies_in(real, root) for root in self._roots):
            return ""
        top = real[len(home) + 1 :].partition("/")[0] if lies_in(real, home) else ""
        if top.startswith(".") or top.lower() in _OF_PROGRAMS:
            return top
        if Path(real).is_file() and os.access(real, os.X_OK):
            return self.show(Path(real))
        for each in self.host.environ.get("PATH", "").split(os.pathsep):
            place = Path(os.path.realpath(each))
            place = place if lies_in(home, str(place.parent)) else place.parent
            if not lies_in(home, str(place)) and lies_in(real, str(place)):
                return self.show(place)
        return ""

    def _leading_to(self, real: str, *, is_link: bool) -> str:
        from ybs.security.paths.targets import leading_to

        found = (
            leading_to(self.host, root, real, is_link=is_link)
            for root in self._roots
            if lies_in(real, root)
        )
        path = next(filter(None, found), "")
        return path and self.show(Path(real if path in self._roots else path))

    @cached_property
    def _never(self) -> tuple[str, ...]:
        # A hundred looks at the disk, so not before the first path of a model.
        never = (*self._own, *_credentials(self.host))
        targets = (target for path in never for target in targets_in(path))
        return (*never, *(target for target in targets if self.holds(Path(target))))

    @cached_property
    def _always(self) -> frozenset[str]:
        return frozenset(_key(path) for path in self._never)

    @cached_property
    def _blocked_files(self) -> BlockedFiles:
        return BlockedFiles((*self._blocked, *self._never))

    def _relative(self, path: Path) -> str:
        text, folder = str(path), str(self.folder)
        if text == folder:
            return "."
        return text[len(folder.rstrip("/")) + 1 :] if lies_in(text, folder) else text

    def in_its_root(self, path: str) -> str:
        """Return a whole path from the innermost folder that it lies in."""
        root = max((root for root in self._roots if lies_in(path, root)), key=len, default="/")
        return path[len(root.rstrip("/")) + 1 :]

    def _expanded(self, paths: Iterable[str | Path]) -> Iterable[str]:
        for path in paths:
            yield os.path.realpath(self.host.expand(str(path), self.folder))

    def _root_names(self) -> str:
        return ", ".join(
            self.show(Path(root)) if root != str(self.folder) else shown_name(root)
            for root in self._roots
        )

    def _is_readable(self, real: str) -> bool:
        return any(lies_in(real, root) for root in self._readable)

    def _check_magic(self, shown: str, asked: str, real: str) -> None:
        for one in (asked, real):
            if any(lies_in(one, folder) for folder in _MAGIC) and not self._is_copy(one):
                raise Refused(
                    f"{shown} is not a regular file: files of /proc, /dev and /sys are not used"
                )

    def _is_copy(self, path: str) -> bool:
        """Return whether the path lies in a copy of a project that tools work in or read, which an incognito session has in memory."""
        copies = (root for root in (*self._roots, *self._readable) if is_in_memory(root))
        return any(lies_in(path, root) for root in copies)

    def _check_blocked(self, shown: str, asked: str, real: str) -> None:
        for path in (real,) if asked == real else (real, asked):
            key = _key(path)
            if lies_in_one(key, self._named):
                raise BlockedPath(
                    f"{shown} is in a blocked path. Work without it; only the person's own settings "
                    "(safety.sandbox_blocked_paths) can change that.",
                    real,
                    "your settings block this place",
                )
            if lies_in_one(key, self._always):
                raise BlockedPath(
                    f"{shown} is blocked: credentials, histories or ybs's own files are there, and no "
                    "setting opens them to tools. Work without it.",
                    real,
                    "keys, passwords, histories or ybs's own files are kept in that place",
                )
        if self._original is not None:
            outer, outer_real = self._in_original(asked), self._in_original(real)
            self._original._check_blocked(shown, outer, outer_real)

    def _is_blocked_link(self, real: str, status: os.stat_result) -> bool:
        if status.st_nlink < 2:  # mostly
            return False
        return not self._is_readable(real) and self._blocked_files.hold(status)


def _credentials(host: Host) -> Iterable[str]:
    yield from credentials.resolved(os.path.realpath(host.home).rstrip("/"))
    yield from credentials.SYSTEM


def _check_repository(name: str, real: str, root: str) -> None:
    # The names as asked count too: `.git` may be a link to a folder with another name.
    parts = (*real.split("/"), *os.path.normpath(name).split("/"))
    if part := next(filter(means_repository, parts), ""):
        what = "git" if plain(part) in (".git", "git~1") else "its own"
        raise Refused(
            f"{shown_name(name)}: {shown_name(part)} is read-only for file tools; use {what} commands instead"
        )
    if folder := repository_on_the_way(real, root):
        raise Refused(
            f"{shown_name(name)}: git takes {shown_name(folder)} for a repository, or would with this file; "
            "it is read-only for file tools. Use git commands instead."
        )


def _real_entry(asked: str) -> str:
    folder, name = os.path.split(asked.rstrip("/"))
    if name in ("", ".", ".."):
        return os.path.realpath(asked)
    return f"{os.path.realpath(folder).rstrip('/')}/{name}"


def _key(path: str) -> str:
    """Return the path as a file system without regard for case and accents' spelling sees it."""
    if path.isascii():
        return path.lower()
    import unicodedata  # rarely needed, and it loads a table

    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
