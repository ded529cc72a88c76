"""The rank: the files of a project in the order in which a request is likely to be about them.

Words come first: all files get a worth from what costs little (their words, when they last changed, what commits said
of them). The best of these are looked at again (their names, their companions), and the best of those are parsed, so
that what they use of each other counts too. `bench/repo_map.py` measures the order, and WEIGHTS were fitted with it.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from math import log, sqrt
from typing import Protocol

from msgspec import Struct

from ybs.core.folder_names import ASIDE, OTHERS
from ybs.repo_map.history import CommitHistory
from ybs.repo_map.index import Index
from ybs.repo_map.languages import is_source
from ybs.repo_map.tags import Tags
from ybs.repo_map.words import stems_of

#: Of a longer request the rest is not read; of more words the first ones count.
MOST_CHARS, MOST_TERMS, MOST_NAMES = 20_000, 120, 40
#: A word that comes often counts so many times at most.
MOST_TIMES = 3

#: What is not about files: addresses, and who signed, reviewed and wrote.
_NOISE = re.compile(
    r"\b[a-z]{2,12}://\S+|<[^<>\s@]{1,64}@[^<>\s]{1,64}>|^[ \t]{0,8}[A-Za-z-]{2,30}-by:.*$",
    re.MULTILINE,
)

#: A word with what says that it is a name: a backtick before it, one or a bracket behind it.
_MARKED_WORD = re.compile(r"(`?)(\w+)([`(]?)")
_COMPOUND = re.compile(r"[^\W_A-Z][A-Z]|[A-Z][A-Z][^\W_A-Z0-9]|[^\W_]_+[^\W_]")
_RUN = re.compile(r"[\w./@+-]+")
_LONGEST_NAME, _LONGEST_PATH = 100, 300
_TESTS = re.compile(r"\b(?:tests?|testing|tested|specs?|fixtures?|coverage)\b", re.IGNORECASE)
_DOCUMENTS = re.compile(
    r"\b(?:docs?|documentation|documents?|readme|changelog|release notes?|manual)\b", re.IGNORECASE
)


class Query(Struct, frozen=True, kw_only=True):
    """A request: `terms` are its stems with their weights, `first` those of its first line.

    `names` are identifiers and `paths` paths and file names (in small letters) as they are written.
    """

    terms: dict[str, float] = {}
    first: dict[str, float] = {}
    names: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    speaks_of_tests: bool = False
    speaks_of_documents: bool = False


def read_query(text: str) -> Query:
    """Read a request in plain words."""
    text = _NOISE.sub(" ", text[:MOST_CHARS]).strip()
    first, _, rest = text.partition("\n")
    heads = _stems(first, {})
    return Query(
        terms=_stems(rest, dict(heads)),
        first=heads,
        names=frozenset(_few(_names(text))),
        paths=frozenset(_few(_paths(text))),
        speaks_of_tests=bool(_TESTS.search(text)),
        speaks_of_documents=bool(_DOCUMENTS.search(text)),
    )


def _stems(text: str, known: dict[str, float]) -> dict[str, float]:
    for word in _WORD.findall(text):
        for stem in stems_of(word):
            times = known.get(stem, 0.0)
            if times < MOST_TIMES and (times or len(known) < MOST_TERMS):
                known[stem] = times + 1.0
    return known


def _names(text: str) -> Iterator[str]:
    """Yield what is a name for sure: in backticks, called, or of more than one word."""
    for before, word, behind in _MARKED_WORD.findall(text):
        is_marked = behind == "(" or (before and behind)
        if 2 < len(word) < _LONGEST_NAME and (is_marked or _COMPOUND.search(word)):
            yield word


def _paths(text: str) -> Iterator[str]:
    """Yield what may be a path or the name of a file, in small letters."""
    for run in _RUN.findall(text):
        path = run.lower().strip("./")
        if len(path) < _LONGEST_PATH and ("/" in path or "." in path):
            yield path


def _few(found: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(found))[:MOST_NAMES]


#: How soon more of the same word stops to count, and how much a long file loses.
K1, B = 1.2, 0.75


class Words(Protocol):
    """What a search needs of an index."""

    @property
    def lengths(self) -> Sequence[float]:
        """How many words each file has."""
        ...

    def postings(self, term: str) -> tuple[list[int], list[float]]:
        """Return the files that have a term, and its weight in each."""
        ...


def bm25(index: Words, terms: Mapping[str, float]) -> dict[int, float]:
    """Return the worth of every file that has one of the terms; a term is as it comes from `stems_of`, with its weight."""
    lengths = index.lengths
    if not lengths:
        return {}
    mean = sum(lengths) / len(lengths) or 1.0
    # A file that was not read has no length; it is taken for a usual one.
    norms = [K1 * (1 - B + B * (length or mean) / mean) for length in lengths]
    worth: dict[int, float] = {}
    for term, weight in terms.items():
        files, counts = index.postings(term)
        if not files:
            continue
        rarity = weight * rarity_of(len(files), len(lengths))
        for file, count in zip(files, counts, strict=True):
            part = rarity * count * (K1 + 1) / (count + norms[file])
            worth[file] = worth.get(file, 0.0) + part
    return worth


def rarity_of(having: int, all_files: int) -> float:
    """Return what a term is worth that so many of all files have."""
    return log(1 + (all_files - having + 0.5) / (having + 0.5))


#: How many files are looked at again, how many of those say who belongs with them, and how many are parsed.
MOST_LOOKED_AT, MOST_LEADING, MOST_PARSED = 400, 15, 40
#: How many commits are the last ones; how many files are given an order.
MOST_LATEST, MOST_RANKED = 3, 5000

#: What each sign counts, from 0 to 1 within one request; bench/repo_map.py tells on which repositories it was fitted.
WEIGHTS = {
    "words": 1.3,  # BM25 of all words
    "first": 1.1,  # of those in the first line
    "whole": 1.0,  # of compound names
    "recent": 1.2,  # changed lately and often
    "latest": 1.2,  # changed by the very last commits
    "told": 2.0,  # changed by commits with such titles
    "named": 1.0,  # the file's name has words of the request
    "folder": 0.9,  # the folders above it have
    "defines": 0.5,  # it defines a name of the request
    "mentioned": 2.0,  # its path is in the request
    "companion": 1.6,  # the test of a good file, its header, or what a good test tests
    "together": 0.3,  # changed together with good files
    "tests": -0.25,  # is a test
    "tests wanted": 0.85,  # and the request speaks of tests
    "other": -4.0,  # no source: documents, settings, data
    "other wanted": 3.5,  # and the request speaks of documents
    "used": 0.3,  # PageRank: other good files use it
    "aside": 0.0,  # an example, a test, a document, or what others or a tool made
}
#: Without words the project is shown as a whole: its own sources, and of them what others use counts most; more files
#: are parsed to see it.
OVERVIEW = {**WEIGHTS, "used": 2.0, "aside": -3.0, "tests": -1.0}
MOST_PARSED_OVERVIEW = 100

_IS_TEST = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|testing|testdata|fixtures?|t)/|(?:^|/)tests?[_.-]"
    r"|[_.-](?:tests?|spec)\.|[a-z]Tests?\.[a-z]+$"
)
_ASIDE = ASIDE | OTHERS
_WORD = re.compile(r"\w+")
_TEST_WORDS = re.compile(r"^(?:tests?_?|spec_)|(?:[_.-]?tests?|[_.-]?spec)$")

Column = dict[int, float]


class Ranked(Struct, frozen=True, kw_only=True):
    """A file in its place. `tags` are there for the first ones; `linked` is the worth of its names to other files."""

    file: int
    path: str
    worth: float
    tags: Tags | None = None
    linked: Mapping[str, float] = {}


def rank(index: Index, history: CommitHistory, query: Query) -> list[Ranked]:
    """Return the files of the index, the likeliest first; without words an overview of what matters lately."""
    look = Look(index, history, query)
    look.at_all()
    look.again(look.best(MOST_LOOKED_AT))
    parsed = look.inside(look.best(MOST_PARSED if query.terms else MOST_PARSED_OVERVIEW))
    order = look.best(MOST_RANKED)
    return [
        Ranked(
            file=file,
            path=index.paths[file],
            worth=look.worth[file],
            tags=parsed.get(file),
            linked=look.linked.get(file, {}),
        )
        for file in order
    ]


class Look:
    """Looks at files, ever fewer and ever closer; `worth` is what they are worth so far."""

    def __init__(self, index: Index, history: CommitHistory, query: Query) -> None:
        self._index, self._history, self._query = index, history, query
        self.paths: Sequence[str] = index.paths
        self._files = {path: file for file, path in enumerate(self.paths)}
        self.worth = [0.0] * len(self.paths)
        self._weights = WEIGHTS if query.terms else OVERVIEW
        self.linked: dict[int, dict[str, float]] = {}

    def best(self, most: int) -> list[int]:
        """Return the best files so far."""
        return nlargest(most, range(len(self.worth)), key=self.worth.__getitem__)

    def add(self, sign: str, column: Column) -> None:
        """Count a sign, its values made 1 for the file that has most of it."""
        weight = self._weights[sign]
        most = max(column.values(), default=0.0)
        if most <= 0:
            return
        for file, value in column.items():
            self.worth[file] += weight * value / most

    def mark(self, sign: str, files: Iterable[int]) -> None:
        """Count a sign that a file has or has not."""
        weight = self._weights[sign]
        for file in files:
            self.worth[file] += weight

    def at_all(self) -> None:
        """Look at what costs little."""
        index, query = self._index, self._query
        whole = {term: 1.0 for name in query.names for term in stems_of(name)[-1:]}
        self.add("words", bm25(index, query.terms))
        self.add("first", bm25(index, query.first))
        self.add("whole", bm25(index, whole))
        self.add("recent", self._of_paths(self._history.recencies()))
        self.add("latest", self._of_paths(self._latest()))
        self.add("told", self._of_paths(self._history.told(query.first)))
        others = [
            file
            for file, path in enumerate(self.paths)
            if not index.language(file) and not is_source(path)
        ]
        self.mark("other", others)
        if not query.terms:
            self.mark("aside", (n for n, path in enumerate(self.paths) if _is_secondary(path)))
        if query.speaks_of_documents:
            self.mark("other wanted", others)

    def again(self, files: Sequence[int]) -> None:
        """Look at the paths of the best files, and at what goes with them."""
        tests = [file for file in files if _IS_TEST.search(self.paths[file])]
        names = {file: _stem_of(self.paths[file]) for file in files}
        self.add("named", self._spoken(names, self._query.terms, is_whole=True))
        folders = {file: self.paths[file].rpartition("/")[0] for file in files}
        self.add("folder", self._spoken(folders, self._query.first))
        self.add("defines", self._defining())
        self.add("mentioned", self._mentioned(files))
        self.mark("tests", tests)
        if self._query.speaks_of_tests:
            self.mark("tests wanted", tests)
        leading = self.best(MOST_LEADING)
        weights = {file: 1 / (2 + place) for place, file in enumerate(leading)}
        self.add("companion", self._companions(files, weights))
        together = self._history.together({self.paths[file]: weights[file] for file in leading})
        self.add("together", self._of_paths(together))

    def inside(self, files: Sequence[int]) -> dict[int, Tags]:
        """Parse the best files and follow what they use; return their tags."""
        tags = {file: self._index.tags(file) for file in files}
        definers: dict[str, set[int]] = {}
        for file, found in tags.items():
            for tag in found.definitions:
                definers.setdefault(tag.name, set()).add(file)
        nobody: set[int] = set()
        links = edges_among(
            files, tags, lambda name: definers.get(name, nobody), mentioned=self._query.names
        )
        lowest = min((self.worth[file] for file in files), default=0.0)
        ranks = page_rank(links.edges, {file: self.worth[file] - lowest for file in files})
        self.linked = links.worth_of_names(ranks)
        self.add("used", ranks)
        return tags

    def _of_paths(self, values: Mapping[str, float]) -> Column:
        files = self._files
        return {files[path]: value for path, value in values.items() if path in files}

    def _latest(self) -> dict[str, float]:
        """Return the files of the last commits: what is worked on often goes on."""
        found: dict[str, float] = {}
        for place, paths in enumerate(self._history.commits[:MOST_LATEST]):
            for path in paths:
                found.setdefault(path, 1 / (1 + place))
        return found

    def _spoken(
        self, texts: Mapping[int, str], terms: Mapping[str, float], *, is_whole: bool = False
    ) -> Column:
        """Return what the terms in a part of each path are worth, rare ones more; `is_whole`: as a share of that part."""
        stems = {file: _stems_of(text) for file, text in texts.items()}
        having = Counter(stem for each in stems.values() for stem in each if stem in terms)
        rarity = {stem: rarity_of(count, len(self.paths)) for stem, count in having.items()}
        return {
            file: sum(rarity[stem] for stem in found) / (len(each) if is_whole else 1)
            for file, each in stems.items()
            if (found := each & terms.keys())
        }

    def _defining(self) -> Column:
        found: Column = {}
        for name in self._query.names:
            files = self._index.defining(name)
            for file in files:
                found[file] = found.get(file, 0.0) + rarity_of(len(files), len(self.paths))
        return found

    def _mentioned(self, files: Iterable[int]) -> Column:
        """Return the files whose path, or the end of it from a name on, stands in the request."""
        wanted = self._query.paths
        if not wanted:
            return {}
        ends = tuple(f"/{path}" for path in wanted)
        return {
            file: 1.0
            for file in files
            if (low := self.paths[file].lower()) in wanted or low.endswith(ends)
        }

    def _companions(self, files: Iterable[int], weights: Mapping[int, float]) -> Column:
        """Return the files whose names say that they belong to a good one: its test, its header, or it itself."""
        best: dict[str, float] = {}
        for file, weight in weights.items():
            key = _companion_key(self.paths[file])
            best[key] = max(best.get(key, 0.0), weight)
        return {
            file: best[key] for file in files if (key := _companion_key(self.paths[file])) in best
        }


def _stems_of(text: str) -> set[str]:
    return {stem for word in _WORD.findall(text) for stem in stems_of(word)}


def _is_secondary(path: str) -> bool:
    *folders, _ = path.lower().split("/")
    return not _ASIDE.isdisjoint(folders)


def _stem_of(path: str) -> str:
    """Return a file's name without its suffix."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def _companion_key(path: str) -> str:
    return _TEST_WORDS.sub("", path.rpartition("/")[2].lower().partition(".")[0])


