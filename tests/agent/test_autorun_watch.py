"""Files that commands leave and that run or are read later are named to the person, and to nobody else."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opened import events_to
from processes import comes
from scripted import OpenAIServer
from security.later_files import ORDINARY, READ, RUNS
from serving import serving
from ybs.core.events import Noticed, ToolFinished, ToolStarted
from ybs.security.paths import autorun_watch, folder_index
from ybs.security.sandbox.bubblewrap import attempt, find
from ybs.session.session import Session
from ybs.testing import RecordedEvents, call

pytestmark = pytest.mark.integration

Open = Callable[..., tuple[Session, RecordedEvents]]
YBS = str(Path(sys.executable).with_name("ybs"))


def sandboxed() -> None:
    program = find()
    if sys.platform != "linux" or program is None or attempt(program)[0] is None:
        pytest.skip("NOT TESTED: bubblewrap does not work here")


def planting(*paths: str, text: str = "evil") -> str:
    return "\n".join(
        f"mkdir -p {shlex.quote(str(Path(path).parent))} && echo {text} > {shlex.quote(path)}"
        for path in paths
    )


def notices(events: RecordedEvents) -> list[str]:
    return [
        each.text for each in events.of(Noticed) if re.match("A(n undo| command| hook)", each.text)
    ]


def named_in(text: str) -> set[str]:
    listed = text.partition("here: ")[2] or text.partition("told: ")[2]
    listed = listed.partition(". ")[0].replace("; changed: ", ", ")
    return set(listed.removeprefix("new: ").removeprefix("changed: ").split(", "))


async def told(open_session: Open, *commands: str, **options: object) -> list[str]:
    script = [call("run_shell", command=command) for command in commands]
    async with OpenAIServer([*script, "done"]) as server:
        session, events = open_session(server, **{"mode": "bypass", "sandbox": True, **options})
        async with session:
            await session.send("go on")
    return notices(events)


async def test_each_file_that_a_sandboxed_command_makes_is_named(open_session: Open, project: Path):
    sandboxed()
    paths = [*RUNS, *READ]
    said = await told(open_session, planting(*paths, *ORDINARY))
    assert len(said) == 1
    assert named_in(said[0]) == set(paths)
    assert all((project / path).is_file() for path in paths)


async def test_what_changes_is_named_and_what_is_held_does_not_change(
    open_session: Open, project: Path
):
    sandboxed()
    held = (".vscode/tasks.json", ".envrc", ".cargo/config.toml", ".pre-commit-config.yaml")
    rewritten = ("AGENTS.md", ".github/workflows/ci.yml", "sub/.envrc")
    for path in (*held, *rewritten, "CLAUDE.md"):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text("mine\n")
    said = await told(
        open_session,
        planting(*held, *rewritten),
        planting("CLAUDE.md", text="mine"),
        "touch AGENTS.md",
    )
    assert [named_in(each) for each in said] == [set(rewritten)]
    assert "changed: " in said[0]
    assert "new: " not in said[0]
    assert {(project / path).read_text() for path in held} == {"mine\n"}


async def test_the_model_is_told_nothing_of_it(open_session: Open):
    sandboxed()
    async with OpenAIServer([call("run_shell", command="echo x > .envrc"), "done"]) as server:
        session, events = open_session(server, mode="bypass", sandbox=True)
        async with session:
            await session.send("go on")
        assert "read later" not in str(server.requests)
        assert "enter it in a shell" not in str(server.requests)
    assert ".envrc" in notices(events)[0]
    assert len(events.of(ToolFinished)) == 1


async def test_a_repository_that_a_command_makes_is_named_and_held_from_then_on(
    open_session: Open, project: Path
):
    sandboxed()
    hook = "echo evil > sub/.git/hooks/pre-commit"
    said = await told(
        open_session, "mkdir -p sub/.git/hooks node_modules/x/.git", hook, "git init -q bare --bare"
    )
    assert [named_in(each) for each in said] == [
        {"node_modules/x/.git", "sub/.git"}, {"bare"},
    ]  # fmt: skip
    assert all("repositories" in each for each in said)
    assert not (project / "sub" / ".git" / "hooks" / "pre-commit").exists()


async def test_what_hooks_lead_to_is_held_and_a_program_that_hides_another_one_is_named(
    open_session: Open, project: Path, monkeypatch: pytest.MonkeyPatch
):
    sandboxed()
    for path in ("scripts/lint", "bin/setup", "app/tools/pre-commit"):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text("mine")
    for folder, settings in ((project, ""), (project / "app", "[core]\nhooksPath = tools\n")):
        (folder / ".git/hooks").mkdir(parents=True)
        (folder / ".git/config").write_text(settings)
    (project / ".git/hooks/pre-commit").symlink_to("../../scripts/lint")
    monkeypatch.setenv("PATH", f"{project}/bin", prepend=":")
    said = await told(
        open_session,
        planting("scripts/lint"),
        "mv scripts away",
        planting("app/tools/pre-commit"),
        planting("bin/git", "bin/other", "scripts/new"),
    )
    assert [named_in(each) for each in said] == [{"bin/git"}]
    assert (project / "scripts/lint").read_text() == "mine"
    assert (project / "app/tools/pre-commit").read_text() == "mine"
    assert (project / "scripts/new").exists()


async def test_a_job_that_began_before_a_repository_is_named_when_it_rewrites_a_hook(
    open_session: Open, project: Path, monkeypatch: pytest.MonkeyPatch
):
    sandboxed()
    monkeypatch.setattr("ybs.tools.builtin.run_shell.FIRST_SECONDS", 0.1)
    hook = project / "sub/.git/hooks/pre-commit"
    job = "while [ ! -e go ]; do sleep 0.05; done; echo evil >> sub/.git/hooks/pre-commit; touch made; sleep 60"
    script = [call("run_shell", command=job, background=True), "It runs."]
    looks = [call("run_shell", command="true"), "done"]
    async with OpenAIServer([*script, *looks, *looks]) as server:
        session, events = open_session(server, mode="bypass", sandbox=True)
        async with session:
            await session.send("start it")
            hook.parent.mkdir(parents=True)
            hook.write_text("mine")
            await session.send("and now")
            (project / "go").touch()
            assert await comes(lambda: (project / "made").exists())
            await session.send("and now")
    assert "evil" in hook.read_text()
    assert [each.partition("here: ")[2].partition(".git.")[0] for each in notices(events)] == ["new: sub/", "changed: sub/"]  # fmt: skip
    assert "what runs in the background already can still change them" in notices(events)[0]


async def test_a_command_without_a_sandbox_is_looked_after_as_well(open_session: Open):
    said = await told(open_session, "echo x > .envrc", mode="bypass", sandbox=False)
    assert [named_in(each) for each in said] == [{".envrc"}]
    assert said[0].startswith("A command left files")


REPOSITORY = "mkdir -p docs/.git/objects docs/.git/refs; echo x > docs/.git/HEAD"


async def hooked(open_session: Open, event: str, command: str, *script: Any) -> list[str]:
    """Return what is told of what a hook leaves that runs in the sandbox."""
    hook = {"type": "command", "command": command, "sandbox": True}
    hooks = {event: [{"hooks": [hook]}]}
    async with OpenAIServer([*script, "done"]) as server:
        mode = "bypass" if len(script) > 1 else "plan" if not script else "accept-edits"
        options = {"mode": mode, "sandbox": True, "overrides": {"hooks": hooks}}
        session, events = open_session(server, **options)
        async with session:
            await session.send("go on")
    return notices(events)


@pytest.mark.parametrize(
    ("event", "script"),
    [
        ("PostToolUse", [call("write_file", path="a", content="x")]),
        ("PostToolUse", [call("write_file", path="a", content="x"), call("list_files")]),
        *((event, []) for event in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")),
    ],
)
async def test_what_a_hook_in_the_sandbox_leaves_is_named(open_session: Open, event, script):
    sandboxed()
    left = f"[ -e docs/.git ] || {{ {REPOSITORY}; {planting('.vscode/tasks.json')}; }}"
    files, repositories = await hooked(open_session, event, left, *script)
    assert named_in(files) == {".vscode/tasks.json"}
    assert named_in(repositories) == {"docs/.git"}
    assert files.startswith("A hook, a server, or somebody else meanwhile, left files")


async def test_what_a_hook_leaves_is_named_before_the_next_command(open_session: Open):
    sandboxed()
    script = [call("write_file", path="a", content="x"), call("run_shell", command="ls")]
    hook = "[ -e .envrc ] || echo x > .envrc"
    (said,) = await hooked(open_session, "PostToolUse", hook, *script)
    assert named_in(said) == {".envrc"}
    assert said.startswith("A hook, ")


async def test_what_a_file_tool_writes_was_asked_about_and_is_not_named(
    open_session: Open, project: Path
):
    sandboxed()
    writes = [call("write_file", path=path, content="x") for path in (".envrc", "AGENTS.md")]
    hook = "[ -e AGENTS.md ] && echo evil > .vimrc; true"
    (said,) = await hooked(open_session, "PostToolUse", hook, *writes)
    assert named_in(said) == {".vimrc"}
    ran = call("run_shell", command="true")
    said = await told_of(open_session, [ran, *writes, ran])
    assert said == []


async def told_of(open_session: Open, script: list[Any]) -> list[str]:
    async with OpenAIServer([*script, "done"]) as server:
        session, events = open_session(server, mode="bypass", sandbox=True)
        async with session:
            await session.send("go on")
    return notices(events)


@pytest.mark.timeout(60)
async def test_what_a_server_that_may_change_the_project_leaves_is_named(open_session: Open):
    sandboxed()
    leaves = 'echo x > "$YBS_PROJECT_DIR/.envrc"'
    server = {"command": "sh", "args": ["-c", leaves], "project": "write"}
    async with OpenAIServer(["done"]) as model:
        options = {"sandbox": True, "overrides": {"mcpServers": {"a": server}}}
        session, events = open_session(model, **options)
        async with session:
            await session.send("go on")
    (said,) = notices(events)
    assert named_in(said) == {".envrc"}


@pytest.mark.timeout(60)
async def test_what_a_job_leaves_as_it_is_ended_with_the_session_is_named(
    open_session: Open, project: Path
):
    sandboxed()
    job = "trap 'echo x > .envrc; exit' TERM; touch began; while :; do sleep 0.01; done"
    for _ in range(5):  # on a busy machine it is killed before it has come to that
        script = [
            call("run_shell", command=job, background=True),
            call("run_shell", command="until [ -e began ]; do sleep 0.05; done; rm began"),
        ]
        said = await told_of(open_session, script)
        if (project / ".envrc").exists():
            break
    assert list(map(named_in, said)) == [{".envrc"}]


async def test_a_folder_that_was_added_is_looked_at(open_session: Open, tmp_path: Path):
    sandboxed()
    added = tmp_path / "added"
    added.mkdir()
    (added / "old.code-workspace").write_text("mine")
    commands = ("true", f"echo x > {added}/.envrc")
    script = [each for command in commands for each in (call("run_shell", command=command), "done")]
    async with OpenAIServer(script) as server:
        session, events = open_session(server, mode="bypass", sandbox=True)
        async with session:
            await session.send("go on")
            await session.handle(f"/add-dir {added}")
            await session.send("go on")
    (said,) = notices(events)
    assert named_in(said) == {f"{added}/.envrc"}


async def test_a_command_of_the_person_is_looked_after_as_well(open_session: Open):
    async with OpenAIServer(["I see."]) as server:
        session, events = open_session(server)
        async with session:
            await session.handle("!echo x > .envrc")
    assert [named_in(each) for each in notices(events)] == [{".envrc"}]


async def test_what_a_background_command_makes_is_named_with_the_next_look(
    open_session: Open, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ybs.tools.builtin.run_shell.FIRST_SECONDS", 0.1)
    job = "while [ ! -e go ]; do sleep 0.05; done; echo x > .envrc; touch made; sleep 60"
    script = [call("run_shell", command=job, background=True), "It runs."]
    async with OpenAIServer([*script, call("run_shell", command="true"), "done"]) as server:
        session, events = open_session(server, mode="bypass")
        async with session:
            await session.send("start it")
            assert notices(events) == []
            (project / "go").touch()
            assert await comes(lambda: (project / "made").exists())
            await session.send("and now")
    (said,) = notices(events)
    assert named_in(said) == {".envrc"}
    assert said.startswith("A command in the background, or somebody else meanwhile, left files")


async def test_what_a_job_makes_within_the_turn_is_named_at_its_end(
    open_session: Open, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ybs.tools.builtin.run_shell.FIRST_SECONDS", 0.1)
    job = "while [ ! -e go ]; do sleep 0.05; done; echo x > .envrc; sleep 60"
    script = [
        call("run_shell", command=job, background=True),
        call("write_file", path="go", content=""),
    ]
    async with OpenAIServer([*script, "done"]) as server:
        session, events = open_session(server, mode="bypass")

        def wait(event: object) -> None:
            if isinstance(event, ToolFinished) and event.name == "write_file":
                assert (project / ".envrc").exists() or _waits_for(project / ".envrc")

        session.subscribe(events_to(wait))
        async with session:
            await session.send("start it")
    (said,) = notices(events)
    assert named_in(said) == {".envrc"}
    assert said.startswith("A command in the background, or somebody else meanwhile, left files")


@pytest.mark.parametrize("job", ["", "sleep 60"])
async def test_nothing_that_is_done_beside_a_job_hides_what_that_may_have_written(
    open_session: Open, project: Path, monkeypatch: pytest.MonkeyPatch, job: str
):
    monkeypatch.setattr("ybs.tools.builtin.run_shell.FIRST_SECONDS", 0.1)
    script = [call("run_shell", command=job or "true", background=bool(job)), "done"]
    async with OpenAIServer(script) as server:
        session, events = open_session(server, mode="bypass", sandbox=True)

        async def write() -> None:
            (project / ".envrc").write_text("x" * len(events.events))

        async with session:
            await session.send("start it")
            watch, count = session.environment.autorun_watch, len(notices(events))
            await watch.around(write, events, who="An undo or redo")
            told = [notices(events)[count:]]
            for tool in ("write_file", "git"):
                count = len(notices(events))
                (project / ".envrc").write_text(f"{tool} {job}")
                watch.accept(tool, [".envrc"])
                await watch.after(events)
                told.append(notices(events)[count:])
    assert [bool(each) for each in told] == ([True] * 3 if job else [False, False, True])


def _waits_for(path: Path) -> bool:
    done = subprocess.run(
        [
            "sh",
            "-c",
            'n=0; while [ ! -s "$1" ] && [ $n -lt 200 ]; do sleep 0.05; n=$((n+1)); done',
            "sh",
            path,
        ],
        check=False,
    )
    return done.returncode == 0 and path.exists()


async def test_of_very_many_the_first_are_named_and_the_rest_counted(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(autorun_watch, "MOST_NAMED", 2)
    command = planting("a/.envrc", "b/.envrc", "c/.envrc")
    said = await told(open_session, command, mode="bypass", sandbox=False)
    assert "new: a/.envrc, b/.envrc and 1 more." in said[0]


async def test_of_very_many_those_are_named_that_are_the_only_ones_of_their_kind(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(autorun_watch, "MOST_NAMED", 2)
    command = planting("a/.flake8", "b/.flake8", ".vscode/a", ".vscode/b", "zz/.envrc")
    said = await told(open_session, command, mode="bypass", sandbox=False)
    assert "new: zz/.envrc, .vscode/a and 3 more." in said[0]


async def test_a_project_that_cannot_be_looked_through_is_closed_and_the_person_told(
    open_session: Open, project: Path, monkeypatch: pytest.MonkeyPatch
):
    sandboxed()
    (project / "src").mkdir()
    monkeypatch.setattr(folder_index, "LOOK_SECONDS", 0.0)
    async with OpenAIServer([call("run_shell", command="echo x > new"), "done"]) as server:
        session, events = open_session(server, mode="bypass", sandbox=True)
        async with session:
            await session.send("go on")
    assert any("looked through" in each.text for each in events.of(Noticed))
    assert "looked through" in events.of(ToolFinished)[0].output
    assert not (project / "new").exists()


async def test_a_folder_that_a_command_keeps_from_being_listed_is_named_right_after_it_once(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
):
    scandir = os.scandir

    def scan(path: Any) -> Any:
        if str(path).endswith("/shut"):
            raise PermissionError
        return scandir(path)

    monkeypatch.setattr(folder_index.os, "scandir", scan)  # the superuser lists all
    script = [call("run_shell", command=command) for command in (planting("shut/.envrc"), "true")]
    async with OpenAIServer([*script, "done"]) as server:
        session, events = open_session(server, mode="bypass", sandbox=False)
        async with session:
            await session.send("go on")
    (said,) = [each for each in events.of(Noticed) if "looked through (shut)" in each.text]
    second = events.of(ToolStarted)[1]
    assert events.events.index(said) < events.events.index(second)


def test_a_run_without_a_terminal_says_it_in_its_result(project: Path):
    script = [call("run_shell", command="echo x > .envrc"), "done"]
    with serving(script) as server:
        done = subprocess.run(
            [YBS, "--endpoint", server.url, "-m", "scripted", "--mode", "bypass", "--no-sandbox",
             "--output-format", "json", "--print", "go on"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=project,
        )  # fmt: skip
    result = json.loads(done.stdout)
    assert ".envrc" in result["warnings"][0]
    assert ".envrc" in done.stderr
