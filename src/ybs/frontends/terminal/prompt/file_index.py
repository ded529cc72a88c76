"""The files and folders of the project by name, for completion: fast enough to ask at every key."""

import asyncio
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from ybs.security.paths.names import real_name
from ybs.security.paths.roots import Roots

if TYPE_CHECKING:
    from ybs.tools.searching.walk import Deadline


FRESH_SECONDS = 3.0
LOAD_SECONDS = 10.0
MOST_FILES = 500_000
#: So many are found at once, of a folder that takes long.
FIRST_FILES = 20_000
#: So many are judged for each way of matching; the paths come with the short ones first.
MOST_JUDGED = 200
#: A query with so few plain hits is looked for letter by letter too.
FEW = 20
_MOST_RECENT, _FIRST_RECENT = 50, 5


class FileIndex:
    """Finds paths in the folders that tools may work in; ignored and blocked ones are not in it.

    `recent` lists the files that this session used, the last ones last; they come first among equals.
    """

    def __init__(
        self,
        roots: Roots,
        recent: Callable[[], Sequence[Path]] = tuple,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._roots, self._recent, self._clock = roots, recent, clock
        self._listing = FileListing(())
        self._looked_at: float | None = None
        self._look: asyncio.Task[None] | None = None

    def refresh(self) -> None:
        """Begin to look at the disk, unless that was done a moment ago. Returns at once; needs a running loop."""
        is_looking = self._look is not None and not self._look.done()
        is_fresh = self._looked_at is not None and self._clock() - self._looked_at < FRESH_SECONDS
        if not is_looking and not is_fresh:
            self._look = asyncio.get_running_loop().create_task(self._load())

    async def settle(self, seconds: float | None = None) -> None:
        """Wait for the end of a look that was begun, at most so long."""
        if self._look is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._look), seconds)

    def find(self, query: str, limit: int = 20) -> list[str]:
        """Return the best paths, the best one first; folders end in a slash.

        The query may be spelled as `security.names.shown_name` spells names. Paths are relative in the project's folder, else absolute. It never waits: while the first look at the disk
        goes on, it finds in what was seen of it.
        """
        recent = self._recent_ranks()
        wanted = real_name(query.removeprefix("./")).replace("\n", "\0").lower()
        if not wanted:
            return self._listing.first(recent, limit)
        return self._listing.best(wanted, recent, limit)

    def _recent_ranks(self) -> dict[str, int]:
        """Return the relative paths of recent files with 0 for the last, 1 for the one before, and so on."""
        folder = f"{self._roots.folder}/"
        paths = reversed(self._recent()[-_MOST_RECENT:])
        return {str(path).removeprefix(folder): rank for rank, path in enumerate(paths)}

    async def _load(self) -> None:
        from ybs.tools.searching.walk import Deadline  # not needed before the first completion

        deadline = Deadline(LOAD_SECONDS)
        try:
            self._listing = await asyncio.to_thread(self._walk, deadline)
            self._looked_at = self._clock()
        finally:
            deadline.cancel()

    def _walk(self, deadline: "Deadline") -> "FileListing":
        """Look at the disk, in a thread; the first time, what comes first can be found at once."""
        paths: list[str] = []
        for path in self._each_path(deadline):
            paths.append(path)
            if len(paths) == FIRST_FILES and self._looked_at is None:
                self._listing = FileListing(paths)
            if len(paths) >= MOST_FILES:
                break
        return FileListing(paths)

    def _each_path(self, deadline: "Deadline") -> Iterator[str]:
        from ybs.agent.project_walk import outermost
        from ybs.tools.searching.walk import Walk

        folder = self._roots.folder
        for root in outermost(self._roots.folders):
            shown = str(root.relative_to(folder)) if root.is_relative_to(folder) else str(root)
            prefix = "" if shown == "." else f"{shown.rstrip('/')}/"
            walk = Walk(self._roots, root, deadline=deadline)
            for entry in walk.files():
                yield prefix + entry.path
            for path in walk.folders:
                yield f"{prefix}{path}/"


