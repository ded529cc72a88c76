"""The firewall of a session: finds secrets in a text and puts placeholders in their place.

In a question nothing that a shell would run may stand behind a placeholder. So what others made known hides nothing there: no value of a
project, a plugin, an editor or a server, nothing that was learned in the session, and no frame of a key, which any text can have. What
hides is one word of plain signs: a secret of the person's own, or a token of a published format. It is looked for only in the text as it
stands: what is encoded would hide all that was encoded along with it. A placeholder of a long token says how long it is.
"""

import re
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from ybs.config.schema import FirewallSettings
from ybs.core.lazy import lazy
from ybs.security.firewall.allowed import AllowList
from ybs.security.firewall.anchors import cores_in, split_at
from ybs.security.firewall.decode import LINES, lines_of, views, with_other_marks
from ybs.security.firewall.engine import (
    LEAST_SECRET,
    RuleEngine,
    Span,
    engine_of,
    key_lines,
    merged,
)
from ybs.security.firewall.leaves import Leaves, joined
from ybs.security.firewall.report import SecretsReport
from ybs.security.firewall.rules import ASSIGNED, KINDS, OWN, guessed_kinds
from ybs.security.firewall.vault import Vault, is_placeholder
from ybs.security.firewall.views import SEPARATOR, TextView

#: So many characters are remembered, and no text that is longer than a quarter of it.
MOST_CHARACTERS = 1_000_000


class SecretFinding(Struct, frozen=True):
    """A secret in a text: its kind, its first and last character (`end` is the one after it), and what its lines say where it has several."""

    kind: str
    start: int
    end: int
    lines: tuple[str, ...] = ()


class FindingCache:
    """Texts and their findings, the oldest forgotten first. The key is the text itself: no two can be mistaken."""

    def __init__(self, most: int = MOST_CHARACTERS) -> None:
        self._most = most
        self._size = 0
        self._findings: dict[str, Sequence[SecretFinding]] = {}

    def __len__(self) -> int:
        return len(self._findings)

    def get(self, text: str) -> Sequence[SecretFinding] | None:
        """Return the findings of the text; None if it is unknown."""
        return self._findings.get(text)

    def add(self, text: str, findings: Sequence[SecretFinding] = ()) -> None:
        """Remember what was found."""
        if text in self._findings or len(text) * 4 > self._most:
            return
        self._findings[text] = findings
        self._size += len(text)
        while self._size > self._most:
            oldest = next(iter(self._findings))
            del self._findings[oldest]
            self._size -= len(oldest)

    def clear(self) -> None:
        """Forget everything, because another search may find more or less."""
        self._findings.clear()
        self._size = 0


#: A longer value is not read together with its name, in characters.
LONGEST_MEMBER = 400
#: A sign that may be in a value, for those that would end it.
_WITHIN = dict.fromkeys(map(ord, "\"'`\\"), "^")
#: Between texts that are searched together: no word goes on over it.
_APART = SEPARATOR.decode()
#: How many encodings are undone one after the other, and how much of each layer but the first is decoded for a text of some bytes.
_DEPTH = 3
_MOST_TIMES, _LEAST_ROOM = 3, 4_096
#: What in a question ends what may be hidden of a token, and the one word that a secret of the person's own is: nothing that a shell reads.
_PLAIN_ENDS = lazy(rb"[^A-Za-z0-9_.~%+=-]")
_PLAIN_WORD = lazy(rb"[A-Za-z0-9_.~%+=/:@,-]+")
#: A name or value in JSON: what is between its quotes, or a number.
_LEAF = lazy(r'"([^"\\]*(?:\\.[^"\\]*)*)"|-?[0-9][0-9.eE+-]*')
_ESCAPE = lazy(r"(?:\\u[dD][89abAB]..)?\\(?:u....|.)")
_PLACEHOLDER = lazy(rb"\[ybs:secret:([a-z0-9-]{1,40})#\d{1,6}(?:, [\d,]{1,9} characters)?\]")
#: A longer token may have a payload, in characters: a question says how much it hides.
_LONGEST_PLAIN = 100


class _Text(Struct):
    """A text that is searched: what it says, what was undone last to get it, and, where it was decoded, its view and the text that this is of."""

    data: bytes
    last: str = ""
    view: TextView | None = None
    outer: "_Text | None" = None
    #: What was found in it by its own form.
    plain: list[Span] = []


