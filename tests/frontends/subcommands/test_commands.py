"""The subcommands that print data."""

import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ybs import cli
from ybs.frontends.headless.output import write_table

KEY = "sk-" + "abcdefgh" * 4


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert cli.main(words) == code
    return capsys.readouterr().out


def printed_json(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    return msgspec.json.decode(printed(capsys, *words, "--format", "json", code=code))


@pytest.fixture
def user_file(home: Path) -> Path:
    path = home / ".config" / "ybs" / "config.json"
    path.parent.mkdir(parents=True)
    return path


def test_the_settings_are_shown_one_a_line(project, capsys):
    lines = printed(capsys, "config", "show", "-m", "qwen3:14b").splitlines()
    assert 'llm.model = "qwen3:14b"' in lines
    assert 'safety.mode = "ask"' in lines


def test_config_alone_is_config_show(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "config") == printed(capsys, "config", "show")


def test_sources_say_where_a_value_comes_from(project, user_file, capsys):
    user_file.write_text('{"llm": {"model": "a"}}')
    shown = printed(capsys, "config", "show", "--sources")
    assert f'llm.model = "a"   (user  {user_file}' in shown
    assert 'safety.mode = "ask"   (default)' in shown
    chosen = printed(capsys, "config", "show", "--sources", "-m", "b")
    assert 'llm.model = "b"   (option)\n' in chosen
    assert printed_json(capsys, "config", "show", "--sources")["llm.model"]["layer"] == "user"


def test_a_key_is_never_shown_whole(project, user_file, capsys):
    user_file.write_text(msgspec.json.encode({"llm": {"api_key": KEY}}).decode())
    user_file.chmod(stat.S_IRUSR)
    for words in (["config", "show"], ["config", "--format", "json"], ["doctor"]):
        assert KEY not in printed(capsys, *words)


def test_the_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    schema = msgspec.json.decode(printed(capsys, "config", "schema"))
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "llm" in schema["properties"]


def test_a_check_of_good_settings_is_zero(project, capsys):
    assert printed(capsys, "config", "check") == "Nothing is wrong with the settings.\n"
    assert printed_json(capsys, "config", "check") == {"problems": []}


def test_a_check_of_bad_settings_is_three(project, user_file, capsys):
    user_file.write_text('{"lmm": {}}')
    assert "lmm" in printed(capsys, "config", "check", code=3)
    (problem,) = printed_json(capsys, "config", "check", code=3)["problems"]
    assert str(user_file) in problem


def test_warnings_go_to_standard_error(project, user_file, capsys):
    user_file.write_text("{broken")
    assert cli.main(["config", "show"]) == 0
    assert str(user_file) in capsys.readouterr().err


def test_columns_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    write_table([("a", "bb", "c\x1b[2J"), ("aaa", "b", "")])
    write_table([])
    assert capsys.readouterr().out == "a    bb  c␛[2J\naaa  b\n"


def test_one_setting_is_printed_bare_and_a_section_by_its_names(project, user_file, capsys):
    user_file.write_text(
        '{"llm": {"model": "a"}, "providers": {"x": {"api_key": "sk-not-a-key-1"}}}'
    )
    assert printed(capsys, "config", "get", "llm.model") == "a\n"
    assert printed(capsys, "config", "get", "ui.color") == "true\n"
    assert printed_json(capsys, "config", "get", "llm.model", "--json") == "a"
    assert 'safety.mode = "ask"' in printed(capsys, "config", "get", "safety").splitlines()
    assert "not-a-key" not in printed(capsys, "config", "get", "providers.x")
    assert cli.main(["config", "get", "llm.modle"]) == 3
    assert "There is no setting 'llm.modle'" in capsys.readouterr().err


def test_a_setting_is_set_and_removed_and_one_that_is_not_there_is_no_success(project, capsys):
    key = "models.gpt-4.1.window"
    assert f"{key} is set in" in printed(capsys, "config", "set", key, "65536")
    assert printed(capsys, "config", "get", key) == "65536\n"
    assert f"{key} was removed from" in printed(capsys, "config", "unset", key)
    assert cli.main(["config", "unset", key]) == 3
    assert f"{key} is not set in" in capsys.readouterr().err
