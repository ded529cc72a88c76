"""Reading past requests out of saved sessions: what was asked, and what was done for it."""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.config import private_file
from ybs.core.decoding import decodable
from ybs.core.envelope import MAIN
from ybs.core.errors import YbsError
from ybs.learning.detector import PastRequest
from ybs.transcripts.line import lines_in
from ybs.transcripts.reading import OF_OTHERS

#: No line but these is decoded; they stand at this place of it, behind the time.
_WANTED: Final = (b'"user"', b'"tool_call"', b'"turn_end"', b'"session_start"', b'"undo"')
_TYPE_WITHIN: Final = slice(30, 80)
_MOST_STEPS, _MOST_TEXT = 40, 500
#: Tools that change a file, and what a step calls that.
_VERBS: Final = {
    "read_file": "read",
    "edit_file": "edit",
    "write_file": "write",
    "delete_file": "delete",
    "search_files": "search",
    "list_files": "list",
    "git": "run git",
}
#: What ybs does for itself, not for the request.
_IGNORED: Final = frozenset({"todo", "set_thought", "ask_user", "repo_map", "memorize", "skill"})
_NEXT_COMMAND: Final = re.compile(r"&&|\|\||[;|\n]")
_ASSIGNMENT: Final = re.compile(r"\w+=\S*\s+")
_SUBCOMMAND: Final = re.compile(r"[a-z][\w:-]*")
#: Programs that only move about or look.
_TRIVIAL: Final = frozenset(
    ("cd", "echo", "true", "sleep", "cat", "ls", "head", "tail", "wc", "grep", "rg", "sed", "pwd")
)
_LAUNCHERS: Final = frozenset(
    (
        "sudo",
        "env",
        "time",
        "timeout",
        "nice",
        "python",
        "python3",
        "-m",
        "uv",
        "poetry",
        "run",
        "npx",
    )
)


#: In transcripts that do not say what was typed: what was piped in, what commands of a template printed, and what an editor or the page sent along, with
#: all behind it. In those of chats: what was forwarded. Others may have written that.
_OF_OTHERS: Final = re.compile(
    r"(?m)^<stdin>$|\[Shell command (?:output|failed)\]|^\[[^\[\]\n]*/[^\[\]\n]*\]$|^File .*:\n```|^\(forwarded\)$"
)


class _Part(Struct):
    text: str = ""


class _Line(Struct):
    type: str
    timestamp: str = ""
    event: int = 0
    agent: str = MAIN
    content: str = ""
    parts: tuple[_Part, ...] = ()
    origin: str = "person"
    typed: str | None = None
    name: str = ""
    folder: str = ""
    config: dict[str, Any] = {}
    is_redo: bool = False
    arguments: Raw = Raw(b"{}")

    @property
    def words(self) -> str:
        """The person's own words: what was attached to them, piped in, printed by a command or written in its file is left out."""
        text = self.parts[0].text if self.parts else self.content
        text = text if self.typed is None else self.typed
        return _OF_OTHERS.split(text, maxsplit=1)[0].strip()


class Read(Struct, frozen=True):
    """What was found in a session. `end` is the number of the last line that belongs to a turn that ended."""

    requests: tuple[PastRequest, ...]
    end: int


_decode: Final = msgspec.json.Decoder(decodable(_Line)).decode


def requests_in(path: Path, *, after: int = 0) -> Read:
    """Return the requests of a session's main agent whose turns have ended, from the line `after` on.

    What cannot be read is left out: a damaged line never costs the others.
    """
    reading = _Reading(path.stem, after)
    for line in _lines(path):
        if line.type == "session_start":
            reading.folder = line.folder or reading.folder
            reading.is_of_others = OF_OTHERS in line.config
        elif line.event > after:
            reading.add(line)
    return Read(tuple(reading.found), reading.end)


class _Reading:
    """The requests of a session, as its lines come."""

    def __init__(self, session: str, after: int) -> None:
        self.folder, self.end = "", after
        #: Whether what is said may be words of others than the person: nothing is learned of it.
        self.is_of_others = False
        self.found: list[PastRequest] = []
        self._session = session
        self._asked: _Line | None = None
        self._steps, self._said = list[str](), list[str]()

    def add(self, line: _Line) -> None:
        match line.type:
            case "user" if line.origin == "person" and self._asked is None:
                self._asked, self._steps, self._said = line, [], []
            case "user" if line.origin == "person":
                self._said.append(line.words[:_MOST_TEXT])
            case "tool_call":
                self._steps += _steps(line.name, line.arguments)
            case "turn_end":
                self._end(line)
            case "undo" if self.found and not line.is_redo:
                self.found[-1] = replace(self.found[-1], is_undone=True)
                self.end = line.event
            case _:
                pass

    def _end(self, line: _Line) -> None:
        asked, self._asked, self.end = self._asked, None, line.event
        if asked is None or self.is_of_others or not (text := asked.words):
            return
        try:
            at = datetime.fromisoformat(asked.timestamp).timestamp()
        except ValueError:
            return
        self.found.append(
            PastRequest(
                text=text[:_MOST_TEXT],
                steps=tuple(self._steps[:_MOST_STEPS]),
                at=at,
                project=self.folder,
                session=self._session,
                corrections=tuple(self._said),
            )
        )


def _lines(path: Path) -> Iterator[_Line]:
    try:
        file = private_file.open_to_read(path)
    except (OSError, YbsError):
        return
    if file is None:
        return
    with file:
        for data in lines_in(file):
            if not any(map(data[_TYPE_WITHIN].__contains__, _WANTED)):
                continue
            try:
                line = _decode(data)
            except msgspec.DecodeError:
                continue
            if line.agent == MAIN:
                yield line


def _steps(name: str, arguments: Raw) -> Iterator[str]:
    """Yield what a call does, in the words of a request's steps."""
    if name in _IGNORED:
        return
    try:
        given = msgspec.json.decode(arguments, type=dict[str, Any])
    except msgspec.DecodeError:
        return
    if name == "run_shell":
        yield from map("run {}".format, programs_in(str(given.get("command", ""))))
    elif name == "git":
        yield f"run git {given.get('action', '')}".strip()
    elif name in _VERBS and "path" in given:
        yield f"{_VERBS[name]} {str(given['path']).rpartition('/')[2]}"
    else:
        yield _VERBS.get(name, f"use {name}")


def programs_in(command: str) -> list[str]:
    """Return the programs of a shell command that do something, each with its subcommand: `git log`, `pytest`."""
    found: list[str] = []
    for part in _NEXT_COMMAND.split(command[:2_000]):
        words = _ASSIGNMENT.sub("", part).split()
        while words and (words[0] in _LAUNCHERS or words[0][0] in "-({"):
            words.pop(0)
        if not words or (program := words[0].rpartition("/")[2]) in _TRIVIAL:
            continue
        has_sub = len(words) > 1 and _SUBCOMMAND.fullmatch(words[1])
        found.append(f"{program} {words[1]}" if has_sub else program)
    return found[:3]