class _Search:
    """One search of a text and of what it says underneath, layer by layer; `room` is how many bytes may be decoded for each but the first."""

    def __init__(self, engine: RuleEngine, vault: Vault, room: int, *, is_question: bool) -> None:
        self._engine, self._room, self._is_question = engine, room, is_question
        self._vault, self._parts = vault, vault.parts()
        self._known = list(vault.persons() if is_question else vault.known())

    def spans(self, data: bytes) -> list[Span]:
        """Return the secrets of a text."""
        found: list[Span] = []
        layer = [_Text(with_other_marks(data))]
        deepest = 0 if self._is_question else _DEPTH
        for depth in range(deepest + 1):
            inner: list[_Text] = []
            for text in layer:
                cores = cores_in(text.data)
                spans = self._spans_in(text, cores)
                found += filter(None, (self._in_source(text, span) for span in spans))
                if depth < deepest:
                    inner += self._underneath(text, cores)
            layer = self._within_room(inner) if depth else inner
        return found

    def _spans_in(self, text: _Text, cores: list[tuple[int, int]]) -> list[Span]:
        """Return the secrets that stand in a text as it is; of joined lines only tokens count."""
        data = text.data
        found = exact(data, self._known)
        if not self._is_question:  # what was learned may be the name of a program
            found += self._vault.older_spans(data)
            found += (*exact(data, self._parts), *self._vault.key_spans(data))
        if text.view is not None and text.last == LINES:
            joints = text.view.joints()
            parts = [*split_at(cores, joints)]
            text.plain = self._engine.spans(data, parts, only_tokens=True, joints=joints)
        else:
            text.plain = self._engine.spans(data, cores)
        return found + text.plain

    def _underneath(self, text: _Text, cores: list[tuple[int, int]]) -> Iterator[_Text]:
        """Yield what a text says with each kind of encoding undone."""
        for view in views(text.data, cores, text.last, self._holds_known):
            if len(view):
                data = view.data if view.layer == LINES else with_other_marks(view.data)
                yield _Text(data, view.layer, view, text)

    def _holds_known(self, data: bytes) -> bool:
        return any(value in data for value, _ in self._known)

    def _within_room(self, texts: list[_Text]) -> list[_Text]:
        """Return the texts for which there is room, the short ones first: a long one takes nothing from them."""
        room, kept = self._room, list[_Text]()
        for text in sorted(texts, key=lambda text: len(text.data)):
            room -= len(text.data)
            if room < 0:
                break
            kept.append(text)
        return kept

    def _in_source(self, text: _Text, span: Span) -> Span | None:
        """Return where a secret of a text stands in the one that is searched; None where it is none there."""
        while text.view is not None and text.outer is not None:
            view, (start, end, kind) = text.view, span
            stop = self._end_of(view, text.data, start, end) if view.layer == LINES else end
            span = (*view.source(start, stop), kind)
            # A token whose form says that it is whole on its line ends there, whatever the next one begins with. That it is known says
            # nothing of where it ends: what is known adds to what is found, and never takes from it.
            if view.layer == LINES and (
                not view.is_changed(start, end) or _meets(text.outer.plain, span)
            ):
                return None
            text = text.outer
        return span

    def _end_of(self, view: TextView, data: bytes, start: int, end: int) -> int:
        """Return where a token of joined lines ends: with the first line with which it is one."""
        for place in view.joints(start, end):
            found = self._engine.spans(data[start:place], only_tokens=True)
            if found and found[0][:2] == (0, place - start):
                return place
        return end


