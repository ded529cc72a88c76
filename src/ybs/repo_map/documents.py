"""Documents: what is known of each file and each content it had, brought up to date by reading only what changed."""

import time
from array import array
from collections.abc import Iterable

from ybs.repo_map.facts import WEIGHT_BITS, Reader
from ybs.repo_map.languages import language_of
from ybs.repo_map.reading import Looks, Tree
from ybs.repo_map.store import Damaged, IndexedFile, MapStore, Postings

#: So many files are read in one update, the rest in the next ones; until then their paths count.
MOST_READ = 20_000
#: A few changed files keep their facts beside the postings; more become a segment of them.
FEW = 64
MOST_SEGMENTS = 12
#: Postings in memory before they are written; each term has the price of some.
MOST_POSTINGS, _POSTINGS_OF_A_TERM = 4_000_000, 30
#: Contents that are gone and wait to come back: as many as there are files, and so many more.
MOST_WAITING = 2_000
_MOST_NUMBERS = 1 << (32 - WEIGHT_BITS)
#: A file that was changed so shortly before it is looked at may change again without looking different. Some file
#: systems count whole seconds.
_UNSETTLED_NS, _UNSETTLED_COARSE_NS, _SECOND_NS = 50_000_000, 2_000_000_000, 1_000_000_000
#: The time of a file that has to be looked into again.
_NEVER = -1
_HEAD_BYTES = 4_096

Changed = list[tuple[str, Looks]]
_Waiting = dict[tuple[str, bytes], IndexedFile]


class _Batch:
    """What one update came to, on its way into the store, or into memory where there is none."""

    def __init__(self, store: MapStore | None, memory: Postings, first: int) -> None:
        self.kept: list[IndexedFile] = []
        self.gone: list[int] = []
        self._store = store
        self._segment: Postings = {} if store else memory
        self._postings = 0
        self._number, self._step = first, 1 if store else -1

    def number(self) -> int:
        """Return the number of a new document."""
        self._number += self._step
        return self._number

    def add(self, number: int, weights: dict[str, int]) -> None:
        """Add the postings of a document; too many for the memory are written."""
        segment = self._segment
        base = number << WEIGHT_BITS
        for term, weight in weights.items():
            try:
                segment[term].append(base | weight)
            except KeyError:
                segment[term] = array("I", (base | weight,))
        self._postings += len(weights)
        if self._store and self._postings + len(segment) * _POSTINGS_OF_A_TERM > MOST_POSTINGS:
            self.flush()

    def flush(self) -> None:
        """Write the postings."""
        if self._store and self._segment:
            self._store.add_segment(self._segment)
            self._segment, self._postings = {}, 0


