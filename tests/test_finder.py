"""The quick way to ybs's own modules gives what Python's way gives, and leaves to it what is not plainly current."""

import importlib
import os
import py_compile
import subprocess
import sys
from collections.abc import Callable
from importlib.util import module_from_spec
from pathlib import Path

import pytest

from rows import every_row
from ybs.finder import Finder, install

SOURCE = 'TEXT = "as written"\n\ndef fail():\n    raise ValueError(TEXT)\n'


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "part.py"
    path.write_text(SOURCE)
    py_compile.compile(str(path))
    return path


def test_a_compiled_module_is_found_and_runs_as_python_would_run_it(module: Path):
    spec = Finder().find_spec("ybs.part", [str(module.parent)])
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    (compiled,) = (module.parent / "__pycache__").iterdir()
    assert (made.TEXT, made.__file__, made.__cached__) == ("as written", str(module), str(compiled))
    assert (made.__name__, made.__package__) == ("ybs.part", "ybs")
    assert spec.loader.get_source("ybs.part") == SOURCE  # type: ignore[attr-defined] # what a traceback shows
    spec.loader.exec_module(made)  # as a reload does
    assert made.TEXT == "as written"


def _changed(module: Path) -> None:
    module.write_text(SOURCE.replace("written", "changed"))
    os.utime(module, (1, 1))


def _longer(module: Path) -> None:
    known = module.stat()
    module.write_text(SOURCE + "\n")
    os.utime(module, ns=(known.st_atime_ns, known.st_mtime_ns))


def _hashed(module: Path) -> None:
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    py_compile.compile(str(module), invalidation_mode=mode)


def _of_another_python(module: Path) -> None:
    (compiled,) = (module.parent / "__pycache__").iterdir()
    compiled.write_bytes(b"\0\0\r\n" + compiled.read_bytes()[4:])


def _not_compiled(module: Path) -> None:
    (compiled,) = (module.parent / "__pycache__").iterdir()
    compiled.unlink()


def _cut(module: Path) -> None:
    (compiled,) = (module.parent / "__pycache__").iterdir()
    compiled.write_bytes(compiled.read_bytes()[:10])


def _very_large(module: Path) -> None:
    module.write_text(f"TEXT = {'x' * 120_000!r}\n")
    py_compile.compile(str(module))


def _without_source(module: Path) -> None:
    module.unlink()


@every_row(
    "spoil",
    [
        _changed,
        _longer,
        _hashed,
        _of_another_python,
        _not_compiled,
        _cut,
        _very_large,
        _very_large,
        _without_source,
    ],
)
def test_what_is_not_current_is_left_to_python(
    spoil: Callable[[Path], None], tmp_path_factory: pytest.TempPathFactory
):
    path = tmp_path_factory.mktemp("modules") / "part.py"
    path.write_text(SOURCE)
    py_compile.compile(str(path))
    assert Finder().find_spec("ybs.part", [str(path.parent)]) is not None
    spoil(path)
    assert Finder().find_spec("ybs.part", [str(path.parent)]) is None


def test_packages_and_the_modules_of_others_are_left_to_python(module: Path):
    (module.parent / "inner").mkdir()
    (module.parent / "inner" / "__init__.py").touch()
    here = [str(module.parent)]
    assert Finder().find_spec("ybs.inner", here) is None
    assert Finder().find_spec("other.part", here) is None
    assert Finder().find_spec("ybs") is None


def test_it_comes_first_and_finds_the_modules_of_ybs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    install()
    assert isinstance(sys.meta_path[0], Finder)
    name = "ybs.core.wording"
    known = importlib.import_module(name)
    folder = str(Path(str(known.__file__)).parent)
    found = Finder().find_spec(name, [folder])
    compiled = Path(str(known.__cached__))
    assert (found is not None) == compiled.exists()  # a run may write none
    assert found is None or (found.origin, found.cached) == (known.__file__, str(compiled))


@pytest.mark.integration
def test_python_without_asserts_looks_in_its_own_way():
    code = "import sys; from ybs.finder import Finder, install; install(); print(any(isinstance(f, Finder) for f in sys.meta_path))"
    said = [
        subprocess.run(
            [sys.executable, *flags, "-c", code], capture_output=True, text=True, check=True
        )
        for flags in ([], ["-O"])
    ]
    assert [done.stdout.strip() for done in said] == ["True", "False"]
