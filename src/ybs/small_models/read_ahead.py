"""Looking ahead for small models: what a request is about is read before the model is asked, by the tools it would call itself.

A small model answers without looking, looks for the wrong word, or takes a step to read the one file that the words name. So the
first steps of a turn are made for it: calls that only read, which run under the same rules as any other, and which the model finds in
its conversation as its own. Where the words name nothing, a survey comes first, which the model never sees: all paths, and all lines
that have a word of the request. The second look reads what the survey found.
"""

import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from glob import escape
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.core.decoding import from_json
from ybs.core.errors import ToolError
from ybs.core.events import AssistantSaid, Event
from ybs.core.lazy import lazy
from ybs.core.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage
from ybs.core.ports import Model, Request
from ybs.core.wrapper import ModelWrapper
from ybs.security.paths.roots import Roots
from ybs.small_models.intents import intent_of, wants_change
from ybs.small_models.mentions import (
    NO_CODE,
    TEST,
    commands_in,
    files_in,
    paths_in,
    without_commands,
    without_halves,
)
from ybs.small_models.topics import names_in, terms_in, topics_in
from ybs.small_models.unseen import UNSEEN, without_unseen

#: A larger file would fill the window of a small model; it reads that in parts.
MOST_BYTES: Final = 6_000
#: Files that no word names may have so many bytes together.
MOST_GUESSED_BYTES: Final = 2_500
MOST_CALLS: Final = 2
#: A search in vain, a survey, and a look at what that has found.
MOST_STEPS: Final = 3
#: So much is read of a larger file which has none of the words within.
MOST_READ_LINES: Final = 60
#: What stands in the ids of these calls: those of a sub-agent begin with its name.
_SIGN: Final = "ahead_"
#: Of what is counted so many are shown, with their number.
MOST_COUNTED: Final = 20
#: How many lines a search shows.
MOST_LINES: Final = 10

#: How the title of an attached file begins.
_FILE: Final = "[File "