class Firewall:
    """Finds and masks. One for each session, so that placeholders stay the same in it."""

    def __init__(
        self,
        settings: FirewallSettings | None = None,
        own: Iterable[str] = (),
        others: Iterable[str] = (),
        *,
        asks_for: "Firewall | None" = None,
    ) -> None:
        """`own` and `others` as in `Vault`. `asks_for`: this one is for what a person is asked by the session of that one; see `asking`."""
        self._settings = settings or FirewallSettings()
        self.vault: Vault = deepcopy(asks_for.vault) if asks_for else Vault(own, others)
        self.report = SecretsReport()
        self.engine = engine_of(self._settings.sensitivity)
        self._allowed: AllowList = (
            asks_for._allowed if asks_for else AllowList(self._settings.allow)
        )
        self._memory = FindingCache()
        #: What was known of secrets when the memory was begun.
        self._learned = self.vault.learned
        self._hides_code = asks_for is None

    def asking(self) -> "Firewall":
        """Return a firewall for what a person is asked to allow: it hides the person's own secrets and published formats, each a word of plain signs.

        What only the words around it say to be a secret is shown: any file can say that of a host or of a script's name, or frame it as a key.
        It keeps what it finds to itself, since that may be the first part of a value.
        """
        return Firewall(self._settings, asks_for=self)

    @contextmanager
    def unreported(self) -> Generator[None]:
        """Mask what no model is to see: the report is of what one was to see."""
        kept, self.report = self.report, SecretsReport()
        try:
            yield
        finally:
            self.report = kept

    def allow(self, placeholder: str) -> None:
        """Take the secret behind a placeholder for none from now on."""
        value = self.vault.value(placeholder)
        if value is not None:
            self._allowed.add(value)
            self.vault.forget_parts(value)
            self._memory.clear()

    def learn_keys(self, text: str) -> None:
        """Mask each line of the private keys in a text from now on: a part of its file may lack the line that says that it is one."""
        self.vault.keep_parts("private-key", key_lines(text.encode("utf-8", "surrogatepass")))

    def find(self, text: str) -> Sequence[SecretFinding]:
        """Return the secrets in the text, in order; none overlaps another. A text is searched once."""
        if len(text) < LEAST_SECRET:
            return ()
        known = self._known().get(text)
        if known is None:
            known = self.search(text)
            self._memory.add(text, known)
        return known

    def are_clean(self, texts: Iterable[str]) -> bool:
        """Return whether there is no secret in the texts, with one search of all that are new.

        What a text says of the one before it makes it false too.
        """
        memory = self._known()
        new = [text for text in texts if len(text) >= LEAST_SECRET and memory.get(text) != ()]
        if not new:
            return True
        if any(memory.get(text) for text in new) or self.search(_APART.join(new)):
            return False
        for text in new:
            memory.add(text)
        return True

    def _known(self) -> FindingCache:
        """Return the memory. What is newly known to be a secret may stand in a text that was found clean."""
        if self._learned != self.vault.learned:
            self._learned = self.vault.learned
            self._memory.clear()
        return self._memory

    def search(self, text: str) -> Sequence[SecretFinding]:
        """Search a text that does not come again, and do not remember it."""
        data = text.encode("utf-8", "surrogatepass")
        spans = self.spans(data)
        marked = with_other_marks(data) if spans else data
        return tuple(
            SecretFinding(kind, start, end, lines_of(marked[first:last]))
            for (first, last, _), (kind, start, end) in zip(
                spans, _in_characters(text, data, spans), strict=True
            )
            if not self._allowed.holds(text[start:end])
        )

    def spans(self, data: bytes) -> list[Span]:
        """Return the secrets in the bytes, also in what they say when encodings and disguises are undone."""
        room = _MOST_TIMES * len(data) + _LEAST_ROOM
        found = _Search(self.engine, self.vault, room, is_question=not self._hides_code).spans(data)
        if not self._hides_code:
            found = list(_beside_code(data, found))
        if b"[ybs:secret:" in data:
            found = _outside_placeholders(data, found)
        return _on_characters(data, merged(found)) if found else found

    def mask(self, text: str, place: str = "") -> str:
        """Return the text with placeholders; the same text where there is nothing to mask."""
        while findings := self.find(text):  # each round leaves less that is not a placeholder
            text = self._replaced(text, findings, place)
        return text

    def _replaced(self, text: str, findings: Iterable[SecretFinding], place: str) -> str:
        """Put placeholders in place of the findings, which stand in order."""
        pieces: list[str] = []
        end = 0
        for finding in findings:
            placeholder = self._placeholder(finding, text[finding.start : finding.end], place)
            pieces += (text[end : finding.start], placeholder)
            end = finding.end
        return "".join((*pieces, text[end:])) if pieces else text

    def _placeholder(self, finding: SecretFinding, secret: str, place: str) -> str:
        """Return what takes the place of a secret, and report it."""
        placeholder = self.vault.placeholder(finding.kind, secret, finding.lines)
        self.report.add(finding.kind, place, placeholder)
        if self._hides_code or len(secret) <= _LONGEST_PLAIN:
            return placeholder
        return f"{placeholder[:-1]}, {len(secret):,} characters]"

    def mask_json(self, raw: Raw, place: str = "") -> Raw:
        """Mask the texts in a piece of JSON after decoding them, and what is found in its own text; the same piece where nothing was masked."""
        text = bytes(raw).decode("utf-8", "replace")
        try:
            data = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            masked = self.mask(text, place)
            return raw if masked == text else Raw(msgspec.json.encode(masked))
        # Without escapes it says what it reads, so one look at all of it does, but for what goes on in another value.
        if "\\" not in text and not self.find(text) and not any(map(self.find, joined(data))):
            return raw
        masked = self._mask_texts(data, place)
        before = text if masked == data else written(masked)
        clean = self._mask_written(before, place)
        return raw if clean == text else Raw(clean.encode())

    def mask_data(self, data: Any, place: str = "") -> Any:
        """Mask the texts in plain data as those in JSON."""
        if isinstance(data, str):
            return self.mask(data, place)
        masked = self._mask_texts(data, place)
        text = written(masked)
        clean = self._mask_written(text, place)
        if clean == text:
            return masked
        from json import loads  # takes what msgspec does not; few data have secrets

        return loads(clean)

    def _mask_texts(self, data: Any, place: str) -> Any:
        """Mask the texts in plain data, each alone and all as one text, in which a secret may go on in the next value."""
        return self._mask_each(self._mask_across(data, place), place)

    def _mask_written(self, text: str, place: str) -> str:
        """Mask what is found in JSON's own text in each name and value that it touches: a neighbour may say that they are secrets."""
        while findings := self.find(text):
            masked = self._replaced_within(text, findings, place)
            if masked == text:  # only signs of JSON, and placeholders
                break
            text = masked
        return text

    def _replaced_within(self, text: str, findings: Iterable[SecretFinding], place: str) -> str:
        """Put placeholders in place of what the names and values in JSON have of the findings, which stand in order."""
        leaves = [*_LEAF().finditer(text)]
        starts = [leaf.start() for leaf in leaves]
        pieces, done = list[str](), 0
        for finding in findings:
            first = max(bisect_right(starts, finding.start) - 1, 0)
            touched = leaves[first : bisect_right(starts, finding.end - 1)]
            parts = [part for part in _parts_in(touched, finding) if part[0] >= done]
            secret = "\n".join(said for *_, said, _ in parts)
            if not parts or self._allowed.holds(secret):
                continue
            finding = msgspec.structs.replace(
                finding, lines=lines_of(secret.encode("utf-8", "surrogatepass"))
            )
            placeholder = self._placeholder(finding, secret, place)
            for start, end, _, quote in parts:
                pieces += (text[done:start], quote, placeholder, quote)
                done = end
        return "".join((*pieces, text[done:]))

    def _mask_across(self, data: Any, place: str) -> Any:
        """Mask the parts of secrets that stand in several texts."""
        leaves = Leaves(data)
        is_changed = [self.mask_run(leaves.texts, order, place) for order in leaves.runs()]
        return leaves.rebuilt() if any(is_changed) else data

    def mask_run(
        self, texts: list[str], order: Sequence[int], place: str = "", least: int = 2
    ) -> bool:
        """Mask, in place, the parts of secrets that stand in at least so many of the texts with these numbers; return whether there were any."""
        whole = "\n".join(texts[number] for number in order)
        sizes, is_changed = [len(texts[number]) for number in order], False
        for finding in reversed(self.find(whole)):  # so that the places before it stay right
            parts = [*_parts_of(finding, sizes)]
            if len(parts) < least:
                continue
            secret = whole[finding.start : finding.end]
            placeholder = self._placeholder(finding, secret, place)
            for index, start, end in parts:
                text = texts[order[index]]
                texts[order[index]] = text[:start] + placeholder + text[end:]
            is_changed = True
        return is_changed

    def _mask_each(self, data: Any, place: str) -> Any:
        """Mask each text in plain data. Names of members are part of what says that a text is a secret."""
        match data:
            case str():
                return self.mask(data, place)
            case int() | float():
                text = number_text(data)
                return data if (masked := self.mask(text, place)) == text else masked
            case list():
                items = cast("list[Any]", data)
                return [self._mask_each(item, place) for item in items]
            case dict():
                members = cast("dict[str, Any]", data)
                return {
                    self.mask(str(name), place): self._mask_member(str(name), value, place)
                    for name, value in members.items()
                }
            case _:
                return data

    def _mask_member(self, name: str, value: Any, place: str) -> Any:
        masked = self._mask_each(value, place)
        if not isinstance(masked, str) or len(masked) > LONGEST_MEMBER:
            return masked
        text = member_text(name, masked)
        shift = len(text) - len(masked) - 1
        inner = [
            SecretFinding(one.kind, one.start - shift, one.end - shift, one.lines)
            for one in self.find(text)
            if one.start >= shift
            and one.end <= shift + len(masked)
            and not self._allowed.holds(masked[one.start - shift : one.end - shift])
        ]
        return self.mask(self._replaced(masked, inner, place), place) if inner else masked


