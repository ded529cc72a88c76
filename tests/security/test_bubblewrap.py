"""What bubblewrap is told. That it holds is shown by the escapes."""

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from rows import every_row
from ybs.config.host import Host
from ybs.core.errors import Refused
from ybs.security import launcher
from ybs.security.sandbox import bubblewrap, protected
from ybs.security.sandbox.bubblewrap import Bubblewrap, attempt, find
from ybs.security.sandbox.launch import Access, Launch, StartReport
from ybs.security.sandbox.places import see
from ybs.security.sandbox.scratch import PrivateFolder
from ybs.security.sandbox.seccomp import confining

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux")

CANARY = "canary-of-the-test"


@pytest.fixture
def launched(project: Path, home: Path) -> Iterator[object]:
    """Return a function that gives the arguments of a launch, and close what it opened."""
    opened: list[int] = []

    def launch(uid: int = 1000, *, network: bool = False, **places: object) -> list[str]:
        backend = Bubblewrap(
            see(Host.of({"HOME": str(home)}), project, uid=uid, **places),
            "/usr/bin/bwrap",
            ("--disable-userns",),
            "",
        )
        made = backend.launch(("sh", "-c", "x"), project, {"K": CANARY}, Access(network=network))
        opened.extend(made.descriptors)
        return list(made.argv)

    yield launch
    for descriptor in opened:
        os.close(descriptor)


def pairs(argv: list[str], option: str) -> list[str]:
    """Return the destinations of an option that takes two values, but for the session's /tmp."""
    found = [argv[i + 2] for i, word in enumerate(argv) if word == option]
    return [each for each in found if each != "/tmp"]


def has(argv: list[str], *words: str) -> bool:
    return any(tuple(argv[i : i + len(words)]) == words for i in range(len(argv)))


def test_nothing_is_shared_and_everything_dies_together(launched) -> None:
    argv = launched()
    assert argv[0] == "/usr/bin/bwrap"
    for option in ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--disable-userns", "--die-with-parent"):  # fmt: skip
        assert option in argv
    assert has(argv, "--cap-drop", "ALL")
    assert has(argv, "--remount-ro", "/", "--chdir")
    assert argv[-4:] == ["--", "sh", "-c", "x"]
    assert argv[argv.index("--") + 1 :][:2] == ["/bin/sh", "-c"]  # looks at the mounts first
    assert argv.index("--seccomp") < argv.index("--")


@every_row(
    "options, enters, temporary",
    [
        ({}, True, "/tmp"),
        ({"network": True}, False, "/tmp"),
        ({"read_only": True}, False, "/var/tmp"),
        ({"is_alone": True}, True, "/var/tmp"),
    ],
)
def test_what_nobody_was_asked_about_does_not_enter_the_network_that_commands_share(
    project: Path, home: Path, options: dict[str, bool], enters: bool, temporary: str
) -> None:
    places = see(Host.of({"HOME": str(home)}), project, uid=1000)
    shared = SimpleNamespace(prefix=lambda _program: ("enter",))
    made = Bubblewrap(places, "/usr/bin/bwrap", (), "", None, shared).launch(
        ("x",), project, {}, Access(**options)
    )
    for descriptor in made.descriptors:
        os.close(descriptor)
    assert ("enter" in made.argv) is enters
    assert made.environ["TMPDIR"] == temporary
    assert has([*made.argv], "--tmpfs", temporary)


@every_row("options, expected", [({}, "/tmp"), ({"read_only": True}, "/var/tmp"), ({"is_alone": True}, "/var/tmp")])  # fmt: skip
def test_a_home_among_the_temporary_files_is_where_these_are(
    project: Path, options: dict[str, bool], expected: str
) -> None:
    places = see(Host.of({"HOME": "/"}), project)
    made = Bubblewrap(places, "/usr/bin/bwrap", (), "").launch(
        ("x",), project, {}, Access(**options)
    )
    for descriptor in made.descriptors:
        os.close(descriptor)
    assert made.environ["HOME"] == expected


def test_no_variable_stands_where_everybody_can_read_it(launched) -> None:
    argv = launched()
    assert "--setenv" not in argv
    assert CANARY not in " ".join(argv)


def test_the_root_is_empty_and_the_home_folder_too(launched, home: Path) -> None:
    argv = launched()
    assert has(argv, "--tmpfs", "/")
    assert argv.index("/") < argv.index("/usr")
    assert has(argv, "--tmpfs", str(home))


