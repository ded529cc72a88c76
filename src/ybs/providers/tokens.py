"""Estimate the tokens of a request, corrected by the counts that the provider reports."""

from collections.abc import Callable, Mapping, Sequence
from operator import mul
from typing import Final, TypeAlias, assert_never

from msgspec import Struct

from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from ybs.core.ports import Request, ToolSpec


def _classes() -> bytes:
    """Make the table from a byte to its class; a lead byte of UTF-8 stands for the script that it begins."""
    table = bytearray(b"c" * 256)

    def put(sign: bytes, members: bytes) -> None:
        for member in members:
            table[member] = sign[0]

    put(b"a", bytes(range(ord("a"), ord("z") + 1)))
    put(b"A", bytes(range(ord("A"), ord("Z") + 1)))
    put(b"0", b"0123456789")
    put(b"q", b"\"'`")
    put(b"b", b"()[]{}<>")
    put(b"p", b",;:")
    put(b"/", b"/\\")
    put(b"o", b"=+*#|&%!?@$^~")
    for plain in b" \n\t_.-":
        table[plain] = plain
    for sign, first, last in (
        (b"L", 0xC2, 0xC2),  # signs of Latin texts
        (b"a", 0xC3, 0xCD),  # letters with marks
        (b"Y", 0xCE, 0xD3),  # Greek, Cyrillic
        (b"S", 0xD4, 0xDF),  # Hebrew, Arabic and their neighbours
        (b"I", 0xE0, 0xE1),  # the scripts of India and beyond
        (b"U", 0xE2, 0xE2),  # signs, lines of boxes
        (b"J", 0xE3, 0xE3),  # kana, and the punctuation of Chinese and Japanese
        (b"C", 0xE4, 0xE9),  # ideographs
        (b"K", 0xEA, 0xED),  # hangul
        (b"W", 0xEE, 0xEF),  # full-width signs
        (b"F", 0xF0, 0xF4),  # pictures of faces, rare ideographs
    ):
        put(sign, bytes(range(first, last + 1)))
    return bytes(table)


_CLASSES: Final = _classes()
#: The bytes of a character behind its first say nothing that is counted.
_REST: Final = bytes(range(0x80, 0xC0))
#: Tokens for each thing that is counted, fitted on the tokenizers of eight families (`bench/tokens.py` measures them). In the
#: classes of a text: single ones, and neighbours, which tokenizers join or part.
_PLAIN: Final = {
    b"a": 0.4, b"A": 0.77, b"0": 1.31, b" ": 0.28, b"\n": 0.61, b"\t": 0.87, b"_": 0.05, b"q": 0.48, b"b": 0.77,
    b"p": 0.91, b".": 0.75, b"/": 0.5, b"-": 0.82, b"o": 0.68, b"c": 1.71, b" A": -0.83, b"aA": -0.6, b"a_": -0.42,
    b"_a": 0.76, b"a0": 0.4, b"A0": 1.5, b"AA": -0.89, b"00": -1.5, b"  ": 0.31, b"    ": -1.35,
    b"                ": -1.32, b"\n\n": -1.02, b"\t\t": -1.5, b"qp": -0.65, b" q": 0.42, b"bb": -0.92, b"bq": 0.45,
    b"qb": -1.5, b"pb": -1.5, b"oo": -0.29, b"oooo": -2.02, b"--": -0.78, b"--------": -3.3, b"..": -1.45,
    b"/a": 0.47, b".a": -0.05, b" b": -0.29, b" 0": 0.82, b"aaa": -0.31, b"aaaa": -0.57, b"aaaaaa": -0.39,
    b"aaaaaaaaaaaa": 1.5,
}  # fmt: skip
#: Frequent in some language: the words of English are mostly one token each, those of others are not.
_WORDS: Final = {
    b" the ": -1.2, b" of ": -1.06, b" to ": -0.84, b"en ": 1.2, b"sch": 1.2, b"que ": -1.2, b" de ": -0.62,
}  # fmt: skip
#: What only a text beyond ASCII has, in its classes and in its bytes (letters of western and of eastern Europe).
_BEYOND: Final = {
    b"L": 1.45, b"Y": 0.59, b"S": 0.05, b"I": 0.05, b"U": 0.94, b"J": 0.7, b"C": 0.94, b"K": 0.71, b"W": 0.99,
    b"F": 2.42, b"YY": 0.69, b"YYYY": -3, b"SS": 1.03, b"II": 1.4, b"UU": -0.97, b"UUUU": -0.55, b"JJ": -0.11,
    b"CC": 0.19, b"CCCC": -0.97, b"KK": 0.16, b"FF": 0.83, b"CW": -0.19,
}  # fmt: skip
_MARKED: Final = {b"\xc3": 1.32, b"\xc4": 0.89, b"\xc5": 2.96}
#: No text is less than a token, and none has fewer for a character than long lines of one sign.
_LEAST: Final = 1.0
_THINNEST: Final = 1 / 32


