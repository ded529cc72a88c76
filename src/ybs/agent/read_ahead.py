"""Looking ahead for small models: what a request names is read before the model is asked, by the tools it would call itself.

A small model answers without looking, or takes a step to read the one file that the words name. So the first step of a turn
is made for it: calls that only read, which run under the same rules as any other, and which the model finds in its
conversation as its own.
"""

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Raw

from ybs.core.errors import ToolError
from ybs.core.events import AssistantSaid, Event
from ybs.core.lazy import lazy
from ybs.core.messages import AssistantMessage, Message, ToolCall, UserMessage
from ybs.core.ports import Model, Request
from ybs.core.wishes import (
    files_in,
    paths_in,
    wishes_change,
    wishes_gone,
    wishes_new,
    wishes_run,
    without_commands,
)
from ybs.core.wrapper import ModelWrapper
from ybs.security.paths.roots import Roots

#: A larger file would fill the window of a small model; it reads that in parts.
MOST_BYTES = 6_000
MOST_CALLS = 2
#: How the ids of these calls begin.
_SIGN = "ahead_"
#: A name in a program: in capitals, or with an underscore or a capital within.
_NAME = lazy(r"\b(?:[A-Z]{4,}|[A-Za-z]\w*_\w+|[A-Za-z]?[a-z]+[A-Z]\w+)\b")


class ReadAhead(ModelWrapper):
    """A Model that makes the first step of a turn by itself where the person's words name what to look at."""

    def __init__(self, model: Model, roots: Roots) -> None:
        super().__init__(model)
        self._roots = roots

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the calls that look ahead, else stream the model's answer."""
        words = new_words(request.messages)
        offered = {tool.name for tool in request.tools}
        found = (call for call in self._calls(words) if call.name in offered) if words else ()
        if calls := tuple(islice(found, MOST_CALLS)):
            message = AssistantMessage(content=calls, stop_reason="tool_calls", model=self.name)
            yield AssistantSaid.of(message)
            return
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                yield event

    def _calls(self, words: str) -> Iterator[ToolCall]:
        """Yield calls that look at the files and folders that the words have, else for what may be one, and for names."""
        # Whoever wants something run wants its output; nor is what is to go away read first.
        if wishes_run(words) or wishes_gone(words):
            return
        if not wishes_change(words):  # else what a failing command names is worth reading
            words = without_commands(words)
        paths = paths_in(words)
        kinds = {path: self._kind(path) for path in paths}
        yield from (_call("read_file", path=path) for path in paths if kinds[path] == "file")
        for path in (path for path in paths if kinds[path] == "folder"):
            yield _call("list_files", pattern="*", path=path)
        if not (any(kinds.values()) or wishes_new(words)):
            yield from _searches(words)

    def _kind(self, path: str) -> str:
        """Return whether there is a small file of this name, or a folder; nothing where tools may not look."""
        if path in (".", "..") or path.startswith("/"):
            return ""
        try:
            found: Path = self._roots.resolve(path)
            if found.is_dir():
                return "folder" if found != self._roots.folder else ""
            return "file" if found.is_file() and found.stat().st_size <= MOST_BYTES else ""
        except (ToolError, OSError):
            return ""


def missing_in(words: str, roots: Roots) -> Iterator[str]:
    """Yield a sentence for each file that the words name and that is not there, where they ask for something new."""
    if not (wishes_change(words) and wishes_new(words)):
        return
    for path in files_in(words):
        try:
            if not roots.resolve(path).exists():
                yield f"{path} is not there yet: write_file makes it."
        except (ToolError, OSError):
            continue


def _searches(words: str) -> Iterator[ToolCall]:
    """Yield calls that look for the first file that the words name, else for names in the code."""
    if name := next((path.rpartition("/")[2] for path in files_in(words)), ""):
        yield _call("list_files", pattern=f"**/{name}")
    else:
        yield from (_call("search_files", pattern=each) for each in re.findall(_NAME(), words))


def new_words(messages: Sequence[Message]) -> str:
    """Return what the person said last, where the model has not answered to it yet; else nothing."""
    for message in reversed(messages):
        if not isinstance(message, UserMessage):
            return ""
        if message.origin == "person":
            return message.words
    return ""


def looks_ahead(message: AssistantMessage) -> bool:
    """Return whether the calls of a message were made for the model, not by it."""
    return any(call.id.startswith(_SIGN) for call in message.calls)


def _call(name: str, **arguments: str) -> ToolCall:
    made = Raw(msgspec.json.encode(arguments))
    return ToolCall(id=f"{_SIGN}{'_'.join(arguments.values())}"[:40], name=name, arguments=made)