class FileListing:
    """All paths of one look at the disk, in one text, so that a query costs a few searches in that."""

    def __init__(self, paths: Sequence[str]) -> None:
        # In two steps, each quick: while a list is sorted nothing else can happen, not even typing.
        self._paths = sorted(sorted(paths), key=_size)
        joined = "\n".join(self._paths)
        if joined.count("\n") >= max(len(paths), 1):
            joined = "\n".join(path.replace("\n", "\0") for path in self._paths)
        lower = joined.lower()
        self._lower = lower.split("\n") if paths else []
        self._text = f"\n{lower}\n"
        #: Where each path begins in the text, and last where one more would.
        self._starts = list(accumulate((len(path) + 1 for path in self._lower), initial=1))
        self._numbers = {path: number for number, path in enumerate(self._paths)}
        self._narrowed: tuple[str, list[int]] | None = None

    def first(self, recent: dict[str, int], limit: int) -> list[str]:
        """Return the completions for an empty word: recent files, then the top of the project."""
        used = [path for path in recent if path in self._numbers][:_FIRST_RECENT]
        top = [path for path in self._paths[: MOST_JUDGED * 5] if "/" not in path[:-1]]
        top.sort(key=lambda path: (not path.endswith("/"), path.startswith("."), path.lower()))
        return list(dict.fromkeys((*used, *top)))[:limit]

    def best(self, query: str, recent: dict[str, int], limit: int) -> list[str]:
        """Return the paths that fit best."""
        numbers = dict.fromkeys(self._numbers[path] for path in recent if path in self._numbers)
        for number in self._candidates(query):
            numbers[number] = None
        is_within = query.endswith("/")
        ranked: list[tuple[int, int, int, str]] = []
        for number in numbers:
            path = self._paths[number]
            fit = score(query, path, self._lower[number])
            if fit >= 0 and not (is_within and self._lower[number] == query):
                length = path.count("/", 0, -1) if is_within else len(path)
                ranked.append((-fit, recent.get(path, len(recent)), length, path))
        ranked.sort()
        return [path for _, _, _, path in ranked[:limit]]

    def _candidates(self, query: str) -> list[int]:
        found: list[int] = []
        for before in ("\n", "/", ""):
            hits = self._hits(before + query)
            found += hits
            if len(hits) >= MOST_JUDGED:
                return found  # what is left would be worse
        if len(query) > 1 and len(found) < FEW and all(letter in self._text for letter in query):
            found += self._spread(query)
        return found

    def _hits(self, text: str) -> list[int]:
        """Return the numbers of the first paths that hold the text."""
        whole, starts = self._text, self._starts
        numbers: list[int] = []
        place = whole.find(text)
        while place >= 0 and len(numbers) < MOST_JUDGED:
            number = bisect_right(starts, place + (text[:1] == "\n")) - 1
            numbers.append(number)
            place = whole.find(text, starts[number + 1] - 1)
        return numbers

    def _spread(self, query: str) -> list[int]:
        """Return the numbers of the first paths that hold the letters in their order.

        Of a query that goes on from the last one, only what that one found is looked at, if it was all.
        """
        letters = map(re.escape, query)
        fits = re.compile("".join(f"[^{letter}\n]*+{letter}" for letter in letters))
        if self._narrowed and query.startswith(self._narrowed[0]):
            fitting = [n for n in self._narrowed[1] if fits.match(self._lower[n])]
            self._narrowed = (query, fitting)
            return fitting
        numbers: list[int] = []
        for found in re.finditer(f"\n{fits.pattern}", self._text):
            numbers.append(bisect_right(self._starts, found.start() + 1) - 1)
            if len(numbers) >= MOST_JUDGED:
                self._narrowed = None
                return numbers
        self._narrowed = (query, numbers)
        return numbers


def _size(path: str) -> int:
    """Return a number that grows with the depth first and then with the length."""
    return path.count("/", 0, -1) << 16 | len(path)


_BORDERS = frozenset("/_-. ")
_LETTER, _NEXT, _BORDER, _NAME, _NAME_START, _PATH_START, _WHOLE_NAME = 16, 12, 10, 6, 8, 4, 24
_MOST_GAP = 8


def score(query: str, path: str, lower: str) -> int:
    """Return how well the query fits; -1 where its letters do not stand in the path in their order.

    `query` and `lower`, which is the path, are in small letters. A folder's path ends in a slash.
    """
    base = lower.rfind("/", 0, len(lower.rstrip("/"))) + 1
    ways = _ways(query, path, lower, base)
    if not ways:
        return -1
    best = max(_worth(places, path, base) for places in ways)
    name = lower[base:].rstrip("/")
    return best + _WHOLE_NAME * (query in (name, name.rpartition(".")[0]))


def _ways(query: str, path: str, lower: str, base: int) -> list[Sequence[int]]:
    """Return the places of the letters in the few ways that are worth a look."""
    found = lower.find(query, base)
    if found < 0:
        found = 0 if lower.startswith(query) else lower.rfind(query)
    if found < 0:
        spread = (_spread(query, lower, start) for start in (0, base))
        return [way for way in (*spread, _borders(query, path, lower)) if way]
    ways: list[Sequence[int]] = [range(found, found + len(query))]
    later = lower.find(query, found + 1)
    while later >= 0 and not _is_border(path, later):
        later = lower.find(query, later + 1)
    return [*ways, range(later, later + len(query))] if later >= 0 else ways


def _spread(query: str, lower: str, start: int) -> list[int]:
    """Return the first place of each letter behind the one before."""
    places: list[int] = []
    for letter in query:
        start = lower.find(letter, start) + 1
        if not start:
            return []
        places.append(start - 1)
    return places


def _borders(query: str, path: str, lower: str) -> list[int]:
    """Return the places of the letters where each goes on, or else begins the next word that it can."""
    places: list[int] = []
    place = -1
    for letter in query:
        if lower[place + 1 : place + 2] == letter:
            place += 1
        else:
            place = _next_word(letter, path, lower, place + 1)
        if place < 0:
            return []
        places.append(place)
    return places


def _next_word(letter: str, path: str, lower: str, start: int) -> int:
    first = place = lower.find(letter, start)
    while place >= 0 and not _is_border(path, place):
        place = lower.find(letter, place + 1)
    return place if place >= 0 else first


def _worth(places: Sequence[int], path: str, base: int) -> int:
    total, before = 0, places[0]
    for place in places:
        total += _LETTER + _NAME * (place >= base)
        if place == before + 1:
            total += _NEXT
        elif _is_border(path, place):
            total += _BORDER
        else:
            total -= min(place - before, _MOST_GAP)
        before = place
    return total + _NAME_START * (places[0] == base) + _PATH_START * (places[0] == 0)


def _is_border(path: str, place: int) -> bool:
    """Return whether a word begins there: behind a sign, or with a capital behind a small letter."""
    if place == 0:
        return True
    before = path[place - 1 : place]  # small letters may be more than the capitals were
    return before in _BORDERS or (path[place : place + 1].isupper() and before.islower())
