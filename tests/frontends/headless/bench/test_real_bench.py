"""Tasks of the bench with the starter model itself. Run by `make test-real`; `ybs bench tasks` is the whole of it."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest

from ybs.providers.local import models

#: Looked for now, before a test gets a HOME of its own.
STARTER = models.starter_path()
IS_THERE = models.starter_installed() and find_spec("xllamacpp") is not None
YBS = str(Path(sys.executable).with_name("ybs"))
TASKS = ("gateway-port", "headline", "motto")

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not IS_THERE, reason="the starter model is not installed: `ybs models install` fetches it"
    ),
]


def test_sessions_share_what_the_server_has_read_and_calls_are_valid(tmp_path: Path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "models").symlink_to(STARTER.parent)
    environ = {**os.environ, "YBS_HOME": str(tmp_path)}
    only = [word for name in TASKS for word in ("--only", name)]
    command = [
        YBS,
        "bench",
        "tasks",
        "--provider",
        "llamacpp",
        "--format",
        "json",
        "--timeout",
        "800",
    ]
    try:
        ended = subprocess.run([*command, *only], env=environ, capture_output=True, check=True)
    finally:
        subprocess.run([YBS, "models", "stop"], env=environ, capture_output=True, check=True)
    found = msgspec.json.decode(ended.stdout)
    first, *later = found["tasks"]
    assert (found["solved"], found["stopped"], found["valid_calls_share"]) == (3, 0, 1.0)
    assert first["cached_tokens"] == 0
    prefix = 900  # rules, tools and examples
    assert all(each["cached_tokens"] > prefix for each in later)
