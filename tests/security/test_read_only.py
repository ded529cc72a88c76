"""What runs unasked cannot write: the attacks, played in the real sandboxes and judged by what is on disk."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from security.escapes.world import spawn
from security.test_sandboxed_work import bubblewrap, landlock
from ybs.security.sandbox.choice import Backend
from ybs.security.sandbox.launch import Access

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
]
both = pytest.mark.parametrize("make", [bubblewrap, landlock])
#: Each overwrites, deletes, makes or renames something in the project, if it can.
ATTACKS = (
    "sort --o=main.py /dev/null",
    "sort -o main.py /dev/null",
    "uniq - main.py </dev/null",
    "uniq /dev/null main.py",
    "sort *",
    "find . -d*",
    "rg foo *",
    "find . -delete",
    "find . -fprint main.py",
    "rm -rf main.py src",
    "mv main.py /tmp/backup",
    "cp /dev/null main.py",
    ": >main.py",
    "echo x >>main.py",
    "echo x >new.txt",
    "mkdir made",
    "ln -s / link",
    "ln main.py hard",
    "truncate -s 0 main.py",
    "touch new.txt",
    "sed -i d main.py",
    "dd if=/dev/null of=main.py",
    'python3 -c \'open("main.py", "w")\'',
    "echo x | tee main.py",
    "cd src && rm deep.py",
    "exec 3<>main.py; echo x >&3",
    "echo x >/proc/self/cwd/main.py",
)


@pytest.fixture
def work(project: Path) -> Path:
    """Fill the project as a cloned repository could: with files that are named like options."""
    (project / "main.py").write_text("b\na\n")
    (project / "src").mkdir()
    (project / "src" / "deep.py").write_text("deep\n")
    for name in ("-delete", "-omain.py", "--pre=sh", "-d"):
        (project / name).write_text("touch ran\n")
    tool = project / ".venv" / "bin" / "ls"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\necho planted\n")
    tool.chmod(0o755)
    return project


def contents(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def run(
    backend: Backend, command: str, folder: Path, *, read_only: bool = True, path: str = ""
) -> tuple[int, str, str]:
    """Run a shell command in the sandbox; return its exit code and what it printed."""
    environ = {**os.environ, "PATH": path} if path else os.environ
    launch = backend.launch(
        ("/bin/sh", "-c", command), folder, environ, Access(read_only=read_only)
    )
    assert launch.writable == (() if read_only else backend.places.writable)
    process = spawn(launch, folder, os.getuid())
    out, err = process.communicate(timeout=50)
    return process.returncode, out, err


@both
def test_nothing_in_the_project_can_be_changed(make, work: Path, home: Path) -> None:
    backend, before = make(work, home), contents(work)
    # All in one launch, each in a subshell: a launch for each of them takes ten times as long.
    done = run(backend, "\n".join(f"( {command}\n) ; echo tried" for command in ATTACKS), work)[1]
    assert done.splitlines().count("tried") == len(ATTACKS)
    assert contents(work) == before, done


@both
def test_of_a_top_that_git_takes_for_a_repository_its_parts_cannot_be_changed(make, work, home):
    for name in ("HEAD", "objects/x", "refs/x", "config", "hooks/x"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text("kept")
    before = contents(work)
    tried = ("echo x >config", "mv config other", "rm -r hooks", "touch hooks/y objects/y", "echo x >src/deep.py")  # fmt: skip
    command = "\n".join(f"( {each}\n); echo tried" for each in tried)
    assert run(make(work, home), command, work, read_only=False)[1].count("tried") == len(tried)
    assert contents(work) == before | {"src/deep.py": b"x\n"}


@both
def test_what_a_link_of_what_runs_later_leads_to_cannot_be_exchanged(
    make, work: Path, home: Path
) -> None:
    (work / "conf/in").mkdir(parents=True)
    (work / "conf/in/envrc").write_text("kept")
    (work / ".envrc").symlink_to("conf/in/envrc")
    (work / ".cargo").mkdir()
    (work / ".cargo/config.toml").write_text("kept")
    tried = (
        "echo evil >.envrc",
        "echo evil >conf/in/envrc",
        "mv conf/in conf/old; mkdir conf/in; echo evil >conf/in/envrc",
        "mv .cargo old; mkdir .cargo; echo evil >.cargo/config.toml",
        "echo x >src/deep.py",
    )
    command = "\n".join(f"( {each}\n); echo tried" for each in tried)
    assert run(make(work, home), command, work, read_only=False)[1].count("tried") == len(tried)
    for name in (".envrc", ".cargo/config.toml"):
        assert (work / name).read_text() == "kept"
    assert (work / "src/deep.py").read_text() == "x\n"


@both
def test_the_attacks_would_work_where_writing_is_allowed(make, work: Path, home: Path) -> None:
    backend = make(work, home)
    for command in ("sort --o=main.py /dev/null", "uniq /dev/null main.py", "rm main.py"):
        (work / "main.py").write_text("b\na\n")
        before = contents(work)
        assert run(backend, command, work, read_only=False)[0] == 0
        assert contents(work) != before, command


@both
def test_other_writable_folders_are_read_only_too(make, work, home, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").write_text("x")
    backend = make(work, home, writable=[other])
    code, out, _ = run(backend, f"cat {other}/file && rm {other}/file", work)
    assert (out, code != 0) == ("x", True)
    assert (other / "file").read_text() == "x"


@both
def test_reading_works_as_ever(make, work: Path, home: Path) -> None:
    backend = make(work, home)
    assert run(backend, "cat src/deep.py; cd src && ls", work) == (0, "deep\ndeep.py\n", "")
    assert run(backend, "sort main.py | head -1", work)[1] == "a\n"


@both
def test_there_is_a_place_for_temporary_files_that_no_other_command_sees(make, work, home):
    backend = make(work, home)
    assert run(backend, 'echo x >"$TMPDIR/mine" && cat "$TMPDIR/mine"', work)[:2] == (0, "x\n")
    assert run(backend, 'ls "$TMPDIR" "$HOME"', work, read_only=False)[1].count("mine") == 0


REACH = """
import os, socket
def tried(act):
    try:
        return act()
    except OSError:
        return None