def test_a_home_in_the_system_is_not_covered(project: Path) -> None:
    backend = Bubblewrap(see(Host.of({"HOME": str(Path("/usr/sbin"))}), project), "bwrap", (), "")
    made = backend.launch(("x",), project, {})
    for descriptor in made.descriptors:
        os.close(descriptor)
    assert not has(list(made.argv), "--tmpfs", "/usr/sbin")
    assert made.environ["HOME"] == "/tmp"


@pytest.mark.parametrize(("uid", "expected"), [(0, True), (1000, False)])
def test_uid_0_cannot_write_settings_of_the_kernel(launched, uid: int, expected: bool) -> None:
    assert has(launched(uid), "--proc", "/proc", "--remount-ro", "/proc") == expected


def test_the_project_is_writable_and_what_others_act_on_is_not(launched, project: Path) -> None:
    (project / ".git").mkdir()
    (project / ".vscode").mkdir()
    (project / "sub" / ".git").mkdir(parents=True)
    argv = launched()
    assert pairs(argv, "--bind") == [str(project)]
    for name in (".git", ".vscode", "sub/.git"):
        assert f"{project}/{name}" in pairs(argv, "--ro-bind")
    assert f"{project}/.ybs.json" not in argv


def test_a_git_folder_that_is_a_link_leaves_the_projects_own_folder_read_only(
    launched, project: Path, tmp_path: Path
) -> None:
    (project / "gitdata").mkdir()
    (project / "src").mkdir()
    (project / ".git").symlink_to("gitdata")
    argv = launched()
    assert str(project) in pairs(argv, "--ro-bind")
    assert sorted(pairs(argv, "--bind")) == [
        str(project), f"{project}/gitdata", f"{project}/src",
    ]  # fmt: skip
    assert argv.index("--bind") < argv.index("--ro-bind", argv.index("--bind"))
    assert f"{project}/gitdata" in pairs(argv, "--ro-bind")


def test_what_a_protected_link_points_to_in_the_project_is_held_with_the_way_there(
    launched, project
):
    for folder in ("deep/in/shared", "src"):
        (project / folder).mkdir(parents=True)
    (project / ".claude").symlink_to("deep/in/shared")
    (project / ".cursor").symlink_to("/etc")
    (project / ".codex").symlink_to(".")
    argv = launched()
    assert pairs(argv, "--bind") == [str(project), f"{project}/deep", f"{project}/deep/in"]
    assert [each for each in pairs(argv, "--ro-bind") if each.startswith(str(project))] == [
        f"{project}/deep/in/shared"
    ]


def test_the_way_to_what_is_held_below_the_top_cannot_be_renamed(launched, project: Path) -> None:
    (project / ".cargo").mkdir()
    (project / ".cargo/config.toml").write_text("x")
    argv = launched()
    assert pairs(argv, "--bind") == [str(project), f"{project}/.cargo"]
    assert f"{project}/.cargo/config.toml" in pairs(argv, "--ro-bind")


def test_other_folders_toolchains_and_blocked_paths(launched, project, home, tmp_path):
    for folder in ("more", "seen"):
        (tmp_path / folder).mkdir()
    (home / ".pyenv").mkdir()
    (project / "secret").mkdir()
    (project / "key").write_text("x")
    argv = launched(
        writable=[tmp_path / "more"], readable=[tmp_path / "seen"],
        blocked=["secret", "key", str(tmp_path / "far"), str(home / ".pyenv" / "gone")],
    )  # fmt: skip
    assert pairs(argv, "--bind") == [str(project), str(tmp_path / "more")]
    assert {str(tmp_path / "seen"), str(home / ".pyenv")} <= set(pairs(argv, "--ro-bind"))
    assert has(argv, "--perms", "0555", "--tmpfs", str(project / "secret"))
    assert has(argv, "--ro-bind", "/dev/null", str(project / "key"))


