"""Finds secrets in bytes: literals first, then one bounded pattern where a literal stands."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from ybs.core.lazy import lazy
from ybs.security.firewall.anchors import WORD, Anchors, cores_in
from ybs.security.firewall.checks import REGION, drawn_value, go_on_at
from ybs.security.firewall.decode import packed
from ybs.security.firewall.rules import (
    ASSIGNED,
    EDGE,
    FRAME_SIGNS,
    NEAR,
    PRIVATE_KEY,
    RULES,
    Level,
    SecretRule,
    key_frame,
)

#: A place in bytes and what stands there: start, end, kind.
Span = tuple[int, int, str]

_LEVELS: dict[Level, int] = {"low": 0, "normal": 1, "high": 2}
#: Lines such as `Comment: "mine"`, which may be before the base64 of a key, and that.
_HEADERS = rb"(?:(?:[\s\d:|>]|\\+[nr]){0,12}[\w-]{1,40}: (?:[^\n\\]|\\+\"){0,200}(?:\n|\\+n)){0,8}"
_KEY_CHARS = lazy(_HEADERS + rb"(?:[A-Za-z0-9+/=:,.\s]|-(?!---)|\\[nrt]){64,16384}")
_KEY_END = lazy(key_frame(b"END"))
_MOST_KEY = 32_768
_KEY_BEGINS = lazy(key_frame(b"BEGIN") + rb"|Private-Lines: \d{1,3}(?=\s)")
#: Of what is in a frame that does not say that it is that of a private key, so many bytes are looked at: a third is long lines.
_BODY_LINE = lazy(rb"[A-Za-z0-9+/]{32,}={0,2}[\"',;+ \t\r]{0,4}(?:\n|\\+[nr]|\Z)")
_LEAST_SHARE, _BEGUN = 3, 1_000
#: The base64 of a key: its long lines, and the last one, which may be short.
_KEY_BASE64 = lazy(
    rb"[A-Za-z0-9+/]{40,}={0,2}|[A-Za-z0-9+/]{12,}={0,2}(?=[\s\"',+;\\n]{1,20}-----? ?END)"
)
#: A line of one in narrow lines, where it stands between a beginning and an end.
_NARROW = lazy(rb"(?m)^[ \t\d>#|*+:\"'-]{0,24}?([A-Za-z0-9+/]{16,39}={0,2})[ \t\r\"',\\]{0,8}$")
#: A line of one that stands behind something else.
_KEY_REST = lazy(rb"\n[ \t\d>#|*+:\"'-]{0,24}[A-Za-z0-9+/]{40,80}={0,2}[ \t\r\"',\\]{0,8}(?=\n|\Z)")
#: A line of a key, with a number or a sign of a quotation before it, in bytes at most.
_KEY_LINE = lazy(
    rb"[ \t\d>#|*+:\"'-]{0,24}(?:[A-Za-z0-9+/=]{8,80}|=[A-Za-z0-9+/]{4})[ \t\r\"',\\]{0,8}\n"
)
_MOST_LINE = 160
#: How long a frame is at most, in bytes.
_MOST_FRAME = 80
#: Less than this before an END line is not a key, in bytes.
_LEAST_TAIL = 60
_OF_KEYS = ("key", "key-end")
#: How the base64 of a key's file begins.
PACKED_KEY = b"LS0tLS1CRUdJTi"
_EDGE = lazy(EDGE)
#: No secret is shorter, with the words that make it one, in bytes.
LEAST_SECRET = 8
#: What a name goes on with, what closes it, letters, and what a sign that gives it a value begins with; bytes of all that at most.
_NAME, _CLOSING, _LETTERS = WORD + b".", b"\\\"'`])", WORD[10:62]
_SIGNS = (b"=", b":", b">", b",", b"|", b"?", b".")
_MOST_NAME = 240
#: Of a laxer tie its signs, and what its words begin with; the value behind it has a digit.
_TIES, _DIGITS, _MOST_WORD = b" \t\r\n\"'`()[]{}:=>|,*?-\\", WORD[:10], 40
_NUMBERED = WORD[:10] + b" :\t"
_TIE_WORDS = (
    b"</",
    b"&",
    b"!",
    b"content",
    b"default",
    b"is ",
    b"by ",
    b"with ",
    b"type ",
    b"str ",
    b"string ",
)
#: How a pattern ends that says what may not follow, and how long a token is at most which ends so, in bytes.
_ENDED, _MOST_ENDED = rb"(?![", 160

#: What a statement or block begins with, behind a name that may be in quotes.
_OPENING = frozenset(bytes((sign,)) for sign in b"=:[{<>\"'`\\\r\n")
#: What gives the name a text in quotes at once.
_GIVEN = tuple(
    sign + quote
    for quote in (b'"', b"'")
    for sign in (b"=", b"= ", b":", b": ", quote + b":", quote + b": ")
)
#: So many of the names before a value are looked at.
_MOST_NAMES = 4


class RuleEngine:
    """The rules of one sensitivity, ready to be matched. Patterns are compiled when they are first needed."""

    def __init__(self, level: Level = "normal", *, rules: Sequence[SecretRule] = RULES) -> None:
        self._level: Level = level
        self._rules = [rule for rule in rules if _LEVELS[rule.level] <= _LEVELS[level]]
        self._is_edged = [r.pattern.startswith(EDGE) and not r.reach for r in self._rules]
        self._is_ended = [_ENDED in r.pattern and r.pattern.endswith(b"])") for r in self._rules]
        self._patterns: dict[int, re.Pattern[bytes]] = {}
        #: The same without what may not follow.
        self._open: dict[int, re.Pattern[bytes]] = {}
        self._anchors = Anchors(self._rules)
        #: The number of the rule of names; none at a low sensitivity.
        self._names = self._rules.index(ASSIGNED) if ASSIGNED in self._rules else -1
        self._is_token = [
            rule.check in ("", "random", "sure")
            and rule.level == "low"
            and rule.kind != PRIVATE_KEY
            for rule in self._rules
        ]

    def spans(
        self,
        data: bytes,
        cores: list[tuple[int, int]] | None = None,
        *,
        only_tokens: bool = False,
        joints: Sequence[int] = (),
    ) -> list[Span]:
        """Return the secrets in `data`, in order; none overlaps another. `only_tokens`: those that are one long word.

        `joints` are the places, in order, at which a line end was removed: a token may begin and end there, too.
        """
        if len(data) < LEAST_SECRET:
            return []
        lower = data.lower()
        cores = cores_in(data) if cores is None else cores
        hits = self._anchors.hits(data, lower, cores)
        found: list[Span] = []
        done: dict[int, int] = {}
        opening = list[int]()
        keys, seams = _Keys(data), frozenset(joints)
        for place, number in hits:
            if place < done.get(number, 0) or (only_tokens and not self._is_token[number]):
                continue
            is_edged = self._is_edged[number] and place not in seams
            if is_edged and not _EDGE().match(data, place):
                continue
            if number == self._names and not _may_be_given(data, place, opening):
                continue
            span, done[number] = self._match(number, data, place, lower, joints)
            if span is not None and self._rules[number].check in _OF_KEYS:
                is_end = self._rules[number].check == "key-end"
                span = keys.ending(*span) if is_end else keys.whole(*span)
            if span is not None:
                done[number] = span[1]
                found.append((*span, self._rules[number].kind))
        found += _drawn(data, cores, opening)
        return merged(found)

    def _match(
        self, number: int, data: bytes, place: int, lower: bytes, joints: Sequence[int]
    ) -> tuple[tuple[int, int] | None, int]:
        """Match a rule at its anchor. Return the secret's place, or None, and where to try the rule again."""
        rule = self._rules[number]
        if rule.least and not _is_long(data[place : place + rule.least], rule.least):
            return None, 0
        before = rule.around or NEAR
        if rule.near and lower.find(rule.near, max(0, place - before), place + rule.around) < 0:
            return None, 0
        if rule.then and data.find(rule.then, place, place + NEAR) < 0:
            return None, 0
        start = place
        if rule.reach:
            window = data[max(0, place - rule.reach) : place]
            start -= len(window) - len(window.rstrip(rule.before))
        pattern = self._patterns.get(number)
        if pattern is None:
            pattern = self._patterns[number] = re.compile(self._bare(number))
        match = pattern.match(data, start) or self._match_joined(
            number, data, (start, place), joints
        )
        if match is None:
            return None, 0
        go_on = go_on_at(rule, data, match, self._level)
        return (match.span(pattern.groups), 0) if go_on is None else (None, go_on)

    def _bare(self, number: int) -> bytes:
        """Return the pattern of a rule without what may not precede: that has been looked at."""
        pattern = self._rules[number].pattern
        return pattern.removeprefix(EDGE) if self._is_edged[number] else pattern

    def _match_joined(
        self, number: int, data: bytes, places: tuple[int, int], joints: Sequence[int]
    ) -> re.Match[bytes] | None:
        """Match a rule, from where its token may begin up to its anchor, that ends at a joint; it may begin at one, too."""
        if not joints or not self._is_ended[number]:
            return None
        pattern = self._open.get(number)
        if pattern is None:
            pattern = self._open[number] = re.compile(self._bare(number).rpartition(_ENDED)[0])
        start, place = places
        behind = bisect_right(joints, place)
        for begin in (start, *joints[bisect_right(joints, start) : behind]):
            if pattern.match(data, begin) is None:
                continue
            for end in joints[behind : bisect_right(joints, begin + _MOST_ENDED)]:
                if match := self._patterns[number].match(data, begin, end):
                    return match
        return None


