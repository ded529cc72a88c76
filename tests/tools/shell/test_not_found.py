"""run_shell: what is said where a program was not found."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw, json

from hosts import this_host
from rows import every_row
from ybs.agent.environment import ToolEnvironment
from ybs.agent.toolbox import make_toolbox
from ybs.core.errors import ToolError
from ybs.core.messages import ToolCall
from ybs.security.sandbox.launch import Launch, Starter
from ybs.session.options import Options
from ybs.session.settings import environment_of, load_settings
from ybs.tools.shell import substitutes
from ybs.tools.shell.programs import OTHER_NAMES
from ybs.tools.shell.substitutes import substitute_for

pytestmark = pytest.mark.integration


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that leaves these programs in PATH, and what is needed to look at a file."""

    def leave(*names: str) -> None:
        folder = tmp_path / "programs"
        folder.mkdir()
        for name in ("grep", "head"):
            (folder / name).symlink_to(shutil.which(name) or "")
        for name in names:
            (folder / name).write_text("#!/bin/sh\necho ran\n")
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))

    return leave


async def failed(bench: Any, **arguments: Any) -> str:
    answered = await bench.call("run_shell", **arguments)
    assert answered.result.is_error
    return answered.output


def last_line(output: str) -> str:
    return output.splitlines()[-1]


async def test_the_same_program_by_another_name_is_said(make_bench: Any, only: Any):
    only("python3", "pip3", "make")
    bench = make_bench()
    for command, said in (
        ("python a.py", "[python is not on this machine; python3 is.]"),
        ("echo x | pip list", "[pip is not on this machine; pip3 is.]"),
        ("gmake", "[gmake is not on this machine; make is.]"),
    ):
        output = await failed(bench, command=command)
        assert last_line(output) == said
        assert "\n[exit code 127, " in output
    assert (await bench.ok("run_shell", command="python3 a.py")).output.startswith("ran\n")


async def test_nothing_is_said_of_what_is_not_there_either(make_bench: Any, only: Any):
    only("sh")
    bench = make_bench()
    for command in ("python a.py", "no-such-program", "exit 127", "./no-such-program"):
        assert last_line(await failed(bench, command=command)).startswith("[exit code")


async def test_a_file_of_that_name_is_said_to_be_one(make_bench: Any, only: Any, project: Path):
    only("sh", "python3", "bash")
    bench = make_bench()
    for name in ("tally.sh", "tally.py", "tally", "plain", "tally.rb"):
        (project / name).write_text("#!/bin/sh\necho tallied\n")
    (project / "full.sh").write_text("#!/usr/bin/env bash\n")
    (project / "tally").chmod(0o755)
    (project / "folder.sh").mkdir()
    for command, way in (
        ("tally.sh", "sh tally.sh"),
        ("true && tally.sh x", "sh tally.sh"),
        ("tally.py", "python3 tally.py"),
        ("tally", "./tally"),
        ("full.sh", "bash full.sh"),
    ):
        name = way.split("/")[-1].split()[-1]
        output = await failed(bench, command=command)
        assert last_line(output) == f"[{name} is a file here: run it as `{way}`.]"
    for command in ("plain", "tally.rb", "folder.sh", "cd . && tally.sh", "X=1 no.sh"):
        assert last_line(await failed(bench, command=command)).startswith("[exit code")


async def test_a_command_in_a_folder_is_told_of_the_files_there(bench: Any, project: Path):
    (project / "sub").mkdir()
    (project / "sub" / "tally.sh").write_text("echo tallied\n")
    output = await failed(bench, command="tally.sh", working_dir="sub")
    assert last_line(output) == "[tally.sh is a file here: run it as `sh tally.sh`.]"
    assert "is a file here" not in await failed(bench, command="tally.sh")


async def test_a_background_command_is_told_as_well(bench: Any, project: Path):
    (project / "tally.sh").write_text("echo tallied\n")
    output = await failed(bench, command="tally.sh", background=True)
    assert last_line(output) == "[tally.sh is a file here: run it as `sh tally.sh`.]"


async def test_a_command_that_may_only_read_is_told_as_well(bench: Any, project: Path):
    (project / "tally.sh").write_text("echo tallied\n")
    tool = next(each for each in bench.tools if each.name == "run_shell")
    ran = await tool.run_read_only(tool.arguments(command="tally.sh"), lambda _: None)
    assert last_line(ran.output.output) == "[tally.sh is a file here: run it as `sh tally.sh`.]"


