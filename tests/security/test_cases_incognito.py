"""The case F03: after a session in incognito no file outside of the project holds anything of it.

Every test runs the real command with a marker in the prompt, in what a command prints, in what the person types and
in the answer. HOME, TMPDIR and the XDG folders lie in one folder, which is searched to the last byte.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from msgspec import Raw

from hosts import this_host
from screen import Screen
from serving import serving as scripted_server
from ybs.core.messages import ToolCall
from ybs.security.sandbox import landlock
from ybs.security.sandbox.landlock import open_kernel
from ybs.security.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.integration

YBS = [str(Path(sys.executable).with_name("ybs"))]
#: Runs ybs so that its second request to the model never comes: the process crashes in the middle of the turn.
CRASHING = """
import os, sys
from ybs.core.agent import Agent
from ybs.cli import main
step = Agent.step
async def crash(self, *rest):
    if len(self.conversation.messages) > 2:
        {how}
    return await step(self, *rest)
Agent.step = crash
sys.exit(main())
"""
#: Runs ybs on a machine without bubblewrap.
LANDLOCKED = """
import sys
from ybs.security.sandbox import choice as sandbox
from ybs.cli import main
sandbox.tried_bubblewrap = lambda: (None, (), "there is no bubblewrap")
sys.exit(main())
"""
BARE = ("--no-sandbox",)
#: Allows dumps of memory, which many systems do not by themselves.
DUMPING = ("/bin/sh", "-c", 'ulimit -c unlimited; exec "$@"', "sh")


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the folder of everything that a session could write in, and name it in the environment."""
    disk = tmp_path / "disk"
    names = ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    for name in (*names, "XDG_DATA_HOME", "XDG_RUNTIME_DIR"):
        (disk / name).mkdir(parents=True, mode=0o700)
        monkeypatch.setenv(name, str(disk / name))
    return disk


@pytest.fixture
def marker() -> str:
    return f"m{uuid4().hex}"


def prints_much(marker: str) -> str:
    """Return a command whose output is too long for the model."""
    return f"seq 2000 | sed 's/^/{marker} /'"


def traces(marker: str, *folders: Path) -> list[str]:
    """List the files with the marker in their name or anywhere in their bytes; some may be being removed meanwhile."""
    found: list[str] = []
    walked = (step for folder in folders for step in os.walk(folder))
    for path in (Path(top, name) for top, below, files in walked for name in (*below, *files)):
        with suppress(FileNotFoundError):
            is_file = path.is_file() and not path.is_symlink()
            target = str(path.readlink()) if path.is_symlink() else ""
            if marker in path.name + target or (is_file and marker.encode() in path.read_bytes()):
                found.append(str(path))
    return found


def in_memory() -> list[Path]:
    """List the folders where an incognito session may have its scratch folder: memory, not a disk."""
    return list(Path("/dev/shm").glob("ybs-*"))


def call(command: str) -> ToolCall:
    arguments = Raw(msgspec.json.encode({"command": command}))
    return ToolCall(id="", name="run_shell", arguments=arguments)


@contextmanager
def serving(*script: Any) -> Generator[list[str]]:
    """Start a server that writes nothing down, and give the options that lead to it."""
    with scripted_server(script) as server:
        yield ["--endpoint", server.url, "-m", "scripted"]


def start(words: Sequence[str], **options: Any) -> "subprocess.Popen[str]":
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **streams)


def words_of(marker: str, *options: str) -> list[str]:
    given = ("--mode", "bypass", "--output-format", "stream-json", *options)
    return [*given, "--print", f"the marker is {marker}"]


def backend_or_skip(project: Path) -> None:
    if Sandbox(this_host(), project).state == "none":
        pytest.skip("NO CAGE on this machine (install bubblewrap): incognito in it is untested")


@pytest.mark.parametrize("walls", [BARE, pytest.param((), marks=pytest.mark.slow)])
@pytest.mark.parametrize("options", [("--incognito",), ()], ids=["incognito", "as usual"])
def test_f03_a_whole_session_leaves_nothing(
    disk: Path, project: Path, marker: str, options: tuple[str, ...], walls: Any
):
    if not walls:
        backend_or_skip(project)
    with serving(call(prints_much(marker)), f"It was {marker}.") as where:
        child = start([*YBS, *where, *words_of(marker, *options, *walls)])
        said, complaints = child.communicate(timeout=60)
    assert (child.returncode, complaints) == (0, "")
    lines = [msgspec.json.decode(line) for line in said.splitlines()]
    assert lines[0]["config"]["incognito"] == ("on" if options else "off")
    output = next(line["output"] for line in lines if line["type"] == "tool_result")
    assert "left out" in output
    # Without incognito the long output is kept: the search finds it, so it could find it here.
    assert ("an incognito session saves nothing" in output) is bool(options)
    assert bool(traces(marker, disk)) is not bool(options)
    assert traces(marker, project) == []


