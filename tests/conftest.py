"""Fixtures for every test: a temporary HOME, an empty project, and no network but loopback."""

import os
import socket
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# A busy machine is slow, and that is no fault of what is tested.
settings.register_profile("ybs", deadline=None, max_examples=40)
settings.load_profile("ybs")

LOOPBACK = ("127.", "localhost", "::1")


_numbers = count()


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a HOME of its own and an environment without anybody's keys."""
    # Not in `tmp_path`: making that for each of thousands of tests takes seconds, and few need it.
    folder = tmp_path_factory.getbasetemp() / f"home-{next(_numbers)}"
    folder.mkdir()
    for name in list(os.environ):
        if name.startswith(("YBS_", "XDG_")) or name.endswith(("_API_KEY", "_PROXY", "_proxy")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty project and stand in it."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that would leave this machine."""
    connect = socket.socket.connect

    def checked(self: socket.socket, address: Any) -> Any:
        host = address[0] if isinstance(address, tuple) else ""
        if self.family in (socket.AF_INET, socket.AF_INET6) and not host.startswith(LOOPBACK):
            raise AssertionError(f"a test tried to reach {host}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", checked)
