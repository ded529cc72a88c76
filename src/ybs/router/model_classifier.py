"""A classifier that asks a small model, such as one on this machine."""

import re
from asyncio import timeout
from contextlib import aclosing
from typing import Final

from ybs.core.errors import ModelError
from ybs.core.events import AssistantSaid
from ybs.core.messages import UserMessage
from ybs.core.ports import Model, Request
from ybs.router.classifier import TASK_KINDS, Classifier, Features, KeywordClassifier, TaskKind

_SYSTEM: Final = (
    "You sort requests to a coding agent. Answer with one word of this list and nothing else: "
    "explain (a question about code), fix (something does not work), write (new code), refactor (other code that does the same), "
    "test (tests), docs (documentation), operate (git, installing, running), plan (a design or a plan), other."
)
_NAMED: Final[dict[str, TaskKind]] = {kind: kind for kind in TASK_KINDS}
_WORD: Final = re.compile(r"[a-z]+")
#: The model reads so much of the words, in characters.
_MOST: Final = 1_500


class ModelClassifier(Classifier):
    """Asks a model for the kind; where it fails, is too slow or answers something else, the words decide."""

    def __init__(
        self, model: Model, *, otherwise: Classifier | None = None, timeout_seconds: float = 2.0
    ) -> None:
        self._model = model
        self._otherwise = otherwise or KeywordClassifier()
        self._timeout_seconds = timeout_seconds

    async def classify(self, features: Features) -> TaskKind:
        """Return the kind that the model names first."""
        words = UserMessage.of(features.words[:_MOST])
        try:
            async with timeout(self._timeout_seconds):
                answer = await self._answer(Request(_SYSTEM, (words,)))
        except (ModelError, TimeoutError):
            answer = ""
        for word in _WORD.findall(answer.lower()):
            if kind := _NAMED.get(word):
                return kind
        return await self._otherwise.classify(features)

    async def _answer(self, request: Request) -> str:
        said = ""
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                if isinstance(event, AssistantSaid):
                    said = event.content
        return said
