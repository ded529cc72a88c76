"""Choose which of the person's messages to keep verbatim: the newest, and the most informative."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log

from msgspec import Struct

from ybs.core.messages import Message, Text, UserMessage

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
