"""A configuration file in hand: its tree of values, and warnings that name file, line and key."""

import os
import stat
from errno import EINVAL
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self, TypeAlias

import msgspec

from ybs.config.tree import DEEPEST, KeyPath, is_list, is_object
from ybs.core.errors import ConfigError
from ybs.core.lazy import lazy

#: `own` is the user's or the system's; `project` lies in the project's folder and is never trusted.
Rule: TypeAlias = Literal["own", "project"]

LARGEST_BYTES = 256_000
BYTE_ORDER_MARK = "\ufeff"
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class Unusable(ConfigError):
    """The file is there and cannot be used; the text says why and what to do, `line` where it is known."""

    def __init__(self, words: str, line: int = 0) -> None:
        super().__init__(words)
        self.line = line


def place_of(path: Path, error: Unusable) -> str:
    """Name the file, with the line where it is known."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(path))
    return text + (f":{error.line}" if error.line else "")


def read(path: Path, rule: Rule) -> str | None:
    """Return the file's text, or None where there is no such file.

    Raises Unusable.
    """
    try:
        with _opened(path, rule) as file:
            data = file.read(LARGEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise Unusable(f"cannot be read ({reason})") from error
    return text_of(data)


def text_of(data: bytes) -> str:
    """Return the text that a configuration file holds. Raises Unusable."""
    if len(data) > LARGEST_BYTES:
        raise Unusable(_TOO_LARGE)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unusable("is not UTF-8 text", line) from error


_TOO_LARGE = f"is larger than {LARGEST_BYTES // 1000} kB, which no configuration needs"


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read it, links followed. Raises OSError, also where it is a pipe or a device, which would be waited for."""
    handle = os.open(path, _FLAGS)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(EINVAL, "it is not a regular file", str(path))
    return open(handle, "rb")  # noqa: PTH123 - opened by descriptor


def open_own(path: Path) -> BinaryIO:
    """Open a file that speaks for the person, links followed: settings, commands, skills and the like are theirs only where nobody else can write them.

    Raises Unusable for one that is another user's, can be written by others, or is not a regular file, and OSError.
    """
    return _opened(path, "own")


def _opened(path: Path, rule: Rule) -> BinaryIO:
    # Looking first keeps devices unopened; looking again at the open file closes the gap between.
    _check(path, path.stat(follow_symlinks=rule == "own"), rule)
    file = open(os.open(path, _FLAGS | (0 if rule == "own" else os.O_NOFOLLOW)), "rb")  # noqa: PTH123, SIM115 - by descriptor, for who asks
    try:
        _check(path, os.fstat(file.fileno()), rule)
    except BaseException:
        file.close()
        raise
    return file


def _check(path: Path, facts: os.stat_result, rule: Rule) -> None:
    if stat.S_ISLNK(facts.st_mode):
        raise Unusable("is a link, and links in a project are not followed")
    if not stat.S_ISREG(facts.st_mode):
        raise Unusable("is not a regular file")
    owners = {0, os.getuid()}
    if rule == "project":
        # A checkout may belong to somebody else as a whole; a file slipped into /tmp does not.
        owners.add(path.parent.stat().st_uid)
    elif others_may_write(facts):
        mode = stat.S_IMODE(facts.st_mode)
        raise Unusable(f"can be written by others (mode {mode:04o}); run: chmod go-w '{path}'")
    if facts.st_uid not in owners:
        raise Unusable(f"belongs to another user (uid {facts.st_uid})")


def others_may_write(facts: os.stat_result) -> bool:
    """Return whether the mode of a file or folder lets others than its owner write, unless that is a group of the person's alone."""
    if facts.st_mode & stat.S_IWOTH:
        return True
    return bool(facts.st_mode & stat.S_IWGRP) and not _is_private(facts.st_gid)


@cache
def _is_private(group: int) -> bool:
    """Return whether a group is the person's alone: where everybody has one of their own, files are made for it to write (umask 002)."""
    import grp  # few files are of such a mode
    import pwd

    try:
        name, found = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_name == name and {*found.gr_mem} <= {name}


MOST_WARNINGS = 20
MOST_KEYS_NAMED = 12
_TOKEN = lazy(r'\n|"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"|[{}\[\],:]|[^\s{}\[\],:"]++')


class SettingsDocument:
    """The values of one source of settings, and a place for complaints about them.

    `text` is empty where there is no file; a warning then names no line.
    """

    def __init__(self, source: str, text: str = "", prefix: KeyPath = ()) -> None:
        self.source, self.text, self.prefix = source, text, prefix
        self.tree: dict[str, Any] = {}
        self.warnings: list[str] = []
        self.complaints = 0
        self._known_lines: dict[KeyPath, int] | None = None

    def warn(self, path: KeyPath, words: str) -> str:
        """Note what is wrong with a key. Return the warning."""
        self.complaints += 1
        key = f"{dotted(self.prefix + path)}: " if self.prefix + path else ""
        warning = f"{self.place(path)}: {key}{words}"
        if self.complaints <= MOST_WARNINGS:
            self.warnings.append(warning)
        return warning

    def warn_of_all(self, paths: list[tuple[str, ...]], words: str) -> None:
        """Say the same of several keys, in one warning that is never left out."""
        named = ", ".join(dotted(path) for path in paths[:MOST_KEYS_NAMED])
        more = len(paths) - MOST_KEYS_NAMED
        and_more = f" and {more} more" if more > 0 else ""
        self.warnings.append(f"{self.place(paths[0])}: {words}: {named}{and_more}")

    def all_warnings(self) -> list[str]:
        """Return the warnings, with a word on those that were left out."""
        left_out = self.complaints - MOST_WARNINGS
        more = [f"{visible(self.source)}: and {left_out} more problems"] if left_out > 0 else []
        return self.warnings + more

    def place(self, path: KeyPath) -> str:
        """Name the source, with the line of the key where it is known."""
        path = self.prefix + path
        while path and path not in self._lines:
            path = path[:-1]
        line = self._lines.get(path, 1 if self.text else None)
        return visible(self.source) + (f":{line}" if line else "")

    def holding(self, tree: dict[str, Any]) -> Self:
        """Return this document, with its values."""
        self.tree = tree
        return self

    @property
    def _lines(self) -> dict[KeyPath, int]:
        if self._known_lines is None:
            self._known_lines = lines_of(self.text)
        return self._known_lines


