"""A command that nobody was asked about cannot write, whatever the parser thought of it: played through a session's tools.

The person's `safety.safe_commands` stand in for the next mistake of the parser: they name programs that write.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw, json

from hosts import this_host
from security.test_sandboxed_work import bubblewrap, landlock
from ybs.agent.toolbox import make_toolbox
from ybs.core.events import ConfirmationAsked, Event
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Answer, Question
from ybs.session.options import Options
from ybs.session.settings import environment_of, load_settings
from ybs.testing import RecordedHook

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
]
both = pytest.mark.parametrize("make", [bubblewrap, landlock])
MISTAKEN = ("cat", "ls", "tee", "touch", "rm", "truncate", "mv", "mine")
WRITES = "it tried to change a file"


class Session:
    """The tools of a session, a person who answers, and what they were asked."""

    def __init__(self, make: Callable[..., Any], project: Path, home: Path, mode: str) -> None:
        self.hook = RecordedHook()
        settings = {"safety.mode": mode, "safety.safe_commands": MISTAKEN}
        options = Options(host=this_host(), folder=project, overrides=settings)
        self.environment = environment_of(options, load_settings(options))
        self.environment.sandbox.backend = make(project, home)
        # So that the reduced one is not asked about.
        self.environment.policy.find_sandbox = lambda: "full"
        self.questions: list[Question] = []
        self.events: list[Event] = []
        self.answer = Answer(is_allowed=True)
        self._toolbox = make_toolbox(self.environment, None, [self.hook])
        self.environment.gate.confirm = self._confirm

    async def _confirm(self, question: Question) -> Answer:
        self.questions.append(question)
        return self.answer

    async def run(self, command: str, **more: Any) -> ToolResult:
        arguments = Raw(json.encode({"command": command, **more}))
        call = ToolCall(id="1", name="run_shell", arguments=arguments)
        return await self._toolbox.run(call, self.events.append)


@pytest.fixture
async def open_session(project: Path, home: Path):
    opened: list[Session] = []

    def opening(make: Callable[..., Any], mode: str = "ask") -> Session:
        opened.append(Session(make, project, home, mode))
        return opened[-1]

    (project / "main.py").write_text("kept\n")
    yield opening
    for session in opened:
        await session.environment.aclose()


@both
@pytest.mark.parametrize("command", ["ls | tee main.py", "rm main.py", "mv main.py other"])
async def test_a_command_that_was_taken_for_a_reader_changes_nothing_until_the_person_says_yes(
    open_session, make, command: str, project: Path
) -> None:
    session = open_session(make)
    session.answer = Answer(is_allowed=False, reason="not this")
    result = await session.run(command)
    assert (project / "main.py").read_text() == "kept\n"
    assert (result.is_error, result.is_refused) == (True, True)
    assert [each.reason for each in session.questions] == [
        f"{WRITES}, and what runs without a question only reads"
    ]
    assert "Refused: not this" in result.output
    session.answer = Answer(is_allowed=True)
    result = await session.run(command)
    assert not result.is_error, result.output
    file = project / "main.py"
    assert not file.exists() or file.read_text() != "kept\n"
    asked = [event for event in session.events if isinstance(event, ConfirmationAsked)]
    assert len(asked) == len(session.questions) == 2


@both
async def test_a_reader_is_not_asked_about_and_nothing_is_kept_for_undo(
    open_session, make, project: Path
) -> None:
    session = open_session(make)
    result = await session.run("cat main.py")
    assert result.output.startswith("kept\n")
    assert (session.questions, session.hook.before) == ([], [])
    assert not (await session.run("touch new")).is_error
    assert (len(session.questions), session.hook.before) == (1, [("execute", ())])
    assert (project / "new").exists()


@both
async def test_always_stands_for_that_command_alone(open_session, make) -> None:
    session = open_session(make)
    session.answer = Answer(is_allowed=True, is_for_session=True)
    for command in ("touch new", "touch new", "touch other"):
        assert not (await session.run(command)).is_error
    assert [each.grant for each in session.questions] == [
        "run_shell(touch new)",
        "run_shell(touch other)",
    ]


@both
async def test_in_deny_the_model_is_told_that_nothing_was_changed(
    open_session, make, project: Path
) -> None:
    session = open_session(make, "deny")
    result = await session.run("rm main.py; cat main.py")
    assert (project / "main.py").exists()
    assert session.questions == []
    assert result.is_refused
    assert f"[nothing was changed: {WRITES}" in result.output
    assert "The mode is deny" in result.output
    assert "kept" in result.output  # what it read is there all the same


@both
async def test_modes_that_do_not_ask_and_grants_run_writable(open_session, make, project) -> None:
    for number, mode in enumerate(("auto", "bypass")):
        session = open_session(make, mode)
        assert not (await session.run(f"touch new{number}")).is_error
        assert session.questions == []
        assert (project / f"new{number}").exists()
    session = open_session(make)
    session.environment.policy.grant("run_shell(touch granted)")
    assert not (await session.run("touch granted")).is_error
    assert session.questions == []


@both
async def test_a_program_that_only_the_project_has_is_asked_about(
    open_session, make, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = project / "bin" / "mine"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\ntouch ran\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    session = open_session(make)
    session.answer = Answer(is_allowed=False)
    await session.run("mine")
    assert not (project / "ran").exists()
    assert "not one of the system's" in session.questions[0].reason
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    without = open_session(make)
    assert "not found" in (await without.run("mine")).output  # nobody has it: nothing to ask about
    assert not without.questions


@both
async def test_a_job_that_nobody_was_asked_about_cannot_write_either(
    open_session, make, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(make)
    session.answer = Answer(is_allowed=False)
    result = await session.run("rm main.py", background=True)
    assert result.is_refused
    assert (project / "main.py").exists()
    # One that goes on for longer than the call says so at its end.
    monkeypatch.setattr("ybs.tools.builtin.run_shell.FIRST_SECONDS", 0.1)
    os.mkfifo(project / "pipe")
    result = await session.run("cat pipe; rm main.py", background=True)
    assert not result.is_error
    (job,) = session.environment.workspace.shells.jobs.running
    await asyncio.to_thread((project / "pipe").write_text, "on\n")
    while job.ended is None:
        await job.wait(0.1)
    assert (project / "main.py").exists()
    assert f"[nothing was changed: {WRITES}" in job.told(10_000).output
