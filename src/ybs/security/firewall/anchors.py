"""Finds where the literals of rules stand in a text, without looking for each of them in all of it.

Most tokens are one long word with a digit or a capital in it, a core. Ordinary text has few of these, and only there
their literals are looked for; a dozen others, such as `pass` and `://`, are looked for everywhere.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from ybs.security.firewall.rules import EDGE, ESCAPES, SecretRule

#: Where a literal stands, and the number of the rule that it belongs to.
Hit = tuple[int, int]

#: The characters of a core, and how long it is at least.
WORD = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-"
LEAST_CORE = 10
_RUN = b"a" * LEAST_CORE
_IS_WORD = bytes(97 if code in WORD else 32 for code in range(256))
#: What is not evidence of a core: words and names have nothing else.
_PLAIN = b"abcdefghijklmnopqrstuvwxyz_-"
#: How far before a core its literal may stand, in bytes.
_LEAD = 64
_BREAKS = b" \t\r\n\v\f\"'<>`"
_IS_BREAK = bytes(32 if code in _BREAKS else 97 for code in range(256))
#: Signs around what Markdown emphasizes, and with what a core begins that is no part of its word.
_EMPHASIS = b"_-"
_NO_PART = frozenset(_EMPHASIS + ESCAPES)
#: How many bytes of a literal are looked up at once.
_HEAD = 2
#: A literal is looked for near cores that have its sign, the rarest first.
_SIGNS = b"~$|%:=/._-"


class Anchors:
    """The literals of rules, sorted by how they are looked for."""

    def __init__(self, rules: Sequence[SecretRule]) -> None:
        #: By their first bytes, those that begin a core and consist of its characters.
        self._heads: dict[bytes, list[tuple[bytes, int]]] = {}
        #: By a sign in them, those that stand in a core or before it.
        self._near: dict[bytes, list[tuple[bytes, int]]] = {}
        everywhere: list[tuple[bytes, int]] = []
        for number, rule in enumerate(rules):
            for anchor in rule.anchors:
                if rule.everywhere:
                    everywhere.append((anchor, number))
                elif _begins_core(rule, anchor):
                    self._heads.setdefault(anchor[:_HEAD], []).append((anchor, number))
                else:
                    self._near.setdefault(_sign_of(anchor), []).append((anchor, number))
        self._stems = list(_stems(everywhere, rules))

    def hits(self, data: bytes, lower: bytes, cores: list[tuple[int, int]]) -> list[Hit]:
        """Return where literals stand in `lower`, which is `data` in lower case; in order of the places."""
        found = [*self._everywhere(lower)]
        if cores:
            found += self._at_heads(data, lower, cores)
            found += self._around(lower, cores)
        found.sort()
        return found

    def _everywhere(self, lower: bytes) -> Iterator[Hit]:
        find = lower.find
        for stem, near, members in self._stems:
            place = find(stem)
            if place < 0 or (near and near not in lower):
                continue
            while place >= 0:
                for offset, anchor, number in members:
                    if anchor is stem or lower.startswith(anchor, place - offset, len(lower)):
                        yield place - offset, number
                place = find(stem, place + 1)

    def _at_heads(
        self, data: bytes, lower: bytes, cores: Iterable[tuple[int, int]]
    ) -> Iterator[Hit]:
        heads = self._heads
        for start, _ in cores:
            for anchor, number in heads.get(lower[start : start + _HEAD], ()):
                if lower.startswith(anchor, start):
                    yield start, number
            if data[start] in _NO_PART:  # of the word, it may be, but for the core
                for place in _behind_sign(data, start):
                    for anchor, number in heads.get(lower[place : place + _HEAD], ()):
                        if lower.startswith(anchor, place):
                            yield place, number

    def _around(self, lower: bytes, cores: Iterable[tuple[int, int]]) -> Iterator[Hit]:
        places: list[int] = []
        origins: list[int] = []
        parts: list[bytes] = []
        size = 0
        for start, end in _leading(lower, cores):
            places.append(size)
            origins.append(start)
            parts.append(lower[start:end])
            size += end - start + 1
        words = b" ".join(parts)
        for sign, anchors in self._near.items():
            if sign not in words:
                continue
            for anchor, number in anchors:
                place = words.find(anchor)
                while place >= 0:
                    part = bisect_right(places, place) - 1
                    yield origins[part] + place - places[part], number
                    place = words.find(anchor, place + 1)


def _leading(lower: bytes, cores: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the cores with what stands before them in the same word, as one where they touch."""
    first = last = 0
    for core, end in cores:
        before = lower[max(last, core - _LEAD) : core].translate(_IS_BREAK)
        start = core - len(before) + 1 + before.rfind(b" ")
        if start > last:
            if last:
                yield first, last
            first = start
        last = end
    yield first, last


def cores_in(data: bytes) -> list[tuple[int, int]]:
    """Return the places of long words that are not only lower-case letters."""
    mapped = data.translate(_IS_WORD)
    cores: list[tuple[int, int]] = []
    start = mapped.find(_RUN)
    while start >= 0:
        end = mapped.find(b" ", start)
        if end < 0:
            end = len(data)
        if data[start:end].translate(None, _PLAIN):
            cores.append((start, end))
        start = mapped.find(_RUN, end)
    return cores


def _behind_sign(data: bytes, start: int) -> Iterator[int]:
    """Yield where a word may begin in a core, behind signs of Markdown, or behind the letter of an escape such as JSON's for a line end."""
    if data[start] in _EMPHASIS:
        yield start + 1
        if data[start + 1] in _EMPHASIS:
            yield start + 2
    elif start and data[start - 1 : start] == b"\\":
        yield start + 1


def split_at(cores: Iterable[tuple[int, int]], joints: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the parts of cores: one may begin at each joint, all of which are in order."""
    for start, end in cores:
        for joint in joints[bisect_right(joints, start) : bisect_left(joints, end)]:
            yield start, joint
            start = joint
        yield start, end


def _begins_core(rule: SecretRule, anchor: bytes) -> bool:
    """Return whether what the rule matches is all one core, so that the literal can only stand at its beginning."""
    body = rule.pattern.removeprefix(EDGE)
    is_edged = len(body) < len(rule.pattern)
    return is_edged and not anchor.translate(None, WORD) and not any(c in body for c in b"=./~")


def _sign_of(anchor: bytes) -> bytes:
    return next((bytes((sign,)) for sign in _SIGNS if sign in anchor), b"")


def _stems(
    anchors: Sequence[tuple[bytes, int]], rules: Sequence[SecretRule]
) -> Iterator[tuple[bytes, bytes, list[tuple[int, bytes, int]]]]:
    """Yield the anchors to look for: the shortest literals, the words that must stand near, and the literals that contain them."""
    stems: dict[bytes, list[tuple[int, bytes, int]]] = {}
    for anchor, number in sorted(anchors, key=lambda each: len(each[0])):
        stem = next((stem for stem in stems if stem in anchor), anchor)
        stems.setdefault(stem, []).append((anchor.find(stem), anchor, number))
    for stem, members in stems.items():
        near = {rules[number].near for _, _, number in members}
        yield stem, near.pop() if len(near) == 1 else b"", members
