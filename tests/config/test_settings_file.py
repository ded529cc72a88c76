"""Writing a choice into the user's own file."""

import os
import re
import stat
from pathlib import Path

import msgspec
import pytest

from rows import every_row
from ybs.config.settings_file import fitting_value, is_set, write_settings
from ybs.core.errors import ConfigError


def test_a_new_file_is_private_and_so_is_its_folder(home: Path) -> None:
    path = file = home / ".config" / "ybs" / "config.json"
    path = write_settings({"llm.provider": "ollama", "llm.model": "qwen3:8b"}, file)
    assert path == file
    assert msgspec.json.decode(path.read_bytes()) == {
        "llm": {"provider": "ollama", "model": "qwen3:8b"}
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_other_settings_stay_and_none_removes(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(
        '{"ui": {"color": false}, "llm": {"endpoint": "x", "max_tokens": 5}, "unknown": "é"}'
    )
    write_settings({"llm.endpoint": None, "llm.provider": "openai", "git.x": None}, path)
    assert msgspec.json.decode(path.read_bytes()) == {
        "ui": {"color": False},
        "llm": {"max_tokens": 5, "provider": "openai"},
        "unknown": "é",
        "git": {},
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["{broken", "[1]", '{"llm": 3}'])
def test_a_broken_file_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match="Correct the file first"):
        write_settings({"llm.provider": "ollama"}, path)
    assert path.read_text() == content


def test_a_file_that_is_no_text_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        write_settings({"llm.provider": "ollama"}, path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(ConfigError, match="is not a regular file"):
        write_settings({"llm.model": "m"}, tmp_path / "config.json")


def test_a_byte_order_mark_is_passed_over_as_where_settings_are_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('\ufeff{"llm": {"model": "m"}}')
    write_settings({"llm.provider": "ollama"}, path)
    assert path.read_text().startswith('{\n  "llm": {\n    "model": "m",')


def test_a_file_that_others_may_write_is_not_made_the_persons(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text("{}")
    path.chmod(0o666)
    with pytest.raises(ConfigError, match="can be written by others"):
        write_settings({"llm.model": "m"}, path)


def test_an_empty_file_is_filled(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text("")
    write_settings({"llm.provider": "ollama"}, path)
    assert msgspec.json.decode(path.read_bytes()) == {"llm": {"provider": "ollama"}}


def test_a_link_is_followed_and_kept(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    link = tmp_path / "config.json"
    link.symlink_to(real)
    assert write_settings({"llm.provider": "ollama"}, link) == real
    assert link.is_symlink()


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "config.json"
    path.write_text("{}")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left"):
        write_settings({"llm.provider": "ollama"}, path)
    assert [each.name for each in tmp_path.glob("*config.json*")] == ["config.json"]
    assert path.read_text() == "{}"


@every_row(
    ("key", "text", "value"),
    [
        ("llm.model", "qwen3:8b", "qwen3:8b"),
        ("llm.model", "5", "5"),
        ("llm.temperature", "0.3", 0.3),
        ("ui.color", "off", False),
        ("safety.mode", "plan", "plan"),
        ("safety.blocked_commands", '["sudo"]', ["sudo"]),
        ("providers.work.endpoint", "https://llm.example/v1", "https://llm.example/v1"),
    ],
)
def test_a_text_becomes_the_value_of_a_setting(key: str, text: str, value: object) -> None:
    assert fitting_value(key, text) == value


@every_row(
    ("key", "text", "said"),
    [
        ("llm.modl", "x", "did you mean llm.model?"),
        ("llm", "x", "must be an object"),
        ("llm.", "x", "There is no setting"),
        ("llm.temperature", "hot", "must be a number"),
        ("safety.mode", "yolo", "must be one of ask"),
        ("llm.api_key", "x", "history of your shell"),
        ("providers.work.api_key", "x", "history of your shell"),
    ],
)
def test_what_does_not_fit_the_schema_is_refused(key: str, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        fitting_value(key, text)


def test_a_models_name_may_have_dots(tmp_path: Path) -> None:
    path, key = tmp_path / "config.json", "models.gpt-4.1.window"
    assert not is_set(key, path)
    write_settings({key: fitting_value(key, "65536"), "models.b.window": 1}, path)
    assert msgspec.json.decode(path.read_bytes()) == {
        "models": {"gpt-4.1": {"window": 65536}, "b": {"window": 1}}
    }
    assert is_set(key, path)
    assert not is_set("models.gpt-4.window", path)
    write_settings({key: None}, path)
    assert not is_set(key, path)
