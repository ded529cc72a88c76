"""The reference graph: which files use what other files define, and the rank that follows from it.

The weights are those of aider's repo map (https://aider.chat/docs/repomap.html), as a start.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from math import sqrt

from ybs.repo_map.tags import Tags

#: A name counts this many times when the request has it, and when it is long enough to be of this project.
MENTIONED, TELLING = 10.0, 10.0
#: A private name, and one that many files define, say little; one of more than `MOST_DEFINING` files says nothing.
PRIVATE, COMMON = 0.1, 0.1
COMMON_FROM, MOST_DEFINING = 6, 30
_TELLING_CHARS = 8
#: More than one word: snake_case, kebab-case or camelCase.
_WORDS = re.compile(r"[^\W_][_-]+[^\W_]|[^\W_A-Z][A-Z]")

Edges = dict[int, dict[int, float]]


def page_rank(
    edges: Mapping[int, Mapping[int, float]],
    personal: Mapping[int, float],
    *,
    damping: float = 0.85,
    rounds: int = 100,
    tolerance: float = 1e-6,
) -> dict[int, float]:
    """Return how often a walk along the edges is at each file; the ranks add up to 1.

    Now and then, and from a file without edges, the walk starts anew at one of `personal` (weights above 0; without
    any, at each file alike). It ends when a round changes less than `tolerance` in all.
    """
    nodes = dict.fromkeys(edges)
    for ends in edges.values():
        nodes.update(dict.fromkeys(ends))
    start = _shares({each: weight for each, weight in personal.items() if weight > 0})
    start = start or _shares(dict.fromkeys(nodes, 1.0))
    nodes.update(dict.fromkeys(start))
    links = [(each, list(_shares(ends).items())) for each, ends in edges.items()]
    links = [(each, ends) for each, ends in links if ends]
    ranks = dict.fromkeys(nodes, 0.0) | start
    for _ in range(rounds):
        walked = dict.fromkeys(nodes, 0.0)
        moved = 0.0
        for each, ends in links:
            going = ranks[each] * damping
            moved += going
            for end, share in ends:
                walked[end] += going * share
        for each, share in start.items():
            walked[each] += (1.0 - moved) * share
        change = sum(abs(walked[each] - rank) for each, rank in ranks.items())
        ranks = walked
        if change < tolerance:
            break
    return ranks


def _shares(weights: Mapping[int, float]) -> dict[int, float]:
    """Return the weights above 0 so that they add up to 1."""
    above = {each: weight for each, weight in weights.items() if weight > 0}
    whole = sum(above.values())
    return {each: weight / whole for each, weight in above.items()}


class Links:
    """Which files use what other files define: `edges` for `page_rank`, and the names that they stand for."""

    def __init__(self) -> None:
        self.edges: Edges = {}
        self._uses: list[tuple[int, str, tuple[int, ...], float]] = []

    def add(self, user: int, name: str, definers: Collection[int], weight: float) -> None:
        """Add a name that `user` uses and other files define."""
        ends = self.edges.setdefault(user, {})
        for definer in definers:
            ends[definer] = ends.get(definer, 0.0) + weight
        self._uses.append((user, name, tuple(definers), weight))

    def worth_of_names(self, ranks: Mapping[int, float]) -> dict[int, dict[str, float]]:
        """Return for each file the worth of its names that others use: the rank that comes to it by each."""
        wholes = {user: sum(ends.values()) for user, ends in self.edges.items()}
        found: dict[int, dict[str, float]] = {}
        for user, name, definers, weight in self._uses:
            flow = ranks.get(user, 0.0) * weight / (wholes[user] or 1.0)
            for definer in definers:
                names = found.setdefault(definer, {})
                names[name] = names.get(name, 0.0) + flow
        return found


def edges_among(
    candidates: Iterable[int],
    tags: Mapping[int, Tags],
    defining: Callable[[str], Collection[int]],
    *,
    mentioned: Collection[str] = (),
) -> Links:
    """Link each candidate to the files that define the names it uses, whether those are candidates or not.

    `mentioned` are identifiers in the request. A name that a file defines itself leads nowhere else: `defining` has
    this file, too.
    """
    links = Links()
    known: dict[str, tuple[Collection[int], float]] = {}
    for user in candidates:
        found = tags.get(user)
        if found is None:
            continue
        for name, uses in found.references.items():
            if name not in known:
                definers = defining(name)
                known[name] = (
                    definers,
                    weight_of(name, len(definers), is_mentioned=name in mentioned),
                )
            definers, weight = known[name]
            if weight and user not in definers:
                links.add(user, name, definers, weight * sqrt(uses))
    return links


def weight_of(name: str, definers: int, *, is_mentioned: bool) -> float:
    """Return how much a use of this name says."""
    if not 0 < definers <= MOST_DEFINING:
        return 0.0
    weight = MENTIONED if is_mentioned else 1.0
    if len(name) >= _TELLING_CHARS and _WORDS.search(name):
        weight *= TELLING
    if name.startswith("_"):
        weight *= PRIVATE
    return weight * COMMON if definers >= COMMON_FROM else weight
