"""Search: which files have the words of a question, by BM25."""

from collections.abc import Mapping, Sequence
from math import log
from typing import Protocol

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
