"""Find what a person asks for again and again: requests in clusters, without a model and without a server.

A request is two vectors: its words (weighted by rarity, with their pairs and 4-grams), and what was done for it. It joins the nearest cluster, or
begins one (online leader clustering). A cluster is worth an offer when it was met on enough days, its words agree and what was done agrees.
"""

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final, TypeAlias

from msgspec import Struct, field

from ybs.learning.normal import features, is_word, words_of

DAY_SECONDS: Final = 86_400
#: What a request, or a cluster, has of each feature, from 0 to 1.
Vector: TypeAlias = dict[str, float]
#: Where a request joins a cluster: from this cosine of words on, and from this one where what was done counts too (by this share).
_WORDS_FROM, _JOINS_FROM, _DONE_SHARE = 0.22, 0.30, 0.15
#: A request is compared with so many clusters, found by so many of its words, the rarest.
_MOST_CANDIDATES, _MOST_LOOKED_UP = 10, 8
#: Where two clusters are one: the words are near enough, and what was done is the same.
_SAME_WORDS, _SAME_DONE = 0.16, 0.75
#: A cluster is worth an offer after as many requests on as many days,
_NEEDED: Final = 3
#: and when these, weighed, come to more than the bound: how alike what was done is, in kind and in its very files and programs, how many words
#: are shared (four count) and how alike the words are, and how rare what is always done is. A logistic regression over the seeds for tuning gave them.
_IN_KIND, _IN_ALL, _SHARED, _WORDS, _RARE, _BOUND = 8.5, 7.0, 1.0, 4.0, 2.2, 20.0
_FEWEST_SHARED, _MOST_SHARED, _MOST_RARE = 2, 4, 4.0
#: A word is shared, and a step is always done, in this share of the requests.
_SHARED_BY, _ALWAYS = 0.6, 0.4
#: A cluster beside one that was offered is the same task where what was done and the words agree so far.
_TWIN_DONE, _TWIN_WORDS = 0.65, 0.05
#: So many requests of a cluster are kept, to be shown and to make a draft of.
_KEPT: Final = 8
_KEPT_DAYS: Final = 60
#: A cluster that nothing joined for so long is forgotten; so many clusters are kept.
_FORGOTTEN_AFTER_DAYS, _MOST_CLUSTERS = 120, 1_500
#: Weights are kept until there are so many times as many requests.
_STALE: Final = 1.03
#: Steps that change nothing and run nothing; and any file that the request names.
_LOOKING: Final = frozenset({"read", "search", "list"})
_NAMED: Final = "what was named"
#: What a cluster hardly has is dropped from its vector.
_HARDLY: Final = 0.08


class PastRequest(Struct, frozen=True):
    """One request: its words, what was done for it ("edit CHANGELOG.md", "run pytest"), when (seconds since 1970), and where.

    `corrections` is what the person said while it was done; `is_undone`: they took back what it had changed.
    """

    text: str
    steps: tuple[str, ...]
    at: float
    project: str = ""
    session: str = ""
    corrections: tuple[str, ...] = ()
    is_undone: bool = False


