"""A conversation as the one message that a CLI agent takes: text, and for those that see them, pictures."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from ybs.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
    UserPart,
)
from ybs.providers.text_protocol import block, result_text
from ybs.providers.wire.pictures import base64_of, without_pictures

_BEFORE: Final = "The conversation so far, between the user and you, the assistant:"
_NOW: Final = "Answer the last message, as the assistant and without its heading."


def as_text(system: str, messages: Sequence[Message]) -> str:
    """Return all as text; pictures are named. `system` stands first, where it is not empty."""
    said = "".join(part.text for part in without_pictures(conversation(messages)))
    return f"{system}\n\n{said}" if system else said


def as_json(messages: Sequence[Message]) -> bytes:
    """Return a line of Claude Code's stream-json input: https://code.claude.com/docs/en/headless."""
    content = [_block(part) for part in conversation(messages)]
    line = {"type": "user", "message": {"role": "user", "content": content}}
    return msgspec.json.encode(line) + b"\n"


def conversation(messages: Sequence[Message]) -> list[UserPart]:
    """Return a conversation as the parts of one message: plain where only the person has spoken."""
    if not any(isinstance(each, AssistantMessage) for each in messages):
        return _joined(part for each in messages for part in (*_parts(each), Text(text="\n\n")))
    parts: list[UserPart] = [Text(text=f"{_BEFORE}\n\n")]
    for each in messages:
        name = "assistant" if isinstance(each, AssistantMessage) else "user"
        parts += [Text(text=f"## {name}\n\n"), *_parts(each), Text(text="\n\n")]
    return _joined([*parts, Text(text=_NOW)])


def _parts(message: Message) -> Iterable[UserPart]:
    match message:
        case UserMessage():
            return message.content
        case ToolResult():
            return result_text(message).content
        case AssistantMessage():
            said = (p for p in message.content if isinstance(p, Text | ToolCall))
            return [p if isinstance(p, Text) else Text(text=f"\n{block(p)}") for p in said]


def _joined(parts: Iterable[UserPart]) -> list[UserPart]:
    """Join texts that stand side by side."""
    joined: list[UserPart] = []
    for part in parts:
        if isinstance(part, Text) and joined and isinstance(last := joined[-1], Text):
            joined[-1] = Text(text=last.text + part.text)
        else:
            joined.append(part)
    if joined and isinstance(last := joined[-1], Text):
        joined[-1] = Text(text=last.text.rstrip())
    return [part for part in joined if isinstance(part, Image) or part.text]


def _block(part: UserPart) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    source = {"type": "base64", "media_type": part.media_type, "data": base64_of(part)}
    return {"type": "image", "source": source}
