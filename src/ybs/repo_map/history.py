"""History: which files were changed lately, and which ones were changed together, as git tells it."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import log

from msgspec import DecodeError, Struct, msgpack

from ybs.core.decoding import decodable
from ybs.git.client import Git
from ybs.git.hardening import GitError
from ybs.repo_map.words import names_key, stems_of

#: More commits find more files that change together, and cost more: 2,000 of rails about 0.2 s of git's CPU.
MOST_COMMITS = 2000
#: A commit of more files (a move, a new header, a format) says nothing of them.
MOST_FILES = 30
#: The weight of a change falls as 1 / (commits since + 10) ** power.
_FRESH = 10
_FALL_OF_RECENCY, _FALL_OF_TOGETHER, _FALL_OF_TITLES = 0.8, 0.5, 0.5
_FORM = 2
_MARK = b"\1"
_WORD = re.compile(r"\w+")
_LONGEST_TITLE = 200


class _Kept(Struct, frozen=True, array_like=True):
    form: int
    head: str
    part: bytes
    names: list[bytes]
    commits: list[list[int]]
    titles: list[str]


class CommitHistory:
    """The last commits: the files of each, the newest first. Paths are relative to the project folder.

    `titles` are the words of each commit's title, as stems with a space between.
    """

    def __init__(
        self,
        commits: Sequence[Sequence[str]] = (),
        *,
        titles: Sequence[str] = (),
        head: str = "",
        part: str = "",
    ) -> None:
        self.commits, self.titles, self.head, self.part = commits, titles, head, part
        self._places: dict[str, list[int]] = {}

    def recencies(self) -> Mapping[str, float]:
        """Return how lately and how often each file was changed, from 0 towards 1; without those that never were."""
        sums: dict[str, float] = {}
        for place, paths in enumerate(self.commits):
            weight = (1 + place / _FRESH) ** -_FALL_OF_RECENCY
            for path in paths:
                sums[path] = sums.get(path, 0.0) + weight
        return {path: each / (1 + each) for path, each in sums.items()}

    def together(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Return how likely other files change when these do, each times the weight of the one it goes with.

        A file that was never changed, or always alone, adds nothing.
        """
        found: dict[str, float] = {}
        for path, weight in weights.items():
            shares, whole = self._beside(path)
            for other, share in shares.items():
                found[other] = found.get(other, 0.0) + weight * share / whole
        return found

    def told(self, wanted: Mapping[str, float]) -> dict[str, float]:
        """Return what the commits say whose titles have the wanted stems, as the worth of their files."""
        titles = [set(title.split()) for title in self.titles]
        having = Counter(stem for title in titles for stem in title if stem in wanted)
        worth = {
            stem: wanted[stem] * log(1 + len(titles) / (count + 0.5))
            for stem, count in having.items()
        }
        found: dict[str, float] = {}
        for place, (title, paths) in enumerate(zip(titles, self.commits, strict=False)):
            match = sum(worth[stem] for stem in title if stem in worth)
            if not match:
                continue
            # Squared: one commit that is about just this says more than many that share a word.
            fall = (1 + place / _FRESH) ** -_FALL_OF_TITLES
            part = fall * match * match / (3 + len(title)) / len(paths) ** 0.5
            for path in paths:
                found[path] = found.get(path, 0.0) + part
        return {path: part**0.5 for path, part in found.items()}

    def _beside(self, path: str) -> tuple[dict[str, float], float]:
        """Return for the files beside one their parts of the whole: 1 would be in each commit of it."""
        shares: dict[str, float] = {}
        whole = 0.0
        for place in self._places_of(path):
            paths = self.commits[place]
            fall = (1 + place / _FRESH) ** -_FALL_OF_TOGETHER
            whole += fall
            share = fall * max(len(paths) - 1, 1) ** -0.5
            for other in paths:
                shares[other] = shares.get(other, 0.0) + share
        shares.pop(path, None)
        return shares, whole or 1.0

    def _places_of(self, path: str) -> Sequence[int]:
        if not self._places:
            for place, paths in enumerate(self.commits):
                for each in paths:
                    self._places.setdefault(each, []).append(place)
        return self._places.get(path, ())

    def encoded(self) -> bytes:
        """Return it as bytes, which `read_history` takes the next time."""
        numbers: dict[str, int] = {}
        commits = [[numbers.setdefault(p, len(numbers)) for p in paths] for paths in self.commits]
        names = [os.fsencode(path) for path in numbers]
        kept = _Kept(_FORM, self.head, os.fsencode(self.part), names, commits, list(self.titles))
        return msgpack.encode(kept)


