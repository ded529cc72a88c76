"""The session's own folder: shared by its commands, gone with it, and removed without trust in what is in it."""

import os
import stat
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from security.escapes.world import spawn
from security.test_read_only import run
from security.test_sandboxed_work import bubblewrap, landlock
from ybs.config import private_file
from ybs.config.host import Host, memory_folder
from ybs.security.sandbox import scratch
from ybs.security.sandbox.bubblewrap import Bubblewrap
from ybs.security.sandbox.launch import Access
from ybs.security.sandbox.places import see
from ybs.security.sandbox.sandbox import Sandbox
from ybs.security.sandbox.scratch import PrivateFolder, sweep

linux = pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux")
both = pytest.mark.parametrize("make", [bubblewrap, landlock])


def sandboxed(make: Any, project: Path, home: Path) -> Any:
    backend = make(project, home)
    backend.private = PrivateFolder(this_host().scratch_folder)
    return backend


@pytest.mark.integration
@linux
@both
def test_commands_of_a_session_share_their_temporary_files(make, project: Path, home: Path) -> None:
    backend = sandboxed(make, project, home)
    (project / "src").mkdir()
    (project / "src" / "a.py").write_text("kept\n")
    assert run(backend, 'mv src "$TMPDIR/backup"', project, read_only=False)[0] == 0
    assert run(backend, 'cat "$TMPDIR/backup/a.py"', project, read_only=False)[1] == "kept\n"
    assert run(backend, 'mv "$TMPDIR/backup" src', project, read_only=False)[0] == 0
    assert (project / "src" / "a.py").read_text() == "kept\n"
    place = backend.private.path
    assert Path(place).is_relative_to(this_host().state_folder / "scratch")
    assert stat.S_IMODE(Path(place).stat().st_mode) == 0o700
    backend.private.remove()
    assert not Path(place).exists()


@pytest.mark.integration
@linux
@both
@pytest.mark.parametrize("read_only", [True, False])
def test_a_program_that_is_alone_finds_nothing_that_another_start_left_to_be_loaded(
    make, project: Path, home: Path, read_only: bool
) -> None:
    backend = sandboxed(make, project, home)
    for is_unasked in (True, False):
        run(backend, 'echo here | tee ~/left >"$TMPDIR/left"', project, read_only=is_unasked)
    shared = "/tmp" if make is bubblewrap else backend.private.temporary
    look = 'find ~ "$TMPDIR" -type f; : | tee ~/left "$TMPDIR/left" && cat "$COMMANDS/left"'
    access = Access(is_alone=True, read_only=read_only, declared={"COMMANDS": shared})
    for _ in range(2):
        launch = backend.launch(("/bin/sh", "-c", look), project, os.environ, access)
        said = spawn(launch, project, os.getuid()).communicate(timeout=50)
        assert said == ("here\n", "")
    if launch.clean_up is not None:
        place = Path(launch.environ["HOME"]).parent
        assert place.parent == Path(backend.private.path)
        launch.clean_up()
        assert not place.exists()
    assert launch.scratch == backend.private.path


@pytest.mark.integration
@linux
def test_tmp_is_shared_by_its_own_name_also_for_a_project_in_it(project: Path, home: Path) -> None:
    backend = sandboxed(bubblewrap, project, home)
    assert run(backend, "mkdir /tmp/x && echo here >/var/tmp/x/y", project, read_only=False)[0] == 0
    assert run(backend, "cat /tmp/x/y && pwd", project, read_only=False)[1] == f"here\n{project}\n"
    # What runs read-only sees it and cannot change it.
    assert run(backend, "cat /tmp/x/y && pwd", project)[1] == f"here\n{project}\n"
    assert run(backend, "rm -r /tmp/x; echo new >/tmp/z; cat /tmp/x/y", project)[1] == "here\n"


