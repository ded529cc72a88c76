"""When a refusal is the exit code of a run, and when it only stands in the result."""

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from rows import every_row
from scripted import OpenAIServer
from serving import serving
from ybs.config.schema import SafetySettings
from ybs.core.events import Noticed, ToolFinished, ToolStarted
from ybs.frontends.headless.run import Refusals, run_once
from ybs.session.options import Options
from ybs.testing import call

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def nothing_piped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)


def result_of(
    project: Path, capsysbinary: pytest.CaptureFixture[bytes], *script: Any, **options: Any
) -> dict[str, Any]:
    """Take one real turn without a terminal; return its JSON, in which `err` is what stood on standard error."""
    with serving([*script, "That is all."], OpenAIServer) as server:
        opened = Options.of(
            project, {"provider": "openai", "endpoint": server.url, "model": "m", **options}
        )
        code = run_once(opened, prompt="go", output_format="json")
    out, err = capsysbinary.readouterr()
    result = msgspec.json.decode(out)
    assert result["exit_code"] == code
    return {**result, "err": err.decode()}


REFUSED_PLACES: dict[str, tuple[str, dict[str, str]]] = {
    "outside": ("read_file", {"path": "../elsewhere.txt"}),
    "listed outside": ("list_files", {"path": "/opt", "pattern": "*"}),
    "searched outside": ("search_files", {"pattern": "x", "path": "/opt"}),
    "credentials": ("read_file", {"path": "HOME/.ssh/id_rsa"}),
    "a blocked place": ("read_file", {"path": "private/a.txt"}),
    "ybs's own files": ("write_file", {"path": "HOME/.config/ybs/config.json", "content": "{}"}),
    "the repository": ("write_file", {"path": ".git/config", "content": "[core]"}),
    "an edit of it": ("edit_file", {"path": ".git/HEAD", "old_text": "r", "new_text": "s"}),
    "deleted outside": ("delete_file", {"path": "/usr/lib/os-release"}),
    "a device": ("read_file", {"path": "/dev/zero"}),
    "a folder outside": ("run_shell", {"command": "ls", "working_dir": "/usr"}),
}


@pytest.mark.parametrize("name", REFUSED_PLACES)
def test_what_the_checks_of_paths_refuse_is_counted_as_refused(
    project: Path, home: Path, capsysbinary: pytest.CaptureFixture[bytes], name: str
):
    (project / ".git").mkdir()
    (project / ".git/HEAD").write_text("ref: refs/heads/main\n")
    tool, given = REFUSED_PLACES[name]
    arguments = {key: value.replace("HOME", str(home)) for key, value in given.items()}
    overrides = {"safety.sandbox_blocked_paths": ["private"], "safety.mode": "auto"}
    result = result_of(
        project, capsysbinary, call(tool, **arguments), overrides=overrides, sandbox=False
    )
    assert (result["exit_code"], result["refusals"], result["is_error"]) == (5, 1, True)
    assert (result["reason"], result["result"]) == ("done", "That is all.")
    assert f"refused: {tool}: " in result["err"]


def test_a_needless_call_that_was_refused_is_no_failure_of_the_run(
    project: Path, capsysbinary: pytest.CaptureFixture[bytes]
):
    (project / "a.py").write_text("x = 1\n")
    result = result_of(
        project,
        capsysbinary,
        call("run_shell", command="python3 -c 'raise SystemExit(1)'"),
        call("read_file", path="a.py"),
        call("edit_file", path="a.py", old_text="1", new_text="2"),
        call("run_shell", command="python3 -c 'raise SystemExit(0)'"),
        call("run_shell", command="make test"),
        mode="accept-edits",
        allow=["run_shell:python3 -c *"],
        sandbox=False,
    )
    assert (result["exit_code"], result["refusals"], result["is_error"]) == (0, 1, False)
    assert result["message"] == "1 call was refused (see --allow, --add-dir and --mode)"
    assert (project / "a.py").read_text() == "x = 2\n"


def done(name: str, command: str = "", **facts: Any) -> list[ToolStarted | ToolFinished]:
    arguments = Raw(msgspec.json.encode({"command": command} if command else {}))
    return [
        ToolStarted(id=f"{name} {command}", name=name, arguments=arguments),
        ToolFinished(id=f"{name} {command}", name=name, output="", **{"success": True, **facts}),
    ]


def refused(name: str, command: str = "") -> list[ToolStarted | ToolFinished]:
    return done(name, command, success=False, is_refused=True)


FAILED = {"success": False, "display": Raw(b'{"exit_code":2}')}
TURNS: dict[str, tuple[list[list[ToolStarted | ToolFinished]], list[str]]] = {
    "nothing refused": ([done("read_file")], []),
    "one look of many": ([done("read_file"), refused("read_file")], []),
    "the only look": ([refused("read_file")], ["read_file"]),
    "read, but not written": ([done("read_file"), refused("write_file")], ["write_file"]),
    "refused first": ([refused("write_file"), done("write_file")], []),
    "another way": ([refused("write_file"), done("edit_file")], ["write_file"]),
    "failed by itself": ([done("edit_file", success=False), refused("edit_file")], ["edit_file"]),
    "the tests ran, no edit": (
        [done("run_shell", "make", **FAILED), refused("edit_file")],
        ["edit_file"],
    ),
    "a command that failed ran": ([done("run_shell", "make", **FAILED), refused("run_shell")], []),
    "one that never began": (
        [done("run_shell", "make", success=False), refused("run_shell")],
        ["run_shell"],
    ),
    "looked around only": (
        [
            done("run_shell", "ls -l"),
            refused("run_shell", "npm install"),
            done("run_shell", "cat a"),
        ],
        ["run_shell"],
    ),
    "in the background": ([done("run_shell", "make -j2"), refused("run_shell", "npm install")], []),
    "arguments that are none": (
        [
            [ToolStarted(id="1", name="run_shell", arguments=Raw(b"[]"))],
            [ToolFinished(id="1", name="run_shell", success=True, output="", display=Raw(b"[]"))],
            refused("run_shell"),
        ],
        ["run_shell"],  # nobody knows what it was
    ),
}


@every_row("events, blocked", list(TURNS.values()), list(TURNS))
def test_a_refusal_stands_in_the_way_where_a_tool_was_never_let_do_anything(
    events: list[list[ToolStarted | ToolFinished]], blocked: list[str]
):
    refusals = Refusals()
    refusals.add(Noticed(level="info", text="passed over"))
    for event in (event for call_events in events for event in call_events):
        refusals.add(event)
    assert refusals.blocked(SafetySettings()) == blocked