@cache
def engine_of(level: Level) -> RuleEngine:
    """Return the engine of the built-in rules. It keeps nothing of what it has searched, so all sessions share it."""
    return RuleEngine(level)


def _is_long(word: bytes, least: int) -> bool:
    """Take a quick look before the pattern, which may have to be compiled: no token has a space in it."""
    return len(word) == least and b" " not in word and b"\n" not in word and b'"' not in word


def _may_be_given(data: bytes, place: int, opening: list[int]) -> bool:
    """Take a quick look at the name at `place` before the pattern, whose making is 3 % of a start.

    Note in `opening` that the value may stand further on. Return whether the pattern may match.
    """
    text = data[place : place + _MOST_NAME]
    if text.startswith(b"_") and text[4:5].isalpha():  # `file_pattern`
        return False
    behind = text.lstrip(_NAME)
    rest = behind.lstrip(b" \t")
    if rest[:1] in _OPENING and not rest.startswith(_GIVEN):
        opening.append(place)
    return _may_assign(behind, rest)


def _may_assign(behind: bytes, rest: bytes) -> bool:
    """Return whether a sign may follow a name or the word behind it. `rest` is what follows but for blanks."""
    ends = (behind.lstrip(_CLOSING), rest.lstrip(_LETTERS))
    if any(end.lstrip(b" \t\r\n\"'").startswith(_SIGNS) for end in ends):
        return True
    tied = behind.lstrip(_TIES)
    said = tied.lstrip(_NUMBERED)[:_MOST_WORD].lower()
    if b"alue" in said or said.startswith(_TIE_WORDS):
        return True
    word = tied.partition(b" ")[0]
    return len(word) >= LEAST_SECRET and len(word.translate(None, _DIGITS)) < len(word)