@pytest.mark.integration
@linux
def test_nothing_of_a_command_stands_where_a_project_in_tmp_is_mounted(tmp_path, home):
    project = tmp_path / "deep" / "project"
    project.mkdir(parents=True)
    backend = sandboxed(bubblewrap, project, home)
    first = Path(*project.parts[:3])
    if first.parent != Path("/tmp"):
        pytest.skip("NOT TESTED: the tests do not run below /tmp")
    code, _, said = run(
        backend, f"mv {first} /tmp/away && ln -s /etc {first}", project, read_only=False
    )
    assert (code != 0, "busy" in said.lower()) == (True, True)
    assert run(backend, f"mkdir {first}/planted", project, read_only=False)[0] == 0
    assert run(backend, f"ls {first}", project, read_only=False)[1].count("planted") == 0
    assert list(Path(backend.private.temporary, first.name).iterdir()) == []


@pytest.mark.integration
def test_what_it_holds_is_removed_whatever_it_is(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "inner").mkdir(parents=True)
    (outside / "kept").write_text("kept")
    private = PrivateFolder(this_host().scratch_folder)
    top = Path(private.temporary)
    (top / "link").symlink_to(outside)
    (top / "file-link").symlink_to(outside / "kept")
    os.mkfifo(top / "pipe")
    (top / "a" / "b" / "c").mkdir(parents=True)
    (top / "a" / "b" / "c" / "link").symlink_to(outside)
    (top / "a" / "b" / "file").write_text("x")
    for folder in ("a/b/c", "a/b", "a", "."):
        (top / folder).chmod(0)
    deep = os.open(private.home, os.O_RDONLY)
    for _ in range(1100):  # deeper than a path may be, and than a recursion
        os.mkdir("deep-and-deeper", dir_fd=deep)
        below = os.open("deep-and-deeper", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)
    path = private.path
    private.remove()
    assert not os.path.lexists(path)
    assert sorted(path.name for path in outside.iterdir()) == ["inner", "kept"]
    assert private.path != path, "the next one is new"


@linux
def test_a_start_removes_what_a_killed_session_left_in_memory(home: Path, project: Path) -> None:
    if not os.path.ismount("/dev/shm"):
        pytest.skip("NOT TESTED: there is no /dev/shm")
    stale = memory_folder() / "0123456789ab"
    private_file.make_folder(stale.parent)
    stale.mkdir(exist_ok=True)
    Sandbox(this_host(), project).sweep()
    for thread in [each for each in threading.enumerate() if each.name == "ybs-sweep"]:
        thread.join()
    assert not stale.exists()


def test_a_sweep_removes_what_nobody_holds(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "inner").mkdir(parents=True)
    scratch_folder = this_host().scratch_folder
    mine, stale = PrivateFolder(scratch_folder), scratch_folder / "0123456789ab"
    assert Path(mine.path).is_dir()
    (stale / "temporary").mkdir(parents=True)
    (stale / "file").write_text("left by a crash")
    (scratch_folder / "somebodys").mkdir()
    (scratch_folder / "a00000000000").symlink_to(outside)
    (scratch_folder / "b00000000000").write_text("no folder")
    os.mkfifo(scratch_folder / "c00000000000")
    sweep(this_host())
    assert Path(mine.temporary).is_dir()
    assert not stale.exists()
    left = {path.name.rstrip("0") for path in scratch_folder.iterdir()}
    assert left == {Path(mine.path).name.rstrip("0"), "somebodys", "a", "b", "c"}
    assert (outside / "inner").is_dir()


