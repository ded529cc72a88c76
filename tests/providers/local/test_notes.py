"""What was found out about a model file is found out once, and again when the file has changed."""

import os
from pathlib import Path

import pytest
from local.gguf_files import write_model
from local.test_gguf import QWEN

from hosts import this_host
from ybs.core.errors import ConfigError
from ybs.providers.local import model as notes


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "m.gguf", QWEN)


def test_a_head_is_read_once(model: Path, monkeypatch: pytest.MonkeyPatch):
    first = notes.notes_of(this_host(), model)
    monkeypatch.setattr(notes, "read_head", lambda _path: pytest.fail("read again"))
    assert notes.notes_of(this_host(), model) == first
    assert first.head.family == "qwen2"


def test_a_file_that_changed_is_read_again(model: Path):
    notes.notes_of(this_host(), model)
    write_model(model, {"general.architecture": "llama"})
    os.utime(model, (1, 1))
    assert notes.notes_of(this_host(), model).head.family == "llama"


@pytest.mark.parametrize("content", [b"", b"{", b'{"x": 1}'])
def test_notes_that_cannot_be_read_are_made_anew(model: Path, content: bytes):
    this_host().state_folder.mkdir(parents=True, mode=0o700)
    (this_host().state_folder / "models.json").write_bytes(content)
    (this_host().state_folder / "models.json").chmod(0o600)
    assert notes.notes_of(this_host(), model).head.family == "qwen2"
    assert notes.notes_of(this_host(), model).head.family == "qwen2"


def test_a_state_folder_that_cannot_be_written_to_is_no_reason_to_fail(model: Path, home: Path):
    (home / ".local").write_text("a file stands in the way")
    assert notes.notes_of(this_host(), model).head.family == "qwen2"


def test_the_notes_of_many_files_do_not_grow_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(notes, "MOST_NOTES", 2)
    for name in "abc":
        notes.notes_of(this_host(), write_model(tmp_path / f"{name}.gguf", QWEN))
    assert [Path(name).stem for name in notes._all(this_host())] == ["b", "c"]


def test_a_file_that_is_gone_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match="cannot be read"):
        notes.notes_of(this_host(), tmp_path / "gone.gguf")