_IS_TEST = lazy(TEST)
_PROJECT = lazy(r"(?i)\b(?:project|repo(?:sitory)?|code ?base)\b")
_OF_TESTS = lazy(r"(?i)\btests?\b")
#: A word in the name of a file: `test_cart`, `CartTest`.
_PART = lazy(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_DECLARED = lazy(r"(?i)\b(?:declar|defin|implement)")
DECLARES = (
    "class|const|def|enum|fn|func|function|impl|interface|let|module|static|struct|trait|type|var"
)


class ReadAhead(ModelWrapper):
    """A Model that makes the first steps of a turn by itself, where it can be told what to look at."""

    def __init__(self, model: Model, roots: Roots) -> None:
        super().__init__(model)
        self._roots = roots

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the calls that look ahead, else stream the model's answer."""
        words, looks = _looks(request.messages)
        offered = {tool.name for tool in request.tools}
        attached = _attached(request.messages)
        due = (
            call
            for call in (self._next(words, looks) if words else ())
            if call.name in offered and bytes(call.arguments) not in attached
        )
        if calls := tuple(islice(due, MOST_CALLS)):
            message = AssistantMessage(content=calls, stop_reason="tool_calls", model=self.name)
            yield AssistantSaid.of(message)
            return
        told = replace(request, messages=without_unseen(_without_vain(request.messages)))
        async with aclosing(self._model.stream(told)) as events:
            async for event in events:
                yield event

    def _next(self, words: str, looks: "Sequence[_Look]") -> Iterator[ToolCall]:
        """Yield the first look, or what follows from the last one."""
        if not looks:
            return self._first(words)
        if looks[0].is_survey:
            return self._surveyed(words, looks)
        return self._after(words, looks[0]) if len(looks) == 1 else iter(())

    def _after(self, words: str, look: "_Look") -> Iterator[ToolCall]:
        """Yield what comes after the only look: the one file that was found by its name, or a survey where nothing was found."""
        if look.name == "list_files" and intent_of(words) != "delete":
            paths = paths_of(look.output)
            if len(paths) == 1 and self._kind(paths[0]) == "file":
                yield _call("read_file", path=paths[0])
        elif look.name == "search_files" and look.output.startswith("No matches"):
            yield from _survey(terms_in(words), ".")

    def _first(self, words: str) -> Iterator[ToolCall]:
        """Yield calls that look at the files and folders that the words have, else for what may be one, and for names."""
        intent, is_change = intent_of(words), wants_change(words)
        # Whoever wants something run wants its output.
        if intent in ("run", "chat") or (commands_in(words) and not is_change):
            return
        if not is_change:  # else what a failing command names is worth reading
            words = without_commands(words)
        kinds = {path: self._kind(path) for path in paths_in(words)}
        files = [path for path, kind in kinds.items() if kind == "file"]
        folders = [path.rstrip("/") for path, kind in kinds.items() if kind == "folder"]
        if intent == "delete" and any(kinds.values()):
            return  # what is to go away is not read first
        if files or (intent in ("create", "move") and (folders or files_in(words))):
            yield from (_call("read_file", path=path) for path in files)
        elif folders:
            yield from self._into(words, folders[0])
        elif name := next((path.rpartition("/")[2] for path in files_in(words)), ""):
            yield _call("list_files", pattern=f"**/{name}")
        elif not is_change and names_in(words):
            yield _search(_names_pattern(words), ".")
        else:
            yield from _survey(terms_in(words), ".")

    def _into(self, words: str, folder: str) -> Iterator[ToolCall]:
        """Yield calls that look into a folder that the words name."""
        if terms := _terms_within(words, folder):
            yield from _survey(terms, folder)
        elif intent_of(words) == "count":
            yield _call("list_files", pattern="*", path=folder, max_results=MOST_COUNTED)
        else:
            yield _list("*", folder)

    def _surveyed(self, words: str, looks: "Sequence[_Look]") -> Iterator[ToolCall]:
        """Yield calls that read what a survey found: a small file or two whole, a part of a larger one, or a list of a folder."""
        folder = looks[0].path
        terms = _terms_within(words, folder)
        outputs = {look.name: look.output for look in looks}
        listed = paths_of(outputs.get("list_files", ""))
        found = lines_of(outputs.get("search_files", ""))
        files = files_about(terms, listed, found)
        intent = intent_of(words)
        if intent == "delete":
            names = (escape(path.rpartition("/")[2]) for path in files[:1])
            yield from (_list(f"**/{name}", ".") for name in names)
        elif len(files) > MOST_CALLS and found and not wants_change(words):
            yield _search(pattern_of(terms), folder)
        elif len(files) > MOST_CALLS and intent == "count" and len(files) == len(listed):
            yield _call("list_files", pattern="*", path=folder, max_results=MOST_COUNTED)
        elif len(files) > MOST_CALLS and len(set(map(_folder_of, files))) == 1:
            yield _list("*", _folder_of(files[0]))
        else:
            guessed = files or _few(words, listed)
            yield from self._parts(guessed, terms, found)
            if not files and folder != ".":
                yield _list("*", folder)

    def _parts(
        self, files: Sequence[str], terms: Sequence[str], found: Container[str]
    ) -> Iterator[ToolCall]:
        """Yield calls that read the files, or where they are too long together, a part of the first: around the terms, or its beginning."""
        kept = files[:MOST_CALLS]
        if sum(map(self._size, kept)) > MOST_GUESSED_BYTES:
            kept = kept[:1]
        if not kept or sum(map(self._size, kept)) <= MOST_GUESSED_BYTES:
            yield from (_call("read_file", path=path) for path in kept)
        elif kept[0] in found:
            yield _search(pattern_of(terms), kept[0])
        else:
            yield _call("read_file", path=kept[0], limit=MOST_READ_LINES)

    def _size(self, path: str) -> int:
        """Return the bytes of a file, of what tools may read; else more than are read."""
        try:
            return self._roots.resolve(path).stat().st_size
        except (ToolError, OSError):
            return MOST_BYTES

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


class _Look(Struct, frozen=True):
    """A call that was made ahead, and what came of it."""

    id: str
    name: str
    output: str
    path: str = "."

    @property
    def is_survey(self) -> bool:
        """Whether the model does not see it."""
        return UNSEEN in self.id


class _Path(Struct, frozen=True):
    """What is read of the arguments of a call."""

    path: str = "."


def _looks(messages: Sequence[Message]) -> tuple[str, Sequence[_Look]]:
    """Return what the person said last and the last looks that were made for it.

    Nothing where the model has answered to it, or was looked ahead for often enough.
    """
    outputs: dict[str, str] = {}
    looks: list[_Look] = []
    steps = 0
    for message in reversed(messages):
        if isinstance(message, ToolResult):
            outputs[message.call_id] = "" if message.is_error else message.output
        elif isinstance(message, AssistantMessage):
            steps += 1
            if steps == MOST_STEPS or not looks_ahead(message):
                return "", ()
            looks = looks or [_look_of(call, outputs.get(call.id, "")) for call in message.calls]
        elif message.origin == "person":
            return without_halves(message.words), looks
    return "", ()


def _attached(messages: Sequence[Message]) -> frozenset[bytes]:
    """Return what a call that reads a file would be given, for each whole file that stands behind the person's last words."""
    said = next(
        (m for m in reversed(messages) if isinstance(m, UserMessage) and m.origin == "person"), None
    )
    texts = [part.text for part in said.content if isinstance(part, Text)] if said else []
    titles = (text.lstrip().partition("\n")[0] for text in texts[1:])
    files = (title[len(_FILE) : -1] for title in titles if title.startswith(_FILE))
    return frozenset(bytes(_call("read_file", path=path).arguments) for path in files)


def _look_of(call: ToolCall, output: str) -> _Look:
    path = from_json(call.arguments, _Path).path
    return _Look(call.id, call.name, output, path)


def missing_in(words: str, roots: Roots) -> Iterator[str]:
    """Yield a sentence for each file that the words name and that is not there, where they ask for something new."""
    if intent_of(words) not in ("create", "append", "add"):
        return
    for path in files_in(words):
        try:
            if not roots.resolve(path).exists():
                yield f"{path} is not there yet: write_file makes it."
        except (ToolError, OSError):
            continue


def looks_ahead(message: AssistantMessage) -> bool:
    """Return whether the calls of a message were made for the model, not by it."""
    return any(_SIGN in call.id for call in message.calls)


def _without_vain(messages: Sequence[Message]) -> Sequence[Message]:
    """Return messages without searches that were made ahead, found nothing, and were followed by a survey."""
    outputs = {m.call_id: m.output for m in messages if isinstance(m, ToolResult)}
    vain = set[str]()
    before: tuple[ToolCall, ...] = ()
    for message in messages:
        if isinstance(message, AssistantMessage):
            if any(UNSEEN in call.id for call in message.calls):
                vain.update(call.id for call in before)
            found = any(not outputs.get(each.id, "").startswith("No m") for each in message.calls)
            before = () if found or not looks_ahead(message) else message.calls
        elif not isinstance(message, ToolResult):
            before = ()
    return [message for message in messages if vain.isdisjoint(_ids_of(message))]


def _ids_of(message: Message) -> list[str]:
    """Return the ids of the calls in a message, or of the call that it is the result of."""
    if isinstance(message, ToolResult):
        return [message.call_id]
    return [call.id for call in message.calls] if isinstance(message, AssistantMessage) else []


def _names_pattern(words: str) -> str:
    """Return what finds the names in the words, or where it is asked what declares them, that."""
    named = "|".join(map(re.escape, topics_in(words, ())))
    return rf"\b(?:{DECLARES})\b[^=\n]*?\b(?:{named})\b" if re.search(_DECLARED(), words) else named


def _terms_within(words: str, folder: str) -> list[str]:
    """Return the terms of the words, without those that name the folder in which they are looked for."""
    return [term for term in terms_in(words) if term.lower() not in folder.lower()]


def _few(words: str, listed: Sequence[str]) -> Sequence[str]:
    """Return the files of a project that has so few that all may be meant; of what is to be repaired, the code.

    Where tests fail, that is the code that a test is named after. What the project is, the README says.
    """
    intent = intent_of(words)
    if intent == "question" and re.search(_PROJECT(), words) and not terms_in(words):
        return [path for path in listed if path.lower().startswith("readme")][:1]
    if intent in ("question", "create"):
        return ()
    if intent == "fix":
        code = [path for path in listed if not re.search(NO_CODE(), path)]
        has_tests = re.search(_OF_TESTS(), words) is not None
        listed = (_tested(code, listed) if has_tests else ()) or code
    return listed if len(listed) <= MOST_CALLS else ()


def _tested(code: Sequence[str], listed: Sequence[str]) -> Sequence[str]:
    """Return the files of a project's code that have a test of their name (`cart.py`, `test_cart.py`)."""
    tests = [_parts_of(path) for path in listed if re.search(_IS_TEST(), path)]
    named = [(path, _parts_of(path)) for path in code]
    return [path for path, parts in named if parts and any(parts <= test for test in tests)]


def _parts_of(path: str) -> frozenset[str]:
    """Return the words that the name of a file is made of, without its last ending."""
    stem = path.rpartition("/")[2].rpartition(".")[0]
    return frozenset(part.lower() for part in re.findall(_PART(), stem))


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0] or "."


