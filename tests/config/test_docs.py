"""The page that is made from the schema."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from ybs.config.shape import all_names

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_docs.py"


@pytest.fixture
def make_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    spec = importlib.util.spec_from_file_location("make_docs", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def run(module: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["make_docs.py", *arguments])
    return module.main()


@pytest.mark.parametrize("name", ["configuration", "schemas", "events", "serve_protocol"])
def test_what_is_on_disk_is_what_is_made_from_the_structs(make_docs: ModuleType, name: str):
    (path,) = (path for path, page in make_docs.PAGES.items() if page.__name__ == name)
    assert (SCRIPT.parent.parent / path).read_text() == make_docs.PAGES[path]()


@pytest.mark.integration
def test_check_fails_until_the_page_is_written(make_docs, monkeypatch, capsys):
    assert run(make_docs, monkeypatch, "--check") == 1
    assert "configuration.md: differs" in capsys.readouterr().out
    assert run(make_docs, monkeypatch) == 0
    assert run(make_docs, monkeypatch, "--check") == 0
    (make_docs.ROOT / "docs" / "configuration.md").write_text("old")
    assert run(make_docs, monkeypatch, "--check") == 1


def test_every_setting_has_a_row(make_docs: ModuleType):
    page = make_docs.configuration()
    for name in all_names():
        assert f"`{name.replace('*', 'NAME')}`" in page
