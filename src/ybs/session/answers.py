"""What the model answered, turn by turn, and the code in it."""

import re
from collections.abc import Sequence

from ybs.core.messages import AssistantMessage, Message, UserMessage

_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})([^`]*)$")


def answers_of(messages: Sequence[Message]) -> list[str]:
    """Return the last words of the model in each turn, the newest first; turns without any are left out."""
    answers: list[str] = []
    latest = ""
    for message in (*messages, None):
        match message:
            case UserMessage(origin="guard" | "context"):
                pass
            case UserMessage() | None:
                answers += [latest] if latest else []
                latest = ""
            case AssistantMessage() if message.text.strip():
                latest = message.text.strip("\n")
            case _:
                pass
    return answers[::-1]


def last_code(text: str) -> str | None:
    """Return what stands in the last code block of a Markdown text, or None where there is none."""
    found: str | None = None
    lines = iter(text.split("\n"))
    for line in lines:
        if (opened := _FENCE.match(line)) is not None:
            margin, fence = len(opened[1]), opened[2]
            block: list[str] = []
            for inner in lines:
                end = inner.strip()
                if len(end) >= len(fence) and set(end) == {fence[0]}:
                    break
                block.append(_shifted(inner, margin))
            found = "\n".join(block)
    return found


def _shifted(line: str, margin: int) -> str:
    """Take away the indentation that the fence has too."""
    return line[min(margin, len(line) - len(line.lstrip(" \t"))) :]
