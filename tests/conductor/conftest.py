"""What tests of the conductor share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conductor.copies import Copies
from opened import open_session

__all__ = ["copies", "open_session"]


@pytest.fixture(autouse=True)
def _own_place_for_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@pytest.fixture
async def copies(project: Path) -> AsyncIterator[Copies]:
    made = Copies(project)
    yield made
    await made.aclose()