class Documents:
    """The documents of a tree. With a store they are kept; without `may_write` what is new stays in memory.

    Methods raise what the store does; then this is no longer good, but the store is as it was.
    """

    def __init__(self, tree: Tree, store: MapStore | None, *, may_write: bool = True) -> None:
        #: The document of each path.
        self.live: dict[str, IndexedFile] = {}
        #: The facts of documents whose postings are in no segment.
        self.fresh: dict[int, dict[str, int]] = {}
        #: The segment of documents that could not be written.
        self.memory: Postings = {}
        self._tree, self._store, self._may_write = tree, store, may_write
        self._reader = Reader()
        self._generation = -1
        self._lowest = (
            _MOST_NUMBERS  # what is not written is numbered downwards, so that no two meet
        )
        self._has_unwritten = False

    def update(self, wanted: Iterable[str]) -> bool:
        """Make it true for these paths. Return whether something was written."""
        self._tree.forget()
        self._load()
        changed, gone = self._survey(wanted)
        if not (changed or gone):
            return False
        store = self._store if self._may_write and self._store and self._store.begin() else None
        try:
            if store and (self._has_unwritten or store.generation() != self._generation):
                self._load(again=True)
                changed, gone = self._survey(wanted)
            self._apply(changed, gone, store)
            if store:
                store.commit()
        except BaseException:
            if store:
                store.roll_back()
            raise
        self._reader.clear()  # a prepared process may wait long for its question
        return store is not None

    def _load(self, *, again: bool = False) -> None:
        if not self._store or (not again and self._store.generation() == self._generation):
            return
        self._generation = self._store.generation()
        self.live = {one.path: one for one in self._store.documents()}
        self.fresh = self._store.fresh()
        self.memory = {}
        self._has_unwritten = False

    def _survey(self, wanted: Iterable[str]) -> tuple[Changed, list[IndexedFile]]:
        """Return the files that look different from what is known, and the documents that have none any more."""
        look, known = self._tree.look, self.live.get
        changed: Changed = []
        here: set[str] = set()
        for path in wanted:
            looks = look(path)
            if looks is None:
                continue
            here.add(path)
            document = known(path)
            if document is None or document.looks != looks:
                changed.append((path, looks))
        return changed, [one for path, one in self.live.items() if path not in here]

    def _apply(self, changed: Changed, gone: list[IndexedFile], store: MapStore | None) -> None:
        self._has_unwritten |= store is None
        first = store.top() if store else self._lowest
        if store and first >= _MOST_NUMBERS // 2:
            raise Damaged  # after years there are no numbers left; a new store begins with 1
        batch = _Batch(store, self.memory, first)
        for one in gone:
            batch.gone.append(self.live.pop(one.path).number)
        is_bulk = len(changed) > FEW
        fresh = self._read(changed, batch, self._waiting(changed, store), is_bulk=is_bulk)
        self.fresh.update(fresh)
        if not store:
            self._lowest = batch.number()
            return
        store.bury(batch.gone)
        store.keep(batch.kept)
        self._settle(fresh, batch, store)
        self._compact(store)
        self._generation = store.count()

    def _waiting(self, changed: Changed, store: MapStore | None) -> _Waiting:
        if not (store and changed):
            return {}
        found = store.waiting([path for path, _ in changed] if len(changed) <= FEW else ())
        return {(one.path, one.hash): one for one in found}

    def _read(
        self, changed: Changed, batch: _Batch, waiting: _Waiting, *, is_bulk: bool
    ) -> dict[int, dict[str, int]]:
        """Read what changed; return the facts of a few, or put the postings of many into the batch."""
        fresh: dict[int, dict[str, int]] = {}
        now_ns = time.time_ns()
        for place, (path, looks) in enumerate(_in_order(changed)):
            data = self._tree.read(path) if place < MOST_READ else b""
            digest = hash_of(data)
            old = self.live.get(path)
            document = old if old and old.hash == digest else waiting.get((path, digest))
            if document is None:
                language = language_of(path, data[:_HEAD_BYTES]) if data else ""
                facts = self._reader.read(path, data, language)
                document = IndexedFile(batch.number(), path, looks, digest, facts.length, language)
                if is_bulk:
                    batch.add(document.number, facts.weights)
                else:
                    fresh[document.number] = facts.weights
            document.looks = (
                looks if place < MOST_READ and _is_settled(looks, now_ns) else _again(looks)
            )
            if old and old is not document:
                batch.gone.append(old.number)
            batch.kept.append(document)
            self.live[path] = document
        return fresh

    def _settle(self, fresh: dict[int, dict[str, int]], batch: _Batch, store: MapStore) -> None:
        """Keep the facts of a few files, or make a segment of them when there are many by now."""
        if len(self.fresh) <= FEW:
            store.add_fresh(fresh)
        else:
            for number, weights in self.fresh.items():
                batch.add(number, weights)
            store.clear_fresh()
            self.fresh = {}
        batch.flush()

    def _compact(self, store: MapStore) -> None:
        """Make one segment of many, and forget the contents that waited longest."""
        waiting = store.count_waiting()
        if store.segments() <= MOST_SEGMENTS and waiting <= len(self.live) + MOST_WAITING:
            return
        keeps = {one.number for one in self.live.values()}
        numbers = sorted(one.number for one in store.waiting())
        store.compact(keeps.union(numbers[-(len(keeps) + MOST_WAITING) // 2 :]), WEIGHT_BITS)


def hash_of(data: bytes) -> bytes:
    """Return what a content is known by; nothing for no content."""
    from hashlib import blake2b  # a start that finds nothing changed hashes nothing

    return blake2b(data, digest_size=16).digest() if data else b""


def _in_order(changed: Changed) -> Changed:
    """Put sources first where not all can be read."""
    return changed if len(changed) <= MOST_READ else sorted(changed, key=_is_no_source)


def _is_no_source(change: tuple[str, Looks]) -> bool:
    return not language_of(change[0])


def _is_settled(looks: Looks, now_ns: int) -> bool:
    is_coarse = looks.mtime_ns % _SECOND_NS == 0
    return now_ns - looks.mtime_ns > (_UNSETTLED_COARSE_NS if is_coarse else _UNSETTLED_NS)


def _again(looks: Looks) -> Looks:
    """Return looks that no file has, so that it is looked into the next time."""
    return Looks(looks.size, _NEVER, looks.inode)
