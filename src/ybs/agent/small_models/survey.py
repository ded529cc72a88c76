"""Which files a request is about, where it names none: by the words that stand in them and in their paths."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ybs.core.lazy import lazy

#: More files or lines than these are not weighed.
MOST_FILES: Final = 300
MOST_LINES: Final = 300
#: A word in a path says more than one in a line.
_IN_PATH: Final = 1.5
#: Files that come so near to the best one are as good.
_NEAR: Final = 0.8
_MATCH = lazy(r" *\d+:\t(.*)")
#: What tools say beside paths and lines.
_NOTE = lazy(r"\[(?:\d|not searched|the search)|No (?:files match|matches)\.|Folders: ")


def pattern_of(terms: Iterable[str]) -> str:
    """Return an expression that matches any of the terms, where a word begins."""
    escaped = list(map(re.escape, terms))
    words = "|".join(each for each in escaped if each[0].isalnum())
    others = [each for each in escaped if not each[0].isalnum()]
    return "|".join([*([rf"\b(?:{words})"] if words else []), *others])


def paths_of(listing: str) -> list[str]:
    """Return the paths in what list_files prints."""
    lines = listing.splitlines()
    return [line for line in lines if line and not re.match(_NOTE(), line)]


def lines_of(matches: str) -> dict[str, list[str]]:
    """Return the lines in what search_files prints without context, by their files."""
    found: dict[str, list[str]] = {}
    path = ""
    for line in matches.splitlines():
        match = re.fullmatch(_MATCH(), line)
        if match and path:
            found.setdefault(path, []).append(match[1])
        elif not match and not re.match(_NOTE(), line):
            path = line
    return found


def files_about(
    terms: Sequence[str], listed: Iterable[str], found: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return the files that go best with the terms, best first: each word counts for more, the fewer files have it.

    `listed` are all paths, `found` the lines by their paths that have one of the terms.
    """
    texts = {path: "\n".join(lines) for path, lines in found.items()}
    places = {path: f"{path} {path.replace('_', ' ')}" for path in (*listed, *texts)}
    scores = defaultdict[str, float](float)
    for term in terms:
        match = re.compile(rf"(?<!\w){re.escape(term)}", re.IGNORECASE)
        in_path = {path for path, parts in places.items() if re.search(match, parts)}
        in_text = {path for path in texts if re.search(match, texts[path])}
        for path in in_path | in_text:
            scores[path] += (_IN_PATH if path in in_path else 1.0) / len(in_path | in_text)
    best = max(scores.values(), default=0.0)
    ranked = sorted(scores, key=lambda path: (-scores[path], path))
    return [path for path in ranked if scores[path] >= _NEAR * best]
