"""Search in memories: BM25 over their names, headings and texts, as the repo map has it. No server, no kept index."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ybs.context.memory_file import Memory
from ybs.context.memory_names import read_name
from ybs.repo_map.search import bm25
from ybs.repo_map.words import stems_of

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
