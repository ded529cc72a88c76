"""What every Classifier keeps: the built-in ones, and one that has the protocol's parts and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ybs.router.classifier import (
    TASK_KINDS,
    Classifier,
    Features,
    KeywordClassifier,
    ModelClassifier,
    TaskKind,
)
from ybs.testing import ScriptedModel


class Foreign:
    """A classifier without the base class, as a small model would be."""

    async def classify(self, features: Features) -> TaskKind:
        return "fix" if features.has_error_trace else "other"


class Small(ModelClassifier):
    """The one that asks a model, with a model that answers in a sentence."""

    def __init__(self) -> None:
        super().__init__(ScriptedModel(["That is docs."] * 1_000))


PIECES = (
    "fix",
    "why",
    "?",
    "test",
    "a.md",
    "b.py",
    "\n",
    "commit",
    "é",
    "\x00",
    "KeyError: 3",
    " ",
)
CLASSIFIERS: list[Classifier] = [KeywordClassifier(), Small(), Foreign()]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda each: type(each).__name__)
@given(words=st.lists(st.sampled_from(PIECES)).map("".join), turn=st.integers(0, 9))
async def test_any_request_has_one_kind_and_always_the_same(classifier, words, turn):
    features = Features.of(words, turn=turn)
    kind = await classifier.classify(features)
    assert kind in TASK_KINDS
    assert await classifier.classify(features) == kind
