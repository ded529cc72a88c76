"""Memories: what the person, or the model with their yes, keeps for later sessions, as Markdown files.

A memory is kept for the project it was said in. It lies in the person's own folder all the same, so that nobody
commits it by accident: `~/.config/ybs/memories/NAME-DIGEST/`, with the name of the project's folder and a digest of its
path. (A project that is moved begins anew; the files say which one they belong to.) What holds for all projects lies in
`~/.config/ybs/memories/` itself. Files that the project brings along in `.ybs/memories/` are read as well and never
written; they may be anybody's, so they come last whatever date they claim. Memories are data, wherever they stand.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from ybs.config import private_file
from ybs.config.host import Host
from ybs.context.document_places import top_of
from ybs.context.document_text import framed
from ybs.context.memory_file import (
    Memory,
    Place,
    Unread,
    composed,
    file_name,
    names_in,
    plain,
    project_name,
    read_memories,
    read_name,
    written,
)
from ybs.context.prompt import Section
from ybs.core.errors import Refused, ToolError
from ybs.core.remedies import Remedy
from ybs.repo_map.rank import bm25
from ybs.repo_map.words import stems_of
from ybs.security.incognito import WRITES_NOTHING

#: The most bytes of one memory, and the most memories of one folder. None is ever deleted to make room.
MOST_BYTES, MOST_MEMORIES = 4_096, 1_000
_PLACEHOLDER = r"\[ybs:secret:([a-z0-9-]{1,40})#\d{1,6}\]"
_LEFT_OUT = "[left out: "
_LOCK = ".lock"
#: So many files of the project are tried for the prompt: they may be anything.
_MOST_TRIED = 20


class MemoryDraft(Struct, frozen=True, kw_only=True):
    """A memory as it would be kept, and the folder that it would lie in."""

    heading: str
    body: str
    folder: Path
    #: The folder as the person writes it.
    place: str
    #: What it says, to be compared with what others say.
    content: str

    @property
    def text(self) -> str:
        """What the file says below its first lines."""
        return f"# {self.heading}" + (f"\n\n{self.body}" if self.body else "")

    @property
    def has_secret(self) -> bool:
        """Whether something in it was taken for a secret."""
        return _LEFT_OUT in self.text


class _File(Struct, frozen=True):
    """A file that may be a memory: its stamp and name, and where it lies."""

    named: tuple[str, str]
    folder: Path
    place: Place


class Memories:
    """The memories that count in a project's folder: its own, those for all projects, and what it brings along.

    `mask` takes secrets out of a text. Where `may_write` is false (incognito) nothing is kept; what was kept before can
    be forgotten and brought back all the same. `top` is the folder at which the project begins, by default the
    repository's. All of it blocks.
    """

    def __init__(
        self,
        host: Host,
        folder: Path,
        *,
        mask: Callable[[str], str],
        may_write: bool,
        now: Callable[[], datetime] = datetime.now,
        top: Path | None = None,
    ) -> None:
        self._host, self.everywhere = host, host.config_folder / "memories"
        #: A project is the same from all its parts.
        self._root = top or top_of(folder.resolve())
        self._mask, self._may_write, self._now = mask, may_write, now
        self._forgotten: list[tuple[Memory, bytes]] = []
        #: Files that are not memories, of the last time that all were read.
        self.unread: Sequence[Unread] = ()

    @property
    def project(self) -> Path:
        """Where the project's own memories lie."""
        return self.everywhere / project_name(self._root)

    def draft(self, text: str, name: str = "", *, for_all: bool = False) -> MemoryDraft:
        """Return what `keep` would write. Raises Refused and ToolError where it would not."""
        if not self._may_write:
            raise Refused(f"Not kept: {WRITES_NOTHING}.")
        content = self._cleaned(text)
        heading, body = composed(content, self._cleaned(name))
        folder = self.everywhere if for_all else self.project
        draft = MemoryDraft(
            heading=heading,
            body=body,
            folder=folder,
            place=self._host.short(str(folder)),
            content=_compared(content),
        )
        if not draft.content:
            raise ToolError("There is nothing to keep: the text is empty.")
        if (size := len(draft.text.encode(errors="replace"))) > MOST_BYTES:
            raise ToolError(
                f"Not kept: a memory has at most {MOST_BYTES:,} bytes, this one {size:,}. "
                "Keep what matters of it."
            )
        self._check(draft)
        return draft

    def keep(self, text: str, name: str = "", *, for_all: bool = False) -> Path:
        """Write a memory and return its file; `for_all` projects or for this one.

        What is kept already is not kept twice. Raises Refused in incognito, and ToolError; then nothing was written.
        """
        draft = self.draft(text, name, for_all=for_all)
        with _told(self._host, draft.folder, "Not kept"):
            return self._keep(draft)

    def _keep(self, draft: MemoryDraft) -> Path:
        when = self._now()
        is_own = draft.folder != self.everywhere
        data = written(
            draft.heading, draft.body, project=plain(str(self._root)) if is_own else "", when=when
        )
        # One writer at a time: what two processes keep in one second has two names, and the same text is kept once.
        lock = private_file.open_locked(self.everywhere / _LOCK, waits=True)
        try:
            self._check(draft)
            taken = {name for _, name in _listed(draft.folder)}
            if len(taken) >= MOST_MEMORIES:
                raise ToolError(
                    f"Not kept: there are {MOST_MEMORIES:,} memories in {draft.place} already, and none "
                    "is deleted by itself.",
                    remedies=(Remedy("forget_memory"),),
                )
            number = 1
            while (name := file_name(when, draft.heading, number)) in taken:
                number += 1
            private_file.replace(draft.folder / name, data)
        finally:
            os.close(lock)
        return draft.folder / name

    def _check(self, draft: MemoryDraft) -> None:
        """Raise ToolError where this is kept already."""
        for each in self._own():
            if draft.content in (_compared(each.text), _compared(each.body)):
                raise ToolError(f"That is kept already, as {each.name}.")

    def all(self) -> list[Memory]:
        """Return all memories: the person's own, the newest first, then those that the project brings along.

        Files that cannot be read as memories stand in `unread`. Raises ToolError where a folder cannot be read.
        """
        unread: list[Unread] = []
        memories = self._own(unread)
        with suppress(OSError, Refused):  # the project's affair
            memories += _read(*self._brought, unread)
        self.unread = unread
        return memories

    def search(self, query: str, most: int = 10) -> list[Memory]:
        """Return the memories that the words fit best, the best first. Raises ToolError."""
        return best(self.all(), query, most)

    def find(self, word: str) -> Memory:
        """Return the memory of a name, of a number in the order of `all`, or of the only name with this ending.

        Raises ToolError.
        """
        word = word.strip().removesuffix(".md")
        memories = self.all()
        for each in memories:  # the person's own come first
            if each.name == word:
                return each
        is_number = word.isascii() and word.isdecimal() and len(word) < 5
        if is_number and 1 <= int(word) <= len(memories):
            return memories[int(word) - 1]
        found = [each for each in memories if word and each.name.endswith(f"_{word}")]
        if len(found) == 1:
            return found[0]
        if not found:
            raise ToolError(
                f"There is no note {plain(word)[:80]!r}.", remedies=(Remedy("list_memories"),)
            )
        raise ToolError(f"{len(found)} notes are called {word}. Give the number of one.")

    def forget(self, word: str) -> Memory:
        """Delete a memory and return it; `bring_back` writes it again in this session. Raises ToolError."""
        memory = self.find(word)
        if memory.place == "repository":
            raise ToolError(
                f"{memory.path.name} is one of the project's own files (.ybs/memories); delete it there."
            )
        with _told(self._host, memory.path.parent, "Not forgotten"):
            data = memory.path.read_bytes()
            memory.path.unlink()
        self._forgotten.append((memory, data))
        return memory

    def bring_back(self) -> Memory:
        """Write down again what was forgotten last in this session. Raises ToolError."""
        if not self._forgotten:
            raise ToolError("No note was deleted in this session.")
        memory, data = self._forgotten[-1]
        if os.path.lexists(memory.path):
            raise ToolError(f"{memory.path.name} exists again already.")
        with _told(self._host, memory.path.parent, "Not brought back"):
            private_file.replace(memory.path, data)
        self._forgotten.pop()
        return memory

    def recent(self, count: int = 5) -> Section | None:
        """Return the beginnings of the newest memories for the prompt; None where none can be read."""
        with suppress(OSError, ToolError):
            return self._recent(count)
        return None

    def _recent(self, count: int) -> Section | None:
        files = [file for folder in self._own_folders for file in _files(*folder)]
        files.sort(key=lambda file: file.named, reverse=True)
        with suppress(OSError, Refused):  # the project's affair
            files += _files(*self._brought)[:_MOST_TRIED]
        newest: list[Memory] = []
        for file in files:
            read = read_memories(file.folder, file.named[1:], file.place)
            newest += [each for each in read if isinstance(each, Memory)]
            if len(newest) == count:
                break
        own, brought = self._host.short(str(self.everywhere)), ".ybs/memories"
        places = dict.fromkeys(brought if m.place == "repository" else own for m in newest)
        return section_of(newest, len(files), " and ".join(places)) if newest else None

    @property
    def _own_folders(self) -> list[tuple[Path, Place]]:
        # Links above a person's own settings are their affair; this folder is ybs's.
        top = Path(os.path.realpath(self.everywhere.parent)) / self.everywhere.name
        if not os.path.lexists(top):
            return []
        return [(top / self.project.name, "project"), (top, "everywhere")]

    @property
    def _brought(self) -> tuple[Path, Place]:
        return self._root / ".ybs" / "memories", "repository"

    def _own(self, unread: list[Unread] | None = None) -> list[Memory]:
        memories: list[Memory] = []
        for folder, place in self._own_folders:
            with _told(self._host, folder, "Memories cannot be read"):
                memories += _read(folder, place, unread)
        return sorted(memories, key=lambda each: (each.stamp, each.name), reverse=True)

    def _cleaned(self, text: str) -> str:
        """Take out what nobody sees, then secrets: in parts they would not be found."""
        masked = self._mask(plain(text))
        # A placeholder means something in this session only.
        return re.sub(_PLACEHOLDER, lambda found: f"{_LEFT_OUT}{found[1]}]", masked)