def speak():
    with socket.socket(socket.AF_UNIX) as made:
        made.settimeout(5)
        made.connect("deep/editor.sock")
        made.send(b"run this")
tried(speak)
tried(lambda: os.write(os.open("deep/pipe", os.O_WRONLY | os.O_NONBLOCK), b"run this"))
print("tried")
"""


class Listening:
    """A program outside of the sandbox that takes orders at a socket and a pipe in the project, as editors and servers do."""

    def __init__(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = project / "deep"
        folder.mkdir(parents=True)
        monkeypatch.chdir(folder)  # the name of a socket is short
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind("editor.sock")
        self._socket.listen()
        self._socket.setblocking(False)
        os.mkfifo("pipe")
        self._pipe = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
        monkeypatch.chdir(project)

    @property
    def orders(self) -> list[bytes]:
        """Return what came in by the socket and by the pipe."""
        came = list[bytes]()
        with suppress(BlockingIOError), self._socket.accept()[0] as caller:
            came.append(caller.recv(99))
        with suppress(BlockingIOError):
            came.append(os.read(self._pipe, 99))
        return [each for each in came if each]

    def close(self) -> None:
        self._socket.close()
        os.close(self._pipe)


@pytest.fixture
def listening(work: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listening]:
    made = Listening(work, monkeypatch)
    yield made
    made.close()


@both
def test_no_program_that_listens_in_the_project_is_spoken_to(make, work, home, listening):
    (work / "reach.py").write_text(REACH)
    said = run(make(work, home), "python3 reach.py", work)
    assert said[1] == "tried\n", said
    assert listening.orders == []
    exec(compile(REACH, "reach.py", "exec"))
    assert listening.orders == [b"run this"] * 2


@both
def test_a_command_that_may_write_speaks_to_no_socket_of_the_machine(make, work, home, listening):
    (work / "reach.py").write_text(REACH.replace("tried(lambda", "(lambda: 0) or (lambda"))
    said = run(make(work, home), "python3 reach.py", work, read_only=False)
    assert said[1] == "tried\n", said
    assert listening.orders == []


@both
@pytest.mark.parametrize("place", ["renamed", "line\nend", "moved in", "toolchain", "git"])
def test_no_socket_of_the_machine_is_reached_by_another_name_or_beside_the_project(
    make, place: str, work: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".cargo" / "bin").mkdir(parents=True)
    (work / ".git").mkdir()
    where = {"toolchain": home / ".cargo/bin/sock", "git": work / ".git/daemon.ipc"}
    target = where.get(place, work / place)
    with socket.socket(socket.AF_UNIX) as server:
        if place in ("renamed", "moved in"):
            monkeypatch.chdir(home if place == "moved in" else work)
            server.bind("first")
            Path("first").rename(target)
        else:
            monkeypatch.chdir(target.parent)
            server.bind(target.name if place == "line\nend" else str(target))
        server.listen()
        server.setblocking(False)
        (work / "reach.py").write_text(
            "import socket\ntry:\n    with socket.socket(socket.AF_UNIX) as made:\n"
            f"        made.connect({os.path.relpath(target, work)!r})\nexcept OSError:\n    print('held')\n"
        )
        said = run(make(work, home), "python3 reach.py", work, read_only=False)
        assert said[1] == "held\n", said
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_command_that_may_write_has_sockets_of_its_own(work: Path, home: Path) -> None:
    code = (
        "import socket; a = socket.socket(socket.AF_UNIX); a.bind('own.sock'); a.listen(); "
        "b = socket.socket(socket.AF_UNIX); b.connect('own.sock'); print('met')"
    )
    backend = bubblewrap(work, home)
    for _ in range(2):
        assert (
            run(backend, f'python3 -c "{code}"; rm own.sock', work, read_only=False)[1] == "met\n"
        )
