"""The layout of a compacted conversation: kept, shortened and summarized messages."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log

from msgspec import Struct

from ybs.compaction.eliding import Elider, without_thinking
from ybs.core.messages import AssistantMessage, Message, Text, ToolResult, UserMessage
from ybs.core.ports import Request, ToolSpec

#: Stands before each message that is kept; some providers put the parts together without anything between them.
MARK = "\n\n> "
#: The share of the budget for the newest words, whatever they say.
_NEWEST = 1 / 4
#: One message may have so much of the budget; of a longer one the beginning and the end stay.
_LARGEST = 1 / 3
#: A pattern that comes so often, numbers apart, is a routine ("next step 17").
_ROUTINE = 3
_TERM = re.compile(r"[^\W_][\w./:@#%+-]*[\w%]|\w")
_NUMBER = re.compile(r"\d+")
#: A name stands with a capital letter where no sentence begins.
_NAME = re.compile(r"(?<=[\w,;:)] )[A-Z]\w+")
_HAS_SIGN = re.compile(r"[\d_/@#.:-]|[a-z][A-Z]")
_QUOTED = re.compile(r"`[^`\n]+`|\"[^\"\n]+\"|\u201c[^\u201d\n]+\u201d")
#: Words that announce something to be kept in mind. Rarity does the rest, in every language.
_CUE = re.compile(
    r"\b(?:remember|always|never|must|mustn't|don't ever|do not|important|keep in mind|from now on|note that|for the"
    r" record|rule|only ever|forbidden|required?|prefer|deadline|by the way|fyi"
    r"|immer|niemals?|nie|muss|wichtig|merke?|toujours|jamais|siempre|nunca)\b",
    re.IGNORECASE,
)
#: A statement tells what is; a request asks for something that is done by now.
_STATES = re.compile(
    r"\b(?:is|are|was|lives?|runs?|listens?|called|named|means|belongs?|uses?|expires?|stands for|owns?|has|my|our|we)\b",
    re.IGNORECASE,
)


class Verbatim(Struct, frozen=True):
    """What is kept, oldest first, what is not, and the tokens of what is kept."""

    kept: tuple[str, ...]
    left_out: tuple[str, ...]
    tokens: int


def words_of(messages: Sequence[Message]) -> list[str]:
    """List what the person said, oldest first, with what earlier compactions kept of it."""
    words: list[str] = []
    for message in messages:
        if isinstance(message, UserMessage):
            texts = [part.text for part in message.content if isinstance(part, Text)]
            if message.origin == "summary":
                words += [text.removeprefix(MARK) for text in texts[1:]]
            elif message.origin == "person":
                words += texts[:1]  # behind the words stand the files that they name
    return [text for text in words if text.strip()]


def part_of(words: str) -> Text:
    """Make the part that carries words on, exactly."""
    return Text(text=MARK + words)


def choose(words: Sequence[str], budget: int, cost: Callable[[str], int]) -> Verbatim:
    """Keep what fits into the budget, the newest words first of all."""
    whole = [cost(MARK + text) for text in words]
    if sum(whole) <= budget:
        return Verbatim(tuple(words), (), sum(whole))
    most = max(40, int(budget * _LARGEST))
    texts = [
        text if price <= most else _shortened(text, most, price)
        for text, price in zip(words, whole, strict=True)
    ]
    if whole[-1] <= budget:
        texts[-1] = words[-1]
    prices = [
        price if text is old else cost(MARK + text)
        for text, old, price in zip(texts, words, whole, strict=True)
    ]
    worth = worth_of(texts)
    room = budget
    kept: set[int] = set()

    def take(order: Sequence[int], until: float) -> None:
        nonlocal room
        for at in order:
            if at not in kept and room - prices[at] >= until:
                kept.add(at)
                room -= prices[at]

    newest = range(len(words) - 1, -1, -1)
    take(newest[:1], 0)
    take([at for at in newest if worth[at] > 0][: len(words) // 4 + 1], budget * (1 - _NEWEST))
    take(sorted(newest, key=lambda at: worth[at], reverse=True), 0)
    return Verbatim(
        tuple(texts[at] for at in sorted(kept)),
        tuple(text for at, text in enumerate(words) if at not in kept),
        budget - room,
    )


def _shortened(text: str, tokens: int, price: int) -> str:
    chars = max(80, len(text) * tokens // price - 60)
    if chars >= len(text):
        return text
    head, tail = chars * 2 // 3, chars - chars * 2 // 3
    left_out = f" [… {len(text) - chars:,} characters left out …] "
    return text[:head] + left_out + text[-tail:]


def worth_of(texts: Sequence[str]) -> list[float]:
    """Return how much each text says that the others do not."""
    patterns = [_pattern(text) for text in texts]
    often = Counter(patterns)
    terms = [set(_TERM.findall(text.lower())) for text in texts]
    distinct = dict(zip(patterns, terms, strict=True))
    known = Counter(term for some in distinct.values() for term in some)
    pairs = Counter(pair for pattern in often for pair in _pairs(pattern))
    last = {pattern: at for at, pattern in enumerate(patterns)}
    count = len(distinct)
    worth: list[float] = []
    for at, (text, pattern, some) in enumerate(zip(texts, patterns, terms, strict=True)):
        if last[pattern] != at and texts[last[pattern]] == text:
            worth.append(0.0)  # said again later, word for word
            continue
        names = {name.lower() for name in _NAME.findall(text)}
        news = sum(
            _rarity(known[term], count) * (2.0 if term in names else _weight(term)) for term in some
        )
        own = _pairs(pattern)
        fresh = sum(pairs[pair] == 1 for pair in own) / len(own) if own else 0.5
        value = news / (3 + len(some)) * (0.2 + fresh)
        value *= 2.5 if _CUE.search(text) else 1
        value *= 1.5 if _STATES.search(text) else 1
        value *= 1.3 if _QUOTED.search(text) else 1
        worth.append(value / 20 if often[pattern] >= _ROUTINE else value)
    return worth


def _rarity(found_in: int, count: int) -> float:
    """Return 1 for what one text says alone, less and less for what others say too."""
    if count <= 1:
        return 1.0
    return (1 - log(max(found_in, 1)) / log(count)) ** 2


def _weight(term: str) -> float:
    if len(term) < 3 and not term.isdigit():
        return 0.3
    return 1.5 if _HAS_SIGN.search(term) else 1.0


def _pattern(text: str) -> str:
    return _NUMBER.sub("0", " ".join(text.lower().split()))


def _pairs(pattern: str) -> set[tuple[str, str]]:
    return set(pairwise(_TERM.findall(pattern)))


class Scale:
    """Weighs the requests of one conversation. `fixed` is the system prompt with the tools."""

    def __init__(
        self, size: Callable[[Request], int], system: str, specs: Sequence[ToolSpec]
    ) -> None:
        self._size, self._system, self._specs = size, system, specs
        self._empty = size(Request("", ()))
        self._known: dict[int, tuple[Message, int]] = {}
        self.fixed = size(Request(system, (), specs))

    def request(self, messages: Sequence[Message]) -> int:
        """Weigh the whole request."""
        return self._size(Request(self._system, messages, self._specs))

    def message(self, message: Message) -> int:
        """Weigh one message."""
        known = self._known.get(id(message))
        if known is None:
            weight = max(1, self._size(Request("", (message,))) - self._empty)
            known = self._known[id(message)] = (
                message,
                weight,
            )  # held, so that the id stays its own
        return known[1]

    def messages(self, messages: Sequence[Message]) -> int:
        """Weigh some messages, one by one."""
        return sum(map(self.message, messages))

    def text(self, text: str) -> int:
        """Weigh a text."""
        message = UserMessage.of(text, origin="summary")
        return max(1, self._size(Request("", (message,))) - self._empty)


#: After a compaction this share of what the system prompt and the tools leave is filled. Half the room is then free
#: for work before the next one, and each one costs a summary and the provider's prompt cache.
TARGET = 0.55
#: Nor more than this share of what fills it where compaction begins: a person may have it begin sooner.
TARGET_OF_FULL = 0.6
#: What the current words and the newest step leave of it is shared: for the turns before and the summary so much, for
#: the person's words the rest.
_TAIL, _SUMMARY = 0.35, 0.25
_MOST_SUMMARY, _MOST_WORDS = 4_000, 20_000
#: What is left over is used where it is more than this share.
_SPARE = 0.1
#: The newest results are not touched while they take no more than this share.
_PROTECTED = 0.25
#: So few tokens hold a summary of a few lines.
_LEAST = 120
_LEAST_CHARS = 200


class TooLarge(Exception):
    """What must stay does not fit: in tokens, the current words, the newest step, and the least of all together."""

    def __init__(self, *, task: int, newest: int, least: int) -> None:
        super().__init__()
        self.task, self.newest, self.least = task, newest, least


class Bounds(Struct, frozen=True):
    """How large a request should be, and must not exceed."""

    target: int
    limit: int


class Layout(Struct, frozen=True, kw_only=True):
    """The new conversation: a summary of `older` with the words, what the running turn was told, and the tail."""

    older: tuple[Message, ...]
    current: tuple[Message, ...]
    tail: tuple[Message, ...]
    words: Verbatim
    summary_tokens: int
    rules: str

    def messages(self, summary: str) -> list[Message]:
        """Put the new conversation together."""
        stays = [*self.current, *self.tail]
        if not self.older:
            return stays
        parts = (Text(text=summary), *map(part_of, self.words.kept))
        rules = [UserMessage.of(self.rules, origin="guard")] if self.rules else []
        return [UserMessage(content=parts, origin="summary"), *rules, *stays]


class CompactionPlan:
    """One conversation that is to become smaller. `task` is the running turn's first message, which stays itself."""

    def __init__(
        self, messages: Sequence[Message], task: UserMessage | None, scale: Scale, bounds: Bounds
    ) -> None:
        self.messages, self.scale, self.bounds = messages, scale, bounds
        #: What is read anew from disk and said behind the summary.
        self.rules = ""
        self.elider = Elider(messages)
        self._task_at = next((at for at, m in enumerate(messages) if m is task), None)
        self.task = None if self._task_at is None else task
        self._newest_at = self._start_of_newest()
        #: Where the running turn's words stand: they are not answered yet.
        self._current = [
            at
            for at in range(self._newest_at)
            if self._task_at is not None and at >= self._task_at
            if isinstance(message := messages[at], UserMessage) and message.origin == "person"
        ]

    def eased(self) -> list[Message | None]:
        """Shorten old messages, the oldest first, until the target is reached; in their places, None for none."""
        loop_begins = len(self.messages) if self._task_at is None else self._task_at
        new: list[Message | None] = [
            without_thinking(m) if at < loop_begins else m for at, m in enumerate(self.messages)
        ]
        size = self.scale.request(present(new))
        for at in range(self._protected_from()):
            if size <= self.bounds.target:
                break
            old = new[at]
            if old is None or at == self._task_at:
                continue
            short = self.elider.shorter(old)
            if short is not old and (gain := self._gain(old, short)) > 0:
                new[at] = short
                size -= gain
        return new

    def _gain(self, old: Message, new: Message) -> int:
        return self.scale.message(old) - self.scale.message(new)

    def _protected_from(self) -> int:
        """Return where the newest messages begin that are not shortened before a summary is made."""
        room = (self.bounds.target - self.scale.fixed) * _PROTECTED
        at = self._newest_at
        while at > 0:
            room -= self.scale.message(self.messages[at - 1])
            if room < 0:
                break
            at -= 1
        return at

    def _start_of_newest(self) -> int:
        """Return where the newest step begins: the last answer with its results, or the last words."""
        messages = self.messages
        first = 0 if self._task_at is None else self._task_at + 1
        for at in range(len(messages) - 1, first - 1, -1):
            if isinstance(messages[at], AssistantMessage):
                return at
        return max(first, len(messages) - 1) if self._task_at is None else first

    def laid_out(self, eased: Sequence[Message | None]) -> Layout:
        """Choose what stays. Raises TooLarge where even the least does not fit."""
        bounds = self.bounds
        for _ in range(5):
            layout = self._laid_out(eased, bounds)
            filler = "word " * layout.summary_tokens
            excess = self.scale.request(layout.messages(filler)) - self.bounds.limit
            if excess <= 0:
                return layout
            bounds = Bounds(bounds.target - excess, bounds.limit - excess)
        raise self._too_large()

    def _laid_out(self, eased: Sequence[Message | None], bounds: Bounds) -> Layout:
        task = self._weight_of_task(eased)
        newest, room = self._newest(eased, bounds, task)
        before = present(eased[: self._newest_at])
        if self.scale.messages(before) - task <= room:  # only the newest step was too large
            return _unsummed((*before, *newest))
        room -= self.scale.text(self.rules) if self.rules else 0
        layout, spare = self._divided(eased, newest, room, room * _TAIL)
        if spare > room * _SPARE:  # the person said little, so more turns stay
            layout, _ = self._divided(eased, newest, room, room * _TAIL + spare)
        return layout

    def _divided(
        self, eased: Sequence[Message | None], newest: list[Message], room: float, tail: float
    ) -> tuple[Layout, float]:
        """Divide the room; return what is left over too."""
        begins = self._tail_begins(eased, tail)
        before = present(eased[begins : self._newest_at])
        older = tuple(m for at, m in enumerate(self.messages[:begins]) if at not in self._current)
        counted = present([eased[at] for at in self._current if at >= begins])
        said = words_of(older)
        newest_words = min(self.scale.text(said[-1]) + 2, room // 2) if said else 0
        summary = max(_LEAST, min(_MOST_SUMMARY, int(room * _SUMMARY)))
        room -= self.scale.messages(before) - self.scale.messages(counted)
        summary = max(_LEAST // 2, min(summary, int(room - newest_words)))
        words = choose(said, max(0, min(_MOST_WORDS, int(room - summary))), self.scale.text)
        layout = Layout(
            older=older,
            current=tuple(present([eased[at] for at in self._current if at < begins])),
            tail=(*before, *newest),
            words=words,
            summary_tokens=summary,
            rules=self.rules,
        )
        return layout, room - summary - words.tokens

    def _newest(
        self, eased: Sequence[Message | None], bounds: Bounds, task: int
    ) -> tuple[list[Message], float]:
        """Return the newest step, shortened if it must be, and what is left for all the rest."""
        newest = present(eased[self._newest_at :])
        weight = self.scale.messages(newest)
        roomy = (bounds.target + bounds.limit) / 2
        room = 0.0
        for most, share in ((bounds.target, 0.5), (roomy, 0.6), (bounds.limit * 0.97, 0.7)):
            room = most - self.scale.fixed - task
            if weight <= room * share:
                return newest, room - weight
        newest = self._squeezed(newest, int(room * 0.6))
        room -= self.scale.messages(newest)
        if room < _LEAST:
            raise self._too_large()
        return newest, room

    def _squeezed(self, messages: list[Message], tokens: int) -> list[Message]:
        """Cut the longest outputs of the newest step until it has so many tokens, or nothing is left to cut."""
        chars = max([len(m.output) for m in messages if isinstance(m, ToolResult)], default=0)
        new = messages
        while self.scale.messages(new) > tokens and chars > _LEAST_CHARS:
            chars = max(_LEAST_CHARS, chars * 3 // 4)
            new = [
                self.elider.cut(m, chars) if isinstance(m, ToolResult) else self.elider.shorter(m)
                for m in messages
            ]
        return new

    def _tail_begins(self, eased: Sequence[Message | None], room: float) -> int:
        """Return where the last turns begin that fit: never between a call and its results."""
        begins = at = self._newest_at
        while at > 0:
            at -= 1
            message = self.messages[at]
            if isinstance(message, UserMessage) and message.origin == "summary":
                break
            new = eased[at]
            room -= self.scale.message(new) if new and at not in self._current else 0
            if room < 0:
                break
            if not isinstance(message, ToolResult):
                begins = at
        return begins

    def _weight_of_task(self, now: Sequence[Message | None]) -> int:
        return self.scale.messages(present([now[at] for at in self._current]))

    def _too_large(self) -> TooLarge:
        newest = self.scale.messages(self.messages[self._newest_at :])
        task = self._weight_of_task(self.messages)
        return TooLarge(task=task, newest=newest, least=self.scale.fixed + task + newest)


def _unsummed(messages: Sequence[Message]) -> Layout:
    nothing = Verbatim((), (), 0)
    return Layout(
        older=(), current=(), tail=tuple(messages), words=nothing, summary_tokens=0, rules=""
    )


def present(messages: Sequence[Message | None]) -> list[Message]:
    """Leave out what is not one."""
    return [message for message in messages if message is not None]
