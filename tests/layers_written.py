"""Fixtures of tests of configuration: no file of this machine, and files by their layer."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ybs.config import paths

Write = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def system_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the system's file somewhere else."""
    file = tmp_path / "etc" / "config.json"
    monkeypatch.setattr(paths, "SYSTEM_FILE", file)
    return file


@pytest.fixture
def write(system_file: Path, home: Path, project: Path, tmp_path: Path) -> Write:
    """Write a layer's file: system, user, home, project or file."""
    places = {
        "system": system_file,
        "user": home / ".config/ybs/config.json",
        "home": home / ".ybs.json",
        "project": project / ".ybs.json",
        "file": tmp_path / "asked-for.json",
    }

    def write_file(layer: str, text: str) -> Path:
        file = places[layer]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o644)
        return file

    return write_file
