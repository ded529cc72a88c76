"""Facts: the words of one file, each with what it counts, and the names it defines."""

import re
from collections import Counter

from msgspec import Struct

from ybs.repo_map.outline import outline
from ybs.repo_map.words import LONGEST_COMPOUND, looks_like_key, stems_of

#: What a word counts by where it stands, as multiples of 1 / STEPS. The index keeps the sums: after a change of one of
#: these numbers every cache is stale, and all files are read once more.
NAME_WEIGHT = 6.0  # in the name of the file
FOLDER_WEIGHT = 3.0  # in the folders above it
SYMBOL_WEIGHT = 3.0  # in the name of a definition, on top of its place in the text
CONTENT_WEIGHT = 1.0
STEPS, WEIGHT_BITS = 2, 10
MOST_STEPS = (1 << WEIGHT_BITS) - 1
#: In front of the name of a definition, which is kept as it is written. No stem has it.
DEFINES = "="

_WORD = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]+")
_MOST_REMEMBERED = 150_000


class TermFacts(Struct, frozen=True, gc=False):
    """The terms of a file with their weights in steps, and how many words it has."""

    weights: dict[str, int]
    length: float


class Reader(dict[bytes, tuple[str, ...]]):
    """Reads facts; it remembers the stems of every identifier, since the same ones come again and again."""

    def __missing__(self, word: bytes) -> tuple[str, ...]:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        stems = self[word] = stems_of(word.decode(errors="replace"))
        return stems

    def read(self, path: str, data: bytes = b"", language: str = "") -> TermFacts:
        """Return the facts of a file; without data its path alone counts."""
        weights: dict[str, int] = {}
        length = self._add_text(weights, data)
        if language:
            self._add_names(weights, dict.fromkeys(outline(data, language)))
        self._add_path(weights, path)
        for stem, weight in weights.items():
            if weight > MOST_STEPS:
                weights[stem] = MOST_STEPS
        return TermFacts(weights, length)

    def _add_text(self, weights: dict[str, int], text: bytes) -> int:
        steps = int(CONTENT_WEIGHT * STEPS)
        get = weights.get
        total = 0
        for word, count in Counter(_WORD.findall(text)).items():
            total += count
            count *= steps
            for stem in self[word]:
                weights[stem] = get(stem, 0) + count
        return total

    def _add_names(self, weights: dict[str, int], names: dict[str, None]) -> None:
        steps = int(SYMBOL_WEIGHT * STEPS)
        for name in names:
            if len(name) > LONGEST_COMPOUND or looks_like_key(name):
                continue
            weights[DEFINES + name] = STEPS
            for stem in self[name.encode(errors="replace")]:
                weights[stem] = weights.get(stem, 0) + steps

    def _add_path(self, weights: dict[str, int], path: str) -> None:
        folders, _, name = path.rpartition("/")
        for part, weight in ((folders, FOLDER_WEIGHT), (name, NAME_WEIGHT)):
            for word in set(_WORD.findall(part.encode(errors="replace"))):
                for stem in self[word]:
                    weights[stem] = weights.get(stem, 0) + int(weight * STEPS)


def rules() -> tuple[float, ...]:
    """Return the numbers that facts depend on; those read by other ones are no good."""
    return (NAME_WEIGHT, FOLDER_WEIGHT, SYMBOL_WEIGHT, CONTENT_WEIGHT, STEPS)