def _listed(folder: Path) -> list[tuple[str, str]]:
    """List a folder that need not be there. Raises OSError and Refused."""
    try:
        return names_in(folder)
    except FileNotFoundError:
        return []


def _read(folder: Path, place: Place, unread: list[Unread] | None) -> list[Memory]:
    names = [name for _, name in _listed(folder)][: 2 * MOST_MEMORIES]
    memories: list[Memory] = []
    for each in read_memories(folder, names, place) if names else ():
        if isinstance(each, Memory):
            memories.append(each)
        elif unread is not None:
            unread.append(each)
    return memories


def _files(folder: Path, place: Place) -> list[_File]:
    return [_File(named, folder, place) for named in _listed(folder)]


@contextmanager
def _told(host: Host, folder: Path, what: str) -> Generator[None]:
    """Say in plain words what went wrong with a folder of memories."""
    try:
        yield
    except Refused as error:
        reason = (
            "is a symbolic link, or lies behind one, and ybs does not follow links to its own files"
        )
        raise ToolError(f"{what}: {host.short(str(folder))} {reason}.") from error
    except (private_file.Busy, private_file.Unsafe) as error:
        raise ToolError(f"{what}: {error}.") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise ToolError(f"{what}: {host.short(str(folder))}: {reason}.") from error


