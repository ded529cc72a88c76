"""Cuts streamed Markdown into blocks, so that each is drawn once, when it is complete; endless ones in pieces."""

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal["markdown", "code", "plain"]
_FENCE = re.compile(r"( *)(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r" {0,3}#{1,6}(\s|$)")
#: `* * *` is a rule and no item.
_RULE = r"(?! {0,3}(?:(?:\*[ \t]*){3,}|-(?:[ \t]+-){2,}[ \t]*)$)"
_ITEM = re.compile(_RULE + r"( {0,3})([-*+]|(\d{1,9})[.)])( {1,4}(?=\S)|\s|$)")
_UNDER_HEAD = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")


class BlockLimits(Struct, frozen=True, kw_only=True):
    """How much of a block is kept until it is printed: from here on at a good place, from twice this at any."""

    lines: int = 100
    code_lines: int = 40
    list_lines: int = 24
    characters: int = 8_000
    #: Characters of one line that are kept.
    line: int = 4_000


class Block(Struct, frozen=True, kw_only=True):
    """What can be drawn by itself: a paragraph, a list, code, a heading, or a piece of a long one."""

    text: str
    kind: Kind = "markdown"
    language: str = ""
    #: It belongs to the block before it.
    goes_on: bool = False
    #: The first two lines of `text` are the head of a table that has been drawn before.
    repeats_head: bool = False
    #: Columns that it stands to the right, within a list.
    margin: int = 0


class Fence(Struct, frozen=True):
    """The line that opened code."""

    mark: str
    indent: int
    language: str


class Blocks:
    """Takes pieces of Markdown and gives back blocks. What it keeps is bounded."""

    def __init__(self, limits: BlockLimits | None = None) -> None:
        self._limits = limits or BlockLimits()
        self._partial: list[str] = []
        self._size = 0
        #: The open line began in a piece that is printed already.
        self._is_rest = False
        self._reset()

    def _reset(self) -> None:
        self._lines: list[str] = []
        self._characters = 0
        self._goes_on = False
        self._fence: Fence | None = None
        #: The lines are nothing but code: what stands in a fence at the left edge, or goes on in a list.
        self._is_code = False
        self._head = ""
        self._is_list = self._saw_blank = False
        #: The piece began in the middle of an item.
        self._is_inside = False
        self._sign, self._number, self._offset = "", 0, 0

    @property
    def open(self) -> Block | None:
        """What has come of the block in progress."""
        partial = "".join(self._partial)
        if self._is_rest and not self._is_code:
            return _rest(partial, self._margin) if partial else None
        lines = self._lines if self._is_end_of_code(partial) else [*self._lines, partial]
        block = self._block(lines)
        return block if block.text.strip() else None

    def feed(self, text: str) -> Iterator[Block]:
        """Add a piece and yield the blocks that it completes."""
        first, *lines = text.split("\n")
        yield from self._grow(first)
        for line in lines:
            yield from self._end_line()
            yield from self._grow(line)

    def finish(self) -> Iterator[Block]:
        """Yield the rest; the next piece begins a new text."""
        if self._size:
            yield from self._end_line()
        self._is_rest = False
        yield from self._close()

    def drop(self) -> None:
        """Forget the open block; the next piece begins a new text."""
        self._partial, self._size, self._is_rest = [], 0, False
        self._reset()

    # Lines, and pieces of endless lines

    def _grow(self, text: str) -> Iterator[Block]:
        self._partial.append(text)
        self._size += len(text)
        most = self._limits.line
        if self._size <= most:
            return
        line, start = "".join(self._partial), 0
        while len(line) - start > most:
            end = _place_to_cut(line, start, start + most)
            yield from self._take(line[start:end])
            yield from self._print()
            self._is_rest = True
            start = end
        self._partial, self._size = [line[start:]], len(line) - start

    def _end_line(self) -> Iterator[Block]:
        line = "".join(self._partial).removesuffix("\r")
        self._partial, self._size = [], 0
        yield from self._take(line)
        self._is_rest = False

    def _take(self, line: str) -> Iterator[Block]:
        if not self._is_rest:
            yield from self._add(line)
        elif self._is_code:
            yield from self._append(line)
        elif line.strip():
            yield _rest(line, self._margin)

    # Blocks

    def _add(self, line: str) -> Iterator[Block]:
        if self._fence:
            yield from self._add_code(line, self._fence)
            return
        if not line.strip():
            yield from self._add_blank()
            return
        if self._begins_block(line):
            yield from self._close()
        if not self._lines and not self._goes_on:
            self._is_list = _ITEM.match(line) is not None
        self._saw_blank = False
        fence = _fence_of(line, is_inside=self._is_list)
        if fence and not self._is_list:
            self._fence, self._is_code = fence, True
            return
        yield from self._append(line)
        self._fence = fence
        if _HEADING.match(line) and not self._is_list:
            yield from self._close()

    def _add_code(self, line: str, fence: Fence) -> Iterator[Block]:
        if not _closes(line, fence.mark):
            yield from self._append(line)
        elif not self._is_list:
            yield from self._close()
        elif self._is_code:
            yield from self._print()
            self._fence, self._is_code = None, False
        else:
            yield from self._append(line)
            self._fence = None

    def _add_blank(self) -> Iterator[Block]:
        if (
            self._is_list
        ):  # an indented line or another item may follow and still belong to the list
            self._saw_blank = True
            yield from self._append("")
        else:
            yield from self._close()

    def _begins_block(self, line: str) -> bool:
        if not self._lines and not self._goes_on:
            return False
        is_item = _ITEM.match(line) is not None
        if self._is_list:
            return self._saw_blank and not is_item and not line.startswith((" ", "\t"))
        return is_item or bool(_fence_of(line, is_inside=False) or _HEADING.match(line))

    def _append(self, line: str) -> Iterator[Block]:
        item = self._item(line)
        if self._is_full(line, is_item=item is not None) or (item and self._is_inside):
            yield from self._print()
        if item:
            line = self._numbered(line, item)
            self._is_inside = False
        if not self._head and len(self._lines) == 1 and not self._is_list and not self._goes_on:
            is_table = "|" in self._lines[0] and _UNDER_HEAD.match(line)
            self._head = f"{self._lines[0]}\n{line}" if is_table else ""
        self._lines.append(line)
        self._characters += len(line) + 1

    def _item(self, line: str) -> re.Match[str] | None:
        """Find the sign of an item of the outer list."""
        if not self._is_list or self._fence:
            return None
        item = _ITEM.match(line)
        is_outer = item and (not self._sign or len(item[1]) < self._offset)
        return item if is_outer else None

    def _numbered(self, line: str, item: re.Match[str]) -> str:
        """Count an item; one that begins a piece is written with the number that it has in the list."""
        sign = item[2][-1]
        self._number = self._number + 1 if sign == self._sign else int(item[3] or 0)
        self._sign = sign
        self._offset = len(item[1]) + len(item[2]) + max(1, len(item[4]))
        is_first = self._goes_on and not self._lines
        return (
            f"{item[1]}{self._number}{sign}{line[item.end(2) :]}" if item[3] and is_first else line
        )

    def _is_full(self, line: str, *, is_item: bool) -> bool:
        limits = self._limits
        most, is_border = limits.lines, True
        if self._is_code:
            most, is_border = limits.code_lines, not line.strip()
        elif self._is_list:
            most, is_border = limits.list_lines, is_item
        size = max(len(self._lines) / most, self._characters / limits.characters)
        return size >= 2 or (size >= 1 and is_border)

    # Printing

    def _close(self) -> Iterator[Block]:
        while self._is_code and self._lines and not self._lines[-1].strip():
            self._lines.pop()
        yield from self._print()
        self._reset()

    def _print(self) -> Iterator[Block]:
        """Yield what there is; what comes goes on from there."""
        block = self._block(self._lines)
        is_something = self._lines if self._is_code else block.text.strip()
        self._lines, self._characters = [], 0
        if is_something:
            yield block
            self._goes_on = True
            self._is_code = self._fence is not None
            self._is_inside = self._is_list

    def _block(self, lines: list[str]) -> Block:
        goes_on, margin = self._goes_on, self._margin
        if self._is_code and self._fence:
            text = "\n".join(_dedented(line, self._fence.indent) for line in lines)
            language = self._fence.language
            return Block(text=text, kind="code", language=language, goes_on=goes_on, margin=margin)
        if self._is_inside:
            lines = [_dedented(line, self._offset) for line in lines]
        text = "\n".join(lines).strip("\n")
        if goes_on and self._head and text:
            return Block(text=f"{self._head}\n{text}", goes_on=True, repeats_head=True)
        return Block(text=text, goes_on=goes_on, margin=margin)

    @property
    def _margin(self) -> int:
        if self._is_code and self._fence and self._is_list:
            return self._fence.indent
        return self._offset if self._is_inside else 0

    def _is_end_of_code(self, partial: str) -> bool:
        return self._is_code and self._fence is not None and set(partial) == {self._fence.mark[0]}


def _rest(text: str, margin: int) -> Block:
    """Make the block of what is left of a line: Markdown if it cannot begin anything else than words."""
    kind = "markdown" if text.lstrip()[:1].isalpha() else "plain"
    return Block(text=text, kind=kind, goes_on=True, margin=margin)


def _place_to_cut(line: str, start: int, end: int) -> int:
    """Find the last place where a word begins, else a letter, else any."""
    place = line.rfind(" ", start + 1, end)
    while place > start:
        if line[place + 1].isalpha():
            return place + 1
        place = line.rfind(" ", start + 1, place)
    return next((at for at in range(end, start, -1) if line[at].isalpha()), end)


def _fence_of(line: str, *, is_inside: bool) -> Fence | None:
    found = _FENCE.match(line)
    if not found or "`" in found[3] or (len(found[1]) > 3 and not is_inside):
        return None
    return Fence(found[2], len(found[1]), found[3].strip().partition(" ")[0])


def _closes(line: str, mark: str) -> bool:
    text = line.strip()
    return len(text) >= len(mark) and set(text) == {mark[0]}


def _dedented(line: str, columns: int) -> str:
    return line[min(columns, len(line) - len(line.lstrip(" "))) :]
