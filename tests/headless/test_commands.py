"""The subcommands that print data."""

import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ybs import cli
from ybs.headless.commands import write_table
from ybs.session.sandbox import Sandbox

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


def test_the_settings_are_shown_one_a_line(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(capsys, "config", "show", "-m", "qwen3:14b").splitlines()
    assert 'llm.model = "qwen3:14b"' in lines
    assert 'safety.mode = "ask"' in lines


def test_config_alone_is_config_show(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "config") == printed(capsys, "config", "show")


def test_sources_say_where_a_value_comes_from(
    project: Path, user_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user_file.write_text('{"llm": {"model": "a"}}')
    shown = printed(capsys, "config", "show", "--sources")
    assert f'llm.model = "a"   (user  {user_file}' in shown
    assert 'safety.mode = "ask"   (default)' in shown
    chosen = printed(capsys, "config", "show", "--sources", "-m", "b")
    assert 'llm.model = "b"   (option)\n' in chosen
    assert printed_json(capsys, "config", "show", "--sources")["llm.model"]["layer"] == "user"


def test_a_key_is_never_shown_whole(
    project: Path, user_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user_file.write_text(msgspec.json.encode({"llm": {"api_key": KEY}}).decode())
    user_file.chmod(stat.S_IRUSR)
    for words in (["config", "show"], ["config", "--format", "json"], ["doctor"]):
        assert KEY not in printed(capsys, *words)


def test_the_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    schema = msgspec.json.decode(printed(capsys, "config", "schema"))
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "llm" in schema["properties"]


def test_a_check_of_good_settings_is_zero(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(capsys, "config", "check") == "Nothing is wrong with the settings.\n"
    assert printed_json(capsys, "config", "check") == {"problems": []}


def test_a_check_of_bad_settings_is_three(
    project: Path, user_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user_file.write_text('{"lmm": {}}')
    assert "lmm" in printed(capsys, "config", "check", code=3)
    (problem,) = printed_json(capsys, "config", "check", code=3)["problems"]
    assert str(user_file) in problem


def test_warnings_go_to_standard_error(
    project: Path, user_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user_file.write_text("{broken")
    assert cli.main(["config", "show"]) == 0
    assert str(user_file) in capsys.readouterr().err


def test_the_doctor_names_what_is_there_and_what_is_not(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    found = {each["name"]: each for each in printed_json(capsys, "doctor")}
    assert found["provider openai"] == {
        "name": "provider openai",
        "state": "ok",
        "detail": "key found (OPENAI_API_KEY)",
    }
    assert found["provider anthropic"]["state"] == "missing"
    assert (
        found["sandbox"]["state"]
        == {
            "full": "ok",
            "reduced": "warning",
            "none": "missing",
        }[Sandbox(project).state]
    )
    assert {"python", "configuration", "provider", "rg", "git", "terminal"} <= set(found)
    assert "provider openai" in printed(capsys, "doctor")


def test_the_doctor_survives_a_provider_that_cannot_be_loaded(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_name: str, _config: object) -> None:
        raise ImportError("no module named x")

    monkeypatch.setattr("ybs.providers.registry.find_provider", broken)
    found = {each["name"]: each for each in printed_json(capsys, "doctor")}
    assert found["provider openai"]["state"] == "warning"


def test_columns_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    write_table([("a", "bb", "c\x1b[2J"), ("aaa", "b", "")])
    write_table([])
    assert capsys.readouterr().out == "a    bb  c␛[2J\naaa  b\n"


@pytest.fixture
def port() -> Iterator[int]:
    """Return a port of this machine that listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def found_by_the_doctor(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    return {each["name"]: each for each in printed_json(capsys, *words, "doctor")}


def test_the_doctor_calls_a_local_provider_ok_only_while_it_listens(
    project: Path, user_file: Path, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    own = {
        "up": {"endpoint": f"http://127.0.0.1:{port}/v1"},
        "down": {"endpoint": "http://127.0.0.1:1/v1"},
        "far": {"endpoint": "http://models.example.org/v1"},
        "odd": {"endpoint": "http://127.0.0.1:99999/v1"},
    }
    user_file.write_text(msgspec.json.encode({"providers": own}).decode())
    found = found_by_the_doctor(capsys)
    assert found["provider up"]["state"] == "ok"
    assert found["provider down"]["state"] == "missing"
    assert "not running at http://127.0.0.1:1/v1" in found["provider down"]["detail"]
    assert found["provider far"]["detail"] == "at http://models.example.org/v1, not asked"
    assert found["provider odd"]["state"] == "warning"


def test_the_doctor_says_how_a_provider_is_started(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ybs.headless.doctor.listens", lambda _endpoint: False)
    found = found_by_the_doctor(capsys)
    assert found["provider ollama"]["state"] == "missing"
    assert "not running" in found["provider ollama"]["detail"]
    assert "`ollama serve`" in found["provider ollama"]["detail"]
    assert found["provider llamacpp"]["state"] == "missing"
    assert "ybs models install" in found["provider llamacpp"]["detail"]
    monkeypatch.setattr("ybs.providers.llama_cpp.models.starter_installed", lambda: True)
    found = found_by_the_doctor(capsys)
    assert found["provider llamacpp"] == {
        "name": "provider llamacpp",
        "state": "ok",
        "detail": "not running; the first request starts it",
    }


def test_the_doctor_looks_where_the_chosen_provider_was_moved_to(
    project: Path, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint = f"http://127.0.0.1:{port}"
    found = found_by_the_doctor(capsys, "-p", "ollama", "--endpoint", endpoint)
    assert found["provider ollama"]["detail"] == f"running at {endpoint}"
