"""Fixtures of the tests with an editor. The protocol's SDK is imported by the first test that needs it: that takes a second."""

from importlib import import_module
from typing import Any

import pytest


@pytest.fixture
def clients() -> Any:
    """Return `acp_clients`."""
    return import_module("acp_clients")
