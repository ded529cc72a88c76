"""What a command that runs read-only tried: told by the kernel, whatever the command says of it."""
# pyright: reportPrivateUsage=false

import ctypes
import errno
import fcntl
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rows import every_row
from security.test_sandboxed_work import bubblewrap, landlock
from ybs.security.sandbox import attempts as room
from ybs.security.sandbox.attempts import Attempts
from ybs.security.sandbox.launch import Access
from ybs.security.sandbox.seccomp import changing

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
]
both = pytest.mark.parametrize("make", [bubblewrap, landlock])
PYTHON = "/usr/bin/python3"


def tried(make: Callable[..., Any], project: Path, home: Path, *argv: str) -> Attempts:
    """Run a program read-only in a real sandbox and return what was noted."""
    attempts = Attempts([str(project)])
    launch = make(project, home).launch(argv, project, dict(os.environ), Access(read_only=True))
    try:
        process = subprocess.Popen(
            launch.argv,
            env=launch.environ,
            cwd=project,
            pass_fds=launch.descriptors,
            preexec_fn=attempts.watch(launch.before_exec),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    finally:
        for descriptor in launch.descriptors:
            os.close(descriptor)
        attempts.begin()
    process.wait()
    attempts.end()
    return attempts


def code(make: Callable[..., Any], project: Path, home: Path, text: str) -> Attempts:
    return tried(make, project, home, PYTHON, "-c", text)


@both
@every_row(
    ("text", "changed"),
    [
        ("open('new', 'w')", ["new"]),
        ("open('main.py', 'a')", ["main.py"]),
        ("import os; os.mkdir('made')", ["made"]),
        ("import os; os.unlink('main.py')", ["main.py"]),
        ("import os; os.rename('main.py', 'other')", ["main.py", "other"]),
        ("import os; os.link('main.py', 'twin')", ["twin"]),
        ("import os; os.symlink('main.py', 'link')", ["link"]),
        ("import os; os.chdir('sub'); open('../x', 'w')", ["x"]),
        ("import os; d = os.open('sub', os.O_RDONLY); os.open('y', os.O_WRONLY | os.O_CREAT, dir_fd=d)", ["sub/y"]),
        ("try: open('new', 'w')\nexcept OSError: pass", ["new"]),
        ("import os; os.mkdir('__pycache__')", []),
        ("import os; os.mkdir('pytest-cache-files-x')", []),
        ("print(open('main.py').read())", []),
        ("import os; open(os.environ['TMPDIR'] + '/x', 'w')", []),
    ],
)  # fmt: skip
def test_what_it_wanted_to_change_is_noted(make, project, home, text, changed):
    project.mkdir(exist_ok=True)
    (project / "main.py").write_text("kept\n")
    (project / "sub").mkdir(exist_ok=True)
    noted = code(make, project, home, text)
    assert noted.is_watching
    assert sorted(noted.changed) == [str(project / name) for name in sorted(changed)]
    assert (noted.opened, noted.wants_network, noted.wants_server) == ({}, False, False)
    assert sorted(path.name for path in project.iterdir()) == ["main.py", "sub"]


def test_a_change_of_modes_is_noted(project: Path, home: Path) -> None:
    """With Landlock the other filter refuses it first, so only the command's own words say so."""
    (project / "main.py").write_text("kept\n")
    chmod = "import os; os.chmod('main.py', 0o600)"
    assert list(code(bubblewrap, project, home, chmod).changed) == [str(project / "main.py")]
    mode = (project / "main.py").stat().st_mode
    assert code(landlock, project, home, chmod).changed == {}
    assert (project / "main.py").stat().st_mode == mode


@both
def test_a_file_that_may_be_read_instead_and_gits_index_are_kept_apart(make, project, home):
    (project / "a.db").write_text("x")
    opens = "import os\nfor flags in (os.O_RDWR, os.O_RDWR | os.O_CREAT):\n try: os.open('a.db', flags)\n except OSError: pass\n"
    assert list(code(make, project, home, opens).opened) == [str(project / "a.db")]
    cuts = "import os; os.open('a.db', os.O_RDWR | os.O_CREAT | os.O_EXCL)"
    assert list(code(make, project, home, cuts).changed) == [str(project / "a.db")]
    (project / ".git").mkdir()
    locks = code(make, project, home, "open('.git/index.lock', 'w')")
    assert list(locks.opened) == [str(project / ".git/index.lock")]


@every_row(
    ("address", "network", "server"),
    [
        ("('192.0.2.1', 80)", True, False),
        ("('127.0.0.1', 9)", False, True),
        ("('127.0.0.53', 53)", True, False),
    ],
)
def test_whom_it_wanted_to_reach_is_noted(project, home, address, network, server):
    project.mkdir(exist_ok=True)
    noted = code(bubblewrap, project, home, f"import socket; socket.socket().connect({address})")
    assert (noted.wants_network, noted.wants_server) == (network, server)


def test_the_other_kind_of_address_counts_and_a_socket_of_the_system_does_not(project, home):
    six = "import socket; socket.socket(socket.AF_INET6).connect(('{}', 9))"
    assert code(bubblewrap, project, home, six.format("::1")).wants_server
    assert code(bubblewrap, project, home, six.format("2001:db8::1")).wants_network
    unix = "import socket; socket.socket(socket.AF_UNIX).connect('/tmp/none')"
    noted = code(bubblewrap, project, home, unix)
    assert (noted.wants_network, noted.wants_server) == (False, False)


def test_no_more_than_a_few_hundred_paths_are_kept(project: Path, home: Path) -> None:
    text = "import os\nfor n in range(300):\n try: os.mkdir(f'd{n}')\n except OSError: pass\n"
    assert len(code(bubblewrap, project, home, text).changed) == 200


def test_a_command_that_needs_no_notes_gets_no_filter(project: Path) -> None:
    attempts = Attempts([str(project)], is_needed=False)
    assert attempts.watch(None) is None
    attempts.begin()
    attempts.end()
    assert not attempts.is_watching


def test_where_there_is_no_such_filter_the_command_runs_as_it_would(monkeypatch):
    def unknown(machine: str) -> bool:
        return not machine

    monkeypatch.setattr(room, "is_known", unknown)
    assert Attempts(["/p"]).watch(print) is print


class Kernel:
    """Stands for the calls of the child, which no measure of coverage sees."""

    def __init__(self, listener: int) -> None:
        self.listener, self.calls = listener, list[tuple[Any, ...]]()

    def __call__(self, *arguments: Any) -> int:
        self.calls.append(arguments)
        return self.listener


@every_row("has_filter", [True, False])
def test_the_child_enters_installs_and_hands_over_what_listens(has_filter: bool) -> None:
    mine, its = socket.socketpair()
    entered: list[str] = []
    install: Any = room._Install(b"12345678", 317, its, lambda: entered.append("in"))
    listener = os.open("/dev/null", os.O_RDONLY) if has_filter else -1
    install._syscall, install._prctl = kernel, prctl = Kernel(listener), Kernel(0)
    install()
    assert (entered, prctl.calls) == (["in"], [(38, 1, 0, 0, 0)])
    assert kernel.calls[0][:3] == (317, 1, 8)
    its.close()
    received = room._received(mine)
    assert (received is not None) is has_filter
    if received is not None:
        os.close(received)
    mine.close()
    assert room._received(mine) is None


def test_without_a_listener_nothing_is_known() -> None:
    attempts = Attempts(["/p"])
    install: Any = attempts.watch(None)
    install._syscall, install._prctl = Kernel(-1), Kernel(0)
    install()
    attempts.begin()
    attempts.end()
    assert not attempts.is_watching


def test_a_caller_that_is_gone_is_passed_over_and_other_faults_are_not(monkeypatch):
    attempts = Attempts(["/p"])
    numbers = changing(os.uname().machine)

    def failing(number: int) -> Callable[..., int]:
        def ioctl(*_: Any) -> int:
            raise OSError(number, os.strerror(number))

        return ioctl

    monkeypatch.setattr(fcntl, "ioctl", failing(errno.ENOENT))
    attempts._answer(0, numbers)
    monkeypatch.setattr(fcntl, "ioctl", failing(errno.EBADF))
    with pytest.raises(OSError, match="Bad file descriptor"):
        attempts._answer(0, numbers)


def test_a_path_is_read_across_the_end_of_a_page() -> None:
    import mmap

    area = mmap.mmap(-1, 3 * 4096)
    start = ctypes.addressof(ctypes.c_char.from_buffer(area))
    path = b"/" + b"p" * 200
    area[4096 - 100 : 4096 - 100 + len(path) + 1] = path + b"\0"
    assert room._path(os.getpid(), start + 4096 - 100, None) == path.decode()
    assert room._memory(os.getpid(), start, 4)[:4] == b"\0" * 4
    here = struct.pack("=I", 0xFFFFFF9C)
    area[0:4] = b"sub\0"
    assert room._path(os.getpid(), start, struct.unpack("=I", here)[0]) == str(Path.cwd() / "sub")
