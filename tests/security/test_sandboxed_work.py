"""Ordinary work in the real sandbox: what a coding agent does all day has to run there."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from security.escapes.world import NOBODY, PYTHON, spawn
from ybs.config.host import Host
from ybs.security.sandbox import landlock as landlock_module
from ybs.security.sandbox.bubblewrap import Bubblewrap, attempt, find
from ybs.security.sandbox.landlock import open_kernel
from ybs.security.sandbox.launch import Access, Backend
from ybs.security.sandbox.places import see

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(90),
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
]
REAL_HOME = Path(os.path.expanduser("~"))  # noqa: PTH111 - where the toolchains of this machine are
SERVER = """
import http.server, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/Makefile").status)
"""
WORKERS = """
import multiprocessing
from multiprocessing import shared_memory

def double(number):
    return number * 2

if __name__ == "__main__":
    memory = shared_memory.SharedMemory(create=True, size=8)
    with multiprocessing.Pool(2) as pool:
        print(pool.map(double, [1, 2, 3]))
    memory.close()
    memory.unlink()
"""


def needs(program: str) -> None:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"NOT TESTED: {program} is not installed")
    if not found.startswith(("/usr/", "/bin/", "/opt/", f"{REAL_HOME}/")):
        pytest.skip(f"NOT TESTED: {program} is in another home folder than this one")


def bubblewrap(project: Path, home: Path, **places: object) -> Backend:
    program = find()
    options, why = attempt(program) if program else (None, "bubblewrap is not installed")
    if options is None or program is None:
        pytest.skip(f"NOT TESTED: {why}")
    return Bubblewrap(see(Host.of({"HOME": str(home)}), project, **places), program, options, why)


def landlock(project: Path, home: Path, **places: object) -> Backend:
    kernel, why = landlock_module.attempt(open_kernel())
    if kernel is None:
        pytest.skip(f"NOT TESTED: {why}")
    return landlock_module.Landlock(
        see(Host.of({"HOME": str(home)}), project, **places), kernel, why
    )


def run(backend: Backend, command: str, folder: Path, *, network: bool = False) -> str:
    """Run a shell command in the sandbox; return what it printed."""
    launch = backend.launch(("/bin/sh", "-c", command), folder, os.environ, Access(network=network))
    process = spawn(launch, folder, os.getuid())
    out, err = process.communicate(timeout=80)
    assert process.returncode == 0, (out, err)
    return out


both = pytest.mark.parametrize("make", [bubblewrap, landlock])


@both
def test_shell_files_pipes_and_temporary_files(make, project: Path, home: Path) -> None:
    said = run(
        make(project, home),
        'echo one > file; ln -s file link; mkdir d; mv file d; cat d/file | tr o O; f=$(mktemp); '
        'echo two > "$f"; cat "$f"; echo three > ~/note; cat ~/note; echo four > /dev/null; pwd',
        project,
    )  # fmt: skip
    assert said.split() == ["One", "two", "three", str(project)]
    assert (project / "d" / "file").read_text() == "one\n"
    assert not (home / "note").exists()


def test_a_command_runs_in_a_folder_below_and_in_an_added_one(
    project: Path, home: Path, tmp_path: Path
) -> None:
    (project / "src").mkdir()
    (tmp_path / "more").mkdir()
    backend = bubblewrap(project, home, writable=[tmp_path / "more"])
    assert run(backend, "pwd", project / "src").strip() == str(project / "src")
    run(backend, "echo x > new", tmp_path / "more")
    assert (tmp_path / "more" / "new").read_text() == "x\n"


@both
def test_a_folder_that_may_not_be_listed_is_closed_with_all_that_lies_in_it(make) -> None:
    user = os.getuid() or NOBODY  # root is let in everywhere
    with TemporaryDirectory() as folder, ExitStack() as stack:
        Path(folder).chmod(0o755)
        project, home = Path(folder, "project"), Path(folder, "home")
        for path in (home, project, project / ".git", project / "sub", project / "sub/.git"):
            path.mkdir()
            os.chown(path, user, -1)
        if os.getuid() == 0:
            os.setresuid(user, user, 0)
            stack.callback(os.setresuid, 0, 0, 0)

        def play(command: str) -> str:
            words = ("/bin/sh", "-c", command)
            launch = make(project, home).launch(words, project, os.environ, Access())
            return "".join(spawn(launch, project, user).communicate(timeout=30))

        write = "(echo x > {}/.git/config) 2>/dev/null || echo held"
        assert play(f"chmod 311 sub; {write.format('.')}; {write.format('sub')}") == "held\n" * 2
        assert play(f"{write.format('sub')}; chmod 755 sub || echo shut").startswith("held\n")
        assert play("chmod 311 .; echo done") == "done\n"
        assert play(f"{write.format('.')}; {write.format('sub')}") == "held\n" * 2


def test_git_reads_and_cannot_write(project: Path, home: Path) -> None:
    needs("git")
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    for arguments in (("init", "-q"), (*author, "commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(["git", *arguments], cwd=project, check=True)
    said = run(bubblewrap(project, home), "touch new; git status --short; git log --format=%s; git add new || echo no", project)  # fmt: skip
    assert said.split() == ["??", "new", "first", "no"]


def test_git_works_in_a_worktree(project: Path, home: Path, tmp_path: Path) -> None:
    needs("git")
    work = tmp_path / "work"
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    for arguments in (("init", "-q"), (*author, "commit", "-q", "--allow-empty", "-m", "first"), ("worktree", "add", "-q", str(work))):  # fmt: skip
        subprocess.run(["git", *arguments], cwd=project, check=True)
    (project / ".git" / "private").write_text("what git does not read\n")
    unseen = f"cat {project}/.git/private || echo unseen"
    for make in (bubblewrap, landlock):
        said = run(make(work, home), f"git status --short; git log --format=%s; echo x > .git || echo no; {unseen}", work)  # fmt: skip
        assert said.split() == ["first", "no", "unseen"]


@pytest.mark.skipif(not PYTHON, reason="NOT TESTED: no Python of the system")
def test_a_local_server_and_worker_processes(project: Path, home: Path) -> None:
    for name, text in (("Makefile", "x"), ("server.py", SERVER), ("workers.py", WORKERS)):
        (project / name).write_text(text)
    said = run(bubblewrap(project, home), f"{PYTHON} server.py 2>/dev/null; {PYTHON} workers.py", project)  # fmt: skip
    assert said.splitlines() == ["200", "[2, 4, 6]"]


@both
def test_make_and_pipes_with_names(make, project: Path, home: Path) -> None:
    needs("make")
    (project / "Makefile").write_text("all: a b\na b:\n\t@echo made > $@\n")
    run(make(project, home), "make -s -j2 all", project)
    assert (project / "a").read_text() == "made\n"


@both
def test_a_folder_swapped_for_a_link_opens_nothing_for_the_next_command(
    make, project: Path, home: Path, tmp_path: Path
) -> None:
    """Two commands of one session: the first prepares what the second one's sandbox is built from."""
    outside, inner = tmp_path / "outside", project / "inner"
    for folder in (outside, inner):
        folder.mkdir()
    (outside / "secret").write_text("canary")
    backend = make(project, home, writable=[inner], blocked=["late"])
    first = f"mv inner old; ln -s {outside} inner; ln -s {outside} late; ln -s {outside} .vscode; mkdir n; ln -s {outside} n/.git; echo gitdir: {outside} > .git"
    run(backend, first, project)
    second = "cat */secret n/.git/secret .vscode/secret 2>/dev/null || echo x > inner/new || true"
    assert "canary" not in run(backend, second, project)
    assert [path.name for path in outside.iterdir()] == ["secret"]


