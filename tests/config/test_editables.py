"""Packages of editable installs that bring something for ybs are found by their names, and nothing else beside them."""

import sys
from pathlib import Path

import pytest

from ybs.config import editables
from ybs.config.installed import EntryPoint
from ybs.core.errors import ConfigError


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "more").mkdir()
    monkeypatch.setattr(editables, "left_out", [str(tmp_path / "more"), str(tmp_path)])
    monkeypatch.setattr(editables, "MAPPING", {})
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    return tmp_path


def load(value: str) -> object:
    return EntryPoint(package="p", group="ybs.tools", name="x", value=value).load()


def test_a_package_is_loaded_with_what_it_needs_and_nothing_else_is_found(source: Path):
    (source / "made_by_person").mkdir()
    (source / "made_by_person/tool.py").write_text(
        "try:\n    import made_by_model\nexcept ImportError:\n    import made_beside\nX = 3\n"
    )
    (source / "made_beside.py").write_text("")
    (source / "made_by_model.py").write_text("raise SystemExit")
    assert load("made_by_person.tool:X") == 3
    assert set(editables.MAPPING) == {"made_by_person", "made_beside"}
    assert str(source) not in sys.path
    assert load("made_by_person.tool:X") == 3


def test_one_of_which_there_is_none_or_a_second_is_not_loaded(source: Path):
    (source / "made_twice").mkdir()
    (source / "made_twice.py").touch()
    for name in ("made_twice", "made_nowhere"):
        with pytest.raises(ConfigError, match=f"No module named '{name}'"):
            load(f"{name}:X")


def test_one_that_fails_for_a_module_of_its_own_is_looked_for_once(source: Path):
    (source / "made_by_person.py").write_text("import made_by_person.missing")
    with pytest.raises(ConfigError, match="made_by_person"):
        load("made_by_person:X")
