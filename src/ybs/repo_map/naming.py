"""Naming: which definitions of a file the map shows first, and how a name and a signature are written."""

from collections.abc import Mapping
from math import log2

from msgspec import Struct

from ybs.repo_map.tags import Tag, Tags
from ybs.repo_map.words import stems_of
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


class Named(Struct, frozen=True):
    """A definition, and what it is worth for this request."""

    tag: Tag
    worth: float


def by_worth(
    tags: Tags | None, wanted: Mapping[str, float], linked: Mapping[str, float]
) -> list[Named]:
    """Return the definitions of a file, the best first, each name (with its parent) once."""
    most_wanted = sum(sorted(wanted.values(), reverse=True)[:3]) or 1.0
    most_linked = max(linked.values(), default=0.0) or 1.0
    best: dict[tuple[str, str], Named] = {}
    for tag in tags.definitions if tags else ():
        match = match_of(tag.name, wanted) / most_wanted
        worth = (
            WANTED * match + LINKED * linked.get(tag.name, 0.0) / most_linked + _plain_worth(tag)
        )
        known = best.get((tag.parent, tag.name))
        if known is None or known.worth < worth:
            best[tag.parent, tag.name] = Named(tag, worth)
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
