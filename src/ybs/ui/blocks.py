"""Cuts streamed Markdown into blocks, so that each is drawn once, when it is complete."""

import re
from collections.abc import Iterator

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r" {0,3}#{1,6}(\s|$)")
_ITEM = re.compile(r" {0,3}([-*+]|\d{1,9}[.)])(\s|$)")


class Blocks:
    """Takes pieces of Markdown and gives back whole blocks: a paragraph, a list, a fence, a heading."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._partial = ""
        self._fence = ""
        self._is_list = False
        self._saw_blank = False

    @property
    def rest(self) -> str:
        """What has come of the block in progress."""
        return "\n".join([*self._lines, self._partial]).strip("\n")

    def feed(self, text: str) -> Iterator[str]:
        """Add a piece and yield the blocks that it completes."""
        *lines, self._partial = (self._partial + text).split("\n")
        for line in lines:
            yield from self._add(line.removesuffix("\r"))

    def finish(self) -> Iterator[str]:
        """Yield what is left; the next piece begins a new text."""
        partial, self._partial = self._partial, ""
        if partial:
            yield from self._add(partial)
        yield from self._close()

    def _add(self, line: str) -> Iterator[str]:
        if self._fence:
            self._lines.append(line)
            if _closes(line, self._fence) and not self._is_list:
                yield from self._close()
            elif _closes(line, self._fence):
                self._fence = ""
            return
        if not line.strip():
            yield from self._add_blank()
            return
        if self._begins_block(line):
            yield from self._close()
        self._saw_blank = False
        self._is_list = self._is_list or (not self._lines and _ITEM.match(line) is not None)
        self._lines.append(line)
        fence = _FENCE.match(line.lstrip() if self._is_list else line)
        if fence and "`" not in fence[2]:
            self._fence = fence[1]
        elif _HEADING.match(line) and not self._is_list:
            yield from self._close()

    def _add_blank(self) -> Iterator[str]:
        if (
            self._is_list
        ):  # an indented line or another item may follow and still belong to the list
            self._saw_blank = True
            self._lines.append("")
        else:
            yield from self._close()

    def _begins_block(self, line: str) -> bool:
        if not self._lines:
            return False
        is_item = _ITEM.match(line) is not None
        if self._is_list:
            return self._saw_blank and not is_item and not line.startswith((" ", "\t"))
        return is_item or bool(_FENCE.match(line) or _HEADING.match(line))

    def _close(self) -> Iterator[str]:
        block = "\n".join(self._lines).strip("\n")
        self._lines, self._fence, self._is_list, self._saw_blank = [], "", False, False
        if block.strip():
            yield block


def _closes(line: str, fence: str) -> bool:
    text = line.strip()
    return len(text) >= len(fence) and set(text) == {fence[0]}
