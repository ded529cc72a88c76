"""The yardstick of the repo map: BM25 over the source files of a folder, as plain as it can be written.

`python bench/plain_bm25.py FOLDER KEPT QUERY` prints the ten best files. KEPT is a pickle of the words of each file; the
next run reads again only the files that look different.
"""

# ruff: noqa: PTH110, PTH113, PTH116, PTH118, PTH123 - a yardstick must not be slow

import math
import os
import pickle
import re
import sys
from collections import Counter

SUFFIXES = (
    *(".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".go", ".rs"),
    *(".java", ".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".cs", ".rb", ".rake", ".php"),
    *(".sh", ".bash"),
)
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
K1, B, SHOWN = 1.2, 0.75, 10

Known = dict[str, tuple[int, int, Counter[str]]]


def main() -> None:
    folder, kept, query = sys.argv[1:]
    known: Known = {}
    if os.path.exists(kept):
        with open(kept, "rb") as file:
            known = pickle.load(file)
    found = {path: known.get(path) for path in sources(folder)}
    changed = len(found) != len(known)
    for path, old in found.items():
        looks = os.stat(path)
        if old is None or old[:2] != (looks.st_size, looks.st_mtime_ns):
            changed = True
            with open(path, encoding="utf-8", errors="replace") as file:
                counts = Counter(words(file.read()))
            found[path] = (looks.st_size, looks.st_mtime_ns, counts)
    if changed:
        with open(kept, "wb") as file:
            pickle.dump(found, file, pickle.HIGHEST_PROTOCOL)
    worth = ranked({path: row[2] for path, row in found.items()}, words(query))
    for path in sorted(worth, key=worth.get, reverse=True)[:SHOWN]:
        print(path)


def sources(folder: str) -> list[str]:
    paths = []
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        paths += [
            os.path.join(top, name)
            for name in names
            if name.endswith(SUFFIXES) and os.path.isfile(os.path.join(top, name))
        ]
    return paths


def words(text: str) -> list[str]:
    return [part.lower() for word in WORD.findall(text) for part in PART.findall(word)]


def ranked(files: dict[str, Counter[str]], terms: list[str]) -> dict[str, float]:
    lengths = {path: counts.total() for path, counts in files.items()}
    mean = sum(lengths.values()) / max(1, len(lengths)) or 1
    worth: Counter[str] = Counter()
    for term in terms:
        having = {path: counts[term] for path, counts in files.items() if term in counts}
        rarity = math.log(1 + (len(files) - len(having) + 0.5) / (len(having) + 0.5))
        for path, count in having.items():
            norm = K1 * (1 - B + B * lengths[path] / mean)
            worth[path] += rarity * count * (K1 + 1) / (count + norm)
    return worth


if __name__ == "__main__":
    main()