def _compared(text: str) -> str:
    return " ".join(text.casefold().split()).lstrip("# ")


#: The most bytes that the prompt has of all recent memories, of one, and of the line that says what is missing. A token
#: has about 4 bytes: 600 and 100 tokens.
_RECENT_BYTES, _EACH_BYTES, _NOTE_BYTES = 2_400, 400, 80
_INTRODUCTION = "Kept in earlier sessions, the newest first:"


def section_of(memories: Sequence[Memory], total: int, source: str) -> Section:
    """Return the section; there are `total` memories, of which these are the newest."""
    lines, left = [_INTRODUCTION], _RECENT_BYTES - len(_INTRODUCTION) - _NOTE_BYTES
    is_cut = False
    for memory in memories:
        line = _cut(_line(memory), min(_EACH_BYTES, left))
        is_cut |= line.endswith("…")
        left -= len(line.encode()) + 1
        lines.append(line)
    more = total - len(memories)
    if more or is_cut:
        lines.append(f"[{f'{more:,} more' if more else 'cut'}; the person can list them all]")
    return Section(name="memories", text="\n".join(lines), source=source, is_cut=is_cut or more > 0)


def _line(memory: Memory) -> str:
    said = " / ".join(" ".join(line.split()) for line in memory.text.split("\n") if line.strip())
    whose = f" ({memory.whose})" if memory.whose else ""
    return f"- {memory.day}{whose}: {framed(said)}"


