"""Finds secrets in bytes: literals first, in one fast pass, then one bounded pattern where a literal stands."""

import re
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

from ybs.security.firewall.checks import go_on_at
from ybs.security.firewall.lazy import lazy
from ybs.security.firewall.rule import EDGE, NEAR, Level, Rule
from ybs.security.firewall.rules import ASSIGNED, RULES

#: A place in bytes and what stands there: start, end, kind.
Span = tuple[int, int, str]
#: Where an anchor was found: the place and the anchor's number.
Hit = tuple[int, int]

_LEVELS: dict[Level, int] = {"low": 0, "normal": 1, "high": 2}
#: Below this the standard library is quicker than loading re2.
RE2_FROM = 32_768
#: With more anchors than one in so many bytes, re2 is slower than the standard library.
_LEAST_APART = 50
_KEY_CHARS = lazy(rb"(?:[A-Za-z0-9+/=:,.\s]|-(?!----)|\\[nrt]){64,16384}")
_KEY_END = lazy(rb"-----END[ A-Z0-9_-]{0,60}KEY(?: BLOCK)?-----")
_MOST_KEY = 32_768
#: What `EDGE` says, for a quick look.
_WORD = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-")
_BREAKS = (rb"\n", rb"\r", rb"\t")


class Engine:
    """The rules of one sensitivity, ready to be matched. Patterns are compiled when they are first needed.

    `use_re2`: None takes google-re2 for long texts where it is installed.
    """

    def __init__(
        self,
        level: Level = "normal",
        *,
        rules: Sequence[Rule] = RULES,
        use_re2: bool | None = None,
    ) -> None:
        self._level: Level = level
        self._rules = [rule for rule in rules if _LEVELS[rule.level] <= _LEVELS[level]]
        self._is_edged = [r.pattern.startswith(EDGE) and not r.reach for r in self._rules]
        self._patterns: dict[int, re.Pattern[bytes]] = {}
        by_anchor: dict[bytes, list[int]] = {}
        for number, rule in enumerate(self._rules):
            for anchor in rule.anchors:
                by_anchor.setdefault(anchor, []).append(number)
        self._anchors = list(by_anchor)
        self._rules_of = list(by_anchor.values())
        self._use_re2 = use_re2
        self._finder: Callable[[bytes], list[Hit] | None] | None = None

    def spans(self, data: bytes) -> list[Span]:
        """Return the secrets in `data`, in order; none overlaps another."""
        lower = data.lower()
        hits = self._hits(lower)
        if not hits:
            return []
        hits.sort()
        found: list[Span] = []
        done: dict[int, int] = {}
        keys = _Keys(data)
        for place, anchor in hits:
            is_within = (
                place and data[place - 1] in _WORD and data[place - 2 : place] not in _BREAKS
            )
            for number in self._rules_of[anchor]:
                if is_within and self._is_edged[number]:
                    continue
                if place >= done.get(number, 0):
                    span, done[number] = self._match(number, data, place, lower)
                    if span is not None and self._rules[number].check == "key":
                        span = keys.whole(*span)
                    if span is not None:
                        done[number] = span[1]
                        found.append((*span, self._rules[number].kind))
        return merged(found)

    def _hits(self, lower: bytes) -> list[Hit]:
        wants_re2 = self._use_re2 or (self._use_re2 is None and len(lower) >= RE2_FROM)
        if not wants_re2:
            return self._find_each(lower)
        if self._finder is None:
            self._finder = _re2_finder(self._anchors) or self._find_each
        hits = self._finder(lower)
        return self._find_each(lower) if hits is None else hits

    def _find_each(self, lower: bytes) -> list[Hit]:
        """Look for one anchor after the other."""
        hits: list[Hit] = []
        find = lower.find
        for number, anchor in enumerate(self._anchors):
            place = find(anchor)
            while place >= 0:
                hits.append((place, number))
                place = find(anchor, place + 1)
        return hits

    def _match(
        self, number: int, data: bytes, place: int, lower: bytes
    ) -> tuple[tuple[int, int] | None, int]:
        """Match a rule at its anchor. Return the secret's place, or None, and where to try the rule again."""
        rule = self._rules[number]
        if rule.least and not _is_long(data[place : place + rule.least], rule.least):
            return None, 0
        if rule.near and lower.rfind(rule.near, max(0, place - NEAR), place) < 0:
            return None, 0
        if rule.reach:
            window = data[max(0, place - rule.reach) : place]
            place -= len(window) - len(window.rstrip(rule.before))
        pattern = self._patterns.get(number)
        if pattern is None:
            pattern = self._patterns[number] = re.compile(rule.pattern)
        match = pattern.match(data, place)
        if match is None:
            return None, 0
        go_on = go_on_at(rule, data, match, self._level)
        return (match.span(pattern.groups), 0) if go_on is None else (None, go_on)