def test_what_is_seen_elsewhere_is_shown_only_while_it_is_what_was_judged(project, home, tmp_path):
    for name in ("seen", "gone", "swapped", "private"):
        (tmp_path / name).mkdir()
    names = [tmp_path / name for name in ("seen", "gone", "swapped")]
    places = see(Host.of({"HOME": str(home)}), project, readable=names)
    backend = Bubblewrap(places, "bwrap", (), "")
    (tmp_path / "gone").rmdir()
    (tmp_path / "swapped").rmdir()
    (tmp_path / "swapped").symlink_to("private")
    made = backend.launch(("x",), project, {})
    os.close(*made.descriptors)
    shown = [path for path in pairs(list(made.argv), "--ro-bind") if path in map(str, names)]
    assert shown == [str(tmp_path / "seen")]


def test_a_blocked_path_that_is_not_seen_needs_no_cover(launched, tmp_path, home):
    (home / ".ssh").mkdir()
    assert str(home / ".ssh") not in launched(blocked=[home / ".ssh"])


def test_the_way_to_a_blocked_path_cannot_be_renamed(launched, project: Path) -> None:
    (project / "a" / "b" / "secret").mkdir(parents=True)
    (project / "a" / ".git").mkdir()
    argv = launched(blocked=["a/b/secret"])
    assert pairs(argv, "--bind") == [str(project), f"{project}/a", f"{project}/a/b"]
    assert argv.index(f"{project}/a/.git") > argv.index(f"{project}/a/b")


def test_with_the_network_the_name_servers_file_is_shown(launched, monkeypatch):
    real, there = os.path.realpath, os.path.exists
    stub = "/run/systemd/resolve/stub-resolv.conf"
    monkeypatch.setattr(os.path, "realpath", lambda p, **k: stub if p == "/etc/resolv.conf" else real(p, **k))  # fmt: skip
    monkeypatch.setattr(os.path, "exists", lambda p: p == stub or there(p))
    argv = launched(network=True)
    assert "--unshare-net" not in argv
    assert has(argv, "--ro-bind", stub, stub)
    assert stub not in launched()


def test_a_name_servers_file_of_the_system_is_seen_anyway(launched, monkeypatch):
    monkeypatch.setattr(bubblewrap, "SYSTEM", ("/",))
    assert "/etc/resolv.conf" not in launched(network=True)


def test_a_command_outside_of_the_sandbox_is_refused(launched, project: Path, home: Path) -> None:
    backend = Bubblewrap(see(Host.of({"HOME": str(home)}), project), "bwrap", (), "")
    with pytest.raises(Refused):
        backend.launch(("x",), project.parent, {})


def test_S20_bwrap_is_never_looked_for_along_the_path(tmp_path, monkeypatch):
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(bubblewrap, "BUBBLEWRAP", ("/gone/bwrap",))
    assert find() is None


@every_row(("uid", "mode", "expected"), [(0, 0o100755, True), (0, 0o100645, True), (1000, 0o100755, False), (0, 0o100775, False), (0, 0o100757, False), (0, 0o100644, False), (0, 0o040755, False)])  # fmt: skip
def test_bwrap_has_to_be_roots_and_nobody_elses_to_write(monkeypatch, uid, mode, expected):
    class Found(type(Path())):
        def stat(self, **_: object) -> SimpleNamespace:
            return SimpleNamespace(st_uid=uid, st_mode=mode)

    monkeypatch.setattr(launcher, "Path", Found)
    monkeypatch.setattr(bubblewrap, "BUBBLEWRAP", ("/usr/bin/bwrap",))
    assert (find() is not None) == expected


class FakeRun:
    """Stands in for `ask` of the launcher, and answers with what bwrap would say."""

    def __init__(self, *said: str | BaseException) -> None:
        self.said, self.calls, self.filters = list(said), [], []

    def __call__(self, launch: Launch, _seconds: float) -> tuple[int, bytes, bytes]:
        self.calls.append(launch.argv)
        with os.fdopen(*launch.descriptors, "rb") as given:
            self.filters.append(given.read())
        said = self.said.pop(0)
        if isinstance(said, BaseException):
            raise said
        return int(said != "ok"), b"", said.encode()