#: A name counts this many times when the request has it, and when it is long enough to be of this project.
MENTIONED, TELLING = 10.0, 10.0
#: A private name, and one that many files define, say little; one of more than `MOST_DEFINING` files says nothing.
PRIVATE, COMMON = 0.1, 0.1
COMMON_FROM, MOST_DEFINING = 6, 30
_TELLING_CHARS = 8
#: More than one word: snake_case, kebab-case or camelCase.
_WORDS = re.compile(r"[^\W_][_-]+[^\W_]|[^\W_A-Z][A-Z]")

Edges = dict[int, dict[int, float]]


def page_rank(
    edges: Mapping[int, Mapping[int, float]],
    personal: Mapping[int, float],
    *,
    damping: float = 0.85,
    rounds: int = 100,
    tolerance: float = 1e-6,
) -> dict[int, float]:
    """Return how often a walk along the edges is at each file; the ranks add up to 1.

    Now and then, and from a file without edges, the walk starts anew at one of `personal` (weights above 0; without
    any, at each file alike). It ends when a round changes less than `tolerance` in all.
    """
    nodes = dict.fromkeys(edges)
    for ends in edges.values():
        nodes.update(dict.fromkeys(ends))
    start = _shares({each: weight for each, weight in personal.items() if weight > 0})
    start = start or _shares(dict.fromkeys(nodes, 1.0))
    nodes.update(dict.fromkeys(start))
    links = [(each, list(_shares(ends).items())) for each, ends in edges.items()]
    links = [(each, ends) for each, ends in links if ends]
    ranks = dict.fromkeys(nodes, 0.0) | start
    for _ in range(rounds):
        walked = dict.fromkeys(nodes, 0.0)
        moved = 0.0
        for each, ends in links:
            going = ranks[each] * damping
            moved += going
            for end, share in ends:
                walked[end] += going * share
        for each, share in start.items():
            walked[each] += (1.0 - moved) * share
        change = sum(abs(walked[each] - rank) for each, rank in ranks.items())
        ranks = walked
        if change < tolerance:
            break
    return ranks


