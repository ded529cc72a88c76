"""examples/plugin, installed beside ybs: its tool, toolbox, guard, hook and command work, and what is broken stops nothing."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from installing import PLUGIN, Environment
from opened import open_session
from screen import Screen
from scripted import OpenAIServer
from serving import serving
from ybs.core.events import Noticed, ToolFinished
from ybs.testing import call

pytestmark = pytest.mark.integration

__all__ = ["open_session"]

SCRIPT = [
    call("tide", harbour="Bremen"),
    call("board"),
    call("sail"),
    call("board"),
    "Sail at noon.",
]
RESULTS = ["High water at 12:40.", "You board.", "You sail.", "There is no tool 'board'"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Make an environment in which the example is installed."""
    made = Environment(tmp_path_factory.mktemp("plugin") / "venv")
    made.install(PLUGIN)
    return made


@pytest.fixture
def bare(tmp_path: Path) -> Environment:
    """Make an environment in which nothing is installed beside ybs."""
    return Environment(tmp_path / "venv")


def offered(request: Any) -> list[str]:
    names = [tool["function"]["name"] for tool in request.body["tools"]]
    return [name for name in names if name in ("tide", "board", "sail")]


def told(requests: Any) -> list[str]:
    return [each["content"] for each in requests[-1].body["messages"] if each["role"] == "tool"]


def test_everything_that_it_brings_works_in_the_terminal(environment, project):
    with serving(SCRIPT) as server:
        where = ("--endpoint", server.url, "-m", "scripted")
        with Screen(*where, command=environment.command) as screen:
            screen.sees(r"› *\n")
            screen.keys("/tide Bremen\r")
            screen.sees(r"Bremen +12:40")
            screen.keys("when can I sail?\r")
            screen.sees("Sail at noon")
            screen.sees("The harbour master has seen this turn")
            text = screen.text
            screen.keys("/quit\r")
            assert screen.ends() == 0
    assert [name for name in ("tide", "board", "sail") if f"• {name}" in text] == [
        "tide",
        "board",
        "sail",
    ]
    assert "reminded the model: All times are in UTC." in text
    assert [offered(each) for each in server.requests] == [
        ["tide", "board"],
        ["tide", "board"],
        ["tide", "sail"],
        ["tide", "sail"],
        ["tide", "sail"],
    ]
    for output, expected in zip(told(server.requests), RESULTS, strict=True):
        assert output.startswith(expected)


def test_everything_that_it_brings_works_without_a_terminal(environment, project):
    with serving(SCRIPT) as server:
        where = ("--endpoint", server.url, "-m", "scripted")
        done = environment.runs("--print", "when can I sail?", *where)
    assert (done.stdout, done.returncode) == ("Sail at noon.\n", 0)
    assert done.stderr == "warning: The harbour master has seen this turn.\n"
    for output, expected in zip(told(server.requests), RESULTS, strict=True):
        assert output.startswith(expected)


def test_its_tool_is_listed_and_can_be_called_and_its_command_stands_in_help(environment, project):
    listed = msgspec.json.decode(environment.runs("tools", "list", "--format", "json").stdout)
    assert [each["name"] for each in listed if each["source"] == "installed"] == ["tide"]
    called = environment.runs("tool", "call", "tide", '{"harbour": "Cuxhaven"}')
    assert "High water at 09:15." in called.stdout
    with serving([]) as server:
        helped = environment.runs("--print", "/help", "--endpoint", server.url, "-m", "scripted")
    assert "/tide [HARBOUR]" in helped.stdout, helped


def test_what_does_not_work_is_named_in_one_warning_each_and_the_rest_goes_on(bare, project):
    bare.declare("ybs-gone", {"ybs.tools": {"gone": "ybs_gone:Tool"}})
    (bare.site / "ybs_bad.py").write_text(
        "raise_it = lambda: 1 / 0\nleave = lambda: exit(3)\nfrom ybs.commands.command import Command\n"
        "TAKEN = Command(('help',), '', 'helps', leave)\n"
        "class Half:\n    name = 'half'\n"
    )
    groups = {
        "ybs.guards": {"raises": "ybs_bad:raise_it", "leaves": "ybs_bad:leave"},
        "ybs.toolboxes": {"half": "ybs_bad:Half"},
        "ybs.commands": {"text": "ybs_bad:Half", "taken": "ybs_bad:TAKEN"},
        "ybs.hooks": {"none": "ybs_bad:missing"},
    }
    bare.declare("ybs-bad", groups)
    bare.install(PLUGIN)
    with serving([call("tide", harbour="Bremen"), "At noon."]) as server:
        done = bare.runs("--print", "hi", "--endpoint", server.url, "-m", "scripted")
    assert (done.stdout, done.returncode) == ("At noon.\n", 0)
    lines = done.stderr.splitlines()
    assert len(lines) == 8, lines
    for name in ("ybs_gone", "raises", "leaves", "half", "text", "taken", "none"):
        assert sum(f" {name} " in line for line in lines[:-1]) == 1, (name, lines)
    assert all("ybs goes on without it" in line for line in lines[:-1])
    assert "Traceback" not in done.stderr


def test_a_project_brings_nothing_in_this_way(bare: Environment, project: Path) -> None:
    """Its folder stands on `sys.path` where ybs is started as a module."""
    (project / "evil.py").write_text("open('was-here', 'w').close()\n")
    groups = ("tools", "toolboxes", "guards", "hooks", "commands", "providers")
    bare.declare("evil", {f"ybs.{group}": {"evil": "evil:Evil"} for group in groups}, project)
    with serving(["Hello."]) as server:
        done = bare.runs("--print", "hi", "--endpoint", server.url, "-m", "scripted")
    assert (done.stdout, done.stderr) == ("Hello.\n", "")
    done = bare.runs("--print", "hi", "-p", "evil")
    assert "There is no provider 'evil'" in done.stderr
    assert not (project / "was-here").exists()


def module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ybs_tides", PLUGIN / "ybs_tides.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


async def test_a_python_program_hands_the_same_things_in(open_session: Callable[..., Any]) -> None:
    tides = module()
    async with OpenAIServer(SCRIPT) as server:
        session, events = open_session(
            server,
            tools=[tides.Tide()],
            toolboxes=[tides.Boat()],
            guards=[tides.TellUtc()],
            hooks=[tides.TurnNotes()],
        )
        async with session:
            outcome = await session.send("when can I sail?")
    assert outcome.text == "Sail at noon."
    outputs = [event.output for event in events.of(ToolFinished)]
    for output, expected in zip(outputs, RESULTS, strict=True):
        assert output.startswith(expected)
    assert [event.text for event in events.of(Noticed)][-1].startswith("The harbour master")
