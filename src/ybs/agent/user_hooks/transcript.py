"""The conversation as a file that hooks read, in the format of Claude Code's transcripts."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from ybs.agent.user_hooks.definitions import shown_arguments, shown_name
from ybs.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
)

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class HookTranscript:
    """A file for hooks, also for those in the sandbox. What was written stays as long as the conversation goes on behind it."""

    def __init__(self, folder: Path, mask: Callable[[str], str]) -> None:
        """`folder` is the project's; `mask` hides secrets."""
        self._folder, self._mask, self._lock = folder, mask, Lock()
        self._path: Path | None = None
        self._written: list[Message] = []

    def write(self, path: Path, session: str, messages: Sequence[Message]) -> str:
        """Bring the file up to these messages and return its path; an empty one where it cannot be written."""
        with self._lock:
            count = len(self._written)
            goes_on = path == self._path and len(messages) >= count
            goes_on = goes_on and all(
                old is new for old, new in zip(self._written, messages, strict=False)
            )
            new = messages[count:] if goes_on else messages
            text = "".join(self._lines(session, new))
            try:
                handle = os.open(path, _FLAGS | (os.O_APPEND if goes_on else os.O_TRUNC), 0o600)
                with open(handle, "wb") as file:  # noqa: PTH123 - opened by descriptor
                    file.write(self._mask(text).encode(errors="replace"))
            except OSError:
                return ""
            self._path, self._written = path, list(messages)
        return str(path)

    def _lines(self, session: str, messages: Sequence[Message]) -> Iterator[str]:
        for message in messages:
            kind = "assistant" if isinstance(message, AssistantMessage) else "user"
            line: dict[str, Any] = {
                "type": kind,
                "message": {"role": kind, **self._said(message)},
                "sessionId": session,
                "cwd": str(self._folder),
            }
            if isinstance(message, UserMessage) and message.origin != "person":
                line["isMeta"] = True
            yield msgspec.json.encode(line).decode() + "\n"

    def _whole(self, path: str) -> str:
        return str(self._folder / path)

    def _said(self, message: Message) -> dict[str, Any]:
        match message:
            case UserMessage():
                texts = [part.text for part in message.content if isinstance(part, Text)]
                texts += ["[image]" for part in message.content if isinstance(part, Image)]
                return {"content": "\n".join(texts)}
            case AssistantMessage():
                usage = message.usage
                return {
                    "model": message.model,
                    "content": [*self._parts(message)],
                    "usage": {
                        "input_tokens": usage.input_tokens
                        - usage.cached_tokens
                        - usage.cache_write_tokens,
                        "output_tokens": usage.output_tokens,
                        "cache_read_input_tokens": usage.cached_tokens,
                        "cache_creation_input_tokens": usage.cache_write_tokens,
                    },
                }
            case ToolResult():
                result = {
                    "type": "tool_result",
                    "tool_use_id": message.call_id,
                    "content": message.output,
                    "is_error": message.is_error or message.is_refused,
                }
                return {"content": [result]}

    def _parts(self, message: AssistantMessage) -> Iterator[dict[str, Any]]:
        for part in message.content:
            if isinstance(part, Text):
                yield {"type": "text", "text": part.text}
            elif isinstance(part, ToolCall):
                arguments = msgspec.json.decode(part.arguments, type=dict[str, Any])
                shown = shown_arguments(part.name, arguments, self._whole)
                yield {
                    "type": "tool_use",
                    "id": part.id,
                    "name": shown_name(part.name),
                    "input": shown,
                }