def _is_long(word: bytes, least: int) -> bool:
    """Take a quick look before the pattern, which may have to be compiled: no token has a space in it."""
    return len(word) == least and b" " not in word and b"\n" not in word and b'"' not in word


class _Keys:
    """Finds where private keys end, with at most one search to the end of the data."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._no_end_after = len(data)

    def whole(self, start: int, body: int) -> tuple[int, int] | None:
        """Return the place of the key whose BEGIN line is at `start` to `body`; None where there is no key."""
        end = None
        if body < self._no_end_after:
            end = _KEY_END().search(self._data, body, body + _MOST_KEY)
            if end is None and b"-----END" not in self._data[body : body + _MOST_KEY]:
                self._no_end_after = min(self._no_end_after, body)
        text = _KEY_CHARS().match(self._data, body)
        if end is not None and end.start() - body >= 64:
            return start, end.end()
        return (start, text.end()) if text else None


def merged(spans: Iterable[Span]) -> list[Span]:
    """Join places that overlap. The kind is that of the longest, and no general one where another fits."""
    result: list[Span] = []
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not result or start >= result[-1][1]:
            result.append((start, end, kind))
            continue
        last_start, last_end, last_kind = result[-1]
        is_general = last_kind == ASSIGNED.kind
        result[-1] = (last_start, max(last_end, end), kind if is_general else last_kind)
    return result


def _re2_finder(anchors: list[bytes]) -> Callable[[bytes], list[Hit] | None] | None:
    """Make a finder of all anchors in one pass; None where google-re2 is not installed.

    It gives up, with None, on a text that is full of anchors: there the standard library is quicker.
    """
    try:
        re2: Any = import_module("re2")  # an extra; it takes some milliseconds to load
    except ImportError:
        return None
    ordered = sorted(anchors, key=len, reverse=True)
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    pattern: Any = re2.compile(b"|".join(map(re.escape, ordered)), options)
    inner = _inner(anchors)
    numbers = {anchor: number for number, anchor in enumerate(anchors)}

    def find(lower: bytes) -> list[Hit] | None:
        hits: set[Hit] = set()
        for match in pattern.finditer(lower):
            if len(hits) * _LEAST_APART > len(lower):
                return None
            place = match.start()
            anchor = lower[place : match.end()]
            hits.add((place, numbers[anchor]))
            for offset, other, number in inner[anchor]:
                if lower.startswith(other, place + offset):
                    hits.add((place + offset, number))
        return list(hits)

    return find


def _inner(anchors: list[bytes]) -> dict[bytes, list[tuple[int, bytes, int]]]:
    """Return, for each anchor, the others that may begin within it: where, which, and its number.

    One pass finds anchors that do not overlap; the rest is looked for where one was found.
    """
    starting: dict[int, list[tuple[bytes, int]]] = {}
    for number, anchor in enumerate(anchors):
        starting.setdefault(anchor[0], []).append((anchor, number))
    inner: dict[bytes, list[tuple[int, bytes, int]]] = {}
    for anchor in anchors:
        inner[anchor] = [
            (offset, other, number)
            for offset, code in enumerate(anchor)
            for other, number in starting.get(code, ())
            if (offset or other != anchor) and _may_meet(anchor[offset:], other)
        ]
    return inner


def _may_meet(rest: bytes, other: bytes) -> bool:
    size = min(len(rest), len(other))
    return rest[:size] == other[:size]
