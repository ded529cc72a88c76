"""The text of the map: the first files with their names, then paths, within a number of tokens.

src/shop/cart.py: Total{round}
  class Cart
    def add(self, item: Item) -> None
src/shop/tax.py: rate_of Table{row total}
tests/shop/: test_cart.py test_tax.py
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from math import inf, log2

from msgspec import Struct

from ybs.repo_map.tags import Tag, Tags
from ybs.repo_map.words import stems_of
from ybs.security.paths.names import shown_name
from ybs.security.unicode import printable

# What a definition is worth: all adds up. Weighed by how often the names that fit held the function that a commit changed.
#: All the words of the request in its name, against what other files use most.
WANTED, LINKED = 2.5, 0.5
CLASSES = frozenset(
    ("class", "struct", "enum", "interface", "trait", "impl", "type", "module", "namespace")
)
FUNCTIONS = frozenset(("function", "method", "macro"))
KINDS = {
    **dict.fromkeys(CLASSES, 0.5),
    "module": 0.2,
    "namespace": 0.1,
    "impl": 0.2,
    "function": 0.4,
    "method": 0.3,
    "macro": 0.2,
}
OTHER_KIND = 0.1
#: For each doubling of the lines of a function: a long one is where more happens.
LONG = 0.2
#: Longer ones are cut.
MOST_NAME_CHARS, MOST_SIGNATURE_CHARS = 60, 110


class _Named(Struct, frozen=True):
    """A definition, and what it is worth for this request."""

    tag: Tag
    worth: float


def by_worth(
    tags: Tags | None, wanted: Mapping[str, float], linked: Mapping[str, float]
) -> list[_Named]:
    """Return the definitions of a file, the best first, each name (with its parent) once."""
    most_wanted = sum(sorted(wanted.values(), reverse=True)[:3]) or 1.0
    most_linked = max(linked.values(), default=0.0) or 1.0
    best: dict[tuple[str, str], _Named] = {}
    for tag in tags.definitions if tags else ():
        match = match_of(tag.name, wanted) / most_wanted
        worth = (
            WANTED * match + LINKED * linked.get(tag.name, 0.0) / most_linked + _plain_worth(tag)
        )
        known = best.get((tag.parent, tag.name))
        if known is None or known.worth < worth:
            best[tag.parent, tag.name] = _Named(tag, worth)
    return sorted(best.values(), key=lambda each: -each.worth)


def match_of(name: str, wanted: Mapping[str, float]) -> float:
    """Return the weights of the request's words that a name has; words that are not wanted make it less."""
    if not wanted:
        return 0.0
    stems = stems_of(name)
    found = [wanted[stem] for stem in stems if stem in wanted]
    return sum(found) * (len(found) / len(stems)) ** 0.5 if found else 0.0


def _plain_worth(tag: Tag) -> float:
    worth = KINDS.get(tag.kind, OTHER_KIND)
    if tag.kind in FUNCTIONS:
        worth += LONG * log2(1 + max(tag.end_line - tag.line, 0))
    return worth


def shown_word(name: str) -> str:
    """Return a name on one line, and not longer than names are."""
    return _cut(name, MOST_NAME_CHARS)


def shown_signature(tag: Tag) -> str:
    """Return the signature of a definition on one line; its name where there is none."""
    return _cut(tag.signature or tag.name, MOST_SIGNATURE_CHARS)


