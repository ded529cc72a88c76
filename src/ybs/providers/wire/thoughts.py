"""Thinking that a server leaves in the text of an answer: `<think>…</think>` and its sisters.

It is told from talk about such tags by its place: it opens the answer. An opening tag that stood in the prompt already is
missing, so a closing one outside of code ends thinking too. What was never closed is thinking to its end.
"""

import re
from collections.abc import Iterator
from typing import Final

from ybs.core.lazy import lazy

_NAMES: Final = (
    *("think", "thinking", "thought", "thoughts", "reasoning", "seed:think"),
    *("THINK", "THINKING", "Thinking", "REASONING_SCRATCHPAD"),
)
#: What begins thinking, and what ends it.
_BRACKETS: Final = {
    **{f"<{name}>": tuple(f"</{each}>" for each in _NAMES) for name in _NAMES},
    "[THINK]": ("[/THINK]",),  # Magistral
    "◁think▷": ("◁/think▷",),  # Kimi
    "<|channel|>analysis<|message|>": ("<|end|>", "<|start|>assistant"),  # gpt-oss
    "<|channel>thought": ("<channel|>",),  # Gemma
    "<|START_THINKING|>": ("<|END_THINKING|>",),  # Command
    "<|begin_of_thought|>": ("<|end_of_thought|>",),
}
_CLOSING: Final = tuple(dict.fromkeys(each for ends in _BRACKETS.values() for each in ends))
#: What stands between the thinking and the answer, and says nothing.
_EMPTY: Final = ("<|start|>assistant", "<|channel|>final<|message|>", *_CLOSING)
_MARKS: Final = tuple(sorted({*_BRACKETS, *_EMPTY}, key=len, reverse=True))
#: A closing tag without its opening one: not in quotes, and not a word of a sentence.
_ALONE = lazy(
    r"(?<![ \t`'\"(])(?:" + "|".join(map(re.escape, _CLOSING[: len(_NAMES)])) + r")(?![`'\")])"
)


class LeadingThoughts:
    """Tells the thinking at the beginning of an answer from what follows, as it comes in pieces.

    `feed` and `close` yield pieces, each with whether it is thinking. Once `is_over` the rest is the answer.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._held = ""
        self._ends: tuple[str, ...] = ()  # of the thinking at hand
        self._last = ""  # what stood before what is held
        self._was_found = False

    @property
    def is_holding(self) -> bool:
        """Whether something has come that is not decided."""
        return bool(self._held)

    def feed(self, text: str) -> Iterator[tuple[str, bool]]:
        """Take a piece of the answer and yield what is decided by now."""
        self._held += text
        while self._held and not self.is_over:
            piece = self._think() if self._ends else self._begin()
            if piece is None:
                return
            if piece[0]:
                yield piece

    def close(self) -> Iterator[tuple[str, bool]]:
        """Yield the text that was held back; the answer goes on with something else, or ends."""
        held, self._held = self._held, ""
        is_thinking, self._ends, self.is_over = bool(self._ends), (), True
        if held and (is_thinking or held.strip() or not self._was_found):
            yield held, is_thinking

    def _begin(self) -> tuple[str, bool] | None:
        """Take a mark off the beginning; return the answer where there is none, None where that is not decided."""
        text = self._held.lstrip()
        mark = next((each for each in _MARKS if text.startswith(each)), "")
        if mark:
            self._held, self._ends = text[len(mark) :], _BRACKETS.get(mark, ())
            self._was_found = True
            return "", False
        if any(each.startswith(text) for each in _MARKS):
            return None
        self.is_over = True
        said, self._held = (text if self._was_found else self._held), ""
        return said, False

    def _think(self) -> tuple[str, bool] | None:
        """Return thinking, up to its end where that has come; None where only the beginning of one is there."""
        held = self._held
        found = [(at, end) for end in self._ends if (at := _find(held, end, self._last)) >= 0]
        if found:
            at, end = min(found)
            self._held, self._ends = held[at + len(end) :], ()
            self._last = ""
            return held[:at], True
        rest = len(held) - max(_overlap(held, end) for end in self._ends)
        thought, self._held = held[:rest], held[rest:]
        self._last = thought[-1:] or self._last
        return (thought, True) if thought else None


def _find(text: str, mark: str, before: str) -> int:
    """Return where the mark stands without a quote before it, or -1; `before` is the character before the text."""
    at = text.find(mark)
    while at >= 0 and (text[at - 1] if at else before or " ") in "`'\"":
        at = text.find(mark, at + 1)
    return at


def _overlap(text: str, mark: str) -> int:
    """Return how much of the beginning of the mark stands at the end of the text."""
    most = min(len(mark) - 1, len(text))
    return next((n for n in range(most, 0, -1) if text.endswith(mark[:n])), 0)


def is_closing(text: str) -> bool:
    """Return whether a closing tag stands in these words, whatever stands before them."""
    return "</" in text and _ALONE().search(text) is not None


def split_unopened(text: str) -> tuple[str, str] | None:
    """Return thinking and answer where a closing tag stands between them, whose opening one was in the prompt; else None."""
    if "</" not in text:
        return None
    for found in re.finditer(_ALONE(), text):
        before = text[: found.start()]
        line = before.rpartition("\n")[2]
        if before.count("```") % 2 == 0 and line.count("`") % 2 == 0:
            is_opened = any(f"<{name}>" in before for name in _NAMES)
            return None if is_opened else (before, text[found.end() :].lstrip())
    return None


def without_thoughts(text: str) -> str:
    """Return a whole answer without the thinking in it."""
    reader = LeadingThoughts()
    pieces = [*reader.feed(text), *reader.close()]
    said = "".join(piece for piece, is_thinking in pieces if not is_thinking)
    split = split_unopened(said)
    return split[1] if split else said
