"""The search itself: `rg` counts where it can, Python looks at the lines in a process that can be killed."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

from ybs.core.errors import ToolError
from ybs.tools.child import output_of
from ybs.tools.ripgrep import counts
from ybs.tools.walk import Deadline

_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from ybs.tools.line_search import main; main()"
)
#: A set of characters, or anything behind a backslash.
_SET = re.compile(r"\\.|\[\^?\]?(?:\[:[a-z]+:\]|\\.|[^\]\\])*\]", re.DOTALL)
_CLASS = re.compile(r"\[:([a-z]+):\]")
#: https://pubs.opengroup.org/onlinepubs/9799919799/basedefs/V1_chap09.html#tag_09_03_05
_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "xdigit": "0-9A-Fa-f",
    "word": r"\w",
    "space": r"\s",
    "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~",
    "graph": "!-~",
    "print": " -~",
    "cntrl": r"\x00-\x1f\x7f",
}


class Match(Struct):
    """One matching line with the lines around it; its number counts from 1."""

    file: str
    line: int
    content: str
    context_before: list[str]
    context_after: list[str]


class Found(Struct):
    """What a search found: the first matches, how many lines match in all, and what was not looked at.

    `skipped` files were not read; of lines in the `shortened` ones only the beginning was looked at.
    """

    matches: list[Match] = field(default_factory=list[Match])
    total: int = 0
    was_cut: bool = False
    skipped: dict[str, None] = field(default_factory=dict[str, None])
    shortened: dict[str, None] = field(default_factory=dict[str, None])


class Wanted(Struct, kw_only=True):
    """What to look for, and how much of it to give back."""

    pattern: str
    context: int
    most: int


def as_python(pattern: str) -> str:
    """Return the pattern with POSIX classes such as `[[:space:]]` in the words of `re`."""

    def translated(found: re.Match[str]) -> str:
        text = found[0]
        if not text.startswith("["):
            return text
        return "[" + _CLASS.sub(lambda name: _CLASSES.get(name[1], name[0]), text[1:])

    return _SET.sub(translated, pattern) if "[:" in pattern else pattern


def find(wanted: Wanted, folder: Path, paths: Sequence[str], rg: str, deadline: Deadline) -> Found:
    """Search the files, whose paths are relative to `folder`. Raises ToolError for a wrong pattern."""
    if deadline.is_over:
        return Found(was_cut=True)
    pattern = as_python(wanted.pattern)
    counted = counts(rg, pattern, folder, paths, deadline) if rg else None
    if counted is not None:
        paths = [path for path in paths if path in counted]
        if not paths:
            return Found()
    request = {
        "pattern": pattern,
        "context": wanted.context,
        "most": wanted.most,
        "folder": str(folder),
        "paths": paths,
        "counts": counted,
    }
    command = [sys.executable, "-I", "-S", "-X", "utf8", "-W", "ignore", "-c", _START]
    try:
        output, code = output_of(
            [*command, str(Path(__file__).parents[2])],
            folder=folder,
            deadline=deadline,
            data=msgspec.json.encode(request),
        )
    except OSError as error:
        raise ToolError(f"The search could not be started: {error.strerror or error}") from error
    found = _read(output, wanted.pattern)
    found.was_cut = code < 0
    if code > 0:
        raise ToolError(
            "The search ended by a mistake of its own; use run_shell with grep instead."
        )
    return found


def _read(output: bytes, pattern: str) -> Found:
    found = Found()
    for line in output.split(b"\n")[:-1]:  # the last one may be unfinished
        kind, value = msgspec.json.decode(line)
        if kind == "match":
            found.matches.append(msgspec.convert(value, Match))
        elif kind == "total":
            found.total += value
        elif kind == "error":
            raise ToolError(
                f"The pattern {pattern!r} is no regular expression: {value}. "
                "Characters such as ( [ { . * + ? stand for themselves behind a backslash."
            )
        else:
            (found.skipped if kind == "skipped" else found.shortened)[value] = None
    found.total = max(found.total, len(found.matches))
    return found
