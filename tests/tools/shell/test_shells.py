"""What the commands of a session share: one watch, one place for outputs, and jobs of all its agents."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hosts import this_host
from ybs.core.errors import ToolError
from ybs.security.launcher import shell_command
from ybs.security.paths.roots import Roots
from ybs.security.sandbox.launch import Access, Bare, Launch
from ybs.tools.shell import watch as watch_module
from ybs.tools.shell.orphans import VARIABLE, token
from ybs.tools.shell.output import Output
from ybs.tools.shell.overflow import Outputs
from ybs.tools.shell.process import Command, Ended, run_command
from ybs.tools.shell.shells import Shells


class FakeWatch:
    """Records what it is told."""

    made: list["FakeWatch"]

    def __init__(self, name: str) -> None:
        self.name, self.said = name, list[str]()
        self.made.append(self)

    def clear(self, folder: str) -> None:
        """Take a folder."""
        self.said.append(folder)

    def close(self) -> None:
        """End."""
        self.said.append("closed")


@pytest.fixture
def watches(monkeypatch: pytest.MonkeyPatch) -> list[FakeWatch]:
    FakeWatch.made = []
    monkeypatch.setattr(watch_module, "Watch", FakeWatch)
    return FakeWatch.made


@pytest.fixture
def roots(project: Path) -> Roots:
    return Roots(this_host(), project)


class Starter(Bare):
    """Says what it was asked for."""

    def start(
        self, command: Sequence[str], folder: Path, environ: Mapping[str, str], access: Access
    ) -> Launch:
        """Return the question."""
        return Launch((*command, str(folder), str(access)), environ)


def test_it_makes_what_it_is_not_given(roots: Roots) -> None:
    shells = Shells(roots)
    assert isinstance(shells.starter, Bare)
    assert isinstance(shells.outputs, Outputs)
    assert shells.spill(5)._outputs is shells.outputs
    starter, outputs = Starter(), Outputs(roots)
    given = Shells(roots, starter=starter, outputs=outputs, keeps_outputs=False)
    assert (given.starter, given.outputs) == (starter, outputs)
    assert given.spill(5)._outputs is None


def test_one_for_another_agent_starts_alike_and_is_told_of(roots: Roots) -> None:
    shells = Shells(roots, starter=Starter(), keeps_outputs=False)
    others = [shells.apart(), shells.apart().apart()]
    for number, each in enumerate(others):
        assert (each.starter, each.outputs) == (shells.starter, shells.outputs)
        assert not each.keeps_outputs
        jobs: Any = SimpleNamespace(running=[SimpleNamespace(name=f"job-{number}")])
        each._jobs = jobs
    assert sorted(shells.running_jobs) == sorted(others[0].running_jobs) == ["job-0", "job-1"]


async def test_one_that_is_closed_ends_its_jobs_and_its_watch(
    roots: Roots, watches: list[FakeWatch]
) -> None:
    shells, swept, ended = Shells(roots), list[int](), list[int]()
    other = shells.apart()

    async def end() -> None:
        ended.append(1)

    jobs: Any = SimpleNamespace(running=[SimpleNamespace(name="job")], aclose=end)
    outputs: Any = SimpleNamespace(sweep=lambda: swept.append(1))
    other._jobs, other.outputs = jobs, outputs
    await other.aclose()
    assert (ended, swept, watches, shells.running_jobs) == ([1], [], [], ())
    assert other.watch is other.watch
    other.close_watch()
    other.close_watch()
    assert [(each.name, each.said) for each in watches] == [(token(), ["closed"])]
    assert swept == [1]
    assert other.watch is watches[1]


def test_a_command_is_started_as_it_is_asked_for_and_marked(
    roots: Roots, project: Path, watches: list[FakeWatch]
) -> None:
    shells = Shells(roots, starter=Starter())
    for how in ({}, {"network": True}, {"read_only": True}):
        launch, mark = shells.prepare("x", project, **how)
        assert launch.argv == (*shell_command("x"), str(project), str(Access(**how)))
        assert launch.environ[VARIABLE].endswith(mark.text)
    assert watches == []


def test_what_a_sandbox_has_made_is_removed_by_the_watch(
    roots: Roots, watches: list[FakeWatch]
) -> None:
    Shells(roots).marked(Launch(("x",), {}, scratch="/scratch"))
    assert [each.said for each in watches] == [["/scratch"]]


def test_commands_are_handed_over_where_there_may_be_more_jobs(roots: Roots) -> None:
    shells = Shells(roots)
    waiting: list[Any] = [FakeShell(), FakeShell()]
    shells.in_front = set(waiting)
    assert shells.send_to_background() == 2
    assert [each.left.is_set() for each in waiting] == [True, True]

    def refuse() -> None:
        raise ToolError("too many")

    jobs: Any = SimpleNamespace(check=refuse)
    shells._jobs, shells.in_front = jobs, {FakeShell()}
    with pytest.raises(ToolError, match="too many"):
        shells.send_to_background()
    assert [each.left.is_set() for each in shells.in_front] == [False]


class FakeShell:
    """A command that is waited for."""

    def __init__(self) -> None:
        self.left = asyncio.Event()


@pytest.mark.integration
async def test_the_input_of_a_command_is_closed_once_it_has_begun_or_cannot(
    roots: Roots, project: Path
) -> None:
    shells = Shells(roots)
    (project / "in").write_text("given\n")
    for folder, name in ((project, "in"), (project, None), (project / "gone", "in")):
        output = Output(100)
        given = None if name is None else (project / name).open("rb")
        launch, mark = shells.prepare("cat", project)
        command = Command(
            launch=launch, folder=folder, mark=mark, output=output, watch=shells.watch, given=given
        )
        if folder == project:
            assert await run_command(command, 8) == Ended(exit_code=0)
            assert output.stdout.text() == ("given\n" if given else "")
        else:
            with pytest.raises(FileNotFoundError):
                await run_command(command, 8)
        assert given is None or given.closed
    shells.close_watch()