def written(data: Any) -> str:
    """Return plain data as JSON."""
    try:
        return msgspec.json.encode(data).decode()
    except (TypeError, ValueError):
        from json import dumps  # takes halves of signs, as in names of files

        return dumps(data, ensure_ascii=False, default=str)


def member_text(name: str, value: str) -> str:
    """Return a member of plain data as it is searched. The value is in place at its end, before a quote."""
    within = value.translate(_WITHIN) if len(value) <= LONGEST_MEMBER else value
    return f'"{name}": "{within}"'


def number_text(value: Any) -> str:
    """Return a long number as JSON writes it, since a secret may be one; nothing for what is none."""
    text = repr(value) if type(value) in (int, float) else ""
    return text if len(text) >= LEAST_SECRET else ""


def _parts_of(finding: SecretFinding, sizes: Iterable[int]) -> Iterator[tuple[int, int, int]]:
    """Yield which of the texts of these sizes, joined by line ends, a finding has a part in, and where in each."""
    begins = 0
    for index, size in enumerate(sizes):
        start, end = max(finding.start - begins, 0), min(finding.end - begins, size)
        if start < end:
            yield index, start, end
        begins += size + 1


def _parts_in(
    leaves: Iterable[re.Match[str]], finding: SecretFinding
) -> Iterator[tuple[int, int, str, str]]:
    """Yield where names and values in JSON have a part of a finding, what this says, and the quote around what takes its place.

    Of an escape it is all of it, of a number too; a placeholder has none.
    """
    from json import loads  # few findings are at a neighbour

    for leaf in leaves:
        begin, stop = leaf.span(leaf.lastindex or 0)
        start, end = max(begin, finding.start), min(stop, finding.end)
        if start >= end or is_placeholder(leaf.string[start:end]):
            continue
        if leaf.lastindex is None:
            yield begin, stop, leaf[0], '"'
            continue
        for escape in _ESCAPE().finditer(leaf.string, begin, stop) if "\\" in leaf[0] else ():
            start = escape.start() if start in range(*escape.span()) else start
            end = escape.end() if end in range(*escape.span()) else end
        yield start, end, loads(f'"{leaf.string[start:end]}"'), ""


