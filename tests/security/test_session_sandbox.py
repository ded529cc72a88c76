"""The sandbox of a session."""

import asyncio
import os
import re
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw, Struct, json

import ybs
from hosts import this_host
from ybs.agent.environment import ToolEnvironment
from ybs.agent.toolbox import make_toolbox
from ybs.core.errors import Refused
from ybs.core.messages import ToolCall
from ybs.core.remedies import Remedy
from ybs.security import launcher
from ybs.security.launcher import shell_command
from ybs.security.sandbox.attempts import Attempts
from ybs.security.sandbox.launch import Access, Backend, Launch
from ybs.security.sandbox.resident import Resident
from ybs.security.sandbox.sandbox import OWN_CODE, Sandbox, denial_of
from ybs.session.options import Options
from ybs.session.settings import environment_of, load_settings

HAS_MEMORY = os.path.ismount("/dev/shm")

OWN = Path(ybs.__file__).parents[1]


class Places(Struct):
    """Where a sandbox lets commands write."""

    tops: list[str]
    seen: tuple[str, ...] = ()
    toolchains: tuple[str, ...] = ()
    home: str = "/h"


class FakeBackend(Backend):
    """A sandbox that remembers what it was asked."""

    def __init__(self, name: str = "fake", *, is_reduced: bool = False) -> None:
        super().__init__("for a test")
        self.name, self.is_reduced = name, is_reduced
        self.holds_reading = not is_reduced
        self.asked: list[tuple[Sequence[str], bool]] = []

    def launch(
        self,
        command: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        access: Access,
    ) -> Launch:
        self.asked.append((command, access.network))
        return Launch(command, environ)


def sandbox(project: Path, backend: Any, *, is_open: bool = False) -> Sandbox:
    made = Sandbox(this_host(), project, is_open=is_open)
    made.backend = backend
    return made


def test_in_a_blocked_path_the_setting_is_named_that_opens_it(home: Path) -> None:
    project = home / ".config" / "nvim"
    project.mkdir(parents=True)
    blocked = (str(home / ".config"),)
    with pytest.raises(Refused, match="lies in a blocked path") as caught:
        Sandbox(this_host(), project, blocked=blocked).check()
    (remedy,) = caught.value.remedies
    assert remedy.value == f"leave {blocked[0]} out of safety.sandbox_blocked_paths in your own settings"  # fmt: skip
    Sandbox(this_host(), project, blocked=()).check()
    with pytest.raises(Refused, match="keys or ybs's own files") as caught:
        Sandbox(this_host(), home / ".ssh", blocked=(str(home / ".ssh"),)).check()
    assert caught.value.remedies == (Remedy("run_without_sandbox"),)


@pytest.mark.integration
@pytest.mark.parametrize("is_off", [False, True])
def test_what_the_project_blocks_is_hidden_from_commands_and_not_from_the_persons_programs(
    project: Path, is_off: bool
) -> None:
    for name in ("mine", "theirs"):
        (project / name).write_text(name)
    blocked = {"blocked": ("mine", "theirs"), "blocked_by_project": ("theirs",)}
    made = Sandbox(this_host(), project, **blocked, is_off=is_off)
    for is_persons, seen in ((False, b""), (True, b"theirs")):
        access = Access(is_persons=is_persons, shown=(project / "mine",) if is_persons else ())
        wanted = Resident(key="k", command=("/bin/cat", "mine", "theirs"), is_persons=is_persons)
        launches = [made.start(wanted.command, project, {}, access)]
        launches += [] if is_off else [made.start_resident(wanted)]
        for launch in launches:
            with launcher.start(launch, folder=project, stdout=subprocess.PIPE) as process:
                said, _ = process.communicate()
            assert said == (b"minetheirs" if is_off else seen)
    asyncio.run(made.aclose())


@pytest.mark.parametrize(
    ("backend", "state", "word"),
    [
        (FakeBackend(), "full", "sandbox"),
        (FakeBackend(is_reduced=True), "reduced", "reduced sandbox"),
        (FakeBackend("none", is_reduced=True), "none", "no sandbox"),
    ],
)
def test_the_status_says_which_sandbox_there_is(
    project: Path, backend: FakeBackend, state: str, word: str
) -> None:
    made = sandbox(project, backend)
    assert (made.state, made.word) == (state, word)


