"""The index: which files have which words, kept between runs and brought up to date by reading what changed.

`store.py` says what is kept and why; `documents.py` finds out what changed; this is what the other rooms ask.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from sys import byteorder
from typing import Self

from msgspec import msgpack, structs

from ybs.repo_map import caches, facts
from ybs.repo_map.documents import Documents, hash_of
from ybs.repo_map.facts import DEFINES, MOST_STEPS, STEPS, WEIGHT_BITS
from ybs.repo_map.reading import Tree, is_plain
from ybs.repo_map.store import FAILURES, IndexedFile, MapStore, is_damage, open_store, remove
from ybs.repo_map.tags import Tag, Tags, tags_of
from ybs.repo_map.words import looks_like_key

_OWN = "kept "  # in front of what other rooms keep


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
            caches.mark_used(cache)

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
            caches.prune(self._cache.parent, self._cache)

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
        self._decode = msgpack.Decoder(Tags).decode

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
