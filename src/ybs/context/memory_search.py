"""Search in memories: BM25 over their names, headings and texts, with the stems of the repo map. No server, no index."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import log

from ybs.context.memory_file import Memory
from ybs.context.memory_names import read_name
from ybs.context.repo_map.words import stems_of

#: How soon more of the same word counts no more, and how much longer texts are held back (Robertson and Zaragoza).
_K1, _B = 1.2, 0.75
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
    counts = [_counted(memory) for memory in memories]
    scores = _scores(counts, [_meant(term, counts) for term in wanted])
    order = sorted(range(len(memories)), key=lambda place: -scores[place])
    return [memories[place] for place in order[:most] if scores[place] > 0]


def _scores(counts: Sequence[Counter[str]], wanted: Sequence[Sequence[str]]) -> list[float]:
    sizes = [counted.total() for counted in counts]
    average = sum(sizes) / max(len(sizes), 1) or 1
    scores = [0.0] * len(counts)
    for terms in wanted:
        found = [sum(counted[term] for term in terms) for counted in counts]
        having = sum(map(bool, found))
        rarity = log(1 + (len(counts) - having + 0.5) / (having + 0.5))
        for place, (count, size) in enumerate(zip(found, sizes, strict=True)):
            held_back = _K1 * (1 - _B + _B * size / average)
            scores[place] += rarity * count * (_K1 + 1) / (count + held_back)
    return scores


def _meant(term: str, counts: Iterable[Counter[str]]) -> Sequence[str]:
    """Return the term, or where no memory has it those that begin so."""
    known = set[str]().union(*counts)
    if term in known or len(term) < _SHORTEST_BEGINNING:
        return (term,)
    return [each for each in known if each.startswith(term)]


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
