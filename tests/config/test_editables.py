"""Packages of editable installs that bring something for ybs are found by their names, and nothing else beside them."""

import os
import site
import sys
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from ybs.config import editables
from ybs.config.installed import EntryPoint
from ybs.core.errors import ConfigError


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "more").mkdir()
    monkeypatch.setattr(editables, "left_out", [str(tmp_path / "more"), str(tmp_path)])
    monkeypatch.setattr(editables, "MAPPING", {})
    monkeypatch.setattr(editables, "finders", [])
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


def test_what_is_not_installed_as_editable_finds_nothing_of_what_is(
    source: Path, monkeypatch: pytest.MonkeyPatch
):
    packages = source / "lib/site-packages"
    packages.mkdir(parents=True)
    (packages / "made_whole.py").write_text("import made_by_model\nX = 3\n")
    (source / "made_by_model.py").write_text("raise SystemExit")
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])
    with pytest.raises(ConfigError, match="No module named 'made_by_model'"):
        load("made_whole:X")
    assert editables.MAPPING == {}


def test_one_that_fails_for_a_module_of_its_own_is_looked_for_once(source: Path):
    (source / "made_by_person.py").write_text("import made_by_person.missing")
    with pytest.raises(ConfigError, match="made_by_person"):
        load("made_by_person:X")


def test_what_a_folder_is_called_does_not_make_it_one_of_installed_packages(
    source: Path, monkeypatch: pytest.MonkeyPatch
):
    """A layer of AWS Lambda is written in a folder `site-packages`."""
    monkeypatch.setattr(editables, "left_out", [])
    layer, installed = source / "layer/site-packages", source / "other/site-packages"
    user, needed = source / "user/site-packages", source / "needed/site-packages"
    for folder in (layer, installed, user, needed / "msgspec"):
        folder.mkdir(parents=True)
    for name in (layer, user, needed):
        (installed / f"{name.parent.name}.pth").write_text(f"{name}\n")
    monkeypatch.setattr(site, "USER_SITE", str(user))
    kept = [str(each) for each in (needed, installed, user)]
    monkeypatch.setattr(sys, "path", [*kept, "", "__editable__.x.finder.__path_hook__", str(layer)])
    editables.leave_out()
    assert (sys.path, editables.left_out) == (kept, [str(layer)])


def test_folders_of_a_variable_are_left_out_where_one_works_in_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    inner, elsewhere = tmp_path / "repository/inner", tmp_path / "elsewhere"
    inner.mkdir(parents=True)
    elsewhere.mkdir()
    (tmp_path / "repository/.hg").touch()
    (inner / ".git").touch()  # a repository in it, as a submodule is
    (tmp_path / "link").symlink_to(inner)
    folders = [str(each) for each in (tmp_path / "link", inner.parent, elsewhere)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("", "..", *folders)))
    for here, left in ((inner, folders[2:]), (elsewhere, folders[:2])):
        monkeypatch.chdir(here)
        monkeypatch.setattr(sys, "path", [*folders, *sys.path])
        monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
        monkeypatch.setattr(editables, "finders", [])
        editables.leave_out()
        assert [each for each in sys.path if each in folders] == left
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(sys, "path", [*folders, *sys.path])
    editables.leave_out()
    assert set(folders) <= set(sys.path)


class Finder:
    """Finds packages that are installed as editable, as those that setuptools writes."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> Any:
        found = MAPPING.get(name)
        is_package = found is not None and os.path.isdir(found)  # noqa: PTH112 - a text
        file = f"{found}/__init__.py" if is_package else f"{found}.py"
        return spec_from_file_location(name, file) if found else None


MAPPING: dict[str, str] = {}


def test_by_a_finder_too_only_what_brings_something_is_found(
    source: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("made_whole", "made_part/inside"):
        (source / "src" / name).mkdir(parents=True)
        (source / "src" / name / "__init__.py").write_text("import made_needed\nX = 4\n")
    (source / "src/made_needed.py").write_text("")
    (source / "src/made_by_model.py").write_text("raise SystemExit")
    names = ("made_whole", "made_part/inside", "made_needed", "made_by_model")
    found = {each.replace("/", "."): f"{source}/src/{each}" for each in names}
    monkeypatch.setitem(globals(), "MAPPING", found)
    monkeypatch.setattr(sys, "path", [*sys.path])
    sys.meta_path.append(Finder())
    editables.leave_out()
    assert [type(each) for each in editables.finders if type(each) is Finder] == [Finder]
    assert not any(isinstance(each, Finder) for each in sys.meta_path)
    with pytest.raises(ImportError):
        __import__("made_by_model")
    assert load("made_whole:X") == 4
    assert load("made_part.inside:X") == 4
    with pytest.raises(ImportError):
        __import__("made_by_model")
    with pytest.raises(ConfigError, match="made_nowhere"):
        load("made_nowhere.inside:X")