def test_where_there_is_no_sandbox_no_command_is_run(project: Path) -> None:
    made = sandbox(project, FakeBackend("none", is_reduced=True))
    with pytest.raises(Refused, match="for a test"):
        made.check()


def test_what_is_started_has_the_network_only_where_it_is_given(project: Path) -> None:
    backend = FakeBackend()
    made = sandbox(project, backend)
    made.check()
    commands = (Access(is_command=True), Access(is_command=True, read_only=True))
    for access in (Access(), Access(network=True), *commands):
        made.start(("ls",), project, {}, access)
        sandbox(project, backend, is_open=True).start(("ls",), project, {}, access)
    given = [has_network for _, has_network in backend.asked]
    # Of hooks and tools what theirs says; of commands what the person's settings do, where they may write.
    assert given == [False, False, True, True, False, True, False, False]


@pytest.mark.parametrize(
    "output",
    [
        "touch: x: Read-only file system",
        "curl: (6) Could not resolve host: x",
        "curl: (7) Failed to connect to 127.0.0.1 port 80 after 0 ms: Couldn't connect to server",
        "cat: /tmp/of_before: No such file or directory",
    ],
)
def test_a_failure_that_looks_like_a_wall_is_explained(project: Path, output: str) -> None:
    assert "no network" in sandbox(project, FakeBackend()).remark(output)
    assert "no network" not in sandbox(project, FakeBackend(), is_open=True).remark(output)
    assert sandbox(project, FakeBackend("none")).remark(output) == ""


def test_in_the_reduced_one_it_is_said_where_nothing_can_be_made(project: Path) -> None:
    said = sandbox(project, FakeBackend(is_reduced=True)).remark("touch: x: Permission denied")
    assert "nothing new can be made" in said


def test_another_failure_is_not(project: Path) -> None:
    assert sandbox(project, FakeBackend()).remark("1 failed, 3 passed") == ""


def test_a_project_that_is_the_home_folder_gets_no_sandbox_but_may_go_without(home: Path) -> None:
    with pytest.raises(Refused, match="home folder"):
        Sandbox(this_host(), home).check()
    without = Sandbox(this_host(), home, is_off=True)
    without.check()
    assert without.word == "no sandbox"
    assert (
        without.start(("ls",), home, {"SOME_TOKEN": "x"}, Access()).environ.get("SOME_TOKEN")
        is None
    )


