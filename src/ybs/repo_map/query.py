"""The query: what a request says about files, as words with weights, names and paths as they are written, and kinds."""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

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
_WORD = re.compile(r"\w+")
#: A word with what says that it is a name: a backtick before it, one or a bracket behind it.
_MARKED_WORD = re.compile(r"(`?)(\w+)([`(]?)")
_COMPOUND = re.compile(r"[^\W_A-Z][A-Z]|[A-Z][A-Z][^\W_A-Z0-9]|[^\W_]_+[^\W_]")
_RUN = re.compile(r"[\w./@+-]+")
_LONGEST_NAME, _LONGEST_PATH = 100, 300
_TESTS = re.compile(r"\b(?:tests?|testing|tested|specs?|fixtures?|coverage)\b", re.IGNORECASE)
_DOCUMENTS = re.compile(
    r"\b(?:docs?|documentation|documents?|readme|changelog|release notes?|manual)\b",
    re.IGNORECASE,
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
