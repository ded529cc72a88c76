"""The folder of saved sessions: listing, finding, reading, copying and deleting them."""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from typing import Final

from msgspec import Struct

from ybs.config import private_file
from ybs.config.private_file import Busy, PrivateLog
from ybs.core.envelope import MAIN
from ybs.core.errors import YbsError
from ybs.core.events import AssistantSaid, Event, SessionEnded, Titled, UserSaid
from ybs.core.remedies import Remedy
from ybs.security.unicode import has_suspects
from ybs.transcripts.line import TranscriptLine, decoded, encoded, lines_in
from ybs.transcripts.log import Log
from ybs.transcripts.reading import SUFFIX, Saved, Transcript, look_at, name_of, read

_DAY_SECONDS: Final = 86_400
_FORK: Final = " (fork)"


class SessionStore:
    """The sessions of a folder. Names that people give never lead out of it. `mark` ends the names that new ones are given."""

    def __init__(self, folder: Path, mark: str = "") -> None:
        self.folder, self._mark = folder, mark

    def sessions(self, *, project: str | None = None) -> list[Saved]:
        """List the sessions, or those of a project, the newest first. Empty and unreadable ones are left out."""
        return list(self._saved(project))

    def numbered(self, project: str) -> list[Saved]:
        """List all sessions in the order of their numbers: those of this project first, the newest first.

        One-shots stand behind the conversations of the same project.
        """
        return sorted(
            self._saved(None), key=lambda each: (each.project != project, each.is_one_shot)
        )

    def newest(self, project: str) -> Saved | None:
        """Return the newest session of a project in which something was said."""
        return next((saved for saved in self._saved(project) if saved.messages), None)

    def find(self, word: str, *, project: str = "") -> Saved:
        """Return the session that a word means: a number as in `numbered`, a name, a title, a unique beginning.

        Raises YbsError with the nearest ones.
        """
        word = word.strip()
        if not is_number(word) and (exact := self._exact(word)) is not None:
            return exact
        return found(word, self.numbered(project))

    def name_of(self, word: str, *, project: str = "") -> str:
        """Return the name of the session that a word means, as `find` does; one that is a name already is not looked into."""
        with suppress(YbsError, OSError):
            if not is_number(word) and self._path(word).lstat().st_size:
                return word
        return self.find(word, project=project).name

    def read(self, name: str) -> Transcript:
        """Read a session. Raises YbsError and OSError."""
        return read(self._path(name))

    def create(self) -> str:
        """Make the file of a new session and return its name. Raises Unsafe and OSError."""
        now = f"{PREFIX}{datetime.now():%Y%m%d-%H%M%S}{self._mark}"
        for number in count(1):
            name = now if number == 1 else f"{now}-{number}"
            if self._make(name):
                return name
        raise AssertionError  # the names never end

    def open_log(self, name: str, *, last: int = 0) -> Log:
        """Open a session for writing; `last` is the number of its last line. Raises Busy, YbsError and OSError."""
        try:
            return Log(self._existing(name), last=last)
        except Busy as error:
            raise Busy(str(error), remedies=(Remedy("fork_session"),)) from error

    def copy(self, name: str, new_name: str, *, title: str = "") -> str:
        """Copy a session, without what was rewound, and return the copy's name. Raises YbsError and OSError."""
        new_name = checked(new_name)
        transcript = self.read(name)
        if not self._make(new_name):
            raise YbsError(f"a session called {new_name} exists already; choose another name")
        lines = [line for line in transcript.story if line.said is not None]
        while lines and isinstance(lines[-1].said, Titled | SessionEnded):
            lines.pop()
        replay = transcript.replay
        ending = SessionEnded(reason="copied", message_count=len(replay.messages))
        tail = (Titled(title=title or replay.title), ending)
        ends = (TranscriptLine(event=0, parent=0, timestamp="", said=event) for event in tail)
        self._fill(new_name, [*lines, *ends])
        return new_name

    def fork(self, transcript: Transcript) -> str:
        """Begin a new session with the past of another one, without what was rewound; return its name.

        Its title says that it is a copy: else a list would show the same title twice.
        """
        name, title = self.create(), name_of(transcript)
        titled = Titled(title=f"{title}{_FORK}" if title and not title.endswith(_FORK) else title)
        line = TranscriptLine(event=0, parent=0, timestamp="", said=titled)
        self._fill(name, [*transcript.story, *[line] * bool(title)])
        return name

    def delete(self, name: str) -> None:
        """Delete a session. Raises Busy where some ybs has it open, YbsError and OSError."""
        _remove(self._existing(name))

    def search(
        self, words: str, *, most: int = 50, clean: Callable[[str], str] = str
    ) -> "list[Hit]":
        """Find what was said, in the newest sessions first: the lines in which all words stand.

        `clean` takes secrets out of a text before a part of it is shown.
        """
        wanted = words.lower().split()
        found = (hit for saved in self._saved(None) for hit in hits_in(saved, wanted, clean))
        return list(islice(found, most)) if wanted else []

    def clean(self, *, max_sessions: int, retention_days: int, keep: str = "") -> int:
        """Delete the oldest sessions beyond a number and those beyond an age (0: no limit); return how many.

        Never `keep`, and none that some ybs has open. It may be slow.
        """
        files = self._files()
        oldest = time.time() - retention_days * _DAY_SECONDS if retention_days else 0.0
        removed = 0
        for place, (changed_at, path) in enumerate(files):
            is_extra = bool(max_sessions) and place >= max_sessions
            if (is_extra or changed_at < oldest) and path.name != f"{keep}{SUFFIX}":
                removed += _is_removed(path)
        return removed

    def names(self) -> list[str]:
        """Return the names of all sessions, the newest first."""
        return [path.name.removesuffix(SUFFIX) for _, path in self._files()]

    def _saved(self, project: str | None) -> Iterator[Saved]:
        for _, path in self._files():
            saved = look_at(path, project=project)
            if saved is not None:
                yield saved

    def _files(self) -> list[tuple[float, Path]]:
        """Return when each file was changed and its path, the newest first; links are left out, as ybs makes none."""
        try:
            with os.scandir(self.folder) as entries:
                found = [
                    (facts.st_mtime, self.folder / entry.name)
                    for entry in entries
                    if entry.name.endswith(SUFFIX) and not entry.name.startswith(".")
                    if (facts := _facts(entry)) is not None and stat.S_ISREG(facts.st_mode)
                ]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(found, key=lambda each: (each[0], each[1].name), reverse=True)

    def _exact(self, word: str) -> Saved | None:
        try:
            names = (checked(word), f"{PREFIX}{checked(word)}")
        except YbsError:
            return None
        saved = (look_at(self.folder / f"{name}{SUFFIX}") for name in names)
        return next((each for each in saved if each is not None), None)

    def _path(self, name: str) -> Path:
        return self.folder / f"{checked(name)}{SUFFIX}"

    def _existing(self, name: str) -> Path:
        path = self._path(name)
        if not os.path.lexists(path):
            raise YbsError(f"there is no session {path.name.removesuffix(SUFFIX)}")
        return path

    def _make(self, name: str) -> bool:
        """Make an empty file; return whether there was none of that name."""
        private_file.make_folder(self.folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            handle = os.open(self._path(name), flags, private_file.FILE_MODE)
        except FileExistsError:
            return False
        try:
            os.fchmod(
                handle, private_file.FILE_MODE
            )  # a umask may have taken the owner's own rights
        finally:
            os.close(handle)
        return True

    def _fill(self, name: str, lines: Iterable[TranscriptLine]) -> None:
        known = ((each, each.said) for each in lines if each.said is not None)
        data = b"".join(
            encoded(
                said,
                number=number,
                parent=number - 1,
                at=_time_of(line.timestamp),
                agent=line.agent,
            )
            for number, (line, said) in enumerate(known, 1)
        )
        path = self._path(name)
        try:
            with PrivateLog(path) as log:
                log.append(data)
                log.sync()
        except BaseException:
            private_file.remove(path)  # a part of a session is worse than none
            raise


def _facts(entry: "os.DirEntry[str]") -> os.stat_result | None:
    """Look at a file; None where another ybs has deleted it in this moment."""
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None


def _time_of(timestamp: str) -> datetime:
    try:
        return datetime.fromisoformat(timestamp).astimezone(UTC)
    except (ValueError, OverflowError):  # edited by hand
        return datetime.now(UTC)


def _remove(path: Path) -> None:
    """Delete a file that nobody writes, holding its lock meanwhile."""
    handle = private_file.open_locked(path)
    try:
        path.unlink()
    finally:
        os.close(handle)


def _is_removed(path: Path) -> bool:
    try:
        _remove(path)
    except (YbsError, OSError):
        return False
    return True


PREFIX: Final = "session-"
_LIST: Final = Remedy("list_sessions")
_LONGEST: Final = 200


def checked(name: str) -> str:
    """Return the name of a session, without its file's ending, if it is one. Raises YbsError."""
    name = name.strip().removesuffix(SUFFIX)
    is_plain = "/" not in name and "\n" not in name and "\t" not in name and not has_suspects(name)
    if not name or name[0] in ".-" or not is_plain or len(name.encode()) > _LONGEST:
        raise YbsError(
            f"{name!r} cannot be the name of a session; use letters, digits, - and _ only"
        )
    return name


def is_number(word: str) -> bool:
    """Return whether a word is a number of the list."""
    return word.isascii() and word.isdecimal() and len(word) < 5


def found(word: str, sessions: Sequence[Saved]) -> Saved:
    """Return the session that a number of the list, a title or a unique beginning means. Raises YbsError."""
    if is_number(word):
        return _numbered(int(word), sessions)
    meant = [each for each in sessions if each.title.casefold() == word.casefold()]
    meant = meant or [each for each in sessions if _begins_with(each, word)]
    if word and len(meant) == 1:
        return meant[0]
    if word and meant:
        raise YbsError(_ambiguous(word, meant))
    raise _not_found(word, sessions)


def _numbered(number: int, sessions: Sequence[Saved]) -> Saved:
    if not 0 < number <= len(sessions):
        raise YbsError(
            f"there is no session number {number}; the list has {len(sessions)}", remedies=(_LIST,)
        )
    return sessions[number - 1]


def _begins_with(saved: Saved, word: str) -> bool:
    word = word.casefold()
    texts = (saved.name, saved.name.removeprefix(PREFIX), saved.title)
    return any(text.casefold().startswith(word) for text in texts)


def _ambiguous(word: str, meant: Sequence[Saved]) -> str:
    names = ", ".join(each.name for each in meant[:5])
    return f"{len(meant)} sessions match {word!r}: {names}{', …' if len(meant) > 5 else ''}"


def _not_found(word: str, sessions: Sequence[Saved]) -> YbsError:
    from difflib import get_close_matches  # it is slow to load

    names = {text: each.name for each in sessions for text in (each.title, each.name) if text}
    near = dict.fromkeys(names[text] for text in get_close_matches(word, names, 3, 0.5))
    what = f"there is no session {word!r}"
    if near:
        return YbsError(f"{what}; similar names: {', '.join(near)}")
    return YbsError(what, remedies=(_LIST,))


#: Characters of an excerpt on each side of what was found.
_AROUND: Final = 60


class Hit(Struct, frozen=True, kw_only=True):
    """A line of a session in which all words stand; `line` is its number."""

    saved: Saved
    line: int
    excerpt: str


def hits_in(saved: Saved, words: Sequence[str], clean: Callable[[str], str] = str) -> Iterator[Hit]:
    """Find the lines in which all words stand, in any case; `words` are in lower case. `clean` makes it fit to show."""
    # Text is escaped in the file, but for what these bytes are made of.
    certain = [word.encode() for word in words if word.isascii() and word.isalnum()]
    try:
        file = private_file.open_to_read(saved.path)
    except (OSError, YbsError):
        return
    if file is None:
        return
    named: Hit | None = None  # a title is told once, and only where nothing else holds the words
    is_found = False
    with file:
        for data in lines_in(file):
            bare = data.lower()
            if not all(word in bare for word in certain):
                continue
            line = decoded(data)
            text = _text(line.said) if line is not None and line.agent == MAIN else ""
            lowered = text.lower()
            if line is not None and text and all(word in lowered for word in words):
                hit = Hit(saved=saved, line=line.event, excerpt=_excerpt(clean(text), words[0]))
                if isinstance(line.said, Titled):
                    named = hit
                else:
                    is_found = True
                    yield hit
    if named is not None and not is_found:
        yield named


def _text(event: Event | None) -> str:
    """Return what a person would remember."""
    match event:
        case UserSaid(origin="context"):
            return ""
        case UserSaid() | AssistantSaid():
            return event.content
        case Titled():
            return event.title
        case _:
            return ""


def _excerpt(text: str, word: str) -> str:
    place = max(text.lower().find(word), 0)
    start, end = max(place - _AROUND, 0), place + len(word) + _AROUND
    middle = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{middle}{'…' if end < len(text) else ''}"
