import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ybs.config import private_file
from ybs.config.private_file import Busy, PrivateLog, Unsafe, make_folder, open_locked

needs_root = pytest.mark.skipif(
    os.getuid() != 0, reason="only root can give a file to another user"
)
SOMEBODY = 12345


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_f01_folders_and_files_are_the_owners_alone_whatever_the_umask(tmp_path: Path, umask: int):
    private_file.replace(tmp_path / "a/b/file", b"x")
    with PrivateLog(tmp_path / "a/c/log") as log:
        log.append(b"y")
    make_folder(tmp_path / "a/d")
    assert {mode(tmp_path / name) for name in ("a", "a/b", "a/c", "a/d")} == {0o700}
    assert {mode(tmp_path / name) for name in ("a/b/file", "a/c/log")} == {0o600}


def test_a_file_is_replaced_in_one_step(tmp_path: Path):
    path = tmp_path / "file"
    assert private_file.read(path) is None
    assert private_file.read(tmp_path / "no/such/file") is None
    private_file.replace(path, b"one")
    with path.open("rb") as old:
        private_file.replace(path, b"two")
        assert old.read() == b"one"
    assert private_file.read(path) == b"two"
    assert private_file.remove(path)
    assert not private_file.remove(path)
    assert not private_file.remove(path / "below")


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "file"
    private_file.replace(path, b"one")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        private_file.replace(path, b"two")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"one"


def test_the_disk_has_all_of_a_file_before_it_takes_the_place_of_the_old_one(tmp_path, monkeypatch):
    path, synced = tmp_path / "file", list[tuple[int, bytes | None]]()

    def sync(handle: int) -> None:
        synced.append((os.fstat(handle).st_size, private_file.read(path)))

    monkeypatch.setattr(os, "fsync", sync)
    private_file.replace(path, b"one")
    private_file.replace(path, iter([b"three", b"four"]))
    private_file.replace(path, b"at once", waits=False)
    assert synced == [(3, None), (9, b"one")]
    assert private_file.read(path) == b"at once"


@pytest.mark.parametrize("kind", ["link", "dangling link", "folder", "fifo", "hard link", "0666"])
def test_f02_a_planted_file_is_refused_and_not_touched(tmp_path: Path, kind: str):
    victim, path = tmp_path / "victim", tmp_path / "ybs/file"
    make_folder(path.parent)
    victim.write_text("mine")
    plant(kind, path, victim)
    for work in (
        lambda: private_file.read(path),
        lambda: private_file.replace(path, b"x"),
        lambda: PrivateLog(path),
    ):
        with pytest.raises(Unsafe):
            work()
    assert victim.read_text() == "mine"
    assert len(list(path.parent.iterdir())) == 1


def plant(kind: str, path: Path, victim: Path) -> None:
    match kind:
        case "link":
            path.symlink_to(victim)
        case "dangling link":
            path.symlink_to(victim.with_name("not-there"))
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "hard link":
            path.hardlink_to(victim)
        case _:
            path.write_text("x")
            path.chmod(0o666)


@pytest.mark.parametrize("kind", ["link", "0777", "0770", "file"])
def test_f02_a_planted_folder_is_refused(tmp_path: Path, kind: str):
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "ybs"
    elsewhere.mkdir()
    if kind == "link":
        folder.symlink_to(elsewhere)
    elif kind == "file":
        folder.write_text("")
    else:
        folder.mkdir()
        folder.chmod(int(kind, 8))
    with pytest.raises(Unsafe):
        make_folder(folder)
    with pytest.raises(Unsafe):
        private_file.replace(folder / "file", b"x")
    with pytest.raises(Unsafe):
        PrivateLog(folder / "file")
    assert list(elsewhere.iterdir()) == []


@needs_root
@pytest.mark.parametrize("name", ["ybs", "ybs/file"])
def test_f02_what_belongs_to_somebody_else_is_refused(tmp_path: Path, name: str):
    private_file.replace(tmp_path / "ybs/file", b"x")
    os.chown(tmp_path / name, SOMEBODY, -1)
    with pytest.raises(Unsafe, match="belongs to another user"):
        private_file.replace(tmp_path / "ybs/file", b"y")
    with pytest.raises(Unsafe, match="belongs to another user"):
        PrivateLog(tmp_path / "ybs/file")


