"""The repo map, put together: the index, the history, the order that follows from them, and the text."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct

from ybs.git.client import Git
from ybs.repo_map.history import CommitHistory, read_history
from ybs.repo_map.index import Index
from ybs.repo_map.languages import is_source
from ybs.repo_map.rank import rank, read_query
from ybs.repo_map.render import RankedFile, render
from ybs.security.paths.names import shown_name

_HISTORY = "history"
#: So many files have a chance to stand in the map.
_MOST_SHOWN = 5_000


class Map(Struct, frozen=True, kw_only=True):
    """A map: its text, the files in it as names are shown, the best one first, and its tokens."""

    text: str
    files: tuple[str, ...] = ()
    tokens: int = 0


class RepoMap:
    """The map of one folder. `prepare` first, and again when files may have changed.

    `cache` is the file that the index is kept in (None: it is not kept), `list_files` gives the paths within the folder,
    `git` is None where there is no repository, `count` says how many tokens a text has.
    Without `parses` no parser is run: what was found before counts, and the words.
    """

    def __init__(
        self,
        folder: Path,
        *,
        cache: Path | None,
        list_files: Callable[[], Iterable[str]],
        git: Git | None,
        count: Callable[[str], int],
        parses: bool = True,
    ) -> None:
        self._list_files, self._git, self._count = list_files, git, count
        self._index = Index(folder, cache, parses=parses)
        self._history = CommitHistory()

    @property
    def sources(self) -> int:
        """How many files are source code, by their names."""
        return sum(map(is_source, self._index.paths))

    @property
    def is_empty(self) -> bool:
        """Whether there is no file to map."""
        return not self._index.paths

    def prepare(self) -> None:
        """Read what changed in the files and in the history."""
        self._index.refresh(self._list_files())
        if self._git is not None:
            old = self._index.get(_HISTORY)
            self._history = asyncio.run(read_history(self._git, old))
            if (new := self._history.encoded()) != old:
                self._index.set(_HISTORY, new)

    def answer(self, query: str, tokens: int) -> Map:
        """Make the map for a query ("": an overview) of at most so many tokens."""
        read = read_query(query)
        ranked = [
            RankedFile(path=each.path, tags=each.tags, wanted=read.terms, linked=each.linked)
            for each in rank(self._index, self._history, read)[:_MOST_SHOWN]
        ]
        made = render(ranked, tokens, self._count)
        return Map(text=made.text, files=tuple(map(shown_name, made.files)), tokens=made.tokens)

    def close(self) -> None:
        """Put away what is new."""
        self._index.close()