async def test_other_exit_codes_cost_nothing_and_a_look_that_fails_says_nothing(bench: Any):
    class Counting(Starter):
        fails = False

        def __init__(self) -> None:
            self.commands = list[str]()

        def start(self, command: Any, folder: Path, environ: Any, access: Any) -> Launch:
            self.commands.append(command[-1])
            if self.fails and len(self.commands) % 2 == 0:
                raise ToolError("no more")
            return super().start(command, folder, environ, access)

    starter = bench.workspace.shells.starter = Counting()
    for command in ("true", "exit 1", "no-such-program; exit 2", "exit 127"):
        await bench.call("run_shell", command=command)
    assert len(starter.commands) == 4
    starter.fails = True
    output = await failed(bench, command="no-such-program")
    assert last_line(output).startswith("[exit code 127, ")
    assert len(starter.commands) == 6


async def run_in(environment: ToolEnvironment, command: str) -> str:
    call = ToolCall(id="1", name="run_shell", arguments=Raw(json.encode({"command": command})))
    toolbox = make_toolbox(environment)
    return (await asyncio.wait_for(toolbox.run(call, lambda _: None), 8)).output


async def test_in_the_sandbox_it_is_said_what_is_there(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "tally.sh").write_text("echo tallied\n")
    (project / "hidden.sh").write_text("echo tallied\n")
    monkeypatch.setitem(OTHER_NAMES, "no-such-program", "sh")
    monkeypatch.setitem(OTHER_NAMES, "no-such-other", "no-such-program")
    blocked = {
        "safety.mode": "bypass",
        "safety.sandbox_blocked_paths": [str(project / "hidden.sh")],
    }
    options = Options(host=this_host(), folder=project, overrides=blocked)
    environment = environment_of(options, load_settings(options))
    if environment.sandbox.state == "none":
        pytest.skip(f"NOT TESTED: {environment.sandbox.backend.why}")
    try:
        said = {
            command: last_line(await run_in(environment, command))
            for command in ("tally.sh", "no-such-program", "no-such-other", "hidden.sh")
        }
    finally:
        await environment.aclose()
    assert said.pop("tally.sh") == "[tally.sh is a file here: run it as `sh tally.sh`.]"
    assert said.pop("no-such-program") == "[no-such-program is not on this machine; sh is.]"
    assert all(line.startswith("[exit code 127, ") for line in said.values()), said


@every_row(
    ("name", "there", "way"),
    [
        ("a.py", "./ python3 python", "python3 a.py"),
        ("a.py", "./ python sh", "python a.py"),
        ("a.py", "./ sh +x", ""),  # there is no Python that it could be run with
        ("a.sh", "./ sh", "sh a.sh"),
        ("a.sh", "./ sh bash #!bash", "bash a.sh"),
        ("a.sh", "./ sh #!bash", ""),
        ("a", "./ bash #!bash", "bash a"),
        ("a", "./ sh +x", "./a"),
        ("a", "./ sh", ""),
        ("a.rb", "./ sh", ""),
    ],
)
def test_a_file_is_run_with_what_is_there(name: str, there: str, way: str):
    assert substitutes._way_to_run(name, there.split()) == way


@every_row(
    ("command", "said", "there", "expected"),
    [
        ("python x", "sh: 1: python: not found", "python3", "[python is not on this machine; python3 is.]"),
        ("python x", "sh: 1: python: not found", "python", ""),
        ("a.sh", "sh: 1: a.sh: not found", "./ sh", "[a.sh is a file here: run it as `sh a.sh`.]"),
        ("a.sh", "sh: 1: a.sh: not found", "sh", ""),  # the file is not there
        ("cd x && a.sh", "sh: 1: a.sh: not found", "./ sh", ""),
        ("make", "sh: 1: a.sh: not found", "./ sh", ""),  # somebody else's words
        ("a.sh", "nothing of that kind", "./ sh", ""),
        ("make", "sh: 1: make: not found", "./ sh", ""),
    ],
)  # fmt: skip
async def test_only_what_is_certain_is_said(
    monkeypatch: pytest.MonkeyPatch, command: str, said: str, there: str, expected: str
):
    probes: list[str] = []

    async def lines_of(probe: str, *_: object, **__: object) -> list[str]:
        probes.append(probe)
        return there.split()

    monkeypatch.setattr(substitutes, "_lines_of", lines_of)
    shells: Any = None
    assert await substitute_for(command, said, Path("/"), shells, read_only=False) == expected
    assert len(probes) == ("not found" in said)
