"""The protocol between sessions and the process that maps their project: one line of JSON at a time, and `null` at the end."""

import os
from pathlib import Path
from typing import Self

from msgspec import Struct

#: Longer words than these are cut for a question: a pipe takes them at once.
MOST_QUERY_CHARS = 8_000
#: The size of a map that is asked for where the settings say that none is told by itself.
DEFAULT_TOKENS = 1024


class MapRequest(Struct, frozen=True, kw_only=True):
    """The first line to the process: whose map it is to make. Paths are bytes, as the system has them.

    `is_kept` says whether the index may be kept in the cache. Where `parses` is false, the words alone
    decide: a parser has ended a process before.
    """

    folder: bytes
    blocked: tuple[bytes, ...] = ()
    is_kept: bool = False
    parses: bool = True

    @classmethod
    def of(cls, folder: Path, *, blocked: tuple[str, ...] = (), is_kept: bool = False) -> Self:
        """Make a job of texts and paths."""
        return cls(
            folder=os.fsencode(folder), blocked=tuple(map(os.fsencode, blocked)), is_kept=is_kept
        )


class MapReady(Struct, frozen=True, kw_only=True):
    """The first line back: the index is as new as the files, so many of which are source."""

    sources: int


class MapQuery(Struct, frozen=True, kw_only=True):
    """A later line to the process: what the map is about ("": everything), and its size."""

    query: str
    tokens: int


class MapAnswer(Struct, frozen=True, kw_only=True):
    """A later line back: the map, the files in it, its tokens, and how many source files there are."""

    text: str
    files: tuple[str, ...] = ()
    tokens: int = 0
    sources: int = 0


def plain(text: str) -> str:
    """Return the text without halves of characters, which JSON cannot hold."""
    return text.encode("utf-8", "replace").decode()
