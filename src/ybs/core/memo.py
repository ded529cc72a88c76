"""Remember values made from the items of a list: where a list begins alike, only the rest is made."""

from collections.abc import Callable, Sequence
from operator import is_
from typing import Generic, TypeVar

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


class Memo(Generic[_Item, _Made]):
    """Remembers the last list. An item is known by its identity, so neither it nor what is made of it may change."""

    def __init__(self) -> None:
        self._items: list[_Item] = []
        self._made: list[_Made] = []

    def each(self, items: Sequence[_Item], make: Callable[[_Item], _Made]) -> list[_Made]:
        """Return `make(item)` for every item; `make` must always be the same function."""
        items = list(items)
        count = alike(self._items, items)
        made = [*self._made[:count], *map(make, items[count:])]
        self._items, self._made = items, made
        return list(made)


def alike(first: Sequence[object], second: Sequence[object]) -> int:
    """Count the items at the beginning that both have: the same objects."""
    return [*map(is_, first, second), False].index(False)
