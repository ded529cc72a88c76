"""A small file as the starter model, and a fake process as its server."""

import sys
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest

from hosts import this_host
from ybs.providers.local import hardware, models, process, program, server
from ybs.providers.local.hardware import Machine

CONTENT = b"GGUF" + b"weights" * 10


@pytest.fixture
def small_starter(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Make the starter model a few bytes in three parts; return its content."""
    monkeypatch.setattr(models, "STARTER_BYTES", len(CONTENT))
    monkeypatch.setattr(models, "STARTER_SHA256", sha256(CONTENT).hexdigest())
    monkeypatch.setattr(models, "STARTER_PARTS", ("part-one==1", "part-two==1", "part-three==1"))
    return CONTENT


@pytest.fixture
def starter(small_starter: bytes) -> Path:
    """Put the small starter model in its place."""
    path = models.starter_path(this_host())
    path.parent.mkdir(parents=True)
    path.write_bytes(small_starter)
    return path


@pytest.fixture
async def fake_server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Have the fake process started in the server's place, and ended after the test."""
    script = str(Path(__file__).with_name("fake_serve.py"))
    monkeypatch.setattr(server, "command", lambda: [sys.executable, script])
    monkeypatch.setattr(server, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(process, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(server, "find_program", lambda _host, _path, _machine: "")
    monkeypatch.setattr(program, "uses_gpus", lambda _program, _asking: True)
    here = Machine(cores=4, memory_bytes=8 << 30, free_bytes=8 << 30)
    monkeypatch.setattr(hardware, "detect", lambda: here)
    yield
    await server.stop(this_host())
