"""The classifier that asks a small model."""

from asyncio import Event

import pytest

from ybs.core.errors import ProviderDown
from ybs.core.ports import Request
from ybs.router.classifier import Features
from ybs.router.model_classifier import ModelClassifier
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
    assert await ModelClassifier(model).classify(ASKED) == kind
    assert len(model.requests[0].messages[0].text) == 1_500


async def test_a_model_that_takes_too_long_is_not_waited_for() -> None:
    async def never(_request: Request) -> str:
        await Event().wait()
        return "fix"

    classifier = ModelClassifier(ScriptedModel([never]), timeout_seconds=0)
    assert await classifier.classify(ASKED) == "docs"
