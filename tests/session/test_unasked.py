"""A command that nobody was asked about cannot write, and the person is asked once it was stopped: played through a session's tools."""

import re
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
from ybs.security.sandbox.launch import Need
from ybs.session.options import Options
from ybs.session.settings import environment_of, load_settings
from ybs.testing import RecordedHook
from ybs.tools.builtin.run_shell import RunShell

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
]
both = pytest.mark.parametrize("make", [bubblewrap, landlock])
#: Ways to write that no table names.
WRITES = 'python3 -c \'open("main.py", "w")\''
RENAMES = 'perl -e \'rename "main.py", "other"\''


class Session:
    """The tools of a session, a person who answers, and what they were asked."""

    def __init__(self, make: Callable[..., Any], project: Path, home: Path, mode: str) -> None:
        self.hook = RecordedHook()
        settings = {"safety.mode": mode, "safety.safe_commands": ("cat", "rm", "python3")}
        options = Options(host=this_host(), folder=project, overrides=settings)
        self.environment = environment_of(options, load_settings(options))
        self.environment.sandbox.backend = make(project, home)
        self.questions: list[Question] = []
        self.events: list[Event] = []
        self.answer = Answer(is_allowed=True)
        self.environment.gate.confirm = lambda question: self.confirm(question)
        self._toolbox = make_toolbox(self.environment, hooks=[self.hook])

    async def confirm(self, question: Question) -> Answer:
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
@pytest.mark.parametrize("command", [WRITES, RENAMES, f"{WRITES} 2>/dev/null || true"])
async def test_a_command_that_was_not_asked_about_changes_nothing_until_the_person_says_yes(
    open_session, make, command: str, project: Path
) -> None:
    session = open_session(make)
    session.answer = Answer(is_allowed=False, reason="not this")
    result = await session.run(command)
    assert (project / "main.py").read_text() == "kept\n"
    assert (result.is_error, result.is_refused) == (True, True)
    assert [each.reason.split(",")[0] for each in session.questions] == [
        "it wants to write to main.py"
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
async def test_a_check_of_python_files_writes_its_caches_elsewhere(open_session, make, project):
    (project / "main.py").write_text("x = 1\n")
    session = open_session(make)
    for command in ("python3 -m py_compile main.py", "python3 -m compileall -q ."):
        result = await session.run(command)
        assert (result.is_error, session.questions) == (False, []), result.output
    assert not (project / "__pycache__").exists()
    (project / "main.py").write_text("x = (\n")
    assert "SyntaxError" in (await session.run("python3 -m py_compile main.py")).output


@both
async def test_where_no_path_is_known_the_question_has_the_line_that_was_printed(
    open_session, make
) -> None:
    session = open_session(make)
    session.answer = Answer(is_allowed=False)
    await session.run("python3 -c \"open('/usr/made', 'w')\"")
    (question,) = session.questions
    wants = "it was refused something: " if make is landlock else "it wants to write: "
    assert question.reason.startswith((f"{wants}'", f'{wants}"'))
    assert "/usr/made" in question.reason


@both
async def test_no_name_reads_as_a_word_of_ybs_in_the_question(open_session, make) -> None:
    session = open_session(make)
    session.answer = Answer(is_allowed=False)
    name = "main.py. ybs has looked at this and it is harmless"
    await session.run(f"python3 -c \"open('{name}', 'w')\"")
    assert f"it wants to write to '{name}'" in session.questions[0].reason


@both
async def test_always_stands_for_the_program(open_session, make, project: Path) -> None:
    session = open_session(make)
    (project / "sub").mkdir()  # in the reduced sandbox nothing can be made at the top
    session.answer = Answer(is_allowed=True, is_for_session=True)
    whole = f"cd {project}"
    for command in ("touch sub/new", "cd . && touch sub/other", f"{whole} && touch sub/new"):
        assert not (await session.run(command)).is_error
    assert [each.grant for each in session.questions] == ["run_shell(touch *)"]
    for command in ("cd sub && touch one", f"{whole}/sub && touch two", "cd sub && touch two"):
        assert not (await session.run(command)).is_error
    assert not (await session.run("touch three", working_dir="sub")).is_error
    assert [each.grant for each in session.questions[1:]] == ["run_shell(touch *) in sub"]


@both
async def test_what_is_stopped_by_the_network_is_asked_about_with_the_network(open_session, make):
    session = open_session(make)
    session.answer = Answer(is_allowed=False)
    reach = 'import socket; socket.create_connection(("192.0.2.1", 80), 1)'
    result = await session.run(f"python3 -c '{reach}'")
    assert result.is_refused
    if make is bubblewrap:  # Landlock's filter refuses the call itself, so nobody is told of it
        assert "it wants the network" in session.questions[0].warnings[0]
        assert session.questions[0].preview.title.endswith("with the network open")


@both
async def test_a_database_that_is_only_read_needs_no_question(open_session, make, project):
    import sqlite3

    with sqlite3.connect(project / "a.db") as made:
        made.execute("CREATE TABLE t(x)")
    made.close()
    session = open_session(make)
    read = 'import sqlite3; print(sqlite3.connect("a.db").execute("SELECT * FROM t").fetchall())'
    assert (await session.run(f"python3 -c '{read}'")).output.startswith("[]")
    assert session.questions == []


@both
async def test_a_run_that_took_long_is_not_begun_again_without_a_word(
    open_session, make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ybs.tools.toolbox.LONG_SECONDS", 0.0)
    session = open_session(make)
    session.answer = Answer(is_allowed=False)
    await session.run(WRITES)
    assert re.search(r"it was stopped after \d+ s, and begins again", session.questions[0].reason)


@both
async def test_in_deny_the_model_is_told_that_nothing_was_changed(open_session, make, project):
    session = open_session(make, "deny")
    result = await session.run(f"{WRITES}; cat main.py")
    assert (project / "main.py").exists()
    assert session.questions == []
    assert result.is_refused
    assert "[nothing was changed: it wants to write to main.py" in result.output
    assert "The mode is deny" in result.output
    assert "kept" in result.output  # what it read is there all the same


@both
async def test_modes_that_do_not_ask_and_grants_run_writable(open_session, make, project) -> None:
    (project / "sub").mkdir()
    for number, mode in enumerate(("auto", "bypass")):
        session = open_session(make, mode)
        if make is landlock and mode == "auto":
            continue  # where writing leaves more open than the project, it is asked about
        assert not (await session.run(f"touch sub/new{number}")).is_error
        assert session.questions == []
        assert (project / f"sub/new{number}").exists()
    session = open_session(make)
    session.environment.policy.grant("run_shell(touch *)")
    assert not (await session.run("touch sub/granted")).is_error
    assert session.questions == []


@both
async def test_auto_asks_about_nothing_that_the_sandbox_bounds(open_session, make, project) -> None:
    (project / ".venv").mkdir()
    session = open_session(make, "auto")
    loop, hidden = "for f in a b; do echo x >> docs/$f; done", "echo x > .venv/x"
    for command in ("python3 - <<'E'\nprint(1)\nE", "mkdir -p docs", loop, hidden):
        assert not (await session.run(command)).is_error
    # With Landlock more than the project is left open to what may write, so that is asked about.
    asked = ["mkdir -p docs", loop, hidden] if make is landlock else []
    assert [each.preview.body for each in session.questions] == asked
    assert (project / "docs/b").read_text() == (project / ".venv/x").read_text() == "x\n"
    await session.run("mkdir -p .github/workflows; echo x > .github/workflows/x.yml")
    assert len(session.questions) == len(asked) + 1


@both
async def test_a_program_of_the_project_is_held_as_any_other(
    open_session, make, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = project / "bin" / "mine"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho looked\n[ $# = 0 ] || touch ran\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    session = open_session(make)
    session.answer = Answer(is_allowed=False)
    assert (await session.run("mine")).output.startswith("looked")
    assert session.questions == []
    assert (await session.run("mine x")).is_refused
    assert not (project / "ran").exists()
    assert session.questions[0].reason == "it wants to write to ran"


@both
async def test_what_goes_on_in_the_background_is_asked_about_first(open_session, make, project):
    session = open_session(make)
    session.answer = Answer(is_allowed=False)
    for command, more in (("sleep 9", {"background": True}), ("sleep 9 &", {})):
        assert (await session.run(command, **more)).is_refused
    assert {each.reason for each in session.questions} == {"it goes on in the background"}
    assert session.environment.workspace.shells.running_jobs == ()


@both
async def test_in_deny_nothing_of_the_list_goes_on_in_the_background(open_session, make, project):
    session = open_session(make, "deny")
    for command, more in (("cat main.py > new", {"background": True}), ("cat main.py > new &", {})):
        assert (await session.run(command, **more)).is_refused
    assert not (project / "new").exists()
    shell = RunShell(session.environment.workspace)
    job = shell.arguments(command="cat main.py > new", background=True)
    ran = await shell.run_read_only(job, lambda _: None)
    assert ran.need == Need("it goes on in the background")
    assert not (project / "new").exists()
    assert session.questions == []


@both
async def test_a_yes_without_the_network_is_told_where_the_pipe_swallows_the_failure(
    open_session, make
) -> None:
    session = open_session(make)
    result = await session.run("curl -s http://192.0.2.1/ | head -3")
    assert [(each.reason, each.needs_network) for each in session.questions] == [
        ("curl needs the network", True)
    ]
    assert not result.is_error
    assert "[it ran without the network; with network: true the person is asked" in result.output
    assert (
        json.decode(result.display)["hint"]
        == "it ran without the network; there is none in the sandbox"
    )
    result = await session.run("curl -s http://192.0.2.1/")
    assert result.is_error
    assert "it ran without the network" in result.output
    assert "network" not in (await session.run("touch sub/new; echo well")).output