def _shares(weights: Mapping[int, float]) -> dict[int, float]:
    """Return the weights above 0 so that they add up to 1."""
    above = {each: weight for each, weight in weights.items() if weight > 0}
    whole = sum(above.values())
    return {each: weight / whole for each, weight in above.items()}


class Links:
    """Which files use what other files define: `edges` for `page_rank`, and the names that they stand for."""

    def __init__(self) -> None:
        self.edges: Edges = {}
        self._uses: list[tuple[int, str, tuple[int, ...], float]] = []

    def add(self, user: int, name: str, definers: Collection[int], weight: float) -> None:
        """Add a name that `user` uses and other files define."""
        ends = self.edges.setdefault(user, {})
        for definer in definers:
            ends[definer] = ends.get(definer, 0.0) + weight
        self._uses.append((user, name, tuple(definers), weight))

    def worth_of_names(self, ranks: Mapping[int, float]) -> dict[int, dict[str, float]]:
        """Return for each file the worth of its names that others use: the rank that comes to it by each."""
        wholes = {user: sum(ends.values()) for user, ends in self.edges.items()}
        found: dict[int, dict[str, float]] = {}
        for user, name, definers, weight in self._uses:
            flow = ranks.get(user, 0.0) * weight / (wholes[user] or 1.0)
            for definer in definers:
                names = found.setdefault(definer, {})
                names[name] = names.get(name, 0.0) + flow
        return found