@pytest.mark.integration
def test_folders_that_no_sandbox_may_open_are_left_out(project: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    made = Sandbox(
        this_host(), project, folders=[project, more, Path("/etc"), tmp_path / "missing"]
    )
    assert made.backend.name
    assert made.left_out == [Path("/etc")]


def run(launch: Launch, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        launch.argv,
        env=dict(launch.environ),
        cwd=folder,
        pass_fds=launch.descriptors,
        preexec_fn=launch.before_exec,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.integration
def test_an_added_folder_can_be_written_and_nothing_else(project: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    made = Sandbox(this_host(), project, folders=[project, more])
    if made.state == "none":
        pytest.skip(f"NOT TESTED: {made.backend.why}")
    command = f"echo a > {more}/a; echo b > b; echo c > {tmp_path}/c; true"
    environ = {"PATH": "/usr/bin:/bin"}
    run(made.start(shell_command(command), project, environ, Access()), project)
    assert (more / "a").exists()
    assert (project / "b").exists()
    assert not (tmp_path / "c").exists()


@pytest.mark.integration
def test_the_persons_own_settings_and_the_command_line_turn_it_off(
    project: Path, home: Path
) -> None:
    without = Options(host=this_host(), folder=project, sandbox=False)
    assert environment_of(without, load_settings(without)).sandbox.state == "off"
    options = Options(host=this_host(), folder=project)
    assert environment_of(options, load_settings(options)).sandbox.state != "off"
    settings = home / ".config" / "ybs" / "config.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"safety": {"sandbox_enabled": false}}')
    environment = environment_of(options, load_settings(options))
    assert environment.sandbox.state == "off"
    assert environment.sandbox.word == "no sandbox"
    assert environment.workspace.shells.starter.is_off


def test_a_project_turns_it_off_never(project: Path) -> None:
    settings = project / ".ybs.json"
    settings.write_text('{"safety": {"sandbox_enabled": false}}')
    options = Options.of(project, {"host": this_host(), "trust": True})
    loaded = load_settings(options)
    assert any("safety.sandbox_enabled" in warning for warning in loaded.warnings)
    assert environment_of(options, loaded).sandbox.state != "off"


async def run_in(environment: ToolEnvironment, command: str) -> str:
    """Run a command as the tool does, and return what the model reads."""
    call = ToolCall(id="1", name="run_shell", arguments=Raw(json.encode({"command": command})))
    return (await make_toolbox(environment).run(call, lambda _: None)).output


@pytest.mark.integration
async def test_the_tools_of_a_session_run_their_commands_in_it(project: Path) -> None:
    options = Options(host=this_host(), folder=project, overrides={"safety.mode": "bypass"})
    environment = environment_of(options, load_settings(options))
    if environment.sandbox.state == "none":
        pytest.skip(f"NOT TESTED: {environment.sandbox.backend.why}")
    command = b'{"command": "echo in > made; echo out > ../made; true"}'
    call = ToolCall(id="1", name="run_shell", arguments=Raw(command))
    try:
        await asyncio.wait_for(make_toolbox(environment).run(call, lambda _: None), 8)
    finally:
        await environment.aclose()
    assert (project / "made").read_text() == "in\n"
    assert not (project.parent / "made").exists()


@pytest.mark.integration
async def test_a_command_can_read_the_long_output_of_the_one_before(project: Path) -> None:
    options = Options(host=this_host(), folder=project, overrides={"safety.mode": "bypass"})
    environment = environment_of(options, load_settings(options))
    if environment.sandbox.state == "none":
        pytest.skip(f"NOT TESTED: {environment.sandbox.backend.why}")

    try:
        said = await run_in(environment, "seq 20000; echo end")
        (path,) = re.findall(r"/\S+\.txt", said)
        assert "12345\n" in await run_in(environment, f"grep -x 12345 {path}")
        await run_in(environment, f"echo changed >> {path}")
        assert "changed" not in await run_in(environment, f"tail -n 2 {path}")
    finally:
        await environment.aclose()


@pytest.mark.integration
def test_an_environment_that_is_switched_on_can_be_used_wherever_it_lies(
    project: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path / "venv", home):
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "go").write_text("")
        (folder / "pyvenv.cfg").write_text("")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "venv"))
    monkeypatch.setenv("GOROOT", str(home))  # too much to show
    made = Sandbox(this_host(), project)
    if made.backend.name == "none":
        pytest.skip(f"NOT TESTED: {made.backend.why}")
    command = f"ls {tmp_path}/venv; echo x > {tmp_path}/venv/new; ls {home}"
    done = run(made.start(shell_command(command), project, {}, Access()), project)
    assert done.stdout == "bin\npyvenv.cfg\n"
    assert not (tmp_path / "venv" / "new").exists()


@pytest.mark.integration
def test_what_a_copy_shows_of_the_project_opens_nothing_once_it_is_a_link(
    project: Path, tmp_path: Path
) -> None:
    copy, private = tmp_path / "copy", tmp_path / "private"
    for folder in (copy, private, project / "web" / "node_modules"):
        folder.mkdir(parents=True)
    (private / "key").write_text("PRIVATE")
    this_host().work_in(project)
    made = Sandbox(this_host(), copy, is_of_copy=True)
    made.show(project / "web" / "node_modules")
    if made.backend.name == "none":
        pytest.skip(f"NOT TESTED: {made.backend.why}")
    (project / "web" / "node_modules").rmdir()
    (project / "web" / "node_modules").symlink_to(private)
    command = shell_command(f"echo ran; cat {project}/web/node_modules/key {private}/key")
    for access in (Access(), Access(shown=(project / "web" / "node_modules",))):
        assert run(made.start(command, copy, {}, access), copy).stdout == "ran\n"