def lines_of(text: str) -> dict[KeyPath, int]:
    """Return the line of each key and of each entry of a list in JSON, by the way to it."""
    lines: dict[KeyPath, int] = {}
    path: list[str | int] = []
    line, name = 1, ""
    for piece in _TOKEN().findall(text):
        if piece == "\n":
            line += 1
        elif piece in ("}", "]"):
            path.pop()
        elif piece == ":":
            path[-1] = msgspec.json.decode(name)
            lines[tuple(path)] = line
        elif piece == ",":
            if isinstance(place := path[-1], int):
                path[-1] = place + 1
        else:
            if path and isinstance(path[-1], int):
                lines[tuple(path)] = line
            name = piece
            path += [""] if piece == "{" else [0] if piece == "[" else []
    return lines


def open_document(path: Path, rule: Rule) -> SettingsDocument | None:
    """Read a file's values, or return None where there is no such file.

    Of two equal keys in an object the last one holds; JSON (RFC 8259) leaves that open. Raises Unusable where nothing of it can be used.
    """
    text = read(path, rule)
    return None if text is None else parse(path, text)


def parse(path: Path, text: str) -> SettingsDocument:
    """Make a document of a file's text. Raises Unusable where nothing of it can be used."""
    document = SettingsDocument(str(path), text.removeprefix(BYTE_ORDER_MARK))
    value: Any = _decode(document.text) if document.text.strip() else dict[str, Any]()
    if not is_object(value):
        raise Unusable("is not a JSON object: it must begin with { and end with }", 1)
    if text.startswith(BYTE_ORDER_MARK):
        document.warn((), "begins with a byte order mark, which is ignored")
    return document.holding(value)


def profile_in(document: SettingsDocument, name: str) -> SettingsDocument:
    """Return one of the profiles in a document as a document of its own. Raises ConfigError for what is not an object."""
    view = SettingsDocument(document.source, document.text, ("profiles", name))
    settings = document.tree["profiles"][name]
    if not is_object(settings):
        raise ConfigError(view.warn((), "must be an object, in { }"))
    if "profiles" in settings:
        view.warn(("profiles",), "a profile cannot contain profiles; this is ignored")
    return view.holding({key: value for key, value in settings.items() if key != "profiles"})


def _decode(text: str) -> Any:
    """Return the value that a text is. Raises Unusable."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError) as error:
        words = str(error).removeprefix("JSON is malformed: ").partition(" (byte ")
        at = int(words[2].rstrip(")") or -1)
        line = text.encode(errors="replace")[:at].count(b"\n") + 1
        raise Unusable(f"is not valid JSON: {words[0]}", line) from error
    except RecursionError as error:
        raise Unusable("is nested too deep", 1) from error
    if _is_deeper(value, DEEPEST):
        raise Unusable("is nested too deep", 1)
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    """Return whether objects and lists are nested deeper than so many levels."""
    items = value.values() if is_object(value) else value if is_list(value) else None
    if items is None:
        return False
    return not levels or any(_is_deeper(item, levels - 1) for item in items)


def dotted(path: KeyPath) -> str:
    """Write a way to a value as a person would: `tools.external[1].name`."""
    words = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return visible(words.removeprefix("."), 100)


#: Of signs that stand for themselves, those that look like nothing: what is behind many would be out of sight.
_GAP = lazy("[ \u2800]{40,}")


def visible(text: str, longest: int | None = 500) -> str:
    """Escape what a terminal would act on, count long gaps, and cut what is too long; None cuts nothing."""
    text = _GAP().sub(lambda gap: f" <{len(gap[0])} spaces> ", text)
    cut = text if longest is None or len(text) <= longest else text[: longest - 3] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


_MARK = "unusable: "
#: How a warning ends; an error says what to do instead.
LEFT_OUT = "; it is ignored"
NOTHING_SENT = "; nothing is sent until this is corrected"


def is_address(path: KeyPath) -> bool:
    """Return whether a setting says where words are sent."""
    way = path[2:] if path[:1] == ("profiles",) else path
    if way[:1] == ("providers",):
        return len(way) == 3 and way[2] == "endpoint"
    return way in {("llm", "endpoint"), ("llm", "provider")}


def mark(complaint: str) -> str:
    """Return what stands in place of an address that cannot be read."""
    return _MARK + complaint


def complaint_of(address: str | None) -> str | None:
    """Return what is wrong with an address that is marked, or None for any other."""
    if address is None or not address.startswith(_MARK):
        return None
    return address.removeprefix(_MARK).removesuffix(NOTHING_SENT)
