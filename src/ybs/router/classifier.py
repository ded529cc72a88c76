"""Kinds of task, and how a request is sorted into one of them by what can be seen of it cheaply."""

import re
from collections.abc import Sequence
from typing import Final, Literal, Protocol, TypeAlias, get_args

from msgspec import Struct

TaskKind: TypeAlias = Literal[
    "explain", "fix", "write", "refactor", "test", "docs", "operate", "plan", "other"
]
TASK_KINDS: Final[tuple[TaskKind, ...]] = get_args(TaskKind)

#: Words are looked at no further than this: the wish stands at the beginning, what was pasted behind it.
_MOST_CHARACTERS: Final = 4_000
_TRACE: Final = re.compile(
    r"Traceback \(most recent call last\)|^\s+at \S+ ?\(.*:\d+|\bpanicked at\b|\berror\[E\d+\]"
    r"|^(?:\w+\.)*\w*(?:Error|Exception)\b: |\bSegmentation fault\b|^FAILED \S|\berror: |\bnpm ERR!|^goroutine \d+ \[",
    re.MULTILINE,
)
_FILE: Final = re.compile(r"\b[\w\-]+(?:\.[\w\-]+)*\.([A-Za-z][A-Za-z0-9]{0,7})\b")


class Features(Struct, frozen=True, kw_only=True):
    """What can be seen cheaply of a request.

    `words` are the person's own; `length` counts their characters before they were cut. `tokens` is the size of the whole
    request and `output_tokens` that of the expected answer. `turn` is how many requests came before this one in the
    session, `is_after_failure` whether the last one did not succeed.
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
    is_after_failure: bool = False

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
        seen = words[:_MOST_CHARACTERS]
        kinds = dict.fromkeys(found.lower() for found in _FILE.findall(seen))
        return cls(
            words=seen,
            length=len(words),
            tokens=tokens,
            tools=tuple(tools),
            file_types=tuple(kinds),
            has_error_trace=_TRACE.search(words) is not None,
            image_count=image_count,
            turn=turn,
        )


class Classifier(Protocol):
    """Sorts a request into a kind of task. One that asks a small model takes its time, so it is awaited."""

    async def classify(self, features: Features) -> TaskKind:
        """Return the kind of task; "other" where it cannot be told."""
        ...


def _words(*alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(alternatives)})\b", re.IGNORECASE)


#: What speaks for a kind, and how much. The sum decides, and among equals the order of the table.
_SIGNS: Final[tuple[tuple[TaskKind, float, re.Pattern[str]], ...]] = (
    (
        "fix",
        2.0,
        _words(
            r"fix(?:es|ed|ing)?|bugs?|debug\w*|broken|crash\w*|repair\w*|regress\w*|wrong",
            r"do(?:es)?(?:n'?t| not) work|fail(?:s|ed|ing|ure)?|exceptions?|errors?|stack ?trace",
        ),
    ),
    ("test", 2.5, _words(r"tests? for|(?:write|add)\b.{0,20}\btests?|\w+ tests|coverage")),
    ("test", 1.0, _words(r"tests?|pytest|jest|fixtures?|mock\w*")),
    (
        "refactor",
        2.5,
        _words(
            r"refactor\w*|renam(?:e|es|ed|ing)|extract|clean ?up|simplif(?:y|ies|ied)|restructure\w*",
            r"dedup\w*|split|inline|move",
        ),
    ),
    ("docs", 2.5, _words(r"readme|docs?|documentation|docstrings?|changelog|comments?|document")),
    (
        "operate",
        2.5,
        _words(
            r"commit|push|rebase|merge|branch(?:es)?|git|install|deploy\w*|docker\w*|run|start the|upgrade"
        ),
    ),
    (
        "plan",
        2.5,
        _words(r"plan|design|architecture|propos(?:e|al)|trade-?offs?|approach(?:es)?|strategy"),
    ),
    (
        "explain",
        2.0,
        _words(
            r"explain\w*|what (?:is|are|does|do)|how (?:does|do|is|are)|why|where|describe",
            r"summari[sz]e|understand|review",
        ),
    ),
    (
        "write",
        1.5,
        _words(r"add|implement\w*|creat(?:e|es|ing)|write|build|make|support|generate|new"),
    ),
)
_DOCUMENTS: Final = frozenset(("md", "rst", "txt", "adoc"))
#: The least that must speak for a kind.
_ENOUGH: Final = 1.0


class KeywordClassifier(Classifier):
    """Sorts by words, error traces and file types. The first words count twice: they are the wish."""

    async def classify(self, features: Features) -> TaskKind:
        """Return the kind that most speaks for."""
        return self.kind_of(features)

    def kind_of(self, features: Features) -> TaskKind:
        """Return the kind that most speaks for, at once."""
        points: dict[TaskKind, float] = {}
        first = features.words[:60]
        for kind, weight, sign in _SIGNS:
            if sign.search(features.words):
                points[kind] = points.get(kind, 0.0) + weight * (1.5 if sign.search(first) else 1.0)
        if features.has_error_trace:
            points["fix"] = points.get("fix", 0.0) + 4.0
        if features.file_types and _DOCUMENTS.issuperset(features.file_types):
            points["docs"] = points.get("docs", 0.0) + 1.5
        if features.words.rstrip().endswith("?"):
            points["explain"] = points.get("explain", 0.0) + 1.5
        best = max(TASK_KINDS, key=lambda kind: points.get(kind, 0.0))
        return best if points.get(best, 0.0) >= _ENOUGH else "other"
