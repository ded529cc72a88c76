"""Fixtures of the tests with an MCP client. Its package is imported by the first test that needs it: that takes a second."""

from importlib import import_module
from typing import Any

import pytest


@pytest.fixture
def clients() -> Any:
    """Return `mcp_clients`."""
    return import_module("mcp_clients")


@pytest.fixture(params=["legacy", "auto"])
def generation(request: pytest.FixtureRequest) -> str:
    """Return a generation of the protocol, each in turn: by the handshake, and without one."""
    return request.param
