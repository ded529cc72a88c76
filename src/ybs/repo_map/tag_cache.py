"""The tag cache: what a parser found in a content, kept without what may be a key or a password."""

import re

from msgspec import msgpack, structs

from ybs.repo_map.store import FAILURES, MapStore
from ybs.repo_map.tags import Tag, Tags, tags_of
from ybs.repo_map.words import looks_like_key

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
