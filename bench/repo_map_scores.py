"""Scores for the repo map: what its text really says of the touched files, and the plain search it has to beat."""

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import log
from pathlib import Path
from statistics import mean

K1, B = 1.2, 0.75
_WORD = re.compile(rb"[A-Za-z][a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_LARGEST_BYTES = 1_000_000


def blocks_of(text: str) -> dict[str, str]:
    """Read a map's text as a model would: which paths it names, and what it says beside each."""
    found: dict[str, str] = {}
    above = ""
    for line in text.splitlines():
        if line.startswith(" "):
            found[above] = f"{found.get(above, '')}\n{line}"
            continue
        head, _, rest = line.partition(": ")
        if head.endswith("/"):
            folder = "" if head == "./" else head
            found.update(dict.fromkeys((folder + name for name in rest.split()), ""))
        else:
            above = head
            found[above] = rest
    return found


def recall_of(touched: Sequence[str], listed: Mapping[str, str]) -> float:
    """Return the share of the touched files that are listed."""
    return mean(path in listed for path in touched)


def rank_of(touched: Sequence[str], ranked: Sequence[str]) -> float:
    """Return 1 / the place of the first touched file."""
    places = [ranked.index(path) for path in touched if path in ranked]
    return 1 / (1 + min(places)) if places else 0.0


def symbols_of(changed: Mapping[str, Sequence[str]], listed: Mapping[str, str]) -> float:
    """Return the share of the changed definitions whose names stand beside their files."""
    beside = {path: set(re.findall(r"[\w$]+", listed.get(path, ""))) for path in changed}
    return mean(
        set(re.findall(r"[\w$]+", name)) <= beside[path]
        for path, names in changed.items()
        for name in names
    )


def interval(values: Sequence[float], rounds: int = 2000) -> tuple[float, float]:
    """Return the 95 % interval of a mean by the bootstrap."""
    drawn = random.Random(8)
    means = sorted(mean(drawn.choices(values, k=len(values))) for _ in range(rounds))
    return means[round(rounds * 0.025)], means[round(rounds * 0.975) - 1]


class PlainSearch:
    """BM25 over the paths and contents of sources, one path a line: what costs least, and is hard to beat."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[str, int, int], Counter[bytes]] = {}

    def ranked(self, message: str, paths: Sequence[str]) -> list[str]:
        """Return the paths, the best first."""
        words = _words(message.encode("utf-8", "replace"))
        files = {path: self._words_of(path) for path in paths}
        having = Counter(word for counts in files.values() for word in words if word in counts)
        rarity = {
            word: times * log(1 + (len(files) - having[word] + 0.5) / (having[word] + 0.5))
            for word, times in words.items()
        }
        sizes = {path: counts.total() for path, counts in files.items()}
        middle = mean(sizes.values()) or 1.0

        def worth(path: str) -> float:
            counts, norm = files[path], K1 * (1 - B + B * sizes[path] / middle)
            return sum(
                rare * (K1 + 1) * counts[word] / (counts[word] + norm)
                for word, rare in rarity.items()
                if word in counts
            )

        return sorted(files, key=lambda path: (-worth(path), path))

    def _words_of(self, path: str) -> Counter[bytes]:
        try:
            state = (self._folder / path).stat()
            key = (path, state.st_size, state.st_mtime_ns)
            if key not in self._known:
                data = (self._folder / path).read_bytes()[:_LARGEST_BYTES]
                self._known[key] = _words(data) + _words(path.encode("utf-8", "surrogateescape"))
            return self._known[key]
        except OSError:
            return Counter()


def _words(data: bytes) -> Counter[bytes]:
    return Counter(map(bytes.lower, _WORD.findall(data)))


def fitting(paths: Sequence[str], tokens: int, count: Callable[[str], float]) -> list[str]:
    """Return as many paths from the first on as fit into the tokens, one a line."""
    low, high = 0, min(len(paths), tokens)
    while low < high:
        middle = (low + high + 1) // 2
        if count("\n".join(paths[:middle])) <= tokens:
            low = middle
        else:
            high = middle - 1
    return list(paths[:low])
