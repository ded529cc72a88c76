"""Fixtures of the tests of CLI agents."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from cli_stand_in import StandIn, collect


@pytest.fixture
async def stand_in(tmp_path: Path) -> AsyncIterator[StandIn]:
    """Give a program to script; its models are closed at the end."""
    folder = tmp_path / "program"
    folder.mkdir()
    made = StandIn(folder)
    yield made
    for model in made.models:
        await model.aclose()


Collect: TypeAlias = Callable[..., Any]


@pytest.fixture
def asked() -> Collect:
    """Give a function that asks a model and returns all events."""
    return collect