def estimate(text: str) -> float:
    """Return how many tokens a text has, about. Takes half a millisecond for ten thousand characters."""
    if not text:
        return 0.0
    raw = text.encode("utf-8", "surrogatepass")
    classes = raw.translate(_CLASSES, _REST)
    size = _sum(classes, _PLAIN) + _sum(raw, _WORDS)
    if not text.isascii():
        size += _sum(classes, _BEYOND) + _sum(raw, _MARKED)
    return max(_LEAST + len(text) * _THINNEST, size)


def _sum(raw: bytes, rates: Mapping[bytes, float]) -> float:
    return sum(map(mul, map(raw.count, rates), rates.values()))


#: What a picture weighs whose size cannot be read.
PICTURE_TOKENS: Final = 1_000


class Family(Struct, frozen=True, kw_only=True):
    """How a family counts. What stands around messages, calls, results and tools is in tokens.

    `with_tools` is what the first tool brings along.
    """

    per_message: float = 4.0
    per_call: float = 14.0
    per_result: float = 6.0
    per_tool: float = 12.0
    with_tools: float = 0.0
    pixels_per_token: int = 784
    least_per_picture: int = 0
    most_per_picture: int = 4_096

    def picture_tokens(self, size: tuple[int, int] | None) -> int:
        """Estimate what a picture of that many pixels weighs."""
        if size is None:
            return PICTURE_TOKENS
        weight = self.least_per_picture + size[0] * size[1] // self.pixels_per_token
        return min(weight, self.most_per_picture)


