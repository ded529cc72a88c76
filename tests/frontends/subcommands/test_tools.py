"""`ybs tools list` and `ybs tool call`: the tools without a model."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hosts import this_host
from processes import ends
from ybs import cli
from ybs.core.ports import Answer, Question
from ybs.frontends.subcommands.tools import call_tool
from ybs.session.options import Options

KEYS = ["tool", "success", "error", "refused", "output", "result", "images", "duration_seconds"]


@pytest.fixture(autouse=True)
def nothing_piped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ybs.frontends.subcommands.tools.read_piped", lambda: "")


def called(
    capsys: pytest.CaptureFixture[str], *words: str, code: int = 0
) -> tuple[dict[str, Any], str]:
    """Run `ybs tool call` and return its JSON and what stands on standard error."""
    assert cli.main(["tool", "call", *words]) == code
    out, err = capsys.readouterr()
    return msgspec.json.decode(out), err


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.main(["tools", "list", *words]) == 0
    return capsys.readouterr().out


def switch_off(home: Path, name: str) -> None:
    path = home / ".config" / "ybs" / "config.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode({"tools": {"builtin": {name: {"enabled": False}}}}))


def test_the_tools_are_listed_with_their_schemas(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = {tool["name"]: tool for tool in msgspec.json.decode(listed(capsys, "--format", "json"))}
    keys = {"name", "effect", "source", "enabled", "description", "parameters"}
    assert all(set(tool) == keys for tool in tools.values())
    reader = tools["read_file"]
    assert (reader["effect"], reader["source"], reader["enabled"]) == ("read", "built-in", True)
    assert reader["parameters"]["required"] == ["path"]
    assert {"repo_map", "memorize", "set_thought", "update_identity"} <= set(tools)


@pytest.mark.integration
def test_a_tool_that_is_switched_off_is_listed_as_such(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, effect in (("run_shell", "execute"), ("memorize", "write")):
        switch_off(home, name)
        (line,) = [line for line in listed(capsys).splitlines() if line.startswith(name)]
        assert line.split()[:3] == [name, effect, "off"]
        error, _ = called(capsys, name, '{"command": "true"}', code=2)
        assert f"There is no tool '{name}'" in error["error"]


def test_a_call_prints_its_result_as_json_and_needs_no_model(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "a").write_text("hällo\x9b\n")
    result, err = called(capsys, "read_file", '{"path": "a"}')
    assert list(result) == KEYS
    assert (result["success"], result["error"], result["refused"]) == (True, None, False)
    assert result["output"].startswith("1\thällo")
    assert result["result"]["total_lines"] == 1
    assert err == ""


@pytest.mark.integration
def test_options_may_stand_anywhere(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["--yes", "write_file", "--format", "json", '{"path": "a", "content": "x"}'],
        ["write_file", '{"path": "a", "content": "x"}', "--mode", "accept-edits"],
        ["write_file", "--allow", "write_file", '{"path": "a", "content": "x"}'],
    ):
        (project / "a").unlink(missing_ok=True)
        assert called(capsys, *words)[0]["result"]["bytes_written"] == 1
        assert (project / "a").read_text() == "x"


@pytest.mark.parametrize("words", [[], ["-"]])
def test_arguments_may_be_piped_in(
    words: list[str],
    project: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (project / "a").write_text("one\n")
    monkeypatch.setattr("ybs.frontends.subcommands.tools.read_piped", lambda: '{"path": "a"}\n')
    assert called(capsys, "read_file", *words)[0]["output"] == "1\tone"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["reed_file", "{}"], "Did you mean read_file"),
        (["readFile", '{"path": "a"}'], "Did you mean read_file?"),
        (["read_file"], "missing required field `path`"),
        (["read_file", "{}"], "missing required field `path`"),
        (["read_file", '{"path": "a", "limit": "many"}'], '"many"'),
        (["read_file", '{"path": "a",}'], "not one JSON object (JSON is malformed"),
        (["read_file", "[1]"], "not an object"),
        (["read_file", "[" * 100_000], "not one JSON object"),
        (["read_file", '{"path": "\udcff"}'], "not one JSON object"),
    ],
)
def test_a_call_that_makes_no_sense_is_two(
    words: list[str], said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error, err = called(capsys, *words, code=2)
    assert list(error) == ["tool", "success", "error"]
    assert error["success"] is False
    assert said in error["error"]
    assert err == f"ybs: {error['error']}\n"


def test_a_call_without_a_name_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tool"]) == 2
    assert "ybs tool call NAME JSON" in capsys.readouterr().err
    assert cli.main(["tool", "call", "read_file", "{}", "more"]) == 2
    assert "'more'" in capsys.readouterr().err


def test_a_tool_that_fails_is_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result, _ = called(capsys, "read_file", '{"path": "a"}', code=1)
    assert result["success"] is False
    assert "does not exist" in result["error"]
    assert result["result"] == {"success": False, "error": result["output"]}


def test_what_nobody_can_confirm_is_five(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["write_file", '{"path": "a", "content": "x"}']
    result, err = called(capsys, *words, code=5)
    assert (result["success"], result["refused"]) == (False, True)
    assert "--allow write_file:a" in err
    assert "--yes" in err
    assert result["error"] == result["output"]
    assert not (project / "a").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["run_shell", '{"command": "sudo true"}', "--yes"],
        ["run_shell", '{"command": "true"}', "--yes", "--deny", "run_shell"],
        ["write_file", '{"path": "a", "content": "x"}', "--yes", "--mode", "plan"],
        ["write_file", '{"path": "a", "content": "x"}', "--yes", "--mode", "deny"],
    ],
)
def test_what_is_forbidden_stays_so_in_spite_of_yes(
    words: list[str], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(capsys, *words, code=5)[0]["refused"]
    assert not (project / "a").exists()


@pytest.mark.integration
def test_the_folders_hold_and_can_be_added(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a").write_text("far\n")
    words = ["read_file", msgspec.json.encode({"path": str(tmp_path / "other" / "a")}).decode()]
    answer, said = called(capsys, *words, code=5)
    assert "outside the folders" in answer["output"]
    assert "--add-dir" in said
    found, _ = called(capsys, *words, "--add-dir", str(tmp_path / "other"))
    assert found["output"] == "1\tfar"


@pytest.mark.integration
def test_a_background_command_ends_with_the_call_and_that_is_told(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ybs.tools.builtin.run_shell.FIRST_SECONDS", 0.1)
    words = [
        "run_shell",
        '{"command": "echo $$; exec sleep 60", "background": true}',
        "--yes",
        "--no-sandbox",
    ]
    result, err = called(capsys, *words)
    assert result["result"]["running"]
    assert "job-1 was stopped" in err
    assert asyncio.run(ends(int(result["result"]["stdout"])))


@pytest.mark.integration
def test_a_person_at_a_terminal_is_asked(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    questions: list[Question] = []

    async def ask(question: Question, _sandbox: str) -> Answer:
        questions.append(question)
        return Answer(is_allowed=len(questions) > 1, reason="not now")

    monkeypatch.setattr(cli, "is_terminal", lambda _stream: True)
    monkeypatch.setattr("ybs.frontends.terminal.questions.late.ask", ask)
    words = ["write_file", '{"path": "a", "content": "x"}']
    assert called(capsys, *words, code=5)[0]["output"] == "Refused: not now"
    assert called(capsys, *words)[0]["success"]
    assert called(capsys, *words, "--yes")[0]["success"]
    assert [question.call.name for question in questions] == ["write_file"] * 2


def test_a_dry_run_does_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["write_file", '{"path": "a", "content": "x"}', "--dry-run"]
    assert called(capsys, *words)[0]["output"].startswith("Not executed (dry run)")
    assert not (project / "a").exists()


def test_warnings_about_the_settings_are_told(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".ybs.json").write_text("{broken")
    (project / "a").write_text("x")
    assert ".ybs.json" in called(capsys, "read_file", '{"path": "a"}')[1]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_call(
    number: signal.Signals, code: int, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def wait(_question: Question, _sandbox: str) -> Answer:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), number)
        await asyncio.Event().wait()
        raise AssertionError

    options = Options(host=this_host(), folder=project)
    words = '{"path": "a", "content": "x"}'
    assert call_tool(options, "write_file", words, is_yes=False, confirm=wait) == code
    assert capsys.readouterr().out == ""
    assert not (project / "a").exists()


@pytest.mark.slow
def test_json_is_utf_8_whatever_the_terminal_speaks(project: Path) -> None:
    (project / "a").write_text("日本\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "ybs", "tool", "call", "read_file", '{"path": "a"}'],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    assert msgspec.json.decode(done.stdout)["output"] == "1\t日本"


@pytest.mark.integration
def test_what_only_a_call_needs_is_not_loaded_for_the_first_request() -> None:
    code = "import ybs.session.session, ybs.frontends.headless.run, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    late = {"schema_types", "broken_json"}
    assert not {f"ybs.tools.calls.{name}" for name in late} & set(done.stdout.split())
    assert not {"hashlib", "shlex"} & set(done.stdout.split())


def with_hook(home: Path, event: str, matcher: str, command: str) -> None:
    group = {"matcher": matcher, "hooks": [{"type": "command", "command": command}]}
    path = home / ".config" / "ybs" / "config.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode({"hooks": {event: [group]}}))


@pytest.mark.integration
@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
def test_hooks_of_the_person_judge_the_call_as_they_do_in_a_session(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str], event: str
) -> None:
    with_hook(home, event, "Write", "echo not that one >&2; exit 2")
    written = '{"path": "a", "content": "x"}'
    mode = [] if event == "PermissionRequest" else ["--mode", "accept-edits"]
    for words in (mode, ["--yes"]):
        result, _ = called(capsys, "write_file", written, *words, code=5)
        assert "not that one" in result["error"]
    assert not (project / "a").exists()
    result, err = called(capsys, "list_files", '{"pattern": "*"}')
    assert result["success"]
    assert err == ""


@pytest.mark.integration
def test_hooks_after_the_call_hear_of_it_and_end_with_it(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_hook(home, "PostToolUse", "Bash", 'cat > "$YBS_PROJECT_DIR/seen"; echo seen >&2; exit 2')
    result, _ = called(capsys, "run_shell", '{"command": "echo x"}', "--yes", "--no-sandbox")
    assert result["output"].endswith("[hook] seen")
    told = msgspec.json.decode((project / "seen").read_bytes())
    assert (told["session_id"], told["tool_input"]) == ("no-session", {"command": "echo x"})


@pytest.mark.integration
def test_what_is_wrong_with_a_hook_is_told_before_a_call(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_hook(home, "PreToolUze", "Bash", "exit 2")
    _, err = called(capsys, "list_files", '{"pattern": "*"}')
    assert "hooks.PreToolUze: there is no such event in ybs" in err


@pytest.mark.integration
def test_what_a_command_leaves_that_runs_later_is_named(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = "mkdir .vscode; echo {} > .vscode/tasks.json"
    _, err = called(capsys, "run_shell", msgspec.json.encode({"command": made}).decode(), "--yes")
    assert "A command left files that other programs run" in err
    assert ".vscode/tasks.json" in err