class Cluster(Struct, kw_only=True):
    """Requests that are alike: the means of their vectors, on which days they came, and the last of them."""

    id: int
    words: Vector = field(default_factory=dict[str, float])
    done: Vector = field(default_factory=dict[str, float])
    count: int = 0
    days: list[int] = field(default_factory=list[int])
    last: list[PastRequest] = field(default_factory=list[PastRequest])

    @property
    def at(self) -> float:
        """When it was met last."""
        return self.last[-1].at

    @property
    def shared(self) -> list[str]:
        """The words that most of its requests have, the most frequent first."""
        counts = Counter(word for each in self.last for word in sorted(set(words_of(each.text))))
        needed = _SHARED_BY * len(self.last)
        return [word for word, count in counts.most_common() if count >= needed]

    def join(self, request: PastRequest, words: Vector, done: Vector) -> None:
        """Take one more request."""
        self.words = _mean(self.words, self.count, words, 1)
        self.done = _mean(self.done, self.count, done, 1)
        self.count += 1
        self.days = sorted({*self.days, int(request.at // DAY_SECONDS)})[-_KEPT_DAYS:]
        self.last = [*self.last, request][-_KEPT:]

    def merge(self, other: "Cluster") -> None:
        """Take all that another one has."""
        self.words = _mean(self.words, self.count, other.words, other.count)
        self.done = _mean(self.done, self.count, other.done, other.count)
        self.count += other.count
        self.days = sorted({*self.days, *other.days})[-_KEPT_DAYS:]
        self.last = sorted([*self.last, *other.last], key=lambda each: each.at)[-_KEPT:]


class DetectorState(Struct, kw_only=True):
    """What a detector knows: all of it is saved. `rarity` counts in how many requests a feature stood."""

    requests: int = 0
    next_id: int = 1
    rarity: dict[str, int] = field(default_factory=dict[str, int])
    clusters: dict[int, Cluster] = field(default_factory=dict[int, Cluster])


class Detector:
    """Puts requests into clusters, and says which of them recur."""

    def __init__(self, known: DetectorState) -> None:
        self.known = known
        #: The clusters that have a word.
        self._holders: dict[str, set[int]] = {}
        self._weights: dict[str, float] = {}
        self._squares: dict[int, tuple[Vector, float]] = {}
        self._weighed_at = 0
        for cluster in known.clusters.values():
            self._index(cluster)

    def add(self, request: PastRequest) -> Cluster | None:
        """Take a request; return the cluster that it is of. None: its words say too little."""
        words, done = features(request.text), _done(request)
        if not words:
            return None
        self.known.requests += 1
        for name in (*words, *done):
            self.known.rarity[name] = self.known.rarity.get(name, 0) + 1
        if self.known.requests > _STALE * self._weighed_at:
            self._weights, self._squares, self._weighed_at = {}, {}, self.known.requests
        cluster = self._nearest(words, done) or self._new()
        cluster.join(request, words, done)
        self._index(cluster)
        if cluster.count > 1:
            cluster = self._merged(cluster)
        if len(self.known.clusters) > _MOST_CLUSTERS:
            self._forget(request.at)
        return cluster

    def recurring(self, known: Iterable[Cluster] = ()) -> list[Cluster]:
        """Return the clusters that are worth an offer, the most certain first; not those that are the same task as one that is known."""
        known = list(known)
        worth = (
            (self._worth(each), each) for each in self.known.clusters.values() if each not in known
        )
        found: list[Cluster] = []
        for sure, each in sorted(worth, key=lambda pair: -pair[0]):
            if sure > 0 and not any(self._is_twin(each, other) for other in (*known, *found)):
                found.append(each)
        return found

    def remove(self, cluster: int) -> None:
        """Forget a cluster."""
        self.known.clusters.pop(cluster, None)

    def _worth(self, cluster: Cluster) -> float:
        """Say how surely this is one task that recurs; 0 and less: it is not."""
        if min(cluster.count, len(cluster.days)) < _NEEDED:
            return 0.0
        shared = len(cluster.shared)
        if shared < (1 if _has_own_file(cluster) else _FEWEST_SHARED):
            return 0.0
        last = cluster.last[-6:]
        done = [_done(each) for each in last]
        always = [
            name for name, share in cluster.done.items() if name[0] == "~" and share >= _ALWAYS
        ]
        rare = max((math.sqrt(self._weight(name)) for name in always), default=0.0)
        return (
            _IN_KIND * self._alike(_marked(done, "~"))
            + _IN_ALL * self._alike(_marked(done, "="))
            + _SHARED * min(shared, _MOST_SHARED)
            + _WORDS * self._alike([features(each.text) for each in last])
            + _RARE * min(rare, _MOST_RARE)
            - _BOUND
        )

    def _is_twin(self, one: Cluster, other: Cluster) -> bool:
        return (
            self._cosine(one.done, other.done) >= _TWIN_DONE
            and self._cosine(one.words, other.words) >= _TWIN_WORDS
        )

    def _alike(self, vectors: Sequence[Vector]) -> float:
        """Return the mean cosine of each two of them."""
        cosines = [self._cosine(one, other) for one, other in combinations(vectors, 2)]
        return sum(cosines) / max(len(cosines), 1)

    def _nearest(self, words: Vector, done: Vector) -> Cluster | None:
        best, nearest = _JOINS_FROM, None
        for cluster in self._candidates(words):
            near = self._cosine(words, cluster.words)
            if near >= _WORDS_FROM:
                near += _DONE_SHARE * self._cosine(done, cluster.done)
                if near >= best:
                    best, nearest = near, cluster
        return nearest

    def _merged(self, cluster: Cluster) -> Cluster:
        """Join the cluster with those that turn out to be the same task, worded otherwise; the oldest goes on."""
        for other in self._candidates(cluster.words):
            if (
                other is not cluster
                and self._cosine(cluster.words, other.words) >= _SAME_WORDS
                and self._cosine(cluster.done, other.done) >= _SAME_DONE
            ):
                cluster, gone = sorted((cluster, other), key=lambda each: each.id)
                cluster.merge(gone)
                self.remove(gone.id)
                self._index(cluster)
        return cluster

    def _candidates(self, words: Vector) -> list[Cluster]:
        """Return the clusters that share the rarest words, the nearest first."""
        shared: dict[int, float] = {}
        rarest = heapq.nlargest(_MOST_LOOKED_UP, filter(is_word, words), key=self._weight)
        for word in rarest:
            weight = self._weight(word)
            for each in self._holders.get(word, ()):
                shared[each] = shared.get(each, 0.0) + weight
        nearest = heapq.nlargest(_MOST_CANDIDATES, shared, key=shared.__getitem__)
        return [found for each in nearest if (found := self.known.clusters.get(each)) is not None]

    def _index(self, cluster: Cluster) -> None:
        for word in filter(is_word, cluster.words):
            self._holders.setdefault(word, set()).add(cluster.id)

    def _cosine(self, one: Vector, other: Vector) -> float:
        """Return the cosine of two vectors, each feature weighted by its rarity; 0 where one is empty."""
        if not one or not other:
            return 0.0
        weigh = self._weight
        dot = sum(value * other[name] * weigh(name) for name, value in one.items() if name in other)
        return dot / math.sqrt(self._square(one) * self._square(other)) if dot else 0.0

    def _square(self, vector: Vector) -> float:
        """Return the squared length of a vector, which is never changed in place."""
        kept = self._squares.get(id(vector))
        if kept is not None and kept[0] is vector:
            return kept[1]
        square = sum(value * value * self._weight(name) for name, value in vector.items())
        self._squares[id(vector)] = (vector, square)
        return square

    def _weight(self, name: str) -> float:
        """Return the square of a feature's inverse frequency; as it was when there were a few requests less."""
        weight = self._weights.get(name)
        if weight is None:
            weight = math.log(1 + self.known.requests / self.known.rarity.get(name, 1)) ** 2
            self._weights[name] = weight
        return weight

    def _new(self) -> Cluster:
        cluster = Cluster(id=self.known.next_id)
        self.known.clusters[cluster.id] = cluster
        self.known.next_id += 1
        return cluster

    def _forget(self, now: float) -> None:
        """Forget what was met long ago, and of the rest what was met least."""
        oldest = now - _FORGOTTEN_AFTER_DAYS * DAY_SECONDS
        kept = [each for each in self.known.clusters.values() if each.at >= oldest]
        kept.sort(key=lambda each: (len(each.days), each.at), reverse=True)
        self.known.clusters = {each.id: each for each in kept[: _MOST_CLUSTERS * 3 // 4]}
        self.known.rarity = {name: count for name, count in self.known.rarity.items() if count > 1}
        self._holders.clear()
        for each in self.known.clusters.values():
            self._index(each)


def _mean(one: Vector, count: int, other: Vector, other_count: int) -> Vector:
    total = count + other_count
    mean = {
        name: (one.get(name, 0.0) * count + other.get(name, 0.0) * other_count) / total
        for name in (*one, *(name for name in other if name not in one))
    }
    return {name: value for name, value in mean.items() if value >= _HARDLY}


def _has_own_file(cluster: Cluster) -> bool:
    """Say whether one and the same file is changed nearly each time."""
    return any(
        share >= _SHARED_BY and name.startswith(("=edit ", "=write ")) and not name.endswith(_NAMED)
        for name, share in cluster.done.items()
    )


def _marked(vectors: Iterable[Vector], mark: str) -> list[Vector]:
    return [{name: value for name, value in each.items() if name[0] == mark} for each in vectors]


def _done(request: PastRequest) -> Vector:
    """Return what was done as a vector: each step itself (`=`) and its kind (`~`). What only looks counts little.

    A file that the request names is the same step as another one that another request names.
    """
    vector: Vector = {}
    for step in dict.fromkeys(request.steps):
        kind, _, what = step.partition(" ")
        weight = 0.3 if kind in _LOOKING else 1.0
        named = _NAMED if what and what.partition(".")[0] in request.text else what
        vector[f"={kind} {named}"] = weight
        vector[
            f"~{kind} {what.partition(' ')[0] if kind == 'run' else what.rpartition('.')[2]}"
        ] = weight
    return vector