@pytest.mark.parametrize(
    ("how", "code"),
    [("raise ZeroDivisionError", 1), pytest.param("os.abort()", -6, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(
    "options", [("--incognito",), pytest.param((), marks=pytest.mark.slow)], ids=str
)
def test_f03_a_crash_leaves_nothing(
    disk: Path,
    project: Path,
    marker: str,
    options: tuple[str, ...],
    how: str,
    code: int,
):
    crashing = [*DUMPING, sys.executable, "-c", CRASHING.format(how=how)]
    with serving(call(prints_much(marker))) as where:
        child = start([*crashing, *where, *words_of(marker, *options, *BARE)])
        complaints = child.communicate(timeout=60)[1]
    assert child.returncode == code, complaints
    assert "TypeError" not in complaints
    assert bool(traces(marker, disk)) is not bool(options)
    assert traces(marker, project) == [] or not options


@pytest.mark.parametrize("walls", [BARE, pytest.param((), marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "options", [("--incognito",), pytest.param((), marks=pytest.mark.slow)], ids=str
)
def test_f03_a_kill_leaves_nothing(
    disk: Path, project: Path, marker: str, options: tuple[str, ...], walls: Any
):
    if not walls:
        backend_or_skip(project)
    script = (call(prints_much(marker)), call(f"{prints_much(marker)}; echo here; sleep 60"))
    with serving(*script) as where:
        words = [*YBS, *where, *words_of(marker, *options, *walls)]
        with start(words, stderr=subprocess.DEVNULL) as child:
            assert child.stdout is not None
            assert any("here" in line and '"tool_output"' in line for line in child.stdout)
            child.send_signal(signal.SIGKILL)
            child.stdout.read()  # to the end: the commands are gone too
            child.wait(5)
    assert bool(traces(marker, disk)) is not bool(options)
    assert traces(marker, project) == []


@pytest.mark.slow
async def test_f03_a_kill_leaves_no_temporary_file_of_a_command_in_landlock(
    disk: Path, project: Path, marker: str
):
    if sys.platform != "linux" or landlock.attempt(open_kernel())[0] is None:
        pytest.skip("NO LANDLOCK on this machine: its private folder is untested")
    writes = f"echo {marker} > $TMPDIR/{marker}; cp $TMPDIR/* ~; echo here; sleep 60"
    with serving(call(writes)) as where:
        words = [sys.executable, "-c", LANDLOCKED, *where, *words_of(marker, "--incognito")]
        with start(words, stderr=subprocess.DEVNULL) as child:
            assert child.stdout is not None
            assert any("here" in line and '"tool_output"' in line for line in child.stdout)
            assert len(traces(marker, *in_memory())) == 2
            assert traces(marker, disk) == []
            child.send_signal(signal.SIGKILL)
            child.wait(5)
    async with asyncio.timeout(5):  # what removes them was started by ybs and has outlived it
        while traces(marker, disk, *in_memory()):  # noqa: ASYNC110 - a process of its own tells nobody
            await asyncio.sleep(0.02)


@pytest.mark.slow
def test_f03_what_is_typed_after_slash_incognito_is_found_nowhere(
    disk: Path, project: Path, marker: str
):
    before, after = f"{marker}before", f"{marker}after"
    script = ("first", f"second {after}", f"third {after}")
    with serving(*script) as where, Screen(*where, *BARE) as screen:
        screen.sees(r"› *\n")
        screen.keys(f"!{prints_much(before)}\r")
        screen.sees("first")
        screen.keys("/incognito\r")
        screen.sees("nothing of it will be saved")
        screen.sees(r"\n incognito +127\.0\.0\.1:\d+ scripted +ask")
        screen.keys(f"!{prints_much(after)}\r")
        screen.sees("second")
        screen.keys(f"the marker is {after}\r")
        screen.sees("third")
        screen.keys("/quit\r")
        assert screen.ends() == 0
    assert traces(before, disk) != []
    assert traces(after, disk, project) == []