#: Sources: https://developers.openai.com/api/docs/guides/images-vision,
#: https://platform.claude.com/docs/en/build-with-claude/vision, https://ai.google.dev/gemini-api/docs/tokens.
OPENAI: Final = Family(pixels_per_token=1_024, least_per_picture=85, most_per_picture=1_536)
CLAUDE: Final = Family(with_tools=346.0, pixels_per_token=750, most_per_picture=1_600)
GEMINI: Final = Family(pixels_per_token=768 * 768 // 258, least_per_picture=258)
#: The chat templates of the open models write tools in instructions of their own.
OTHER: Final = Family(with_tools=60.0)
_OPENAI_NAMES: Final = ("gpt-", "chatgpt-", "codex-", "o1-", "o3-", "o4-")
_PROVIDERS: Final = {"openai": OPENAI, "anthropic": CLAUDE, "google": GEMINI}


def family_of(provider: str, model: str) -> Family:
    """Return how a model counts: by its own name, else by who provides it."""
    name = model.lower().rsplit("/", 1)[-1]
    if f"{name}-".startswith(_OPENAI_NAMES):
        return OPENAI
    if "claude" in name:
        return CLAUDE
    if "gemini" in name or "gemma" in name:
        return GEMINI
    return _PROVIDERS.get(provider, OTHER)


#: Counts the tokens of a text.
Count: TypeAlias = Callable[[str], float]
#: Returns width and height of a picture, or None.
PictureSize: TypeAlias = Callable[[bytes], tuple[int, int] | None]
#: Messages that are remembered beyond those of the latest request.
_SPARE: Final = 32
#: A character of a proof stands for so many tokens of hidden thinking (base64 of four characters a token).
_PROOF: Final = 0.19


class Meter:
    """Measures with one way to count a text; a message is measured once, for messages never change."""

    def __init__(
        self, family: Family, count: Count, wire: str, picture_size: PictureSize | None
    ) -> None:
        self.count = count
        self._family, self._wire, self._picture_size = family, wire, picture_size
        self._known: dict[int, tuple[Message, float]] = {}
        #: The messages that were measured together last, and their size.
        self._summed: tuple[list[Message], float] = ([], 0.0)
        self._system = ("", 0.0)
        self._tools: tuple[Sequence[ToolSpec], float] = ((), 0.0)

    def request(self, request: Request) -> float:
        """Measure a whole request."""
        messages, known = request.messages, self._known
        is_whole = len(messages) > 1  # else one is weighed alone, of a conversation that goes on
        said = self._said_so_far(messages) if is_whole else sum(map(self.message, messages))
        if is_whole and len(known) > len(messages) + _SPARE:  # the others are gone
            self._known = {id(each): known[id(each)] for each in messages if id(each) in known}
        return self.system(request.system) + self.tools(request.tools) + said

    def _said_so_far(self, messages: Sequence[Message]) -> float:
        """Measure messages that mostly begin with those of the last time; only the new ones are looked at."""
        said, (known, size) = list(messages), self._summed
        count = len(known)
        if said[:count] != known:  # quick: nearly always they are the same objects
            count, size = 0, 0.0
        size += sum(map(self.message, said[count:]))
        self._summed = (said, size)
        return size

    def system(self, text: str) -> float:
        """Measure the system prompt."""
        if not text:
            return 0.0  # none is sent
        if text != self._system[0]:
            self._system = (text, self.count(text) + self._family.per_message)
        return self._system[1]

    def tools(self, specs: Sequence[ToolSpec]) -> float:
        """Measure what is told of the tools."""
        if not specs:
            return 0.0
        known, size = self._tools
        if len(known) != len(specs) or any(a is not b for a, b in zip(known, specs, strict=True)):
            size = sum(map(self._spec, specs)) + self._family.with_tools
            self._tools = (tuple(specs), size)
        return size

    def message(self, message: Message) -> float:
        """Measure a message with what stands around it."""
        found = self._known.get(id(message))
        if found is not None:
            return found[1]
        size = sum(self.parts(message)) + self._family.per_message
        self._known[id(message)] = (message, size)
        return size

    def parts(self, message: Message) -> list[float]:
        """Measure the parts of a message, one by one."""
        match message:
            case UserMessage():
                return [self._part(part) for part in message.content]
            case AssistantMessage():
                return [self._said(part) for part in message.content]
            case ToolResult():
                pictures = map(self._picture, message.images)
                return [self.count(message.output) + self._family.per_result, *pictures]
            case _:
                assert_never(message)

    def _part(self, part: Text | Image) -> float:
        return self.count(part.text) if isinstance(part, Text) else self._picture(part)

    def _said(self, part: AssistantPart) -> float:
        match part:
            case Text():
                return self.count(part.text)
            case Thinking():
                if part.provider != self._wire:
                    return 0.0  # it is not sent
                hidden = 0.0 if part.text else len(part.signature) * _PROOF
                return self.count(part.text) + hidden + len(part.redacted) * _PROOF
            case ToolCall():
                written = bytes(part.arguments).decode("utf-8", "replace")
                return self.count(part.name) + self.count(written) + self._family.per_call
            case _:
                assert_never(part)

    def _picture(self, image: Image) -> float:
        size = None if self._picture_size is None else self._picture_size(image.data)
        return self._family.picture_tokens(size)

    def _spec(self, spec: ToolSpec) -> float:
        schema = bytes(spec.parameters).decode("utf-8", "replace")
        return self.count(f"{spec.name} {spec.description}\n{schema}") + self._family.per_tool


#: Providers whose models are sent their own earlier thinking, by the name that it carries.
_THINKING: Final = ("anthropic", "ollama")
#: How far the count of an answer may be from the estimate and still be about the same text.
_LIKELY_SHARE: Final = 0.35
_FEW: Final = 15


class TokenCounter:
    """Counts for one model; another model needs another counter. `picture_size` reads a picture's pixels."""

    def __init__(
        self, provider: str, model: str, *, picture_size: PictureSize | None = None
    ) -> None:
        self.correction = Correction()
        wire = provider if provider in _THINKING else ""
        self.meter = Meter(family_of(provider, model), estimate, wire, picture_size)

    def tokens(self, request: Request) -> int:
        """Return the likely size of a request; what is new since the last one is all that takes time."""
        size = self.correction.corrected(request, self.meter.request(request))
        return round(size + self._answer_surplus(request))

    def is_counted(self, request: Request) -> bool:
        """Return whether the provider itself has counted this, all but its own last answer."""
        mark, messages = self.correction.known(request), request.messages
        if mark is None or not mark.begins(messages):
            return False
        new = messages[mark.count :]
        return not new or (len(new) == 1 and isinstance(new[0], AssistantMessage))

    def _answer_surplus(self, request: Request) -> float:
        """Return by how much the provider's own count of its last answer is larger than the estimate.

        It is none where the count must hold thinking that is not sent back.
        """
        mark, messages = self.correction.known(request), request.messages
        if mark is None or not mark.begins(messages) or mark.count >= len(messages):
            return 0.0
        answer = messages[mark.count]
        if not isinstance(answer, AssistantMessage) or answer.usage.input_tokens != mark.counted:
            return 0.0
        estimate, counted = self.meter.message(answer), answer.usage.output_tokens
        surplus = counted - self.correction.ratio * estimate
        return surplus if abs(surplus) <= _LIKELY_SHARE * counted + _FEW else 0.0

    def learn(self, request: Request, usage: Usage) -> None:
        """Compare a request with what the provider reported for it; nothing reported teaches nothing."""
        if usage.input_tokens > 0:
            self.correction.learn(request, self.meter.request(request), usage.input_tokens)


#: How far a family's rates may be off for a whole conversation, and for one message, as shares.
_PRIOR: Final = 0.15**2
_OF_TEXT: Final = 0.10**2
#: It drifts: what a session is about changes.
_DRIFT: Final = 0.01**2
#: Tokens that a template adds unseen.
_HIDDEN: Final = 150.0
_FEW_SEEN: Final = 10.0
#: A number farther off than this is about something else, such as the part that no cache held.
_FARTHEST: Final = 3.0
_MOST_HIDDEN: Final = 3_000
#: A conversation that grew does not shrink, but for thinking that a server leaves out later.
_LEAST_KEPT: Final = 0.85
#: After so many doubts in a row the first belief is doubted.
_ENOUGH: Final = 3
_MOST_MARKS: Final = 16


class _Mark(Struct, frozen=True):
    """A request whose size is known: what it was estimated to have, and what the provider counted."""

    system: str
    count: int
    last: Message | None
    estimate: float
    counted: int

    def begins(self, messages: Sequence[Message]) -> bool:
        """Return whether these messages begin with the marked ones: they never change, and are only added."""
        if self.count > len(messages):
            return False
        return self.count == 0 or messages[self.count - 1] is self.last


class Correction:
    """Corrects estimates: what is known of the longest beginning is taken, only the rest is estimated."""

    def __init__(self) -> None:
        self.ratio = 1.0
        self.answers = 0
        self._doubt = _PRIOR
        self._marks: list[_Mark] = []
        self._refused = 0

    def corrected(self, request: Request, estimate: float) -> float:
        """Return the likely true size of a request."""
        return self._expected(self.known(request), estimate)

    def known(self, request: Request) -> _Mark | None:
        """Return the longest beginning whose size is known; else the shortest request: its hidden part is the same."""
        marks = [mark for mark in self._marks if mark.system == request.system]
        for mark in reversed(marks):
            if mark.begins(request.messages):
                return mark
        return min(marks, key=lambda mark: mark.estimate, default=None)

    def learn(self, request: Request, estimate: float, counted: int) -> None:
        """Take what a provider reported for a request, where it can be true."""
        mark = self.known(request)
        if not self._is_likely(request, mark, estimate, counted):
            self._refused += 1
            if self._refused < _ENOUGH or not self._is_likely(request, None, estimate, counted):
                return
            mark, self._marks = None, []  # what was believed before was wrong
        self._refused = 0
        if mark is None:
            self._learn_ratio(estimate, counted, _HIDDEN)
        else:
            self._learn_ratio(estimate - mark.estimate, counted - mark.counted, _FEW_SEEN)
        messages = request.messages
        last = messages[-1] if messages else None
        self._marks.append(_Mark(request.system, len(messages), last, estimate, counted))
        del self._marks[1:-_MOST_MARKS]
        self.answers += 1

    def _expected(self, mark: _Mark | None, estimate: float) -> float:
        if mark is None:
            return self.ratio * estimate
        return max(0.0, mark.counted + self.ratio * (estimate - mark.estimate))

    def _learn_ratio(self, size: float, grown: float, unseen: float) -> None:
        """Weigh a measured ratio against what was believed (Kalman's rule for one number)."""
        if size <= 0 or grown <= 0:
            return
        seen = min(max(grown / size, 0.5), 2.0)
        noise = _OF_TEXT + (unseen / size) ** 2
        gain = self._doubt / (self._doubt + noise)
        self.ratio += gain * (seen - self.ratio)
        self._doubt = (1 - gain) * self._doubt + _DRIFT

    def _is_likely(
        self, request: Request, mark: _Mark | None, estimate: float, counted: int
    ) -> bool:
        """Return whether a number can be that of the whole request."""
        if mark is not None and mark.begins(request.messages):
            has_shrunk = counted < _LEAST_KEPT * mark.counted
            if has_shrunk and estimate >= mark.estimate:
                return False  # only what no cache held
        expected = self._expected(mark, estimate) if mark else estimate
        least = expected / _FARTHEST - _HIDDEN
        return max(1.0, least) <= counted <= expected * _FARTHEST + _MOST_HIDDEN
