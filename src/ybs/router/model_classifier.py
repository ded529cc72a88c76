"""A classifier that asks a small model, such as one on this machine."""

import re
from asyncio import timeout
from collections.abc import Callable
from contextlib import aclosing
from typing import Final, TypeAlias

from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.core.errors import AuthError, ConfigError, ModelError
from ybs.core.events import AssistantSaid
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.registry import ProviderModel, distance
from ybs.router.classifier import TASK_KINDS, Classifier, Features, KeywordClassifier, TaskKind
from ybs.security.incognito import Incognito

_SYSTEM: Final = (
    "You sort requests to a coding agent. Answer with one word of this list and nothing else: "
    "explain (a question about code), fix (something does not work), write (new code), refactor (other code that does the same), "
    "test (tests), docs (documentation), operate (git, installing, running), plan (a design or a plan), other."
)
_NAMED: Final[dict[str, TaskKind]] = {kind: kind for kind in TASK_KINDS}
_WORD: Final = re.compile(r"[a-z]+")
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
        otherwise: Classifier | None = None,
        timeout_seconds: float = 2.0,
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
        private = Incognito(is_on=config.incognito.enabled, local_only=config.incognito.local_only)
        is_here = distance(host, provider, made.name, config) == 0
        private.check_model(provider, made.name, is_here=is_here)
    except (ConfigError, AuthError) as error:
        why = str(error).splitlines()[0]
        warn(f"router.classifier {name} is not asked, and the words of a request decide: {why}")
        return KeywordClassifier()
    return ModelClassifier(made)