@pytest.mark.integration
async def test_what_a_command_moves_to_tmp_is_there_until_the_session_ends(project: Path) -> None:
    options = Options(host=this_host(), folder=project, overrides={"safety.mode": "auto"})
    environment = environment_of(options, load_settings(options))
    if environment.sandbox.state != "full":
        pytest.skip(f"NOT TESTED: {environment.sandbox.backend.why}")
    (project / "src").mkdir()
    (project / "src" / "a").write_text("kept\n")

    try:
        assert "exit code 0" in await run_in(environment, "mv src /tmp/backup")
        assert not (project / "src").exists()
        (place,) = this_host().scratch_folder.iterdir()
        assert "exit code 0" in await run_in(environment, "mv /tmp/backup src")
        assert (project / "src" / "a").read_text() == "kept\n"
        assert place.is_dir()
    finally:
        await environment.aclose()
    assert not place.exists()


@pytest.mark.integration
async def test_an_incognito_session_has_its_tmp_in_memory(project: Path) -> None:
    options = Options(
        host=this_host(),
        folder=project,
        overrides={"incognito.enabled": True, "safety.mode": "auto"},
    )
    environment = environment_of(options, load_settings(options))
    if environment.sandbox.state != "full" or not HAS_MEMORY:
        pytest.skip(f"NOT TESTED: {environment.sandbox.backend.why}, or no /dev/shm")
    place = Path("/dev/shm") / f"ybs-{os.getuid()}"
    before = set(place.glob("*"))
    try:
        await run_in(environment, "echo x >/tmp/x")
        assert "x" in await run_in(environment, "cat /tmp/x")
        assert set(place.glob("*")) > before
    finally:
        await environment.aclose()
    assert set(place.glob("*")) <= before
    assert not this_host().scratch_folder.exists()


def test_a_start_removes_what_a_crash_left(project: Path) -> None:
    stale = this_host().scratch_folder / "0123456789ab"
    (stale / "temporary").mkdir(parents=True)
    options = Options(host=this_host(), folder=project)
    environment_of(options, load_settings(options))
    for thread in threading.enumerate():
        if thread.name == "ybs-sweep":
            thread.join()
    assert not stale.exists()


def test_a_socket_that_the_mounts_refuse_is_a_server_of_the_session(project: Path) -> None:
    held, said = Attempts((str(project),)), "connect: Operation not permitted\n"
    need = sandbox(project, FakeBackend("bubblewrap")).need(held, 1, said)
    assert need is not None
    assert need.reason == "it wants to reach a server of this session"
    assert sandbox(project, FakeBackend("bubblewrap")).need(held, 0, said) is None


def test_folders_are_named_also_where_there_is_no_sandbox(home: Path, project: Path) -> None:
    assert sandbox(project, FakeBackend()).opened == []  # this one has no places
    assert Sandbox(this_host(), project, is_off=True).opened == [str(project)]
    assert Sandbox(this_host(), home, is_off=True).opened == []


def test_a_folder_is_added_and_shown_once(project: Path, tmp_path: Path) -> None:
    made = Sandbox(this_host(), project)
    before = made.backend
    made.add_folder(project)
    assert made.backend is before
    made.show(tmp_path)
    shown = made.backend
    assert shown is not before
    made.show(tmp_path)
    assert made.backend is shown


def test_a_write_into_ybs_own_code_is_explained(project: Path) -> None:
    said = f"touch: cannot touch '{project}/ybs/cli/__init__.py': Read-only file system"
    assert denial_of(said, "/h", code=(f"{project}/ybs",)) == OWN_CODE
    backend: Any = FakeBackend()
    backend.places = Places(tops=[str(OWN)])
    made = sandbox(OWN, backend)
    remark = made.remark(f"touch: cannot touch '{OWN}/ybs/core/agent.py': Read-only file system")
    assert "it failed because a part of the project is read-only" in remark
