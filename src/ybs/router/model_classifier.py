"""A classifier that asks a small model, such as one on this machine."""

import re
from asyncio import timeout
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from msgspec.structs import replace

from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.core.errors import AuthError, ConfigError, ModelError
from ybs.core.events import AssistantSaid
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.registry import ProviderModel, create_model
from ybs.providers.whereabouts import distance
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
_LONGEST: Final = 64


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


def chosen_classifier(host: Host, config: Config, warn: Callable[[str], None]) -> Classifier:
    """Return the classifier of the settings; where its model cannot be used, `warn` and have the words decide."""
    name = config.router.classifier
    if not name:
        return KeywordClassifier()
    provider, _, model = name.partition("/")
    short = replace(config, llm=replace(config.llm, max_tokens=_LONGEST))
    short = replace(short, agent=replace(config.agent, retry_attempts=0))
    try:
        made = create_model(host, short, provider=provider, model=model or None)
        private = Incognito(is_on=config.incognito.enabled, local_only=config.incognito.local_only)
        is_here = distance(host, provider, made.name, config) == 0
        private.check_model(provider, made.name, is_here=is_here)
    except (ConfigError, AuthError) as error:
        why = str(error).splitlines()[0]
        warn(f"router.classifier {name} is not asked, and the words of a request decide: {why}")
        return KeywordClassifier()
    return ModelClassifier(made)