def _cut(text: str, most_bytes: int) -> str:
    data = text.encode(errors="replace")
    if len(data) <= most_bytes:
        return text
    return data[: most_bytes - 3].decode(errors="ignore").rstrip() + "…"


#: What a memory is called says more of it than a word in it.
_HEADING_WEIGHT = 2
_SHORTEST_BEGINNING = 3
_WORD = re.compile(r"\w+")
#: Writing without spaces: pairs of characters stand for words.
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}")


def best(memories: Sequence[Memory], query: str, most: int) -> list[Memory]:
    """Return the memories that the words fit best, the best first, of equals the first.

    A word that stands nowhere counts as the beginning of one. Where the words are too common or too short to be looked
    for, the memories that have them all as they were typed are the answer.
    """
    wanted = dict.fromkeys(_terms(query))
    if not wanted:
        typed = query.casefold().split()
        found = (each for each in memories if typed and _has(each, typed))
        return [each for each, _ in zip(found, range(most), strict=False)]
    worth = bm25(_Terms(memories), dict.fromkeys(wanted, 1.0))
    order = sorted(worth, key=lambda place: (-worth[place], place))
    return [memories[place] for place in order[:most]]


class _Terms:
    """What the memories say, as an index of it."""

    def __init__(self, memories: Iterable[Memory]) -> None:
        self._counts = [_counted(memory) for memory in memories]
        self._known = set[str]().union(*self._counts)
        self.lengths = [counted.total() for counted in self._counts]

    def postings(self, term: str) -> tuple[list[int], list[float]]:
        """Return the memories that have the term, or where none has it a term that begins so."""
        meant = [term]
        if term not in self._known and len(term) >= _SHORTEST_BEGINNING:
            meant = [each for each in self._known if each.startswith(term)]
        counts = (float(sum(counted[each] for each in meant)) for counted in self._counts)
        found = {place: count for place, count in enumerate(counts) if count}
        return list(found), list(found.values())


def _counted(memory: Memory) -> Counter[str]:
    counted = Counter(_terms(memory.body))
    for term in (*_terms(memory.heading), *_terms(read_name(memory.name)[1])):
        counted[term] += _HEADING_WEIGHT
    return counted


def _terms(text: str) -> list[str]:
    return [term for word in _WORD.findall(text) for term in _terms_of(word)]


@lru_cache(maxsize=16_384)
def _terms_of(word: str) -> tuple[str, ...]:
    if word.isascii():
        is_number = any(map(str.isdigit, word))
        return stems_of(word) or ((word.lower(),) if is_number else ())
    low = word.casefold()
    pairs = (
        run[place : place + 2]
        for run in _UNSPACED.findall(low)
        for place in range(len(run) - 1)
    )  # fmt: skip
    return tuple(dict.fromkeys((*pairs,))) or (low,)


def _has(memory: Memory, words: Iterable[str]) -> bool:
    text = f"{memory.name} {memory.text}".casefold()
    return all(word in text for word in words)