def _drawn(data: bytes, cores: Iterable[tuple[int, int]], opening: Sequence[int]) -> Iterator[Span]:
    """Yield the values that look drawn at random in the statement, the element or the block of a name, which are at `opening`."""
    behind = 0
    for start, end in cores if opening else ():
        while behind < len(opening) and opening[behind] < start:
            behind += 1
        least = start - REGION
        if not behind or opening[behind - 1] < least:
            continue
        value = drawn_value(data, start, end)
        if value is not None and any(
            least <= place < value.start and value.is_of(place)
            for place in opening[max(0, behind - _MOST_NAMES) : behind]
        ):
            yield value.start, value.end, ASSIGNED.kind


class _Keys:
    """Finds where private keys end, with at most one search to the end of the data."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._no_end_after = len(data)

    def whole(self, start: int, body: int) -> tuple[int, int] | None:
        """Return the place of the key whose BEGIN line is at `start` to `body`; None where there is no key."""
        end, limit = None, min(body + _BEGUN, len(self._data))
        stop = self._data.find(b"----", body, limit)
        if not self._is_private(start, body, stop if stop >= 0 else limit):
            return None
        if body < self._no_end_after:
            end = _KEY_END().search(self._data, body, body + _MOST_KEY)
            if end is None and not any(
                sign in self._data[body : body + _MOST_KEY] for sign in FRAME_SIGNS[3:]
            ):
                self._no_end_after = min(self._no_end_after, body)
        text = _KEY_CHARS().match(self._data, body)
        if end is not None and end.start() - body >= 64:
            return start, end.end()
        return (start, self._last_line(text.end(), body)) if text else None

    def _last_line(self, end: int, body: int) -> int:
        """Return where a key without an end ends of which the lines up to `end` stand together: behind its last line, whatever is between."""
        stop = body + _MOST_KEY
        frame = self._data.find(b"----", end, stop)
        rest = _KEY_REST().finditer(self._data, end - 1, frame if frame >= 0 else stop)
        return max((line.end() for line in rest), default=end)

    def ending(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the place of the key whose END line is at `start` to `end`; None where no line of one is before it.

        The first line may be missing, as it is where a file is read from its middle.
        """
        own = first = self._data.rfind(b"\n", max(0, start - _MOST_LINE), start) + 1
        while first > 0:
            least = max(0, first - _MOST_LINE)
            line = self._data.rfind(b"\n", least, first - 1) + 1
            if (not line and least) or not _KEY_LINE().fullmatch(self._data, line, first):
                break
            first = line
        is_long = own - first >= _LEAST_TAIL
        return (
            (first, end)
            if is_long and self._is_private(start, max(first, own - _BEGUN), own)
            else None
        )

    def _is_private(self, frame: int, start: int, end: int) -> bool:
        """Return whether the frame says that it is that of a private key, or what is in it looks like one."""
        if b"PRIVATE" in self._data[frame : frame + _MOST_FRAME].upper():
            return True
        lines = _BODY_LINE().finditer(self._data, start, end)
        return sum(len(line[0]) for line in lines) * _LEAST_SHARE >= end - start


def may_have_key(data: bytes) -> bool:
    """Return whether a private key may begin or end in the bytes."""
    is_framed = any(sign in data for sign in FRAME_SIGNS)
    return (
        (is_framed and bool(_KEY_BEGINS().search(data) or _KEY_END().search(data)))
        or b"Private-Lines" in data
        or PACKED_KEY in data
    )


def key_lines(data: bytes) -> list[bytes]:
    """Return the lines of the private keys that begin in a text, or in base64 in it."""
    keys, found, done = _Keys(data), list[bytes](), 0
    for match in _KEY_BEGINS().finditer(data):
        place = keys.whole(*match.span()) if match.start() >= done else None
        if place is not None:
            done = place[1]
            found += _KEY_BASE64().findall(data, match.end(), done)
            if data.endswith(b"----", 0, done):
                found += _NARROW().findall(data, match.end(), done)
    if PACKED_KEY in data:
        whole = data.replace(b"\r", b"").replace(b"\n", b"")
        found += [line for *_, each in packed(whole) for line in key_lines(each)]
    return found


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