def _survey(terms: Sequence[str], path: str) -> Iterator[ToolCall]:
    """Yield the calls of a survey."""
    yield _call("list_files", UNSEEN, pattern="**/*", path=path, max_results=MOST_SURVEYED)
    if terms:
        yield _call(
            "search_files",
            UNSEEN,
            pattern=pattern_of(terms),
            path=path,
            max_results=MOST_SURVEYED,
            context_lines=0,
            ignore_case=True,
        )


def _search(pattern: str, path: str) -> ToolCall:
    return _call(
        "search_files",
        pattern=pattern,
        path=path,
        max_results=MOST_LINES,
        context_lines=1,
        ignore_case=True,
    )


def _list(pattern: str, path: str) -> ToolCall:
    return _call("list_files", pattern=pattern, path=path)


def _call(name: str, sign: str = _SIGN, /, **arguments: str | int) -> ToolCall:
    made = Raw(msgspec.json.encode(arguments))
    told = "_".join(map(str, arguments.values()))
    return ToolCall(id=f"{sign}{name}_{told}"[:40], name=name, arguments=made)


#: More files or lines than these are not weighed.
MOST_SURVEYED: Final = 300
#: A word in a path says more than one in a line.
_IN_PATH: Final = 1.5
#: Files that come so near to the best one are as good.
_NEAR: Final = 0.8
_MATCH = lazy(r" *\d+:\t(.*)")
#: What tools say beside paths and lines.
_NOTE = lazy(r"\[(?:\d|not searched|the search)|No (?:files match|matches)\.|Folders: ")


