"""The cases of the sandbox that have no place in the escape suite, through the session's own sandbox."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hosts import this_host
from security.escapes.world import PYTHON, spawn
from ybs.core.errors import Refused
from ybs.git.hardening import environment as environment_of_git
from ybs.security.launcher import shell_command
from ybs.security.sandbox import choice as ladder
from ybs.security.sandbox.launch import Access
from ybs.security.sandbox.sandbox import Sandbox
from ybs.trust.settings import load

CANARY = "canary-" + "0123456789"
#: A name for each kind of secret that an environment may hold.
SECRETS = (
    *(
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
    ),
    *("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "YBS_HOME", "MY_OWN_THING"),
)
#: Run something before the program that was asked for.
RUN_FIRST = (
    *("BASH_ENV", "ENV", "LD_PRELOAD", "PYTHONSTARTUP", "NODE_OPTIONS", "GIT_SSH_COMMAND"),
    *("PERL5OPT", "RUBYOPT", "PROMPT_COMMAND"),
)


@pytest.fixture
def sandboxed(project: Path) -> Sandbox:
    made = Sandbox(this_host(), project)
    if made.state == "none":
        pytest.skip(f"NOT TESTED: {made.backend.why}")
    return made


def run(sandboxed: Sandbox, command: str, folder: Path) -> str:
    launch = sandboxed.start(shell_command(command), folder, os.environ, Access())
    out, err = spawn(launch, folder, os.getuid()).communicate(timeout=20)
    return out + err


def test_s19_without_bubblewrap_landlock_stands_in_and_is_called_reduced(project, monkeypatch):
    monkeypatch.setattr(ladder, "tried_bubblewrap", lambda: (None, (), "it is gone"))
    made = Sandbox(this_host(), project)
    if made.state == "none":
        pytest.skip(f"NOT TESTED: {made.backend.why}")
    assert made.word == "reduced sandbox"
    assert "it is gone" in made.backend.why


def test_s19_without_any_sandbox_no_command_is_run(project, monkeypatch):
    monkeypatch.setattr(ladder, "tried_bubblewrap", lambda: (None, (), "it is gone"))
    monkeypatch.setattr(ladder, "tried_landlock", lambda: (None, "so is that"))
    made = Sandbox(this_host(), project)
    assert made.word == "no sandbox"
    with pytest.raises(Refused, match="it is gone; so is that"):
        made.check()
    with pytest.raises(Refused):
        made.start(("true",), project, {}, Access())


@contextmanager
def listening() -> Iterator[tuple[list[socket.socket], str]]:
    """Listen as the host's services do; give the sockets, and a program that knocks at each."""
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    tcp, abstract = socket.socket(), socket.socket(socket.AF_UNIX)
    name = f"\0ybs-test-{os.getpid()}"
    with ExitStack() as stack:
        for each, address in ((udp, ("127.0.0.1", 0)), (tcp, ("127.0.0.1", 0)), (abstract, name)):
            stack.enter_context(each).bind(address)
        for each in (tcp, abstract):
            each.listen()
        for each in (udp, tcp, abstract):
            each.setblocking(False)
        program = f"""
import socket
def knock(family, kind, address):
    one = socket.socket(family, kind)
    one.settimeout(2)
    one.connect(address)
    one.send(b"knock")
for what in (
    (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", {udp.getsockname()[1]})),
    (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", {tcp.getsockname()[1]})),
    (socket.AF_INET6, socket.SOCK_STREAM, ("::1", {tcp.getsockname()[1]})),
    (socket.AF_UNIX, socket.SOCK_STREAM, {name!r}),
    (40, socket.SOCK_STREAM, (2, 22)),
):
    try:
        knock(*what)
        print("tried")
    except OSError:
        print("tried")
try:
    socket.getaddrinfo("data.evil.example", 53)
    print("resolved")
except OSError:
    print("nothing resolved")
"""
        yield [udp, tcp, abstract], program


def reached(one: socket.socket) -> bool:
    try:
        if one.type == socket.SOCK_DGRAM:
            one.recv(10)
        else:
            one.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@pytest.mark.integration
@pytest.mark.skipif(
    not PYTHON, reason="NOT TESTED: no Python of the system can be seen in a sandbox"
)
def test_n01_n02_nothing_of_the_machine_or_beyond_is_reached(sandboxed, project):
    with listening() as (sockets, program):
        (project / "knock.py").write_text(program)
        said = run(sandboxed, f"{PYTHON} knock.py", project)
        assert said.split("\n")[:6] == ["tried"] * 5 + ["nothing resolved"]
        assert [reached(one) for one in sockets] == [False] * 3
        subprocess.run([PYTHON, "knock.py"], cwd=project, capture_output=True, check=True)
        assert [reached(one) for one in sockets] == [True] * 3  # the control


@pytest.mark.integration
def test_n05_proxies_of_a_projects_file_of_variables_are_not_known(sandboxed, project):
    (project / ".env").write_text("HTTPS_PROXY=http://evil.example:1\n")
    load(this_host(), folder=project)
    assert "evil" not in run(sandboxed, "env", project)
    assert "HTTPS_PROXY" not in os.environ


@pytest.mark.integration
def test_e01_e05_no_secret_and_nothing_that_runs_first_gets_in(sandboxed, project, monkeypatch):
    for name in (*SECRETS, *RUN_FIRST):
        monkeypatch.setenv(name, CANARY)
    monkeypatch.setenv("LANG", "C.UTF-8")
    said = run(
        sandboxed, "env; set; cat /proc/1/environ /proc/1/cmdline /proc/self/environ", project
    )
    assert "LANG=C.UTF-8" in said
    assert CANARY not in said


def test_e02_a_tool_gets_what_was_declared_for_it_and_nothing_else(sandboxed, project, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    launch = sandboxed.backend.launch(
        ("true",), project, os.environ, Access(declared={"TOOL_MODE": "fast"})
    )
    for descriptor in launch.descriptors:
        os.close(descriptor)
    assert launch.environ["TOOL_MODE"] == "fast"
    assert CANARY not in launch.environ.values()


def test_e03_ybs_own_git_gets_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*SECRETS, *RUN_FIRST):
        monkeypatch.setenv(name, CANARY)
    assert CANARY not in environment_of_git(None, {}).values()
