"""ybs's own finder gives what Python's search gives, and leaves everything else to that."""

import marshal
import os
import py_compile
import subprocess
import sys
from importlib.machinery import PathFinder, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import ybs
from ybs import finder
from ybs.finder import Loader, ModuleFinder, install

PACKAGE = Path(ybs.__file__).parent


@pytest.mark.integration
def test_every_module_of_ybs_is_found_where_python_finds_it():
    modules = [path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE]
    assert len(modules) > 300
    for path in modules:
        place = path.parent if path.name == "__init__.py" else path.with_suffix("")
        name = ".".join(("ybs", *place.relative_to(PACKAGE).parts))
        folder = [str(place.parent)]
        found, known = ModuleFinder().find_spec(name, folder), PathFinder.find_spec(name, folder)
        assert found is not None, name
        assert known is not None, name
        assert (found.origin, found.cached, found.has_location) == (
            *(known.origin, known.cached, known.has_location),
        ), name
        assert type(found.loader) is Loader
        assert type(known.loader) is SourceFileLoader
        assert found.submodule_search_locations == known.submodule_search_locations
        assert found.parent == known.parent


def test_folders_without_code_and_the_modules_of_others_are_left_to_python(tmp_path: Path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "part.py").touch()
    here = [str(tmp_path)]
    assert ModuleFinder().find_spec("ybs.part", here) is not None
    assert ModuleFinder().find_spec("ybs.inner", here) is None
    assert ModuleFinder().find_spec("ybs.missing", here) is None
    assert ModuleFinder().find_spec("other.part", here) is None
    assert ModuleFinder().find_spec("ybs") is None


def test_a_module_that_is_found_so_runs_with_its_file_in_its_code():
    source = PACKAGE / "core" / "wording.py"
    spec = ModuleFinder().find_spec("ybs.core.wording", [str(source.parent)])
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
    assert isinstance(sys.meta_path[0], ModuleFinder)


class Tree:
    """A module `ybs.part` in a folder of its own, compiled; and how often Python's own loader was needed for it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source = folder / "part.py"
        self.own = 0
        self.write("A = 1")
        self.compiled = Path(py_compile.compile(str(self.source), doraise=True))
        get_code = SourceFileLoader.get_code

        def counted(loader: SourceFileLoader, name: str) -> CodeType | None:
            self.own += 1
            return get_code(loader, name)

        monkeypatch.setattr(SourceFileLoader, "get_code", counted)

    def write(self, text: str, *, at: int = 1_700_000_000) -> None:
        """Write the source, with a time of its own."""
        self.source.write_text(text + "\n")
        os.utime(self.source, (at, at))

    def value(self) -> tuple[int, str]:
        """Import the module anew; return its value and the file that its code names."""
        spec = ModuleFinder().find_spec("ybs.part", [str(self.source.parent)])
        assert spec is not None
        assert isinstance(spec.loader, Loader)
        code = spec.loader.get_code("ybs.part")
        assert code is not None
        names: dict[str, Any] = {}
        exec(code, names)
        return names["A"], code.co_filename


@pytest.fixture
def compiled_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return Tree(tmp_path, monkeypatch)


def test_a_compiled_file_that_is_current_is_read_at_once(compiled_module: Tree):
    assert compiled_module.value() == (1, str(compiled_module.source))
    assert compiled_module.own == 0


def test_a_module_that_is_loaded_again_is_looked_at_again(compiled_module: Tree):
    spec = ModuleFinder().find_spec("ybs.part", [str(compiled_module.source.parent)])
    assert spec is not None
    assert isinstance(spec.loader, Loader)
    for expected, text in ((1, "A = 2"), (2, "A = 3")):
        code = spec.loader.get_code("ybs.part")
        assert code is not None
        assert expected in code.co_consts
        compiled_module.write(text, at=1_700_000_000 + expected)


@pytest.mark.parametrize(
    ("text", "at"),
    [("A = 2", 1_700_000_001), ("A = 20 // 10", 1_700_000_000), ("A = 2", 2**32 + 5)],
)
def test_a_source_that_changed_is_compiled_anew(compiled_module: Tree, text: str, at: int):
    compiled_module.write(text, at=at)
    assert compiled_module.value() == (2, str(compiled_module.source))
    assert compiled_module.own == 1
    assert compiled_module.value()[0] == 2
    assert compiled_module.own == 1  # it was compiled


@pytest.mark.parametrize("kept", [0, 10, 15, 16, 17, 40, -1])
def test_a_compiled_file_that_is_cut_off_is_pythons_to_deal_with(compiled_module: Tree, kept: int):
    compiled_module.compiled.write_bytes(compiled_module.compiled.read_bytes()[:kept])
    if kept >= 16 or kept < 0:
        with pytest.raises((EOFError, ValueError)):
            compiled_module.value()
    else:
        assert compiled_module.value()[0] == 1
    assert compiled_module.own == 1


def test_what_is_no_code_is_refused_as_python_does(compiled_module: Tree):
    data = compiled_module.compiled.read_bytes()
    compiled_module.compiled.write_bytes(data[:16] + marshal.dumps("no code"))
    with pytest.raises(ImportError):
        compiled_module.value()


def test_in_a_tree_that_was_moved_code_names_its_file_where_it_is(compiled_module, tmp_path):
    moved = tmp_path / "moved"
    moved.mkdir()
    (tmp_path / "__pycache__").rename(moved / "__pycache__")
    compiled_module.source = compiled_module.source.rename(moved / "part.py")
    assert compiled_module.value() == (1, str(moved / "part.py"))
    assert compiled_module.own == 1


def test_compiled_files_elsewhere_or_by_content_or_of_optimized_code_are_pythons(
    compiled_module: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "pycache_prefix", str(tmp_path / "elsewhere"))
        assert compiled_module.value()[0] == 1
    with monkeypatch.context() as patch:
        patch.setattr(finder, "IS_PLAIN", False)
        assert compiled_module.value()[0] == 1
    by_content = py_compile.PycInvalidationMode.CHECKED_HASH
    py_compile.compile(str(compiled_module.source), invalidation_mode=by_content)
    assert compiled_module.value()[0] == 1
    compiled_module.compiled.unlink()
    assert compiled_module.value()[0] == 1
    assert compiled_module.own == 4


@pytest.mark.integration
def test_a_start_loads_nothing_that_msgspec_hardly_uses() -> None:
    code = "import sys; from ybs.finder import load_msgspec; load_msgspec(); import msgspec; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "msgspec" in loaded
    assert "typing_extensions" not in loaded
    assert "platform" not in loaded


@pytest.mark.integration
def test_what_was_left_out_for_msgspec_is_there_for_others() -> None:
    code = (
        "import uuid; from ybs.finder import load_msgspec; load_msgspec(); import platform, typing_extensions, msgspec;"
        "print(platform.system(), typing_extensions.Protocol is not None, msgspec.json.decode(b'1'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [os.uname().sysname, "True", "1"]
