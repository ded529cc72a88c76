"""What ybs's own git sees in its sandbox: programs that it never starts look around in its place."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from hostile_git import Sandpit, make_repository, needs_git
from hosts import this_host
from ybs.core.errors import Refused
from ybs.git.client import Git
from ybs.git.hardening import GitError, GitSandbox
from ybs.security.paths.repository import find_repository
from ybs.security.paths.roots import Roots
from ybs.security.sandbox import choice as machine
from ybs.security.sandbox import confined, landlock, seatbelt
from ybs.security.sandbox.confined import (
    SAID_BY_BUBBLEWRAP,
    SandboxMachine,
    cannot_be_had,
    launch_reader,
    launches,
)
from ybs.security.sandbox.landlock import Kernel
from ybs.security.sandbox.launch import Launch, SandboxView, Starter

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux")
pytestmark = [needs_git, needs_linux]


@pytest.fixture
def pit(project: Path, tmp_path: Path) -> Sandpit:
    pit = Sandpit(tmp_path / "pit")
    pit.top = project
    project.rmdir()
    make_repository(project)
    return pit


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text("SECRET\n")
    return folder


@pytest.fixture(params=["bubblewrap", "landlock"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    is_there = (
        machine.has_bubblewrap() if request.param == "bubblewrap" else machine.landlock_kernel()
    )
    if not is_there:
        pytest.skip(f"NOT TESTED: this machine has no {request.param}")
    monkeypatch.setattr(SandboxMachine, "has_bubblewrap", request.param == "bubblewrap")
    return request.param


def view_of(pit: Sandpit, command: str, roots: Roots | None = None) -> SandboxView:
    view = GitSandbox(roots).view(find_repository(pit.top), pit.top, command)
    assert view is not None
    return view


def ran(launch: Launch, folder: Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            launch.argv, cwd=folder, env=dict(launch.environ), pass_fds=launch.descriptors,
            preexec_fn=launch.before_exec, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    finally:
        for descriptor in launch.descriptors:
            os.close(descriptor)


def tell(pit: Sandpit, view: SandboxView, script: str) -> str:
    """Run a script where git would run and return what it printed."""
    environ = {"PATH": "/usr/bin:/bin"}
    launch = next(launches(("/bin/sh", "-c", script), environ, view))
    return ran(launch, pit.top).stdout


@pytest.mark.integration
def test_nothing_outside_is_read_or_written_not_even_by_a_link(
    pit: Sandpit, outside: Path, kind: str
) -> None:
    (pit.top / "link").symlink_to(outside)
    (pit.top / ".git/link").symlink_to(outside)
    for command in ("status", "update-index", "rev-list"):
        said = tell(
            pit,
            view_of(pit, command),
            f"cat {outside}/file link/file .git/link/file /etc/passwd ~/.bashrc; echo x >link/file; "
            f"echo x >.git/link/new; echo x >{outside}/new; rm -f link/file; mv link/file .git/; echo done",
        )
        assert said == "done\n"
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == "SECRET\n"


@pytest.mark.integration
def test_the_work_tree_is_read_only_and_the_git_folder_where_git_only_reads(
    pit: Sandpit, kind: str
) -> None:
    script = "cat a.txt; echo x >new; echo x >a.txt; rm a.txt; echo x >.git/new && echo wrote"
    assert tell(pit, view_of(pit, "status"), script) == "one\n"
    assert tell(pit, view_of(pit, "update-index"), script) == "one\nwrote\n"
    assert tell(pit, view_of(pit, "update-ref"), script) == "wrote\n", "it does not see the files"
    assert not (pit.top / "new").exists()
    assert (pit.top / "a.txt").read_text() == "one\n"


@pytest.mark.integration
def test_it_has_no_network_and_no_environment(pit: Sandpit, kind: str) -> None:
    code = "import socket\nsocket.create_connection(('127.0.0.1', 9), 1)"
    with_python = ("/usr/bin/python3", "-I", "-S", "-c", code)
    if not Path(with_python[0]).exists():
        pytest.skip("NOT TESTED: there is no python3 of the system")
    said = ran(next(launches(with_python, {"PATH": "/usr/bin"}, view_of(pit, "status"))), pit.top)
    expected = "refused" if kind == "bubblewrap" else "Permission"  # nobody listens in there
    assert expected in said.stderr
    assert tell(pit, view_of(pit, "status"), "env | grep -c HOME") == "0\n"


@pytest.mark.integration
async def test_blocked_files_and_folders_above_the_project_are_not_seen(
    pit: Sandpit, kind: str
) -> None:
    for name in ("sub/inner/x", "sub/secret/key", "sub/token", "beside/y"):
        (pit.top / name).parent.mkdir(exist_ok=True, parents=True)
        (pit.top / name).write_text("SECRET\n")
    (pit.top / ".gitignore").write_text("*.log\n")
    pit.plain("add", ".")
    pit.plain("commit", "-q", "-m", "more")
    for name in ("sub/inner/x", "sub/secret/key", "sub/token", "beside/y"):
        (pit.top / name).write_text("SECRET of now\n")
    (pit.top / "sub/new.log").write_text("")
    folder = pit.top / "sub"
    roots = Roots(this_host(), folder, blocked=("secret", "token", "gone"))
    script = "cat sub/inner/x sub/secret/key sub/token beside/y; cat .gitignore"
    assert tell(pit, view_of(pit, "status", roots), script) == "SECRET of now\n*.log\n"
    git = Git(this_host().environ, folder, sandbox=GitSandbox(roots))
    _, rows = await git.look("sub/inner", "sub/secret")
    assert [(row.letters, row.path) for row in rows if row.path != "sub/secret/key"] == [
        (" M", "sub/inner/x")
    ]
    _, rows = await git.look("sub")
    assert "sub/new.log" not in {row.path for row in rows}
    with pytest.raises(GitError, match="outside the folders"):
        await git.add("beside/y")
    assert "beside" not in pit.plain("diff", "--cached", "--name-only").stdout


@pytest.mark.integration
def test_a_folder_around_the_work_tree_shows_all_of_it_and_one_beside_it_nothing(
    pit: Sandpit, tmp_path: Path
) -> None:
    assert view_of(pit, "status", Roots(this_host(), pit.top, (pit.top.parent,))).shown == (
        str(pit.top),
    )
    assert view_of(pit, "status", Roots(this_host(), pit.top, (tmp_path / "pit",))).shown == ()
    assert view_of(pit, "update-ref").shown == ()
    (pit.top / "sub/inner").mkdir(parents=True)
    for name in (".gitignore", "sub/.gitattributes"):
        (pit.top / name).write_text("")
    (pit.top / "sub/.gitignore").symlink_to("/etc/passwd")
    roots = Roots(this_host(), pit.top / "sub/inner")
    names = ("sub/inner", "sub/.gitattributes", ".gitignore")
    assert view_of(pit, "status", roots).shown == tuple(str(pit.top / name) for name in names)
    repository = find_repository(pit.top)
    commands = Starter()
    sandbox = GitSandbox(commands=commands)
    assert sandbox.view(repository, pit.top, "status")
    assert not sandbox.shows("/etc", pit.top)
    commands.is_off = True  # the person may switch it at any time
    assert sandbox.view(repository, pit.top, "status") is None
    assert sandbox.shows("/etc", pit.top)


@pytest.mark.integration
async def test_objects_of_another_repository_are_refused_and_not_read(
    pit: Sandpit, tmp_path: Path, kind: str
) -> None:
    other = Sandpit(tmp_path / "other")
    make_repository(other.top)
    (other.top / "private").write_text("SECRET\n")
    other.plain("add", ".")
    other.plain("commit", "-q", "-m", "SECRET title")
    head = other.plain("rev-parse", "HEAD").stdout
    (pit.top / ".git/refs/heads/main").write_text(head)
    place = pit.top / ".git/objects/info/alternates"
    place.parent.mkdir(exist_ok=True)
    place.write_text("# nothing\n\n")
    git = Git(this_host().environ, pit.top)
    with pytest.raises(GitError, match=r"bad object|bad tree|unknown revision|ambiguous"):
        await git.run("log", "HEAD")
    place.write_text(f"{other.top}/.git/objects\n")
    with pytest.raises(GitError, match="another repository"):
        await git.run("log", "HEAD")
    place.unlink()
    place.symlink_to(other.top / ".git/objects/info/packs")
    with pytest.raises(GitError, match="git cannot be used"):
        await git.run("log", "HEAD")
    place.unlink()
    place.write_text("# nothing\n" * 500 + f"{other.top}/.git/objects\n")
    with pytest.raises(GitError, match="alternates is longer than 4,096 bytes"):
        await git.run("log", "HEAD")
    place.unlink()
    place.mkdir()
    with pytest.raises(GitError, match="is not a regular file"):
        await git.run("log", "HEAD")
    place.rmdir()
    for name in sorted(os.listdir(other.top / ".git/objects")):  # noqa: PTH208 - names
        if not (pit.top / ".git/objects" / name).exists():
            (pit.top / ".git/objects" / name).symlink_to(other.top / ".git/objects" / name)
    with pytest.raises(GitError, match="git failed"):
        await git.run("log", "HEAD")
    bare = Starter()
    bare.is_off = True
    sandbox = GitSandbox(commands=bare)
    assert await Git(this_host().environ, pit.top, sandbox=sandbox).head() == head.strip()


def test_where_bubblewrap_does_not_work_the_next_way_is_taken(
    pit: Sandpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confined, "system_program", lambda _: "/bin/false")
    monkeypatch.setattr(SandboxMachine, "has_bubblewrap", True)
    view = view_of(pit, "status")

    def ways() -> Iterator[str]:
        for launch in launches(("/usr/bin/git",), {}, view):
            yield launch.argv[0]
            for descriptor in launch.descriptors:
                os.close(descriptor)

    monkeypatch.setattr(machine, "tried_landlock", lambda: (fake(), ""))
    assert list(ways()) == ["/bin/false", "/usr/bin/git", "/usr/bin/git"]
    assert not cannot_be_had(2, SAID_BY_BUBBLEWRAP)
    assert not cannot_be_had(1, "fatal: no")
    monkeypatch.setattr(machine, "tried_bubblewrap", lambda: ("/usr/bin/bwrap", (), ""))
    assert not cannot_be_had(1, SAID_BY_BUBBLEWRAP), "it works: this failed for something else"
    monkeypatch.setattr(machine, "tried_bubblewrap", lambda: (None, (), ""))
    assert cannot_be_had(1, SAID_BY_BUBBLEWRAP)
    assert not SandboxMachine.has_bubblewrap
    monkeypatch.setattr(machine, "tried_landlock", lambda: (None, ""))
    assert list(ways()) == ["/usr/bin/git"]
    assert [each.argv for each in launches(("git",), {}, None)] == [("git",)]


@pytest.mark.integration
async def test_git_itself_and_the_titles_go_on_in_the_next_way(
    pit: Sandpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ybs.git.titles import ask_titles

    program = pit.program.with_name("bwrap")
    program.write_text("#!/bin/sh\necho 'bwrap: no permissions' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(confined, "system_program", lambda _: str(program))
    monkeypatch.setattr(machine, "tried_bubblewrap", lambda: (None, (), ""))
    monkeypatch.setattr(SandboxMachine, "has_bubblewrap", True)
    assert await Git(this_host().environ, pit.top).branch() == "main"
    monkeypatch.setattr(SandboxMachine, "has_bubblewrap", True)
    asked = ask_titles(this_host(), pit.top, 5)
    assert asked is not None
    assert len(asked.read(5)) == 2
    monkeypatch.setattr(SandboxMachine, "has_bubblewrap", True)
    monkeypatch.setattr("ybs.git.titles.launches", lambda *_: iter([Launch((str(program),), {})]))
    asked = ask_titles(this_host(), pit.top, 5)
    assert asked is not None
    assert asked.read(5) == []


@pytest.mark.integration
def test_a_reader_sees_the_view_and_nothing_else(
    pit: Sandpit, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = SandboxView(folder=str(pit.top), git_folders=(), shown=(str(pit.top),))
    command = ("/bin/sh", "-c", f"cat a.txt {outside}/file")
    has_landlock = machine.landlock_kernel() is not None
    launch = launch_reader(command, {}, view)
    if has_landlock:
        assert launch.argv[0] == "/bin/sh"
        assert ran(launch, pit.top).stdout == "one\n"
    monkeypatch.setattr(machine, "tried_landlock", lambda: (None, ""))
    if machine.has_bubblewrap():
        assert ran(launch_reader(command, {}, view), pit.top).stdout == "one\n"
    monkeypatch.setattr(machine, "tried_bubblewrap", lambda: (None, (), ""))
    assert launch_reader(command, {}, view).argv == command
    monkeypatch.setattr(confined, "sys", SimpleNamespace(platform="odd"))
    assert launch_reader(command, {}, view).argv == command


def test_a_git_outside_the_systems_folders_brings_its_libraries(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/git"
    program.write_text("")
    found = confined.program_places(str(program))
    assert found == [str(program), str(tmp_path / "lib")]
    assert confined.program_places("/usr/bin/git") == []


class FakeKernel(Kernel, frozen=True):
    """Gives out real descriptors and records the rules."""

    rules: dict[str, int]
    asked: list[tuple[int, int, int]]

    def create_ruleset(self, rights: int, *, network: int, scopes: int) -> int:
        self.asked.append((rights, network, scopes))
        return os.open("/dev/null", os.O_RDONLY)

    def allow(self, ruleset: int, descriptor: int, rights: int) -> None:
        self.rules[str(Path(f"/proc/self/fd/{descriptor}").readlink())] = rights


def fake(abi: int = 7) -> FakeKernel:
    return FakeKernel(lambda *_: 0, lambda *_: 0, abi, {}, [])


def test_the_rules_of_landlock_name_what_is_seen_and_follow_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tree/secret").mkdir(parents=True)
    (tmp_path / "tree/git").mkdir()
    (tmp_path / "link").symlink_to("/etc")
    tree, git = str(tmp_path / "tree"), str(tmp_path / "tree/git")
    view = SandboxView(
        folder=tree,
        git_folders=(git, str(tmp_path / "link")),
        shown=(tree,),
        hidden=(f"{tree}/secret",),
        is_writing=True,
    )
    kernel = fake(1)
    os.close(landlock.git_ruleset(kernel, ("/usr", "/gone"), ("/dev/null",), view))
    assert kernel.rules.pop(git) & 0b10
    assert kernel.rules.pop(str(tmp_path / "link")), "the link itself, which opens nothing"
    assert kernel.rules == {"/usr": 0b1101, "/dev/null": 0b110, tree: 0b1000}
    assert kernel.asked == [((1 << 13) - 1, 0, 0)]

    def refuse(*_: object) -> None:
        raise Refused("no")

    monkeypatch.setattr(landlock, "allow_place", refuse)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names
    with pytest.raises(Refused):
        landlock.git_ruleset(kernel, (), ("/dev/zero",), view)
    # The descriptor of the device was to be closed by what was replaced.
    assert len(os.listdir("/proc/self/fd")) == before + 1  # noqa: PTH208 - names


def test_on_macos_a_profile_names_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined, "sys", SimpleNamespace(platform="darwin"))
    view = SandboxView(folder="/w", git_folders=("/w/.git",), shown=("/w",), hidden=("/w/key",))
    assert [each.argv[0] for each in launches(("/usr/bin/git",), {}, view)] == ["/usr/bin/git"]
    monkeypatch.setattr(seatbelt, "find", lambda: seatbelt.PROGRAM)
    first, last = launches(("/usr/bin/git", "status"), {}, view)
    assert first.argv[0] == seatbelt.PROGRAM
    assert first.argv[-3:] == ("--", "/usr/bin/git", "status")
    assert last.argv == ("/usr/bin/git", "status")
    reader = launch_reader(
        ("/usr/bin/rg",), {}, SandboxView(folder="/w", git_folders=(), shown=("/w",))
    )
    assert reader.argv[-2:] == ("--", "/usr/bin/rg")
    assert "(allow file-read*)" not in reader.argv[2].replace(" )", ")"), "that would be all files"
    text, names = seatbelt.git_profile(view, ("/opt/own/git",))
    assert "(deny default)" in text
    assert "network" not in text
    assert {"/w", "/w/.git", "/w/key", "/opt/own/git"} <= set(names.values())
    rules = text.splitlines()
    assert rules[-2].startswith("(deny file-read* (subpath (param")
    assert rules[-1].startswith("(allow file-read* (subpath (param"), "git may only read"
    text, _ = seatbelt.git_profile(
        SandboxView(folder="/w", git_folders=("/w/.git",), is_writing=True), ()
    )
    assert text.splitlines()[-1].startswith("(allow file-read* file-write* (subpath (param")
    assert text.count("file-write* ") == 1
