"""Made-up secrets, drawn from published shapes at run time so that no scanner finds one in these files."""

from random import Random

import pytest
from secrets_corpus.drawing import draw
from secrets_corpus.shapes import private_key

from ybs.security.firewall.masking import Firewall


@pytest.fixture
def token() -> str:
    """Make up a token that stands by itself."""
    return draw("ghp_[A-Za-z0-9]{36}", Random(3))


@pytest.fixture
def key() -> str:
    """Make up a private key."""
    return private_key(Random(3))


@pytest.fixture
def firewall() -> Firewall:
    return Firewall()