async def read_history(git: Git, old: bytes | None = None) -> CommitHistory:
    """Read what the last commits changed; after `old` (an encoded History) only the newer ones are asked for.

    Without git, without commits and for what cannot be read it is empty; nothing is raised.
    """
    try:
        part = _part_of(git)
        head = await git.head()
        if not head:
            return CommitHistory()
        known = _decoded(old, part)
        if known is not None:
            if known.head == head:
                return known
            newer = await _newer(git, known, head)
            if newer is not None:
                return newer
        titles, commits = await _latest(git, head, part)
        return CommitHistory(commits, titles=titles, head=head, part=part)
    except GitError:
        return CommitHistory()


def _part_of(git: Git) -> str:
    """Return the way from the top of the work tree to the project folder, with a slash at its end."""
    top, folder = git.repository().work_tree, git.folder.resolve()
    return "" if folder == top else f"{folder.relative_to(top)}/"


async def _latest(git: Git, head: str, part: str) -> tuple[list[str], list[list[str]]]:
    """Read anew; where the commits are so large that git prints too much, fewer of them."""
    try:
        rows = await _log(git, "--no-merges", "-n", str(MOST_COMMITS), head)
    except GitError:
        rows = await _log(git, "--no-merges", "-n", str(MOST_COMMITS // 20), head)
    return _changed(rows, part)


async def _newer(git: Git, known: CommitHistory, head: str) -> CommitHistory | None:
    """Return the known commits with the newer ones; None where HEAD does not come from the known one."""
    limit = MOST_COMMITS + 1
    try:
        rows = await _log(git, "--left-right", "-n", str(limit), f"{known.head}...{head}")
    except GitError:  # that commit is gone
        return None
    if len(rows) == limit or any(header[:1] == b"<" for header, _ in rows):
        return None
    titles, commits = _changed(rows, known.part)
    titles, commits = [*titles, *known.titles], [*commits, *known.commits]
    return CommitHistory(
        commits[:MOST_COMMITS], titles=titles[:MOST_COMMITS], head=head, part=known.part
    )


async def _log(git: Git, *words: str) -> list[tuple[bytes, list[bytes]]]:
    """Return for each commit its sign, hash and title, and its files; merges have none of their own."""
    form = ("--no-renames", "--name-only", "-z", "--format=%x01%m%H %s")
    printed = await git.run("log", *form, *words, "--")
    rows: list[tuple[bytes, list[bytes]]] = []
    for field in printed.split(b"\0"):
        if field.startswith(_MARK):
            rows.append((field[1:], []))
        elif field and rows:
            names = rows[-1][1]
            names.append(field if names else field.removeprefix(b"\n"))
    return rows


def _changed(
    rows: Sequence[tuple[bytes, list[bytes]]], part: str
) -> tuple[list[str], list[list[str]]]:
    """Return the title of each commit that changed files within the folder, and their paths."""
    titles: list[str] = []
    commits: list[list[str]] = []
    for header, names in rows:
        if len(names) > MOST_FILES:
            continue
        paths = [path[len(part) :] for path in map(os.fsdecode, names) if path.startswith(part)]
        paths = [path for path in paths if not names_key(path)]
        if paths:
            titles.append(" ".join(_stems_of_title(header.partition(b" ")[2])))
            commits.append(paths)
    return titles, commits


def _stems_of_title(title: bytes) -> Iterator[str]:
    """Yield the stems of a title; keys have none, so that none is kept."""
    for word in _WORD.findall(title[:_LONGEST_TITLE].decode(errors="replace")):
        yield from stems_of(word)


def _decoded(data: bytes | None, part: str) -> CommitHistory | None:
    """Return what was kept of this folder; None for anything else."""
    if not data:
        return None
    try:
        kept = msgpack.decode(data, type=decodable(_Kept))
        names = [os.fsdecode(name) for name in kept.names]
        commits = [[names[number] for number in numbers] for numbers in kept.commits]
    except (DecodeError, IndexError):
        return None
    if kept.form != _FORM or kept.part != os.fsencode(part) or not kept.head.isalnum():
        return None
    return CommitHistory(commits, titles=kept.titles, head=kept.head, part=part)