def pattern_of(terms: Iterable[str]) -> str:
    """Return an expression that matches any of the terms, where a word begins."""
    escaped = list(map(re.escape, terms))
    words = "|".join(each for each in escaped if each[0].isalnum())
    others = [each for each in escaped if not each[0].isalnum()]
    return "|".join([*([rf"\b(?:{words})"] if words else []), *others])


def paths_of(listing: str) -> list[str]:
    """Return the paths in what list_files prints."""
    lines = listing.splitlines()
    return [line for line in lines if line and not re.match(_NOTE(), line)]


def lines_of(matches: str) -> dict[str, list[str]]:
    """Return the lines in what search_files prints without context, by their files."""
    found: dict[str, list[str]] = {}
    path = ""
    for line in matches.splitlines():
        match = re.fullmatch(_MATCH(), line)
        if match and path:
            found.setdefault(path, []).append(match[1])
        elif not match and not re.match(_NOTE(), line):
            path = line
    return found


def files_about(
    terms: Sequence[str], listed: Iterable[str], found: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return the files that go best with the terms, best first: each word counts for more, the fewer files have it.

    `listed` are all paths, `found` the lines by their paths that have one of the terms.
    """
    texts = {path: "\n".join(lines) for path, lines in found.items()}
    places = {path: f"{path} {path.replace('_', ' ')}" for path in (*listed, *texts)}
    scores = defaultdict[str, float](float)
    for term in terms:
        match = re.compile(rf"(?<!\w){re.escape(term)}", re.IGNORECASE)
        in_path = {path for path, parts in places.items() if re.search(match, parts)}
        in_text = {path for path in texts if re.search(match, texts[path])}
        for path in in_path | in_text:
            scores[path] += (_IN_PATH if path in in_path else 1.0) / len(in_path | in_text)
    best = max(scores.values(), default=0.0)
    ranked = sorted(scores, key=lambda path: (-scores[path], path))
    return [path for path in ranked if scores[path] >= _NEAR * best]
