"""The index: which files have which words, kept between runs and brought up to date by reading what changed.

`store.py` says what is kept and why; `documents.py` finds out what changed; this module answers the other packages.
"""

import re
import time
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from sys import byteorder
from typing import Self

from msgspec import msgpack, structs

from ybs.core.decoding import decodable
from ybs.repo_map import facts
from ybs.repo_map.facts import DEFINES, MOST_STEPS, STEPS, WEIGHT_BITS, FactReader
from ybs.repo_map.languages import language_of
from ybs.repo_map.reading import Looks, Tree, is_plain
from ybs.repo_map.store import (
    FAILURES,
    Damaged,
    IndexedFile,
    MapStore,
    Postings,
    is_damage,
    mark_used,
    open_store,
    prune,
    remove,
)
from ybs.repo_map.tags import Tag, Tags, tags_of
from ybs.repo_map.words import looks_like_key, names_key

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
        self._reader = FactReader()
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
            document = known(path)
            if document is None and names_key(path):
                continue
            looks = look(path)
            if looks is None:
                continue
            here.add(path)
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


_OWN = "kept "  # the prefix of values that other packages keep


class Index:
    """The words of a project's files. `cache` is the file that keeps it between runs; None keeps nothing.

    Nothing here raises because of what stands in a file or in the cache; what cannot be read has no words.
    """

    def __init__(self, folder: Path, cache: Path | None, *, parses: bool = True) -> None:
        self.folder = folder
        #: The files by number, sorted; a number is good until the next `refresh`.
        self.paths: Sequence[str] = ()
        #: How many words each has.
        self.lengths: Sequence[float] = ()
        self._cache = cache
        self._tree = Tree(folder)
        self._store = open_store(cache, stamp()) if cache else None
        self._documents = Documents(self._tree, self._store)
        self._has_written = False
        self._kept: dict[str, bytes] = {}
        self._tags = TagCache()
        #: Whether a parser may be run for `tags`.
        self.parses = parses
        self._arrange()
        if cache and self._store:
            mark_used(cache)

    def refresh(self, paths: Iterable[str]) -> None:
        """Make it true for these files, relative to the folder: only what changed is read."""
        wanted = sorted({path for path in paths if is_plain(path)})
        for may_write in (True, False):
            try:
                self._has_written |= self._documents.update(wanted)
                break
            except FAILURES as error:
                self._begin_anew(error, may_write=may_write)
        else:
            self._documents.update(wanted)  # in memory, where nothing of the store can fail
        self._arrange()

    def _begin_anew(self, error: Exception, *, may_write: bool) -> None:
        """Throw a damaged store away; work in memory, or beside it, where it cannot be written."""
        if not may_write and self._store:
            self._store.close()
            self._store = None
        elif is_damage(error) and self._store and self._cache:
            self._store.close()
            remove(self._cache)
            self._store = open_store(self._cache, stamp())
            self._documents = Documents(self._tree, self._store)
            return
        self._documents = Documents(self._tree, self._store, may_write=False)

    def _arrange(self) -> None:
        """Give the files numbers in the order of their paths."""
        live, fresh = self._documents.live, self._documents.fresh
        self._files: list[IndexedFile] = [live[path] for path in sorted(live)]
        self.paths = [one.path for one in self._files]
        self.lengths = [one.length for one in self._files]
        self._slots = {one.number: slot for slot, one in enumerate(self._files)}
        self._fresh = [
            (self._slots.pop(number), weights)
            for number, weights in fresh.items()
            if number in self._slots
        ]

    def postings(self, term: str) -> tuple[list[int], list[float]]:
        """Return the files that have a term (as from `stems_of`), in no order, and its weight in each."""
        files: list[int] = []
        weights: list[float] = []
        slots = self._slots
        for packed in (self._stored(term), self._documents.memory.get(term, ())):
            for one in packed:
                slot = slots.get(one >> WEIGHT_BITS)
                if slot is not None:
                    files.append(slot)
                    weights.append((one & MOST_STEPS) / STEPS)
        for slot, known in self._fresh:
            if weight := known.get(term):
                files.append(slot)
                weights.append(weight / STEPS)
        return files, weights

    def defining(self, name: str) -> list[int]:
        """Return the files that define a name, as it is written."""
        return self.postings(DEFINES + name)[0]

    def _stored(self, term: str) -> Sequence[int]:
        if not self._store:
            return ()
        try:
            return self._store.postings(term)
        except FAILURES as error:
            if not is_damage(error):
                return ()  # another process writes at this moment
            self._begin_anew(error, may_write=True)
            self.refresh(self.paths)
            return self._stored(term)

    def language(self, file: int) -> str:
        """Return the language of a file, "" where no grammar reads it."""
        return self._files[file].language

    def data(self, file: int) -> bytes:
        """Return what a file holds now, as UTF-8; nothing for what is not read (too large, binary, gone, secret)."""
        return self._tree.read(self.paths[file])

    def tags(self, file: int) -> Tags:
        """Return the tags of a file, parsed once for each content."""
        document = self._files[file]
        if not (document.hash and document.language):
            return Tags()
        found = self._tags.find(document.hash, document.language, self._store)
        if found is None and not self.parses:
            return Tags()
        if found is None:
            data = self.data(file)
            found = self._tags.parse(hash_of(data), document.language, data)
        return found

    def get(self, key: str) -> bytes | None:
        """Return what `set` kept."""
        if key in self._kept or not self._store:
            return self._kept.get(key)
        try:
            return self._store.get(_OWN + key)
        except FAILURES:
            return None

    def set(self, key: str, value: bytes) -> None:
        """Keep a value beside the index, for the next run too."""
        self._kept[key] = value

    def close(self) -> None:
        """Write tags and values that are new, and let go of the cache."""
        store, self._store = self._store, None
        if not (store and self._cache):
            return
        try:
            tags = self._tags.take_new()
            if (self._kept or tags) and store.begin():
                store.put({_OWN + key: value for key, value in self._kept.items()})
                store.keep_tags(tags, MOST_KEPT)
                store.commit()
        except FAILURES:
            store.roll_back()
        store.close()
        if self._has_written:
            prune(self._cache.parent, self._cache)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def stamp() -> str:
    """Return what a store must have been written by: these weights, and this package as it is now."""
    here = Path(__file__).parent
    files = (*here.glob("*.py"), *here.glob("queries/*"))
    looks = sorted((one.name, one.stat().st_size, one.stat().st_mtime_ns) for one in files)
    return repr((byteorder, facts.rules(), looks))


