"""Fuzzy matching of paths: how well the letters of a query stand, in their order, in a path."""

from collections.abc import Sequence

_BORDERS = frozenset("/_-. ")
_LETTER, _NEXT, _BORDER, _NAME, _NAME_START, _PATH_START, _WHOLE_NAME = 16, 12, 10, 6, 8, 4, 24
_MOST_GAP = 8


def score(query: str, path: str, lower: str) -> int:
    """Return how well the query fits; -1 where its letters do not stand in the path in their order.

    `query` and `lower`, which is the path, are in small letters. A folder's path ends in a slash.
    """
    base = lower.rfind("/", 0, len(lower.rstrip("/"))) + 1
    ways = _ways(query, path, lower, base)
    if not ways:
        return -1
    best = max(_worth(places, path, base) for places in ways)
    name = lower[base:].rstrip("/")
    return best + _WHOLE_NAME * (query in (name, name.rpartition(".")[0]))


def _ways(query: str, path: str, lower: str, base: int) -> list[Sequence[int]]:
    """Return the places of the letters in the few ways that are worth a look."""
    found = lower.find(query, base)
    if found < 0:
        found = 0 if lower.startswith(query) else lower.rfind(query)
    if found < 0:
        spread = (_spread(query, lower, start) for start in (0, base))
        return [way for way in (*spread, _borders(query, path, lower)) if way]
    ways: list[Sequence[int]] = [range(found, found + len(query))]
    later = lower.find(query, found + 1)
    while later >= 0 and not _is_border(path, later):
        later = lower.find(query, later + 1)
    return [*ways, range(later, later + len(query))] if later >= 0 else ways


def _spread(query: str, lower: str, start: int) -> list[int]:
    """Return the first place of each letter behind the one before."""
    places: list[int] = []
    for letter in query:
        start = lower.find(letter, start) + 1
        if not start:
            return []
        places.append(start - 1)
    return places


def _borders(query: str, path: str, lower: str) -> list[int]:
    """Return the places of the letters where each goes on, or else begins the next word that it can."""
    places: list[int] = []
    place = -1
    for letter in query:
        if lower[place + 1 : place + 2] == letter:
            place += 1
        else:
            place = _next_word(letter, path, lower, place + 1)
        if place < 0:
            return []
        places.append(place)
    return places


def _next_word(letter: str, path: str, lower: str, start: int) -> int:
    first = place = lower.find(letter, start)
    while place >= 0 and not _is_border(path, place):
        place = lower.find(letter, place + 1)
    return place if place >= 0 else first


def _worth(places: Sequence[int], path: str, base: int) -> int:
    total, before = 0, places[0]
    for place in places:
        total += _LETTER + _NAME * (place >= base)
        if place == before + 1:
            total += _NEXT
        elif _is_border(path, place):
            total += _BORDER
        else:
            total -= min(place - before, _MOST_GAP)
        before = place
    return total + _NAME_START * (places[0] == base) + _PATH_START * (places[0] == 0)


def _is_border(path: str, place: int) -> bool:
    """Return whether a word begins there: behind a sign, or with a capital behind a small letter."""
    if place == 0:
        return True
    before = path[place - 1 : place]  # small letters may be more than the capitals were
    return before in _BORDERS or (path[place : place + 1].isupper() and before.islower())
