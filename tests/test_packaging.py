"""What is shipped: the wheel holds the prompts and templates, and says what it is."""

import zipfile
from pathlib import Path

import pytest
from flit_core import buildapi

import ybs
from ybs.core.version import VERSION

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> zipfile.ZipFile:
    monkeypatch.chdir(ROOT)
    return zipfile.ZipFile(tmp_path / buildapi.build_wheel(str(tmp_path)))


def test_the_version_is_one() -> None:
    assert ybs.__version__ == VERSION


def test_the_wheel_holds_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    files = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "ybs").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in wheel.namelist() if name.startswith("ybs/")} == files
    assert "ybs/py.typed" in files
    assert any(name.endswith(".md") for name in files), "the prompts"


def test_the_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    folder = f"ybs-{ybs.__version__}.dist-info"
    metadata = wheel.read(f"{folder}/METADATA").decode()
    assert f"Version: {ybs.__version__}" in metadata
    assert "License-Expression: Apache-2.0" in metadata
    assert "ybs=ybs.cli:main" in wheel.read(f"{folder}/entry_points.txt").decode()
    assert f"{folder}/licenses/LICENSE" in wheel.namelist()
