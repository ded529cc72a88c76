"""List many deferred tools for a model: all names, descriptions as far as there is room, and those that match its words."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

from ybs.core.cutting import shortened

#: About 700 tokens.
MOST_CHARS: Final = 2_800
_SHORTEST = 24  # a shorter piece of a description says nothing
_MOST_FOUND = 5


class Described(Protocol):
    """A tool, a skill or a kind of sub-agents, as a model knows it."""

    @property
    def name(self) -> str:
        """What it is called by."""
        ...

    @property
    def description(self) -> str:
        """What it is for."""
        ...


_Item = TypeVar("_Item", bound=Described)


def listing(items: Sequence[Described], most_chars: int = MOST_CHARS) -> str:
    """Return a line for each. Long descriptions are cut first, then all are left out, then names."""
    room = most_chars - sum(len(each.name) + 5 for each in items)
    sizes = [len(each.description) for each in items]
    longest = _fair_share(sizes, room)
    if longest >= min(_SHORTEST, max(sizes, default=0)):
        return "\n".join(f"- {each.name}: {shortened(each.description, longest)}" for each in items)
    return names_within((each.name for each in items), most_chars)


def names_within(names: Iterable[str], most_chars: int) -> str:
    """Return names in one line, as many as there is room for."""
    text = ", ".join(names)
    if len(text) <= most_chars:
        return text
    return text[:most_chars].rpartition(", ")[0] + ", … (call it with words to find others)"


def within(texts: list[str], budget: int) -> list[str]:
    """Return as many of the texts as fit in the budget of characters, at least one."""
    for count, text in enumerate(texts):
        budget -= len(text) + 1
        if budget < 0 and count:
            return texts[:count]
    return texts


def _fair_share(sizes: Sequence[int], room: int) -> int:
    """Return the longest that any may be, so that all fit: what short ones leave, long ones have."""
    left = len(sizes)
    for size in sorted(sizes):
        if size * left > room:
            return room // left
        room -= size
        left -= 1
    return max(sizes, default=0)


def fitting(query: str, items: Sequence[_Item]) -> list[_Item]:
    """Return the entries that match a query, the best first: words in the name count more than those in the description."""
    wanted = _words(query)

    def rank(item: Described) -> int:
        is_named = item.name.lower() in query.lower()
        in_name, described = wanted & _words(item.name), wanted & _words(item.description)
        return 100 * is_named + 10 * len(in_name) + len(described)

    ranked = sorted(items, key=rank, reverse=True)
    return [item for item in ranked[:_MOST_FOUND] if rank(item)]


def unknown(what: str, name: str, items: Sequence[Described]) -> str:
    """Return a text that says that there is nothing of this name, and which others fit its words."""
    fits = fitting(name, items)
    text = f"There is no {what} {name!r}. "
    return text + (f"These may fit:\n{listing(fits)}" if fits else "None fits these words.")


def _words(text: str) -> set[str]:
    """Return the words of a text, without the ending of a plural."""
    words = re.findall(r"[a-z0-9]{2,}", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower())
    return {word.removesuffix("s") for word in words}
