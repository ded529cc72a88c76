"""One memory and its file: Markdown that a person can read and change, taken as data whoever wrote it."""

import os
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from ybs.context.document_text import without_hidden_characters
from ybs.security.paths.names import shown_name
from ybs.security.paths.opening import open_listed, read_beginning

SUFFIX = ".md"
#: The most characters that the words have. Two bytes each at most would still be a name for any file system.
LONGEST_SLUG = 50
_STAMP = "%Y-%m-%d_%H-%M-%S"
_NAMED = r"(?s)(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d)(?:_(.*))?"


def slug(words: str) -> str:
    """Return words as a part of a file's name: letters and digits joined by underscores; `memory` without any."""
    kept = "_".join(re.findall(r"[^\W_]+", words.lower()))
    if len(kept) > LONGEST_SLUG:
        whole, _, _ = kept[: LONGEST_SLUG + 1].rpartition("_")
        kept = whole or kept[:LONGEST_SLUG]
    while len(kept.encode(errors="replace")) > 2 * LONGEST_SLUG:
        kept = kept[:-1]
    return kept.strip("_") or "memory"


def file_name(when: datetime, words: str, number: int = 1) -> str:
    """Return the name of a memory's file; `number` tells those of one second apart."""
    ending = f"_{number}" if number > 1 else ""
    return f"{when.strftime(_STAMP)}_{slug(words)}{ending}{SUFFIX}"


def stamp_of(seconds: float) -> str:
    """Write a file's time as names do."""
    return datetime.fromtimestamp(seconds).strftime(_STAMP)


def read_name(name: str) -> tuple[str, str]:
    """Return when a file's name says that it was kept, or nothing, and what it is about."""
    stem = name.removesuffix(SUFFIX)
    found = re.fullmatch(_NAMED, stem)
    return (found[1], found[2] or "") if found else ("", stem)


def project_name(folder: Path) -> str:
    """Return the name of the folder that the memories of a project have: its own name, and a digest of its path."""
    from hashlib import blake2b  # only memories need it

    digest = blake2b(str(folder).encode(errors="surrogateescape"), digest_size=5).hexdigest()
    return f"{slug(folder.name)}-{digest}"


#: Whom a memory is for: this project or all of them. `repository` is one that the project's own files bring along.
Place: TypeAlias = Literal["project", "everywhere", "repository"]
_WHOSE: dict[Place, str] = {
    "project": "",
    "everywhere": "all projects",
    "repository": "a file of the project",
}
#: The most bytes that a file may have to be read; one that ybs wrote has far fewer.
MOST_READ = 64_000
#: The most entries of a folder that are looked at; the project's own folder may be anybody's.
MOST_LISTED = 10_000
_LONGEST_HEADING = 60
_FRONT = r"\A---\n(?:[\w-]+:.*\n)*---\n"


class Memory(Struct, frozen=True, kw_only=True):
    """One memory. Its texts can be printed.

    `stamp` is when it was kept, as names of files have it; `name` its file's name without the ending. What a person
    wrote may have no heading.
    """

    path: Path
    name: str
    stamp: str
    heading: str
    body: str
    place: Place

    @property
    def text(self) -> str:
        """All that it says, once."""
        return _joined(self.heading, self.body)

    @property
    def whose(self) -> str:
        """Whom it is for, in words; "" for this project."""
        return _WHOSE[self.place]

    @property
    def day(self) -> str:
        """The day on which it was kept."""
        return self.stamp[:10]


class Unread(Struct, frozen=True):
    """A file that is not a memory, and why."""

    name: str
    reason: str


def plain(text: str) -> str:
    """Return a text without anything in it that acts on a terminal or that nobody sees."""
    return "\n".join(line.rstrip() for line in without_hidden_characters(text).split("\n")).strip(
        "\n"
    )


def composed(text: str, name: str) -> tuple[str, str]:
    """Return the heading and the body of a new memory; without a name, its first words are the heading."""
    if words := " ".join(name.split()):
        return _short(words), text.strip()
    text = text.lstrip("# \n").rstrip()
    first, _, rest = text.partition("\n")
    title, rest = " ".join(first.split()), rest.strip("\n")
    whole = f"{title}\n{rest}" if rest else title
    is_whole = len(title) <= _LONGEST_HEADING and _joined(title, rest) == whole
    return (title, rest) if is_whole else (_short(title), text)


def _joined(heading: str, body: str) -> str:
    """Return the text of a memory; a heading that is the beginning of the body is not said twice."""
    first = " ".join(body.partition("\n")[0].split())
    start = heading.removesuffix("…")
    is_start = first == heading or ("" != start != heading and first.startswith(start))
    return body if is_start or not heading else f"{heading}\n{body}" if body else heading


def _short(words: str) -> str:
    if len(words) <= _LONGEST_HEADING:
        return words
    return f"{words[: _LONGEST_HEADING - 1].rstrip()}…"


def written(heading: str, body: str, *, project: str, when: datetime) -> bytes:
    """Write a memory down."""
    front = [f"project: {project}"] if project else []
    front.append(f"date: {when.astimezone().isoformat(' ', 'seconds')}")
    parts = ["---", *front, "---", f"# {heading}", *(["", body] if body else [])]
    return ("\n".join(parts) + "\n").encode(errors="replace")


def names_in(folder: Path) -> list[tuple[str, str]]:
    """List the files of memories in a resolved folder as pairs of a stamp and a name, the newest first.

    A file that a person named without a time has that of its last change. Raises OSError, and Refused for a link.
    """
    handle = open_listed(folder)
    try:
        with os.scandir(handle) as entries:
            names = [each.name for each in islice(entries, MOST_LISTED) if _is_named(each.name)]
        return sorted(((_stamp(name, handle), name) for name in names), reverse=True)
    finally:
        os.close(handle)


def read_memories(folder: Path, names: Iterable[str], place: Place) -> Iterator[Memory | Unread]:
    """Read files of a resolved folder. No link is followed, nothing but a plain file of text is read.

    Raises OSError, and Refused where the folder itself is a link.
    """
    handle = open_listed(folder)
    try:
        for name in names:
            text = _text(name, handle)
            yield text if isinstance(text, Unread) else _memory(folder / name, text, handle, place)
    finally:
        os.close(handle)


def _is_named(name: str) -> bool:
    return name.endswith(SUFFIX) and not name.startswith(".")


def _stamp(name: str, folder: int) -> str:
    if stamp := read_name(name)[0]:
        return stamp
    try:
        return stamp_of(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime)
    except (OSError, ValueError, OverflowError):
        return ""


def _text(name: str, folder: int) -> str | Unread:
    try:
        is_several = os.stat(name, dir_fd=folder, follow_symlinks=False).st_nlink > 1
        data = None if is_several else read_beginning(name, MOST_READ + 1, folder=folder)
    except OSError as error:
        return Unread(name, error.strerror or str(error))
    if data is None:
        return Unread(name, "it is not a regular file, or a hard link")
    if len(data) > MOST_READ:
        return Unread(name, f"it is larger than {MOST_READ:,} bytes")
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        return Unread(name, "it is not UTF-8 text")


def _memory(path: Path, text: str, folder: int, place: Place) -> Memory:
    body = re.sub(_FRONT, "", f"{plain(text)}\n", count=1).strip("\n")
    heading = ""
    if body.startswith("#"):
        heading, _, body = body.partition("\n")
    return Memory(
        path=path,
        name=shown_name(path.name.removesuffix(SUFFIX)),
        stamp=_stamp(path.name, folder),
        heading=heading.lstrip("#").strip(),
        body=body.strip("\n"),
        place=place,
    )
