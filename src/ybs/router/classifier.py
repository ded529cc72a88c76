"""Kinds of task, and how a request is sorted into one of them by what can be seen of it cheaply."""

import re
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Final, Literal, Protocol, TypeAlias, get_args

import msgspec
from msgspec import Struct

from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.core.errors import AuthError, ConfigError, ModelError
from ybs.core.events import AssistantSaid
from ybs.core.messages import Image, Message, UserMessage
from ybs.core.ports import Request
from ybs.core.time_limits import time_limit
from ybs.providers.registry import ProviderModel, distance
from ybs.security.incognito import Incognito

TaskKind: TypeAlias = Literal[
    "explain", "fix", "write", "refactor", "test", "docs", "operate", "plan", "other"
]
TASK_KINDS: Final[tuple[TaskKind, ...]] = get_args(TaskKind)

#: Of long words so much of the beginning and of the end is kept, in characters.
_KEPT: Final = 2_000
#: What only programs that failed print: as such, and at the beginning of a line.
_PRINTED: Final = (
    *("Traceback (most recent call last)", " panicked at ", "error[E", "Segmentation fault"),
    *("error: ", "npm ERR!", "\ngoroutine ", "FAILED "),
)
_RAISED: Final = re.compile(
    r"^(?:[\w.]*(?:Error|Exception): |[ \t]+at \S+ ?\(.*:\d+)", re.MULTILINE
)
_FILE: Final = re.compile(r"\b[\w\-]+(?:\.[\w\-]+)*\.([A-Za-z][A-Za-z0-9]{0,7})\b")


class Features(Struct, frozen=True, kw_only=True):
    """What can be seen cheaply of a request.

    `words` are the person's own; `length` counts their characters before they were cut. `tokens` is the size of the whole
    request and `output_tokens` the default length of an answer, for an arm without data. `turn` is how many requests came before this one in the
    session.
    """

    words: str = ""
    length: int = 0
    tokens: int = 0
    output_tokens: int = 1_000
    tools: tuple[str, ...] = ()
    file_types: tuple[str, ...] = ()
    has_error_trace: bool = False
    image_count: int = 0
    turn: int = 0

    @classmethod
    def of(
        cls,
        words: str,
        *,
        tokens: int = 0,
        tools: Sequence[str] = (),
        image_count: int = 0,
        turn: int = 0,
    ) -> "Features":
        """Read the words of a request."""
        seen = _ends(words, _KEPT, _KEPT)
        kinds = dict.fromkeys(found.lower() for found in _FILE.findall(seen))
        return cls(
            words=seen,
            length=len(words),
            tokens=tokens,
            tools=tuple(tools),
            file_types=tuple(kinds),
            has_error_trace=_has_trace(seen),
            image_count=image_count,
            turn=turn,
        )


class Classifier(Protocol):
    """Sorts a request into a kind of task. One that asks a small model takes its time, so it is awaited."""

    async def classify(self, features: Features) -> TaskKind:
        """Return the kind of task; "other" where it cannot be told."""
        ...

    async def aclose(self) -> None:
        """Close what it asks."""


def _ends(text: str, head: int, tail: int) -> str:
    return text if len(text) <= head + tail else f"{text[:head]}\n{text[-tail:]}"


def _has_trace(text: str) -> bool:
    if any(each in text for each in _PRINTED):
        return True
    is_likely = "Error: " in text or "Exception: " in text or " at " in text
    return is_likely and _RAISED.search(text) is not None


#: Words and pairs of words that speak for a kind, and how much.
_SIGNS: Final[tuple[tuple[TaskKind, float, str], ...]] = (
    ("explain", 2.0, "explain explains explanation describe summarize summarise understand review"),
    ("explain", 1.5, "what how why where which"),
    (
        "fix",
        2.0,
        "fix fixes fixed fixing bug bugs debug broken crash crashes crashed crashing repair regression wrong fail fails failed "
        "failing failure exception exceptions error errors stacktrace not_work t_work",
    ),
    (
        "write",
        1.5,
        "add adds implement implements create creates write build make support generate new feature",
    ),
    (
        "refactor",
        2.5,
        "refactor refactoring rename renames extract cleanup clean_up simplify restructure deduplicate split inline move",
    ),
    ("test", 2.2, "test tests testing pytest jest fixture fixtures mock mocks coverage unittest"),
    (
        "docs",
        2.5,
        "readme doc docs documentation docstring docstrings changelog comment comments document",
    ),
    (
        "operate",
        2.5,
        "commit push rebase merge branch branches git install deploy deployment docker run start upgrade",
    ),
    (
        "plan",
        2.5,
        "plan design architecture propose proposal tradeoff tradeoffs trade_offs approach approaches strategy",
    ),
)
_NOTHING: Final[tuple[TaskKind, float]] = ("other", 0.0)
_KIND_OF: Final[dict[str, tuple[TaskKind, float]]] = {
    word.replace("_", " "): (kind, weight)
    for kind, weight, words in _SIGNS
    for word in words.split()
}
_WORD: Final = re.compile(r"[a-z]+")
#: The wish stands at the beginning of what is said, or below what was pasted.
_HEAD, _TAIL = 600, 200
#: A sign among the first words counts for more, and the very first word most.
_FIRST_WORDS: Final = 10
_DOCUMENTS: Final = frozenset(("md", "rst", "txt", "adoc"))