def edges_among(
    candidates: Iterable[int],
    tags: Mapping[int, Tags],
    defining: Callable[[str], Collection[int]],
    *,
    mentioned: Collection[str] = (),
) -> Links:
    """Link each candidate to the files that define the names it uses, whether those are candidates or not.

    `mentioned` are identifiers in the request. A name that a file defines itself leads nowhere else: `defining` has
    this file, too.
    """
    links = Links()
    known: dict[str, tuple[Collection[int], float]] = {}
    for user in candidates:
        found = tags.get(user)
        if found is None:
            continue
        for name, uses in found.references.items():
            if name not in known:
                definers = defining(name)
                known[name] = (
                    definers,
                    weight_of(name, len(definers), is_mentioned=name in mentioned),
                )
            definers, weight = known[name]
            if weight and user not in definers:
                links.add(user, name, definers, weight * sqrt(uses))
    return links


def weight_of(name: str, definers: int, *, is_mentioned: bool) -> float:
    """Return how much a use of this name says."""
    if not 0 < definers <= MOST_DEFINING:
        return 0.0
    weight = MENTIONED if is_mentioned else 1.0
    if len(name) >= _TELLING_CHARS and _WORDS.search(name):
        weight *= TELLING
    if name.startswith("_"):
        weight *= PRIVATE
    return weight * COMMON if definers >= COMMON_FROM else weight
