"""Looking ahead for small models: what a request names is read before the model is asked, by the tools it would call itself.

A small model answers without looking, or takes a step to read the one file that the words name. So the first step of a turn
is made for it: calls that only read, which run under the same rules as any other, and which the model finds in its
conversation as its own.
"""

import os
import re
from collections.abc import AsyncGenerator, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from itertools import islice
from pathlib import Path
from typing import Self

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.core.errors import ToolError
from ybs.core.events import AssistantSaid, Event
from ybs.core.lazy import lazy
from ybs.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage
from ybs.core.ports import Model, Request
from ybs.core.topics import names_in, topics_in
from ybs.core.wishes import (
    files_in,
    output_wanted_of,
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
#: A folder with more entries is searched, not listed.
MOST_ENTRIES = 60
#: How many words are searched for, one after the other, until one is found.
MOST_TRIES = 3
#: How many lines a search shows.
MOST_LINES = 10


_DECLARED = lazy(r"(?i)\b(?:declar|defin|implement)")
DECLARES = (
    "class|const|def|enum|fn|func|function|impl|interface|let|module|static|struct|trait|type|var"
)


class ReadAhead(ModelWrapper):
    """A Model that makes the first step of a turn by itself where the person's words name what to look at."""

    def __init__(self, model: Model, roots: Roots) -> None:
        super().__init__(model)
        self._roots = roots

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the calls that look ahead, else stream the model's answer."""
        words = new_words(request.messages)
        offered = {tool.name for tool in request.tools}
        due = self._calls(words) if words else self._next_tries(request.messages)
        if calls := tuple(islice((call for call in due if call.name in offered), MOST_CALLS)):
            message = AssistantMessage(content=calls, stop_reason="tool_calls", model=self.name)
            yield AssistantSaid.of(message)
            return
        told = replace(request, messages=_without_vain(request.messages))
        async with aclosing(self._model.stream(told)) as events:
            async for event in events:
                yield event

    def _calls(self, words: str) -> Iterator[ToolCall]:
        """Yield calls that look at the files and folders that the words have, else for what may be one, and for names."""
        # Whoever wants something run wants its output; nor is what is to go away read first.
        if wishes_run(words) or wishes_gone(words) or output_wanted_of(words):
            return
        if not wishes_change(words):  # else what a failing command names is worth reading
            words = without_commands(words)
        paths = paths_in(words)
        kinds = {path: self._kind(path) for path in paths}
        yield from (_call("read_file", path=path) for path in paths if kinds[path] == "file")
        folders = [path for path in paths if kinds[path] == "folder"]
        pattern = "" if wishes_change(words) else next(_patterns(words, folders), "")
        for path in dict.fromkeys(path.rstrip("/") for path in folders):
            yield _search(pattern, path) if pattern else _list(path)
        if any(kinds.values()) or wishes_new(words):
            return
        if name := next((path.rpartition("/")[2] for path in files_in(words)), ""):
            yield _call("list_files", pattern=f"**/{name}")
        elif names_in(words):  # other words may be about anything: "What is the capital of France?"
            yield _search(pattern or next(_patterns(words, ())), ".")

    def _next_tries(self, messages: Sequence[Message]) -> Iterator[ToolCall]:
        """Yield what comes after searches that were made ahead and found nothing: other words, else a list of the folder."""
        found: dict[str, str] = {}
        searched: dict[str, set[str]] = {}  # what, by where
        for message in reversed(messages):
            if isinstance(message, ToolResult):
                found[message.call_id] = message.output
            elif isinstance(message, UserMessage):
                if message.origin == "person":
                    yield from self._tries(message.words, searched)
                return
            elif not looks_ahead(message):
                return
            else:
                for call in message.calls:
                    arguments = _Searched.of(call)
                    if not found.get(call.id, "").startswith("No matches"):
                        return
                    searched.setdefault(arguments.path, set()).add(arguments.pattern)

    def _tries(self, words: str, searched: Mapping[str, Container[str]]) -> Iterator[ToolCall]:
        for path, patterns in searched.items():
            left = (each for each in _patterns(words, searched) if each not in patterns)
            if pattern := next(left, ""):
                yield _search(pattern, path)
            elif path != "." and not self._is_full(path):
                yield _list(path)

    def _is_full(self, path: str) -> bool:
        """Return whether a folder has more than a small model should read of."""
        try:
            with os.scandir(self._roots.resolve(path)) as entries:
                return len(list(islice(entries, MOST_ENTRIES + 1))) > MOST_ENTRIES
        except (ToolError, OSError):
            return True

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


def new_words(messages: Sequence[Message]) -> str:
    """Return what the person said last, where the model has not answered to it yet; else nothing."""
    for message in reversed(messages):
        if not isinstance(message, UserMessage):
            return ""
        if message.origin == "person":
            return message.words
    return ""


def _without_vain(messages: Sequence[Message]) -> Sequence[Message]:
    """Return messages without the searches that were made ahead, found nothing, and were followed by another look."""
    vain = {m.call_id for m in messages if isinstance(m, ToolResult) and _found_nothing(m)}
    kept: list[Message] = []
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and looks_ahead(message):
            is_vain = all(call.id in vain for call in message.calls)
            rest = (m for m in messages[place + 1 :] if not isinstance(m, ToolResult))
            after = next(rest, None)
            if is_vain and isinstance(after, AssistantMessage) and looks_ahead(after):
                continue
            vain -= {call.id for call in message.calls}
        elif isinstance(message, ToolResult) and message.call_id in vain:
            continue
        kept.append(message)
    return kept


def _found_nothing(result: ToolResult) -> bool:
    return result.call_id.startswith(_SIGN) and result.output.startswith("No matches")


def looks_ahead(message: AssistantMessage) -> bool:
    """Return whether the calls of a message were made for the model, not by it."""
    return any(call.id.startswith(_SIGN) for call in message.calls)


class _Searched(Struct, frozen=True):
    """The arguments of a call that was made ahead, as far as they matter."""

    path: str = ""
    pattern: str = ""

    @classmethod
    def of(cls, call: ToolCall) -> Self:
        """Read them."""
        return msgspec.json.decode(call.arguments, type=cls)


def _patterns(words: str, but: Iterable[str]) -> Iterator[str]:
    """Yield what to search for, one after the other until something is found: all names at once, other words one by one.

    Where it is asked what declares a name, that comes first.
    """
    topics, is_declared = topics_in(words, but), re.search(_DECLARED(), words)
    plain = [topic for topic in topics if topic.isalpha() and topic.islower()]
    if named := "|".join(re.escape(topic) for topic in topics if topic not in plain):
        yield from [rf"\b(?:{DECLARES})\s+(?:{named})\b"] if is_declared else []
        yield named
    yield from plain[:MOST_TRIES]


def _search(pattern: str, path: str) -> ToolCall:
    return _call(
        "search_files",
        pattern=pattern,
        path=path,
        max_results=MOST_LINES,
        context_lines=1,
        ignore_case=True,
    )


def _list(path: str) -> ToolCall:
    return _call("list_files", pattern="*", path=path)


def _call(name: str, **arguments: str | int) -> ToolCall:
    made = Raw(msgspec.json.encode(arguments))
    return ToolCall(
        id=f"{_SIGN}{'_'.join(map(str, arguments.values()))}"[:40], name=name, arguments=made
    )
