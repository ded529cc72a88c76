"""Classify requests by intent, from labelled examples, to help a small model before it is asked.

A multinomial naive Bayes classifier over words and pairs of words. Its examples stand in `requests.tsv`, one a line: the intent and
the request. What comes out wrong is corrected by examples, not by rules.

Manning, Raghavan and Schütze, Introduction to Information Retrieval, chapter 13.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from math import inf, log
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from ybs.core.lazy import lazy
from ybs.small_models.mentions import is_file_name, with_commands_as

#: An answer, a number, an output or nothing is wanted; a file is made, deleted or moved; lines are added at the end, or elsewhere;
#: something is changed, renamed wherever it stands, repaired, or taken away.
Intent: TypeAlias = Literal[
    "question",
    "count",
    "run",
    "chat",
    "create",
    "delete",
    "move",
    "append",
    "add",
    "change",
    "rename",
    "fix",
    "remove",
]
INTENTS: Final[tuple[Intent, ...]] = get_args(Intent)
#: What changes nothing by itself.
_ASKING: Final = frozenset({"question", "count", "run", "chat"})
#: What is added to the count of each feature, so that none is impossible.
_ALPHA: Final = 0.1
#: How much likelier than the next one an intent is to be sure, in nats.
_SURE: Final = 6.0
#: A single word, such as "again", asks for nothing that could be known from it.
_FEWEST: Final = 2
_CHAT_FIRST: Final = sorted(INTENTS, key=lambda intent: intent != "chat")
#: What a request asks for stands in so many characters of it.
_MOST: Final = 4_000
#: The first words say most of what is asked for.
_FIRST: Final = 2
_QUOTED = lazy(
    r"`[^`\n]{1,400}`|\"[^\"\n]{1,400}\"|\u201c[^\u201d\n]{1,400}\u201d|(?<!\w)'[^'\n]{1,400}'(?!\w)"
)
_TOKEN = lazy(r"(?<![\w./-])[\w./-]*\w\(?\)?|[?!:]|->|=>|\u2192")
_NAME = lazy(r"\w\(\)$|\w_\w|[a-z][A-Z]|^[A-Z]{2}[A-Z_\d]*$")
_NUMBER = lazy(r"\d")


class NaiveBayes:
    """Naive Bayes over examples."""

    def __init__(self, examples: Iterable[tuple[Intent, str]]) -> None:
        """Count the features of the examples."""
        self._counts = {intent: Counter[str]() for intent in INTENTS}
        self._examples = Counter[str]()
        for intent, request in examples:
            self._examples[intent] += 1
            self._counts[intent].update(_features(request))
        self._sums = {intent: counts.total() for intent, counts in self._counts.items()}
        self._known = set[str]().union(*self._counts.values())

    def ranked(self, request: str) -> list[tuple[float, Intent]]:
        """Return the intents of a request, likeliest first, each with its log probability in nats, up to a constant."""
        features = [each for each in _features(request) if each in self._known]
        scores: list[tuple[float, Intent]] = [
            (self._score(each, features), each) for each in INTENTS
        ]
        return sorted(scores, reverse=True)

    def _score(self, intent: Intent, features: Sequence[str]) -> float:
        counts, among = self._counts[intent], self._sums[intent] + _ALPHA * len(self._known)
        prior = log(self._examples[intent] + 1)
        return prior + sum(log((counts[each] + _ALPHA) / among) for each in features)


def intent_of(request: str) -> Intent:
    """Return what a request asks for most likely."""
    return _ranked(request)[0][1]


def sure_intent_of(request: str) -> Intent | None:
    """Return what a request asks for where that is much likelier than anything else."""
    (best, intent), (second, _other) = _ranked(request)[:2]
    return intent if best - second > _SURE else None


def surely_asks(request: str) -> bool:
    """Return whether it is much likelier that a request wants an answer than that it wants a change."""
    ranked = _ranked(request)
    asking = next(score for score, intent in ranked if intent in _ASKING)
    changing = next(score for score, intent in ranked if intent not in _ASKING)
    return asking - changing > _SURE


def wants_change(request: str) -> bool:
    """Return whether a request asks for something to be changed or made, not for an answer."""
    return intent_of(request) not in _ASKING


def wants_action(request: str) -> bool:
    """Return whether a request asks for something to be changed, made or run."""
    return wants_change(request) or intent_of(request) == "run"


def read_examples() -> Iterator[tuple[Intent, str]]:
    """Yield the examples that ybs learns from. Raises KeyError for an unknown intent."""
    known: dict[str, Intent] = {intent: intent for intent in INTENTS}
    lines = Path(__file__).with_name("requests.tsv").read_text("utf-8").splitlines()
    for line in lines[1:]:
        intent, _, request = line.partition("\t")
        yield known[intent], request


@cache
def _classifier() -> NaiveBayes:
    return NaiveBayes(read_examples())


@lru_cache(maxsize=64)
def _ranked(request: str) -> Sequence[tuple[float, Intent]]:
    if request.isascii() and len(request.split()) < _FEWEST:
        return [(0.0 if intent == "chat" else -inf, intent) for intent in _CHAT_FIRST]
    return _classifier().ranked(request)


def _features(request: str) -> Iterator[str]:
    """Yield the words and pairs of words of a request; of names, quotations and numbers only that they are there."""
    request = re.sub(_QUOTED(), " xquotation ", with_commands_as(" xcommand ", request[:_MOST]))
    words = [_kind_of(word) for word in re.findall(_TOKEN(), request)]
    yield from words
    yield from (f"first {word}" for word in words[:_FIRST])
    yield from map(" ".join, zip(["^", *words], [*words, "$"], strict=True))


def _kind_of(word: str) -> str:
    """Return a word as it is counted."""
    if is_file_name(word) or "/" in word:
        return "xfile"
    if re.search(_NAME(), word):
        return "xname"
    return "xnumber" if re.search(_NUMBER(), word) else word.lower()
