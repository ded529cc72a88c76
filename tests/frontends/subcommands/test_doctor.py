"""`ybs doctor`: what works, what does not, and what mends it."""

import shlex
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from hosts import this_host
from serving import serving
from ybs import cli
from ybs.frontends.subcommands import doctor
from ybs.frontends.subcommands.doctor import Finding, install, summary, write_findings
from ybs.security.sandbox.sandbox import Sandbox

KEY = "sk-" + "abcdefgh" * 4


@pytest.fixture(autouse=True)
def place(project: Path) -> None:
    """Stand in a project."""


@pytest.fixture
def user_file(home: Path) -> Path:
    path = home / ".config" / "ybs" / "config.json"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def port() -> Iterator[int]:
    """Return a port of this machine that listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def found_by_the_doctor(
    capsys: pytest.CaptureFixture[str], *words: str, code: int = 0
) -> dict[str, Any]:
    assert cli.main([*words, "doctor", "--format", "json"]) == code
    return {each["name"]: each for each in msgspec.json.decode(capsys.readouterr().out)}


def test_the_doctor_names_what_is_there_and_what_is_not(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    found = found_by_the_doctor(capsys)
    assert found["provider openai"] == {
        "name": "provider openai",
        "state": "untried",
        "detail": "key found (OPENAI_API_KEY), not tried",
        "fix": "",
        "is_needed": True,
    }
    assert found["provider anthropic"] == {
        "name": "provider anthropic",
        "state": "missing",
        "detail": "no key; set ANTHROPIC_API_KEY",
        "fix": "export ANTHROPIC_API_KEY=...",
        "is_needed": False,
    }
    states = {"full": "ok", "reduced": "warning", "none": "error"}
    assert found["sandbox"]["state"] == states[Sandbox(this_host(), project).state]
    names = "ybs python system configuration provider rg git folder sessions terminal guards"
    assert set(names.split()) <= set(found)
    assert found["provider"]["fix"] == "ybs setup"
    assert found["configuration"]["state"] == "ok", "nobody needs a file of settings"
    assert found["configuration"]["detail"].startswith("the defaults; ")


def test_what_is_well_takes_a_line_and_what_is_not_comes_with_its_fix(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["doctor"]) == 0
    *lines, empty, last = capsys.readouterr().out.splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("missing  provider  "))
    assert lines[place + 1] == "         fix: ybs setup"
    assert not any("fix: export" in line for line in lines)  # nobody needs all providers
    fixes = sum("  fix: " in line for line in lines)
    assert (empty, last.split()[0]) == ("", str(fixes))


def test_the_last_line_says_how_much_there_is_to_do() -> None:
    bad = Finding(name="a", state="warning", detail="")
    spare = Finding(name="b", state="missing", detail="", is_needed=False)
    assert summary([spare]) == "No problems found."
    assert summary([bad, spare]) == "1 problem to fix."
    assert summary([bad, bad]) == "2 problems to fix."


def test_on_a_terminal_what_is_well_is_dim_and_nothing_is_broken_in_forty_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    fix = "run-this " * 9
    write_findings(
        [
            Finding(name="x" * 30, state="ok", detail="fine \x1b[2J and rather more of it"),
            Finding(name="b", state="warning", detail="not so fine", fix=fix),
        ]
    )
    shown = capsys.readouterr().out
    assert shown.startswith(f"\x1b[2mok       {'x' * 30}\n         fine ␛[2J")
    assert f"\nwarning  b  not so fine\n         fix: {fix}\n" in shown
    monkeypatch.setenv("TERM", "dumb")
    write_findings([Finding(name="a", state="ok", detail="fine")])
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.integration
def test_a_start_that_is_impossible_is_an_error_with_the_code_of_that_start(
    user_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = found_by_the_doctor(capsys, "-p", "openai", code=4)
    assert found["provider"]["state"] == "error"
    assert found["provider"]["fix"] == "export OPENAI_API_KEY=..."
    assert not found["provider openai"]["is_needed"]  # it is said already
    found = found_by_the_doctor(capsys, "-p", "opneai", code=3)
    assert "There is no provider 'opneai'" in found["provider"]["detail"]
    found = found_by_the_doctor(capsys, "-p", "llamacpp", code=3)
    assert found["provider"]["fix"] == "ybs models download starter"
    user_file.write_text(
        '{"llm": {"provider": "own"}, "providers": {"own": {"endpoint": "ftp://x"}}}'
    )
    found = found_by_the_doctor(capsys, code=3)
    assert found["provider"]["state"] == "error"


def test_a_provider_that_cannot_be_loaded_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_name: str, _config: object) -> None:
        raise ImportError("no module named x")

    monkeypatch.setattr("ybs.providers.registry.find_provider", broken)
    assert found_by_the_doctor(capsys)["provider openai"]["state"] == "warning"


def test_a_warning_about_the_settings_is_one_to_mend(
    home: Path, user_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user_file.write_text('{"lmm": {}}')
    (home / ".ybs.json").write_text("{}")
    assert cli.main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "lmm: is not a setting" in shown
    assert "fix: ybs config check" in shown
    assert str(home / ".ybs.json") in shown


def test_a_local_provider_is_ok_only_while_it_listens(
    user_file: Path, port: int, capsys: pytest.CaptureFixture[str]
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
    assert found["provider far"]["detail"] == "at http://models.example.org/v1, not checked"
    assert found["provider odd"]["state"] == "warning"


@pytest.mark.integration
def test_a_key_that_the_server_refused_is_not_called_ok(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            address = f"http://127.0.0.1:{server.server_address[1]}/v1"
            found = found_by_the_doctor(capsys, "--endpoint", address, "-m", "any")
        finally:
            server.shutdown()
    assert found["model"]["state"] == "warning"
    assert "refused the key (401)" in found["model"]["detail"]


@pytest.mark.integration
def test_the_doctor_says_how_a_provider_is_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def never(_endpoint: str) -> bool:
        return False

    monkeypatch.setattr("ybs.providers.reachable.listens", never)
    found = found_by_the_doctor(capsys)
    assert found["provider ollama"]["fix"] == "ollama serve"
    assert not found["provider ollama"]["is_needed"]
    assert "not running" in found["provider ollama"]["detail"]
    assert found["provider llamacpp"]["fix"] == "ybs models download starter"
    monkeypatch.setattr("ybs.providers.local.models.starter_installed", lambda _host: True)
    found = found_by_the_doctor(capsys)
    assert found["provider llamacpp"]["detail"] == "not running; it starts with the first request"
    assert found["provider"]["detail"] == "none chosen, so the starter model is used"
    assert found["starter model"]["state"] == "ok"


def test_a_chosen_server_that_does_not_run_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    endpoint = "http://127.0.0.1:1"
    found = found_by_the_doctor(capsys, "-p", "ollama", "--endpoint", endpoint, "-m", "x")
    provider = found["provider ollama"]
    assert (provider["state"], provider["is_needed"]) == ("missing", True)
    assert provider["fix"] == "ollama serve"
    assert (
        found["model"]["detail"] == "x; ollama at 127.0.0.1:1 does not answer (connection refused)"
    )
    assert found["model"]["state"] == "warning"


@pytest.mark.integration
def test_the_chosen_model_is_looked_for_on_this_machine_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving([]) as server:
        found = found_by_the_doctor(capsys, "--endpoint", server.url, "-m", "scripted")
        assert found["provider openai"]["detail"] == f"running at {server.url}"
        assert found["provider"]["detail"] == urlsplit(server.url).netloc
        assert found["model"]["detail"].startswith("scripted, window ")
        found = found_by_the_doctor(capsys, "--endpoint", server.url, "-m", "other")
        assert found["model"]["state"] == "missing"
        assert found["model"]["detail"] == f"other is not available at {server.url}"
        assert not server.requests
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    found = found_by_the_doctor(capsys, "-p", "openai", "-m", "gpt-4.1")
    assert found["model"]["detail"] == "gpt-4.1, window 1,047,576, not checked"


def test_the_fix_for_a_sandbox_is_what_keeps_it_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ybs.frontends.subcommands.doctor.is_installed", lambda name: name == "dnf")
    why = "bubblewrap is not installed for the whole system; landlock stands in for it"
    assert doctor.fix_for_backend(why) == "sudo dnf install bubblewrap"
    broken = "/usr/bin/bwrap does not work here: setting up uid map: Permission denied"
    (tmp_path / "kernel").mkdir()
    restricted = tmp_path / "kernel" / "apparmor_restrict_unprivileged_userns"
    restricted.write_text("1\n")
    fix = "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    assert doctor.fix_for_backend(broken, tmp_path) == fix
    restricted.write_text("0\n")
    assert "user namespaces" in doctor.fix_for_backend(broken, tmp_path)
    assert (
        doctor.fix_for_backend("no filter for this machine", tmp_path) == "see `ybs help sandbox`"
    )
    monkeypatch.setattr("ybs.frontends.subcommands.doctor.is_installed", lambda _name: False)
    assert install("git") == "install git"


def test_a_reduced_sandbox_is_a_warning_and_none_an_error(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ybs.config.schema import Config
    from ybs.security.sandbox.launch import Backend

    backend = Backend("nothing here")
    monkeypatch.setattr("ybs.security.sandbox.choice.choose", lambda *_: backend)
    found = doctor.look_at_sandbox(this_host(), Config())
    assert (found.state, found.detail) == ("error", "nothing here; commands are refused")
    backend.name = "landlock (reduced)"
    found = doctor.look_at_sandbox(this_host(), Config())
    assert (found.state, found.needs_fix) == ("warning", True)
    assert "in mode auto, too, ybs asks before commands that write" in found.detail


def test_what_is_wrong_with_folders_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    assert doctor.look_at_sessions(tmp_path).state == "ok"
    tmp_path.chmod(0o750)
    opened = doctor.look_at_sessions(tmp_path)
    assert opened.fix == f"chmod 700 {tmp_path}"
    assert "mode 750" in opened.detail
    tmp_path.chmod(0o770)
    assert "can be written by others" in doctor.look_at_sessions(tmp_path).detail
    tmp_path.chmod(0o700)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    linked = doctor.look_at_sessions(tmp_path / "link")
    assert "no session is kept" in linked.detail
    assert "is a symbolic link" in linked.detail
    assert doctor.look_at_sessions(tmp_path / "a" / "b").state == "ok"
    (tmp_path / "file").write_text("")
    assert doctor.look_at_sessions(tmp_path / "file" / "a").state == "warning"
    monkeypatch.setattr("os.access", lambda *_: False)
    assert "cannot be written" in doctor.look_at_sessions(tmp_path).detail
    odd = tmp_path / "it's; touch x"
    assert shlex.split(doctor.look_at_project(odd).fix) == ["sudo", "chown", "$USER", str(odd)]
    assert "cannot be made" in doctor.look_at_sessions(tmp_path / "a").detail


def test_a_missing_program_comes_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ybs.frontends.subcommands.doctor.is_installed", lambda name: name == "apk")
    monkeypatch.setattr(doctor, "trusted_program", lambda *_, **__: None)
    monkeypatch.setattr("ybs.tools.searching.engine.program", lambda _environ: "")
    found = found_by_the_doctor(capsys)
    assert found["rg"]["fix"] == "sudo apk add ripgrep"
    assert found["git"]["state"] == "missing"


def test_the_terminal_is_judged_by_what_it_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    (kind, signs) = doctor.look_at_screen({"TERM": "xterm-256color"})
    assert (kind.state, signs.state) == ("ok", "ok")
    assert "100 columns, 256 colours" in kind.detail
    assert doctor.look_at_kind("", {"TERM": "dumb"}).fix == "export TERM=xterm-256color"
    assert doctor.look_at_kind("", {}).needs_fix
    monkeypatch.setenv("COLUMNS", "30")
    assert doctor.look_at_kind("", {"TERM": "xterm"}).needs_fix
    assert doctor.look_at_encoding("ascii").fix == "export LC_ALL=C.UTF-8"
    assert doctor.look_at_encoding("no such").needs_fix
    assert doctor.colours({"TERM": "xterm", "NO_COLOR": "1"}) == "no colour (NO_COLOR)"
    assert doctor.colours({"TERM": "dumb", "COLORTERM": "truecolor"}) == "no colour"
    assert doctor.colours({"TERM": "xterm", "COLORTERM": "truecolor"}) == "true colour"
    assert doctor.colours({"TERM": "xterm"}) == "8 colours"


def test_the_doctor_says_whether_the_program_of_an_agent_is_there(
    project: Path, user_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    acp = {"mine": {"command": [str(program)]}, "codex": {}, "none": {}}
    user_file.write_text(msgspec.json.encode({"agents": {"acp": acp}}).decode())
    found = found_by_the_doctor(capsys)
    assert (found["agent mine"]["state"], found["agent mine"]["detail"]) == (
        "untried",
        "agent is there",
    )
    assert found["agent codex"]["state"] == "missing"
    assert found["agent codex"]["fix"] == "npm install -g @agentclientprotocol/codex-acp"
    assert found["agent none"]["detail"].startswith("it has no `command`")