MOST_KEPT = 4_000
_RUN = re.compile(r"[A-Za-z0-9_]{16,}")
_RUN_OF_BYTES = re.compile(_RUN.pattern.encode())
_NAMED = r"(?:passw|pass\b|pwd|secret|token|api_?key|credential)\w*"
#: A text in quotes that something named like a password is given.
_GIVEN = re.compile(rf"(?i){_NAMED}[^\n]{{0,20}}?[=:]>?\s*(?=[\"'`])")
#: A shell needs no quotes. What is named or computed there is no secret.
_SET = rf"{_NAMED}=(?=[^\s$(=])"
_GIVEN_IN_SHELL = re.compile(
    rf"(?i)\A(?:(?:export|declare|typeset|readonly) (?:-\w+ )*)?\w*?{_SET}"
)
#: The password in an address.
_LOGIN = re.compile(r"://[^\s:/@]*:(?=[^\s/@]+@)")
_GIVEN_IN_BYTES = re.compile(f"{_GIVEN.pattern}|{_SET}|{_LOGIN.pattern}".encode())

_SECRETS = (_GIVEN, _GIVEN_IN_SHELL, _LOGIN)


class TagCache:
    """Tags by content. They are the same whether they come from the parser or from the store."""

    def __init__(self) -> None:
        self._known: dict[bytes, Tags] = {}
        self._new: dict[bytes, bytes] = {}
        self._decode = msgpack.Decoder(decodable(Tags)).decode

    def find(self, digest: bytes, language: str, store: MapStore | None) -> Tags | None:
        """Return the tags of a content if it was parsed before."""
        key = digest + language.encode()
        if key not in self._known and store:
            try:
                data = store.tags(key)
                if data is None:
                    return None
                self._known[key] = self._decode(data)
            except FAILURES:
                return None
        return self._known.get(key)

    def parse(self, digest: bytes, language: str, data: bytes) -> Tags:
        """Parse a content and keep what was found."""
        found = tags_of(data, language)
        encoded = msgpack.encode(found)
        if _may_be_open(encoded):
            found = without_keys(found)
            encoded = msgpack.encode(found)
        key = digest + language.encode()
        self._known[key], self._new[key] = found, encoded
        return found

    def take_new(self) -> dict[bytes, bytes]:
        """Return what is to be written, once."""
        new, self._new = self._new, {}
        return new


def without_keys(tags: Tags) -> Tags:
    """Return tags whose lines end before anything that may be a key or a password."""
    return structs.replace(
        tags,
        definitions=tuple(_cut(one) for one in tags.definitions if not looks_like_key(one.name)),
        references={
            name: count for name, count in tags.references.items() if not looks_like_key(name)
        },
    )


def _cut(tag: Tag) -> Tag:
    line = tag.signature
    ends = [found.end() for each in _SECRETS for found in each.finditer(line)]
    ends += [found.start() for found in _RUN.finditer(line) if looks_like_key(found[0])]
    return structs.replace(tag, signature=line[: min(ends)] + "...") if ends else tag


def _may_be_open(encoded: bytes) -> bool:
    if _GIVEN_IN_BYTES.search(encoded):
        return True
    return any(looks_like_key(run.decode()) for run in _RUN_OF_BYTES.findall(encoded))
