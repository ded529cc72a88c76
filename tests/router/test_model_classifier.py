"""The classifier that asks a small model."""

from asyncio import Event

import pytest
from msgspec.structs import replace

from hosts import this_host
from ybs.config.schema import Config, IncognitoSettings
from ybs.config.sections import Endpoint, RouterSettings
from ybs.core.errors import ProviderDown
from ybs.core.ports import Request
from ybs.providers.registry import InProcessModel, ProviderModel, create_model
from ybs.router.classifier import Features, ModelClassifier, chosen_classifier
from ybs.testing import ScriptedModel

ASKED = Features.of("Update the README of this project" + "!" * 5_000)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("fix", "fix"),
        ('**"Refactor"**.', "refactor"),
        ("kind: test, I think, not docs", "test"),
        ("I cannot tell", "docs"),  # what the words say
        ("", "docs"),
        (ProviderDown("nobody answers"), "docs"),
    ],
)
async def test_the_model_names_the_kind_and_the_words_do_where_it_does_not(
    answer: str | ProviderDown, kind: str
) -> None:
    model = ScriptedModel([answer])
    assert await ModelClassifier(InProcessModel(model, 64)).classify(ASKED) == kind
    assert len(model.requests[0].messages[0].text) == 1_500


async def test_a_model_that_takes_too_long_is_not_waited_for() -> None:
    async def never(_request: Request) -> str:
        await Event().wait()
        return "fix"

    model = InProcessModel(ScriptedModel([never]), 64)
    classifier = ModelClassifier(model, timeout_seconds=0)
    assert await classifier.classify(ASKED) == "docs"


HERE, ELSEWHERE = "http://127.0.0.1:9", "https://models.invalid"


@pytest.mark.parametrize(
    ("name", "endpoint", "is_private", "why"),
    [
        ("judge/tiny", HERE, True, ""),
        ("judge/tiny", ELSEWHERE, False, ""),
        ("judge/tiny", ELSEWHERE, True, "does not run on this machine"),
        ("nobody/tiny", HERE, False, "nobody"),
        ("", HERE, False, ""),
    ],
)
async def test_the_settings_choose_the_model_and_a_private_session_asks_none_elsewhere(
    name: str, endpoint: str, is_private: bool, why: str
) -> None:
    config = Config(
        router=RouterSettings(classifier=name),
        providers={"judge": Endpoint(endpoint=endpoint)},
        incognito=IncognitoSettings(enabled=is_private, local_only=True),
    )
    host, warnings = this_host(), list[str]()

    def make(provider: str, model: str, max_tokens: int) -> ProviderModel:
        short = replace(config, llm=replace(config.llm, max_tokens=max_tokens))
        return create_model(host, short, provider=provider, model=model)

    classifier = chosen_classifier(host, config, make, warnings.append)
    assert isinstance(classifier, ModelClassifier) is bool(name and not why)
    assert [why in each for each in warnings] == [True] * bool(why)
    await classifier.aclose()