def _cut(text: str, most: int) -> str:
    text = text[: 4 * most]
    if not (text.isascii() and text.isprintable()):
        text = " ".join(printable(text).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


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


def signed(named: Sequence[_Named], room: float) -> tuple[list[_Named], float]:
    """Return the best definitions whose signatures fit into the room, and what they take of it."""
    taken: list[_Named] = []
    spent = 0.0
    for each in named:
        cost = 1 + cost_of(shown_signature(each.tag))
        if spent + cost > room:
            break
        taken.append(each)
        spent += cost
    return taken, spent


def worded(named: Iterable[_Named], room: float) -> tuple[list[_Named], float]:
    """Return the best definitions whose names fit into the room, and what they take of it."""
    taken: list[_Named] = []
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


def signature_lines(taken: Iterable[_Named], all_of_file: Iterable[_Named]) -> Iterator[str]:
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


def word_line(path: str, taken: Iterable[_Named]) -> str:
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


#: Files with names take this much of the budget; more where all paths fit into less than the rest.
NAMED_SHARE = 0.2
#: In small maps they take up to half, so that the first ones have names at all.
NAMED_LEAST = 120.0
#: Signatures take at most this much of that.
SIGNED_SHARE = 0.2


class _Share(Struct, frozen=True):
    """What a file gets of the room that is left: a part of it, more where few files are left, in tokens."""

    part: float
    least: float
    most: float

    def of(self, left: float, files_left: int) -> float:
        """Return the tokens for the next file."""
        return max(min(left * self.part, self.most), left / files_left, self.least)


SIGNED = _Share(part=0.5, least=0.0, most=120.0)
WORDED = _Share(part=0.1, least=12.0, most=100.0)
#: Of so many files that come first, those of one name (`mod.rs`) stand in full there: a path can be searched for.
REPEATED_AMONG = 150
#: So many paths that do not fit are passed over for shorter ones.
MOST_MISSES = 100
#: How often the text is counted at most, and how full the budget is when that is good enough.
_ROUNDS, _FULL = 6, 0.97


class RankedFile(Struct, frozen=True, kw_only=True):
    """A file in its place of the order. `wanted` are the stems of the request with their weights.

    `tags` is there for files that were parsed. `linked` is the worth of names that other files use
    (`Links.worth_of_names`).
    """

    path: str
    tags: Tags | None = None
    wanted: Mapping[str, float] = {}
    linked: Mapping[str, float] = {}


class RenderedMap(Struct, frozen=True, kw_only=True):
    """The text, the paths that stand in it (as they are on the disk, the best first), and its tokens.

    `named` is how many of them stand with names.
    """

    text: str
    files: list[str]
    tokens: int
    named: int = 0


def render(ranked: Sequence[RankedFile], budget: int, count: Callable[[str], int]) -> RenderedMap:
    """Write as much of the map as fits into `budget` tokens as `count` counts them; the first files come first."""
    best = RenderedMap(text="", files=[], tokens=0)
    if budget < 1 or not ranked:
        return best
    sheet = _Sheet(ranked[: budget + MOST_MISSES])
    room = float(budget)
    for _ in range(_ROUNDS):
        text, files, named = sheet.write(room)
        tokens = count(text) if text else 0
        if best.tokens < tokens <= budget:
            best = RenderedMap(text=text, files=files, tokens=tokens, named=named)
        if tokens <= budget and (sheet.is_whole or tokens >= budget * _FULL):
            break
        # A guess that was too high is corrected with a little to spare.
        room *= 0.99 * budget / tokens if tokens else 1.5
    return best


class _Sheet:
    """Writes the map into different rooms; what a file's names are worth is worked out once."""

    def __init__(self, ranked: Sequence[RankedFile]) -> None:
        self._ranked = ranked
        self._paths = [each.path for each in ranked]
        self._names: dict[int, list[_Named]] = {}
        counts = Counter(map(_name_of, self._paths[:REPEATED_AMONG]))
        self._repeated = {name for name, count in counts.items() if count > 1}
        listed = PathLines(self._repeated)
        self._costs = [listed.add(path) for path in self._paths]
        self._all_paths = sum(self._costs)
        #: Whether the last text left nothing out.
        self.is_whole = False

    def write(self, room: float) -> tuple[str, list[str], int]:
        """Return the text, its files, and how many of those stand with names."""
        self.is_whole = True
        lines, named, spent = self._named_lines(room)
        tail = PathLines(self._repeated)
        shown = self._fill(tail, named, room - spent)
        files = [path for place, path in enumerate(self._paths) if place in shown]
        return "\n".join([*lines, *tail.lines()]), files, len(named)

    def _named_lines(self, room: float) -> tuple[list[str], set[int], float]:
        """Write the first files with names; return the lines, the places of the files, and what they take."""
        fits = self._all_paths <= room
        left = max(room * NAMED_SHARE, min(room / 2, NAMED_LEAST))
        left = max(left, room - self._all_paths if fits else 0)
        signing, spent = left * SIGNED_SHARE, 0.0
        lines: list[str] = []
        named: set[int] = set()
        for place, path in enumerate(self._paths):
            head = 1 + cost_of(shown_name(path))
            # Where all paths fit, the room is what they leave: this one was counted already.
            more = head - (self._costs[place] if fits else 0.0)
            if left < more + WORDED.least:
                self.is_whole = False
                break
            if not (names := self._names_of(place)):
                continue
            files_left = len(self._paths) - place
            first, size = signed(names, SIGNED.of(signing, files_left))
            signing -= size
            rest, words = worded(names[len(first) :], WORDED.of(left - more - size, files_left))
            self.is_whole &= len(first) == len(names)
            if first or rest:
                lines += [word_line(path, rest), *signature_lines(first, names)]
                named.add(place)
                left -= more + size + words
                spent += head + size + words
        return lines, named, spent

    def _fill(self, tail: PathLines, named: set[int], room: float) -> set[int]:
        """Put paths into the tail as long as there is room; return the places of all files shown."""
        shown, misses = set(named), 0
        for place, path in enumerate(self._paths):
            if place in named:
                continue
            if cost := tail.add(path, room):
                shown.add(place)
                room -= cost
                continue
            self.is_whole = False
            misses += 1
            if misses > MOST_MISSES or room < 1:
                break
        return shown

    def _names_of(self, place: int) -> list[_Named]:
        if place not in self._names:
            each = self._ranked[place]
            self._names[place] = by_worth(each.tags, each.wanted, each.linked)
        return self._names[place]


def _name_of(path: str) -> str:
    return shown_name(path).rpartition("/")[2]
