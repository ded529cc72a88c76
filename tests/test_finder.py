"""ybs's own finder gives what Python's search gives, and leaves everything else to that."""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

import pytest

import ybs
from ybs.finder import Finder, install

PACKAGE = Path(ybs.__file__).parent


def test_every_module_of_ybs_is_found_where_python_finds_it():
    modules = [path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]
    assert len(modules) > 300
    for path in modules:
        name = ".".join(("ybs", *path.relative_to(PACKAGE).with_suffix("").parts))
        folder = [str(path.parent)]
        found, known = Finder().find_spec(name, folder), PathFinder.find_spec(name, folder)
        assert found is not None, name
        assert known is not None, name
        assert (found.origin, found.cached, found.has_location, type(found.loader)) == (
            *(known.origin, known.cached, known.has_location),
            type(known.loader),
        ), name
        assert found.submodule_search_locations is None


def test_packages_and_the_modules_of_others_are_left_to_python(tmp_path: Path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "__init__.py").touch()
    (tmp_path / "part.py").touch()
    here = [str(tmp_path)]
    assert Finder().find_spec("ybs.part", here) is not None
    assert Finder().find_spec("ybs.inner", here) is None
    assert Finder().find_spec("ybs.missing", here) is None
    assert Finder().find_spec("other.part", here) is None
    assert Finder().find_spec("ybs") is None


def test_a_module_that_is_found_so_runs_with_its_file_in_its_code():
    source = PACKAGE / "core" / "wording.py"
    spec = Finder().find_spec("ybs.core.wording", [str(source.parent)])
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made.plural(2, "file") == "2 files"
    assert (made.__file__, made.__package__) == (str(source), "ybs.core")
    assert made.plural.__code__.co_filename == str(source)


def test_it_is_asked_first(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    install()
    assert isinstance(sys.meta_path[0], Finder)