def _meets(spans: Iterable[Span], span: Span) -> bool:
    """Return whether a place shares a byte with another that is a secret by its own form."""
    return any(
        start < span[1] and span[0] < end for start, end, kind in spans if kind != ASSIGNED.kind
    )


def exact(data: bytes, known: Iterable[tuple[bytes, str]]) -> list[Span]:
    """Return the places of known values."""
    found: list[Span] = []
    for value, kind in known:
        place = data.find(value)
        while place >= 0:
            found.append((place, place + len(value), kind))
            place = data.find(value, place + len(value))
    return found


def _beside_code(data: bytes, spans: Iterable[Span]) -> Iterator[Span]:
    """Yield what a question hides: the person's own secrets that are one plain word, and what tokens of published formats begin with."""
    for start, end, kind in spans:
        if kind == OWN:
            if _PLAIN_WORD().fullmatch(data, start, end):
                yield start, end, kind
        elif kind not in guessed_kinds():
            found = _PLAIN_ENDS().search(
                data, start, end
            )  # not at its start: all of these begin with a plain sign
            yield start, found.start() if found else end, kind


def _outside_placeholders(data: bytes, spans: Sequence[Span]) -> list[Span]:
    """Leave out what lies within a placeholder: its own words look like a name and a value."""
    places = [m.span() for m in _PLACEHOLDER().finditer(data) if m[1].decode() in KINDS]
    starts = [start for start, _ in places]
    kept: list[Span] = []
    for span in spans:
        number = bisect_right(starts, span[0]) - 1
        if number < 0 or span[1] > places[number][1]:
            kept.append(span)
    return kept


def _on_characters(data: bytes, spans: list[Span]) -> list[Span]:
    """Let every place begin and end with a whole character."""
    if data.isascii():
        return spans
    whole: list[Span] = []
    for start, end, kind in spans:
        while start and data[start] & 0xC0 == 0x80:
            start -= 1
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1
        whole.append((start, end, kind))
    return merged(whole)


def _in_characters(text: str, data: bytes, spans: list[Span]) -> list[tuple[str, int, int]]:
    if len(text) == len(data):
        return [(kind, start, end) for start, end, kind in spans]
    result: list[tuple[str, int, int]] = []
    at_byte = at_character = 0
    for start, end, kind in spans:
        first = at_character + len(data[at_byte:start].decode("utf-8", "surrogatepass"))
        last = first + len(data[start:end].decode("utf-8", "surrogatepass"))
        result.append((kind, first, last))
        at_byte, at_character = end, last
    return result