@every_row(
    ("said", "options", "why"),
    [
        (("ok",), ("--disable-userns",), "/b"),
        (("bwrap: Unknown option --disable-userns", "ok"), (), "/b without --disable-userns"),
        (
            ("No permissions to create a new namespace",) * 2,
            None,
            "does not work here: No permissions",
        ),
        (("Unknown option --disable-userns", "nothing works"), None, "nothing works"),
        (("", ""), None, "exit code 1"),
        ((FileNotFoundError("gone"),) * 2, None, "gone"),
        ((TimeoutError("it took longer than 1 s"),) * 2, None, "took longer"),
    ],
)
def test_S19_bwrap_is_tried_once_and_says_why_it_does_not_work(monkeypatch, said, options, why):
    run = FakeRun(*said)
    monkeypatch.setattr(bubblewrap, "ask", run)
    found, reason = attempt("/b")
    assert found == options
    assert why in reason
    assert len(run.calls) == len(said)
    assert run.filters == [confining(os.uname().machine)] * len(said)
    assert ("--disable-userns" in run.calls[-1]) == (len(said) == 1)


def test_a_machine_without_a_filter_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="riscv64"))
    assert attempt("/b") == (None, "there is no system call filter for riscv64")


def test_whoever_spawns_closes_the_filter_and_every_launch_has_its_own(project, home):
    backend = Bubblewrap(see(Host.of({"HOME": str(home)}), project), "bwrap", (), "")
    first, second = (backend.launch(("x",), project, {}) for _ in range(2))
    assert isinstance(first, Launch)
    assert first.before_exec is None
    (one,), (other,) = first.descriptors, second.descriptors
    assert one != other
    assert os.read(one, 8) == os.read(other, 8) != b""
    os.close(one)
    os.close(other)


def test_a_very_full_folder_around_a_linked_git_is_read_only_as_a_whole(
    launched, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "sub").mkdir()
    (project / "sub" / ".git").symlink_to("../data")
    (project / "sub" / "a").write_text("x")
    assert f"{project}/sub/a" in pairs(launched(), "--bind")

    def refuse(_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(bubblewrap, "_MOST_PIECES", 0)
    argv = launched()
    assert f"{project}/sub/a" not in argv
    assert f"{project}/sub" in pairs(argv, "--ro-bind")
    monkeypatch.setattr(protected, "held_whole", lambda _: [f"{project}/sub/.git"])
    monkeypatch.setattr(os, "scandir", refuse)
    assert f"{project}/sub" in pairs(launched(), "--ro-bind")


def test_code_is_held_and_the_folders_above_it_stay_in_their_place(project: Path):
    code = project / "envs/one/lib"
    code.mkdir(parents=True)
    link = project / "link"
    link.symlink_to(code)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bubblewrap, "code_in", lambda _: (str(code), str(link)))
        words = bubblewrap.holding_code("/usr/bin/bwrap", [str(project)])
    assert words[:4] == ("/usr/bin/bwrap", "--dev-bind", "/", "/")
    assert words[-4:] == ("--ro-bind", str(code), str(code), "--")
    assert ("--dev-bind", f"{project}/envs", f"{project}/envs") == words[4:7]
    assert str(link) not in words


def test_a_pipe_among_the_temporary_files_of_the_session_is_hidden_from_what_only_reads(
    project: Path, home: Path, tmp_path: Path
):
    private = PrivateFolder(tmp_path / "private")
    os.mkfifo(f"{private.shared}/pipe")
    backend = Bubblewrap(
        see(Host.of({"HOME": str(home)}), project), "/usr/bin/bwrap", (), "", private
    )
    opened = backend.opened
    assert [*opened(read_only=True)][-3:] == ["--ro-bind", "/dev/null", "/tmp/pipe"]
    assert "/tmp/pipe" not in [*opened(read_only=False)]


@pytest.mark.integration
@every_row(
    "command, gone, has_begun",
    [
        ("exit 0", "", True),
        ("exit 1", "", True),
        ("kill -9 $$", "", True),
        ("exit 0", "/nowhere", False),
    ],
)
def test_whether_a_program_began_is_told_from_how_it_ended(
    project: Path, home: Path, command: str, gone: str, has_begun: bool
) -> None:
    program = find()
    options, why = attempt(program) if program else (None, "it is not installed")
    if program is None or options is None:
        pytest.skip(f"NOT TESTED: {why}")
    more = ("--ro-bind", gone, gone) if gone else ()
    backend = Bubblewrap(see(Host.of({"HOME": str(home)}), project), program, (*options, *more), "")
    with closing(StartReport()) as report:
        assert report.has_begun, "where nobody writes to it"
        told = Access(report=report)
        made = backend.launch(("/bin/sh", "-c", command), project, {}, told)
        launcher.ask(made, 30)
        assert report.has_begun is has_begun