def test_f02_a_folder_above_that_others_can_write_is_refused(tmp_path: Path):
    above = tmp_path / "shared"
    above.mkdir()
    above.chmod(0o777)
    with pytest.raises(Unsafe, match="above"):
        make_folder(above / "ybs/sessions")
    above.chmod(0o1777)  # as /tmp is: nobody can rename what is mine
    make_folder(above / "ybs/sessions")
    assert mode(above / "ybs") == 0o700


def test_a_group_of_ones_own_may_write_above(tmp_path: Path):
    above = tmp_path / "own"
    above.mkdir()
    above.chmod(0o775)
    make_folder(above / "ybs")
    assert mode(above / "ybs") == 0o700


def test_a_link_above_is_the_persons_own_affair(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    private_file.replace(tmp_path / "link/ybs/file", b"x")
    assert (tmp_path / "real/ybs/file").read_bytes() == b"x"


def test_a_giant_is_not_read(tmp_path: Path):
    private_file.replace(tmp_path / "file", b"12345")
    assert private_file.read(tmp_path / "file", most_bytes=5) == b"12345"
    with pytest.raises(Unsafe, match="larger than 4 bytes"):
        private_file.read(tmp_path / "file", most_bytes=4)


# --- one writer ------------------------------------------------------------------------------


def test_f05_a_second_writer_is_told_so(tmp_path: Path):
    path = tmp_path / "log"
    with PrivateLog(path) as log:
        log.append(b"one\n")
        with pytest.raises(Busy, match="in use by another ybs"):
            PrivateLog(path)
        log.append(b"two\n")
        log.sync()
    with PrivateLog(path) as log:
        log.append(b"three\n")
    log.close()
    assert path.read_bytes() == b"one\ntwo\nthree\n"


@pytest.mark.integration
def test_f05_a_second_process_is_told_so_and_writes_nothing(tmp_path: Path):
    path = tmp_path / "log"
    code = (
        "import sys; from pathlib import Path; from ybs.config.private_file import PrivateLog\n"
        "PrivateLog(Path(sys.argv[1])).append(b'second')"
    )
    with PrivateLog(path) as log:
        log.append(b"first")
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
        )
    assert done.returncode == 1
    assert "Busy" in done.stderr
    assert path.read_bytes() == b"first"


def test_a_line_that_does_not_fit_the_disk_is_not_written_by_half(tmp_path, monkeypatch):
    write = os.write
    with PrivateLog(tmp_path / "log") as log:
        log.append(b"whole\n")

        def nearly_full(handle: int, data: memoryview) -> int:
            if len(data) < 6:
                raise OSError(28, "No space left on device")
            return write(handle, data[:3])

        monkeypatch.setattr(os, "write", nearly_full)
        with pytest.raises(OSError, match="No space"):
            log.append(b"broken")
        monkeypatch.undo()
        log.append(b"next\n")
    assert (tmp_path / "log").read_bytes() == b"whole\nnext\n"


def test_a_file_that_is_exchanged_while_its_lock_is_awaited_is_opened_anew(tmp_path, monkeypatch):
    import fcntl

    path, flock, turns = tmp_path / "log", fcntl.flock, iter(("exchange", "remove"))

    def slow(handle: int, operation: int) -> None:
        flock(handle, operation)
        match next(turns, ""):
            case "exchange":
                private_file.replace(path, b"new")
            case "remove":
                path.unlink()
            case _:
                pass

    monkeypatch.setattr(fcntl, "flock", slow)
    os.close(open_locked(path, waits=True))
    with PrivateLog(path) as log:
        log.append(b"+")
    assert path.read_bytes() == b"+"


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_an_error_of_the_system(tmp_path: Path):
    private_file.replace(tmp_path / "file", b"x")
    (tmp_path / "file").chmod(0)
    with pytest.raises(PermissionError):
        private_file.read(tmp_path / "file")


def test_errors_of_the_system_stay_what_they_are(tmp_path: Path):
    make_folder(tmp_path / "ybs")
    with pytest.raises(OSError, match="File name too long"):
        private_file.read(tmp_path / ("x" * 300))
    with pytest.raises(OSError, match="File name too long"):
        PrivateLog(tmp_path / "ybs" / ("x" * 300))