class KeywordClassifier(Classifier):
    """Sorts by words, error traces and file types. The first words count for more: they are the wish."""

    async def classify(self, features: Features) -> TaskKind:
        """Return the kind that most speaks for."""
        return self.kind_of(features)

    def kind_of(self, features: Features) -> TaskKind:
        """Return the kind that most speaks for, at once."""
        points = _points(features.words)
        if features.has_error_trace:
            points["fix"] = points.get("fix", 0.0) + 4.0
        if features.file_types and _DOCUMENTS.issuperset(features.file_types):
            points["docs"] = points.get("docs", 0.0) + 1.5
        if features.words.rstrip().endswith("?"):
            points["explain"] = points.get("explain", 0.0) + 1.5
        if not points:
            return "other"
        return max(TASK_KINDS, key=lambda kind: points.get(kind, 0.0))


def _points(text: str) -> dict[TaskKind, float]:
    """Return for each kind the weight of the strongest sign."""
    words = _WORD.findall(_ends(text, _HEAD, _TAIL).lower())
    points: dict[TaskKind, float] = {}
    for number, word in enumerate(words):
        pair = f"{word} {words[number + 1]}" if number + 1 < len(words) else ""
        kind, sign = _KIND_OF.get(word) or _KIND_OF.get(pair) or _NOTHING
        weight = sign * (2.0 if number == 0 else 1.5 if number < _FIRST_WORDS else 1.0)
        if weight > points.get(kind, 0.0):
            points[kind] = weight
    return points


#: A token has about so many bytes, reckoned so that an estimate is rather too large; a picture has so many tokens.
BYTES: Final = 3
_PICTURE: Final = 1_600


def features_of(request: Request, turns: int = 0) -> Features:
    """Read the features of a request: the last words of the person, its size, its tools and pictures."""
    said = [each for each in request.messages if isinstance(each, UserMessage)]
    person = [each for each in said if each.origin == "person"] or said
    return Features.of(
        person[-1].words if person else "",
        tokens=size_of(request),
        tools=names_in(request),
        image_count=pictures_in(request),
        turn=turns,
    )


def size_of(request: Request) -> int:
    """Return about how many tokens a request has, rather too many."""
    size = len(request.system.encode(errors="replace")) + sum(
        len(t.parameters) for t in request.tools
    )
    size += sum(len(tool.description) + len(tool.name) for tool in request.tools)
    pictures = pictures_in(request)
    return (size + sum(_bytes_of(each) for each in request.messages)) // BYTES + pictures * _PICTURE


def _bytes_of(message: Message) -> int:
    try:
        size = len(msgspec.json.encode(message))
    except UnicodeEncodeError:  # half a character, as a broken terminal sends it
        size = 4 * len(str(message))
    return size - sum(len(image.data) for image in _images(message))


def _images(message: Message) -> list[Image]:
    parts = message.content if isinstance(message, UserMessage) else getattr(message, "images", ())
    return [part for part in parts if isinstance(part, Image)]


def pictures_in(request: Request) -> int:
    """Return how many pictures are sent."""
    return sum(len(_images(message)) for message in request.messages)


def names_in(request: Request) -> tuple[str, ...]:
    """Return the names of the tools that are offered."""
    return tuple(tool.name for tool in request.tools)


_SYSTEM: Final = (
    "You sort requests to a coding agent. Answer with one word of this list and nothing else: "
    "explain (a question about code), fix (something does not work), write (new code), refactor (other code that does the same), "
    "test (tests), docs (documentation), operate (git, installing, running), plan (a design or a plan), other."
)
_NAMED: Final[dict[str, TaskKind]] = {kind: kind for kind in TASK_KINDS}
_ANSWERED: Final = re.compile(r"[a-z]+")
#: The model reads so much of the words, in characters.
_MOST: Final = 1_500
#: Its answer has at most so many tokens.
LONGEST: Final = 64

#: Takes the names of a provider and of a model (empty: the provider's own), and how many tokens an answer may have; returns the model.
#: Raises ConfigError and AuthError.
MakeModel: TypeAlias = Callable[[str, str, int], ProviderModel]


class ModelClassifier(Classifier):
    """Asks a model for the kind; where it fails, is too slow or answers something else, the words decide."""

    def __init__(
        self,
        model: ProviderModel,
        *,
        timeout_seconds: float = 2.0,
    ) -> None:
        self._model = model
        self._timeout_seconds = timeout_seconds

    async def classify(self, features: Features) -> TaskKind:
        """Return the kind that the model names first."""
        words = UserMessage.of(features.words[:_MOST])
        try:
            async with time_limit(self._timeout_seconds):
                answer = await self._answer(Request(_SYSTEM, (words,)))
        except (ModelError, TimeoutError):
            answer = ""
        for word in _ANSWERED.findall(answer.lower()):
            if kind := _NAMED.get(word):
                return kind
        return await KeywordClassifier().classify(features)

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()

    async def _answer(self, request: Request) -> str:
        said = ""
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                if isinstance(event, AssistantSaid):
                    said = event.content
        return said


def chosen_classifier(
    host: Host, config: Config, make: MakeModel, warn: Callable[[str], None]
) -> Classifier:
    """Return the classifier of the settings, whose model is what `make` returns; where that cannot be used, `warn` and have the words decide.

    Who has it read words masks the secrets in them before.
    """
    name = config.router.classifier
    if not name:
        return KeywordClassifier()
    provider, _, model = name.partition("/")
    try:
        made = make(provider, model, LONGEST)
        private = Incognito.of(config.incognito)
        is_here = distance(host, provider, made.name, config) == 0
        private.check_model(provider, made.name, is_here=is_here)
    except (ConfigError, AuthError) as error:
        why = str(error).splitlines()[0]
        warn(f"router.classifier {name} is not asked, and the words of a request decide: {why}")
        return KeywordClassifier()
    return ModelClassifier(made)
