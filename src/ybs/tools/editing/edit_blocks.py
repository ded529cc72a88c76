r"""Reads SEARCH/REPLACE blocks as models write them.

    path/of/file.py
    <<<<<<< SEARCH
    the lines that are there
    =======
    the lines that shall be there
    >>>>>>> REPLACE

The text protocol for models without function calls reads a whole answer with `parse_blocks` and gives each
block to the matcher (`ybs.tools.editing.matcher.find`); `edit_file` takes one block in place of its two texts.
"""

import re

from msgspec import Struct

from ybs.core.errors import ToolError

_START = re.compile(r"[ \t]*<{5,9}[ \t]*(?:SEARCH|ORIGINAL|HEAD)[ \t]*:?[ \t]*", re.IGNORECASE)
_MIDDLE = re.compile(r"={5,9}[ \t]*")
_END = re.compile(r"[ \t]*>{5,9}[ \t]*(?:REPLACE|UPDATED)[ \t]*", re.IGNORECASE)
_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[ \t]*([^`]*?)[ \t]*")
_LABEL = re.compile(r"\A(?:(?:#+|//|\*+|[->])\s+|(?:file(?:name)?|path):\s*)+", re.IGNORECASE)
_LANGUAGE = re.compile(r"[a-z+#0-9]*", re.IGNORECASE)
_MOST_BEFORE = 3  # lines above a block in which its file may be named


class EditBlock(Struct, frozen=True):
    """One change: `old` becomes `new` in the file `path`. An empty `old` makes a new file."""

    path: str
    old: str
    new: str


class BlockError(ToolError):
    """Blocks that cannot be read for certain."""


def is_block(text: str) -> bool:
    """Return whether a text begins as a block does, perhaps with a name and a fence before, and has an end."""
    lines = [line.rstrip("\r") for line in text.split("\n") if line.strip()]
    return any(_START.fullmatch(line) for line in lines[: _MOST_BEFORE + 1]) and any(
        _END.fullmatch(line) for line in lines
    )


def parse_blocks(text: str, *, path: str = "") -> list[EditBlock]:
    """Read every block of a text; `path` is the file of those that name none.

    A block without a name belongs to the file of the one before. Raises BlockError where an end is missing,
    the middle is in doubt or no file is named.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    blocks: list[EditBlock] = []
    at = begin = 0
    while at < len(lines):
        if not _START.fullmatch(lines[at]):
            at += 1
            continue
        stop = _end(lines, at)
        path = _named(lines[begin:at]) or path
        if not path:
            raise BlockError(f"the block in line {at + 1} does not say which file it changes")
        old, new = _halves(lines[at + 1 : stop], at + 1)
        blocks.append(EditBlock(path, old, new))
        at = begin = stop + 1
    return blocks


def _end(lines: list[str], start: int) -> int:
    for number in range(start + 1, len(lines)):
        if _END.fullmatch(lines[number]):
            return number
        if _START.fullmatch(lines[number]):
            break
    raise BlockError(f"the block in line {start + 1} has no end: `>>>>>>> REPLACE` is missing")


def _halves(lines: list[str], first: int) -> tuple[str, str]:
    middles = [number for number, line in enumerate(lines) if _MIDDLE.fullmatch(line)]
    if not middles:
        raise BlockError(f"the block in line {first} has no middle: `=======` is missing")
    if len(middles) > 1:
        # A heading's underline, say: the one of seven signs divides, if it is alone.
        seven = [number for number in middles if lines[number].rstrip() == "=" * 7]
        if len(seven) != 1:
            raise BlockError(
                f"the block in line {first} has {len(middles)} lines like `=======`; "
                "which of them divides it is not clear"
            )
        middles = seven
    return _text(lines[: middles[0]]), _text(lines[middles[0] + 1 :])


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _named(lines: list[str]) -> str:
    """Return the file that the lines above a block name, the nearest first."""
    for line in [line for line in lines if line.strip()][: -_MOST_BEFORE - 1 : -1]:
        fence = _FENCE.fullmatch(line)
        said = fence[1].split(" ")[-1] if fence else line.strip()
        name = _LABEL.sub("", said.strip("*")).strip("`*\"'").rstrip(":").strip("`*\"'")
        is_word = fence and _LANGUAGE.fullmatch(name)
        if name and not is_word and " " not in name:
            return name
    return ""
