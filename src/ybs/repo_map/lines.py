"""Lines: how files stand in the map, with signatures, with names, or as paths by folder."""

from collections.abc import Container, Iterable, Iterator, Sequence
from math import inf

from ybs.repo_map.naming import CLASSES, Named, shown_signature, shown_word
from ybs.repo_map.tags import Tag
from ybs.security.paths.names import shown_name

_BYTES_OF_A_TOKEN = 3.5
#: In less room there is no name looked for that would still fit.
LEAST_NAME = 2.0


def cost_of(text: str) -> float:
    """Guess the tokens of a word or a line."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return 0.5 + size / _BYTES_OF_A_TOKEN


def holder_of(tag: Tag) -> str:
    """Return the name that a definition stands under; classes stand for themselves, wherever they are."""
    return "" if tag.kind in CLASSES else tag.parent


def signed(named: Sequence[Named], room: float) -> tuple[list[Named], float]:
    """Return the best definitions whose signatures fit into the room, and what they take of it."""
    taken: list[Named] = []
    spent = 0.0
    for each in named:
        cost = 1 + cost_of(shown_signature(each.tag))
        if spent + cost > room:
            break
        taken.append(each)
        spent += cost
    return taken, spent


def worded(named: Iterable[Named], room: float) -> tuple[list[Named], float]:
    """Return the best definitions whose names fit into the room, and what they take of it."""
    taken: list[Named] = []
    holders: set[str] = set()
    spent = 0.0
    for each in named:
        holder = holder_of(each.tag)
        cost = cost_of(shown_word(each.tag.name))
        if holder and holder not in holders:
            cost += 1 + cost_of(shown_word(holder))
        if spent + cost > room:
            if spent + LEAST_NAME > room:
                break
            continue
        taken.append(each)
        holders.add(holder)
        spent += cost
    return taken, spent


def signature_lines(taken: Iterable[Named], all_of_file: Iterable[Named]) -> Iterator[str]:
    """Write signatures in the order of the text, methods under their class."""
    classes: dict[str, Tag] = {}
    for tag in sorted((each.tag for each in all_of_file if each.tag.kind in CLASSES), key=_line):
        classes.setdefault(tag.name, tag)

    def place(tag: Tag) -> tuple[int, int]:
        holder = classes.get(holder_of(tag))
        return (holder.line if holder else tag.line, tag.line)

    above = ""
    for tag in sorted((each.tag for each in taken), key=place):
        holder = holder_of(tag)
        if holder and holder != above:
            found = classes.get(holder)
            yield "  " + (shown_signature(found) if found else shown_word(holder))
        yield ("    " if holder else "  ") + shown_signature(tag)
        above = holder or tag.name


def word_line(path: str, taken: Iterable[Named]) -> str:
    """Write a file's path with names, those of a class in braces behind its own."""
    groups: dict[str, list[str]] = {}
    for tag in sorted((each.tag for each in taken), key=_line):
        if holder := holder_of(tag):
            groups.setdefault(holder, []).append(shown_word(tag.name))
        else:
            groups.setdefault(tag.name, [])
    words = [
        shown_word(name) + ("{" + " ".join(inner) + "}" if inner else "")
        for name, inner in groups.items()
    ]
    return f"{shown_name(path)}: {' '.join(words)}" if words else shown_name(path)


def _line(tag: Tag) -> int:
    return tag.line


class PathLines:
    """Paths by folder, `src/shop/: cart.py tax.py`, for which half as many again find room; alone or odd, in full.

    `repeated` are names that more than one file has: their paths stand in full.
    """

    def __init__(self, repeated: Container[str]) -> None:
        self._lines: dict[str, list[str]] = {}
        self._repeated = repeated

    def add(self, path: str, room: float = inf) -> float:
        """Take a path in and return what it takes; where that is more than the room, nothing is done, and 0 returned."""
        key, name = self._key(path)
        cost = cost_of(name) + (0 if key in self._lines else cost_of(key))
        if cost > room:
            return 0.0
        self._lines.setdefault(key, []).append(name)
        return cost

    def lines(self) -> Iterator[str]:
        """Yield the lines, in the order in which their first paths came."""
        for key, names in self._lines.items():
            if len(names) == 1:
                yield key + names[0]
            else:
                yield f"{key or './'}: {' '.join(names)}"

    def _key(self, path: str) -> tuple[str, str]:
        shown = shown_name(path)
        folder, slash, name = shown.rpartition("/")
        if " " in name or ":" in name or name in self._repeated:
            return shown, ""
        return folder + slash, name