@pytest.mark.parametrize(
    "kind", ["link", "anybody may put it there", "open to others", "somebody else's"]
)
def test_a_sweep_touches_nothing_in_a_folder_that_is_not_ybs_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    place, target = tmp_path / "cache", tmp_path / "target"
    thesis = target / "0123456789ab" / "thesis"
    thesis.mkdir(parents=True)
    place.mkdir()
    host = Host.of({"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(place)})
    if kind == "link":
        host.copies_folder.symlink_to(target)
    else:
        target.rename(host.copies_folder)
        thesis = host.copies_folder / "0123456789ab" / "thesis"
    if kind == "anybody may put it there":
        place.chmod(0o777)
    if kind == "open to others":
        host.copies_folder.chmod(0o777)
    if kind == "somebody else's":
        uid = os.getuid() + 1
        monkeypatch.setattr("ybs.config.private_file.os.getuid", lambda: uid)
        monkeypatch.setattr(Host, "copies_folder", host.copies_folder)
    sweep(host)
    assert thesis.is_dir()


@linux
def test_a_folder_is_made_accessible_itself_and_not_what_a_link_leads_to(tmp_path: Path) -> None:
    for name in ("top/folder", "outside"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name).chmod(0o500)
    (tmp_path / "top/link").symlink_to(tmp_path / "outside")
    top = os.open(tmp_path / "top", os.O_RDONLY)
    scratch._make_accessible("folder", top)
    with pytest.raises(OSError, match=r"directory|link"):
        scratch._make_accessible("link", top)
    os.close(top)
    assert stat.S_IMODE((tmp_path / "top/folder").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "outside").stat().st_mode) == 0o500


def test_where_no_folder_can_be_made_another_one_does(home, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    this_host().scratch_folder.parent.mkdir(parents=True)
    this_host().scratch_folder.symlink_to(tmp_path)
    private = PrivateFolder(this_host().scratch_folder)
    assert Path(private.path).parent == tmp_path
    private.remove()
    assert list(tmp_path.glob("ybs-*")) == []
    this_host().scratch_folder.unlink()

    def refuses(*_: object) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr(scratch.fcntl, "flock", refuses)
    assert Path(private.path).parent == tmp_path


def test_a_folder_that_cannot_be_emptied_stays_for_the_next_sweep(home, monkeypatch):
    private = PrivateFolder(this_host().scratch_folder)
    path = Path(private.path)

    def refuses(*_: object, **__: object) -> None:
        raise OSError("busy")

    with monkeypatch.context() as patched:
        patched.setattr(scratch.os, "rmdir", refuses)
        private.remove()
        assert path.exists()
    sweep(this_host())
    assert not path.exists()


def test_a_system_that_changes_the_mode_of_no_link_is_asked_to(home, monkeypatch):
    asked: list[tuple[object, ...]] = []

    def chmod(name: str, mode: int, *, dir_fd: int, follow_symlinks: bool) -> None:
        asked.append((name, mode, follow_symlinks))

    private = PrivateFolder(this_host().scratch_folder)
    path = Path(private.path)
    with monkeypatch.context() as patched:
        patched.setattr(scratch.os, "chmod", chmod)
        patched.setattr(scratch.os, "supports_follow_symlinks", {chmod})
        private.remove()
    assert not path.exists()
    assert sorted(asked) == [(name, 0o700, False) for name in ("home", "temporary", "unshared")]


def _refuses(folder: Path) -> None:
    raise private_file.Unsafe(f"{folder} is somebody else's")


@linux
def test_in_memory_it_leaves_no_disk(home: Path, project: Path, monkeypatch: Any) -> None:
    private = PrivateFolder(this_host().scratch_folder, in_memory=True)
    if not os.path.ismount("/dev/shm"):
        pytest.skip("NOT TESTED: there is no /dev/shm")
    assert private.shared == private.temporary
    assert Path(private.path).is_relative_to(f"/dev/shm/ybs-{os.getuid()}")
    private.remove()
    assert not this_host().scratch_folder.exists()
    with monkeypatch.context() as patched:  # another user has made the folder
        patched.setattr(scratch.private_file, "make_folder", _refuses)
        assert Path(private.path).parent == Path("/dev/shm")
        assert private.shared == private.temporary
        private.remove()
    monkeypatch.setattr(scratch, "MEMORY", str(home))
    monkeypatch.setattr("ybs.config.host.MEMORY", str(home))
    private = PrivateFolder(this_host().scratch_folder, in_memory=True)  # none is mounted there
    assert private.shared == ""
    assert Path(private.path).parent == this_host().scratch_folder.resolve()  # and is swept there
    private.remove()
    private.remove()
    backend = Bubblewrap(see(Host.of({"HOME": str(home)}), project), "bwrap", (), "", private)
    launch = backend.launch(("true",), project, {})
    for descriptor in launch.descriptors:
        os.close(descriptor)
    argv = list(launch.argv)
    assert argv[argv.index("/tmp") - 1] == "--tmpfs"
    assert launch.scratch == ""