@pytest.mark.slow
@both
def test_npm_test(make, project: Path, home: Path) -> None:
    needs("npm")
    (project / "package.json").write_text('{"name": "x", "scripts": {"test": "node t.js"}}')
    (project / "t.js").write_text("console.log('node works')")
    assert "node works" in run(make(project, home), "npm test", project)


@pytest.mark.slow
@both
def test_cargo_test(make, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("cargo")
    (project / "src").mkdir()
    (project / "Cargo.toml").write_text('[package]\nname = "x"\nversion = "0.1.0"\n')
    (project / "src" / "lib.rs").write_text("#[test]\nfn adds() { assert!(1 + 1 == 2); }\n")
    assert "1 passed" in run(make(project, REAL_HOME), "cargo test 2>&1", project)


@pytest.mark.slow
def test_pytest_of_a_virtual_environment_in_the_project(project: Path) -> None:
    python = Path(sys.executable)
    if not Path(os.path.realpath(python)).is_relative_to(REAL_HOME / ".pyenv"):
        pytest.skip("NOT TESTED: this interpreter is no toolchain of the home folder")
    (project / "test_it.py").write_text("def test_it(tmp_path): assert tmp_path.exists()\n")
    backend = bubblewrap(project, REAL_HOME, readable=[Path(sys.prefix)])
    assert "1 passed" in run(backend, f"{python} -m pytest -q test_it.py", project)


@both
def test_S15_processes_in_the_background_die_with_the_call(make, project: Path, home: Path) -> None:
    launch = make(project, home).launch(
        ("/bin/sh", "-c", "(setsid sh -c 'echo $$ > pid; exec sleep 300' >/dev/null 2>&1 &) ; while [ ! -s pid ]; do :; done"),
        project, os.environ,
    )  # fmt: skip
    process = spawn(launch, project, os.getuid())
    process.communicate(timeout=20)
    kill_group(process)
    assert not alive_in(project)


@both
def test_S17_there_is_no_input_and_no_terminal(make, project: Path, home: Path) -> None:
    said = run(make(project, home), "cat; (: < /dev/tty) 2>/dev/null || echo none", project)
    assert said == "none\n"


@both
def test_S18_a_command_that_ignores_signals_is_killed_with_its_group(
    make, project: Path, home: Path
) -> None:
    launch = make(project, home).launch(("/bin/sh", "-c", "trap '' TERM INT HUP; echo ready; while :; do sleep 1; done"), project, os.environ)  # fmt: skip
    process = spawn(launch, project, os.getuid())
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    kill_group(process)
    process.communicate(timeout=20)
    assert not alive_in(project)


def kill_group(process: subprocess.Popen[str]) -> None:
    """End the group as run_shell does."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def alive_in(folder: Path) -> bool:
    """Return whether any process still works in the folder, a moment being granted to the kernel."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        if not any(_works_in(entry, folder) for entry in Path("/proc").iterdir()):
            return False
    return True


def _works_in(entry: Path, folder: Path) -> bool:
    try:
        is_other = entry.name.isdigit() and entry.name != str(os.getpid())
        return is_other and str((entry / "cwd").readlink()) == str(folder)
    except OSError:
        return False


def test_the_network_is_a_question_of_its_own(project: Path, home: Path) -> None:
    seen = (
        "cat /proc/net/dev | wc -l; cat /etc/resolv.conf > /dev/null && echo names; ls /run | wc -l"
    )
    backend = bubblewrap(project, home)
    assert run(backend, seen, project).split() == ["3", "names", "0"]
    outside = len(Path("/proc/net/dev").read_text().splitlines())
    assert run(backend, seen, project, network=True).split()[:2] == [str(outside), "names"]
