"""Files on disk: opened without hanging, written whole or not at all."""

import errno
import os
import resource
import shutil
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rows import every_row
from ybs.core.errors import ToolError
from ybs.security.paths.opening import held
from ybs.tools.reading import files
from ybs.tools.reading.files import failure, open_regular, read_bytes, remark_on, write_atomically

SOURCE = Path(files.__file__).parents[3]


def write(path: Path, data: bytes) -> None:
    with held(path) as place:
        write_atomically(place, data, "a")


def names_in(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))  # noqa: PTH208 - names, not paths


@every_row("name", ["/dev/full", "/dev/null", "/dev/zero"])
def test_a_device_is_refused_without_reading_it(name: str):
    with held(Path(name)) as place, pytest.raises(ToolError, match="a device, not a file"):
        open_regular(place, name)


def test_a_folder_is_refused_with_the_tool_to_use(project: Path):
    with held(project) as place, pytest.raises(ToolError, match="a folder, not a file; list_files"):
        open_regular(place, "x")


def test_what_turns_into_a_pipe_while_it_is_opened_is_refused_and_closed(project, monkeypatch):
    (project / "a").write_text("x")
    real = os.open

    def swapped(path: Any, flags: int, *rest: Any, **how: Any) -> int:
        if path == "a":
            (project / "a").unlink()
            os.mkfifo(project / "a")
        return real(path, flags, *rest, **how)

    before = names_in(Path("/dev/fd"))
    with held(project / "a") as place, monkeypatch.context() as patch:
        patch.setattr(os, "open", swapped)
        with pytest.raises(ToolError, match="a named pipe"):
            open_regular(place, "a")
    assert names_in(Path("/dev/fd")) == before


@every_row("number", [errno.EAGAIN, errno.EBUSY, errno.EFBIG, errno.ENOSPC])
def test_every_failure_says_what_to_do_or_what_it_means(number: int):
    said = str(failure(OSError(number, os.strerror(number)), "a"))
    assert said.startswith("a ")
    assert os.strerror(number) not in said


def test_an_unknown_failure_keeps_the_system_s_words():
    assert str(failure(OSError(errno.EIO, "Input/output error"), "a")) == (
        "a cannot be used: Input/output error"
    )


def test_a_file_that_grows_while_it_is_read_ends_as_too_large(project, monkeypatch):
    monkeypatch.setattr(files, "MOST_BYTES", 10)
    (project / "a").write_bytes(b"x" * 5)
    fstat = os.fstat

    def grown(descriptor: int) -> os.stat_result:
        status = fstat(descriptor)
        with (project / "a").open("ab") as file:
            file.write(b"x" * 50)
        return status

    monkeypatch.setattr(os, "fstat", grown)
    with held(project / "a") as place, pytest.raises(ToolError, match="11 bytes, too many"):
        read_bytes(place, "a")


def test_a_file_that_may_not_grow_so_far_stays_as_it_was(project: Path):
    (project / "a").write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(ToolError, match="larger than a file may be here; nothing was changed"):
            write(project / "a", b"x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (project / "a").read_bytes() == b"old"
    assert names_in(project) == ["a"]


def test_extended_attributes_and_access_lists_are_kept(project: Path):
    path = project / "a"
    path.write_bytes(b"old")
    try:
        os.setxattr(path, "user.note", b"mine")
    except OSError:
        pytest.skip("this file system keeps no extended attributes")
    path.chmod(0o640)
    # A list in the kernel's own form: version 2, then (tag, rights, id) of owner, a user, group, mask, others.
    entries = ((1, 6, -1), (2, 4, 12345), (4, 4, -1), (16, 4, -1), (32, 0, -1))
    listed = (2).to_bytes(4, "little") + b"".join(
        tag.to_bytes(2, "little")
        + rights.to_bytes(2, "little")
        + (who % 2**32).to_bytes(4, "little")
        for tag, rights, who in entries
    )
    with suppress(OSError):  # not every file system has them
        os.setxattr(path, "system.posix_acl_access", listed)
    before = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    write(path, b"new")
    assert {name: os.getxattr(path, name) for name in os.listxattr(path)} == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.read_bytes() == b"new"


def test_a_private_file_is_private_at_every_moment(project: Path, monkeypatch: pytest.MonkeyPatch):
    (project / "a").write_bytes(b"old")
    (project / "a").chmod(0o600)
    (project / "b").write_bytes(b"other")
    seen: list[int] = []
    fsync = os.fsync

    def looked(descriptor: int) -> None:
        seen.extend(stat.S_IMODE((project / name).stat().st_mode) for name in names_in(project)[:1])
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", looked)
    before = os.umask(0)
    try:
        write(project / "a", b"new")
    finally:
        os.umask(before)
    assert seen == [0o600]  # of the temporary file, whose name begins with a dot
    assert stat.S_IMODE((project / "a").stat().st_mode) == 0o600


def test_a_kill_in_mid_write_leaves_no_stray_file_or_one_that_the_next_write_takes(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "a").write_bytes(b"old")
    seen: list[list[str]] = []
    fsync = os.fsync

    def looked(descriptor: int) -> None:
        fsync(descriptor)
        seen.append(names_in(project))

    monkeypatch.setattr(os, "fsync", looked)
    write(project / "a", b"new")
    write(project / "b", b"new")
    assert seen == [["a"], ["a"]]

    def killed(*_: Any, **_how: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        patch.setattr(os, "unlink", lambda *_, **_how: None)
        with pytest.raises(KeyboardInterrupt):
            write(project / "a", b"newer")
    assert len(names_in(project)) == 3
    assert (project / "a").read_bytes() == b"new"
    write(project / "a", b"newest")
    assert names_in(project) == ["a", "b"]
    assert (project / "a").read_bytes() == b"newest"


@pytest.mark.parametrize("missing", ["O_TMPFILE", "link"])
def test_where_no_file_can_be_without_a_name_it_has_one_from_the_start(
    project: Path, monkeypatch: pytest.MonkeyPatch, missing: str
):
    def refused(*_: Any, **_how: Any) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    (project / "a").write_bytes(b"old")
    if missing == "link":
        monkeypatch.setattr(os, "link", refused)
    else:
        monkeypatch.delattr(os, missing)
    write(project / "a", b"new")
    write(project / "b", b"other")
    assert names_in(project) == ["a", "b"]
    assert ((project / "a").read_bytes(), (project / "b").read_bytes()) == (b"new", b"other")


def test_attributes_that_cannot_be_kept_do_not_stop_a_write(project, monkeypatch):
    def none(path: Any) -> list[str]:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(os, "listxattr", none, raising=False)
    (project / "a").write_bytes(b"old")
    write(project / "a", b"new")
    assert (project / "a").read_bytes() == b"new"


def test_a_folder_that_takes_no_new_files_is_said(project: Path, monkeypatch: pytest.MonkeyPatch):
    (project / "a").write_bytes(b"old")
    access = os.access

    def refusing(path: str, mode: int, **how: Any) -> bool:
        return path != "." and access(path, mode, **how)

    monkeypatch.setattr(os, "access", refusing)
    with pytest.raises(ToolError, match="its folder takes no new files"):
        write(project / "a", b"new")
    assert (project / "a").read_bytes() == b"old"


def test_a_remark_is_made_on_hard_links_only(project: Path):
    assert remark_on(None) == ""
    (project / "a").write_bytes(b"x")
    assert remark_on((project / "a").stat()) == ""
    os.link(project / "a", project / "b")
    os.link(project / "a", project / "c")
    assert remark_on((project / "a").stat()).startswith(" It had 2 other names (hard links)")


_ON_A_SMALL_DISK = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from ybs.core.errors import ToolError
from ybs.security.paths.opening import held
from ybs.tools.reading.files import write_atomically
path = Path(sys.argv[2], "a").absolute()
try:
    with held(path) as place:
        write_atomically(place, b"x" * 1_000_000, "a")
except ToolError as error:
    print(error)
print(path.read_text(), [entry.name for entry in path.parent.iterdir()])
"""


@pytest.mark.integration
@pytest.mark.parametrize(
    ("remount", "words"),
    [
        ("true", "the disk is full"),
        ("mount -o remount,bind,ro disk", "the file system is read-only"),
    ],
)
def test_a_disk_that_is_full_or_read_only_leaves_the_file_as_it_was(project, remount, words):
    if shutil.which("unshare") is None or sys.platform != "linux":
        pytest.skip("no unshare on this machine: the full disk is not tried")
    (project / "disk").mkdir()
    program = (
        "mount -t tmpfs -o size=64k tmpfs disk || exit 77; printf old > disk/a; "
        f'{remount}; exec "$0" -I -S -c "$1" "$2" disk'
    )
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", program]
    done = subprocess.run(
        [*command, sys.executable, _ON_A_SMALL_DISK, str(SOURCE)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip(f"no mount of its own on this machine: {done.stderr.strip()[-200:]}")
    assert words in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "old ['a']"


_AS_A_USER = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from ybs.core.errors import ToolError
from ybs.security.paths.opening import held
from ybs.tools.reading.files import read_bytes, write_atomically
for name in ("protected", "folder/a", "folder/b", "secret"):
    try:
        with held(Path(name).absolute()) as place:
            if name == "secret":
                read_bytes(place, name)
            else:
                write_atomically(place, b"new", name)
    except ToolError as error:
        print(error)
"""


@pytest.mark.integration
def test_without_rights_nothing_is_changed_and_the_reason_is_said(project: Path):
    # Root may everything; within a namespace of its own it is a user like any other.
    command = ["unshare", "--user"] if os.geteuid() == 0 else []
    if command and shutil.which("unshare") is None:
        pytest.skip("root, and no unshare on this machine: missing rights are not tried")
    (project / "folder").mkdir()
    for name in ("protected", "folder/a", "secret"):
        (project / name).write_text("old")
    (project / "protected").chmod(0o444)
    (project / "secret").chmod(0o000)
    (project / "folder").chmod(0o555)
    done = subprocess.run(
        [*command, sys.executable, "-I", "-S", "-c", _AS_A_USER, str(SOURCE)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare:" in done.stderr:
        pytest.skip(f"no namespace of its own on this machine: {done.stderr.strip()[-200:]}")
    (project / "folder").chmod(0o755)
    no_new = "cannot be written: its folder takes no new files, and a safe write needs one"
    assert done.stdout.splitlines() == [
        "protected is write-protected; nothing was changed. The person can change its mode.",
        f"folder/a {no_new}",
        f"folder/b {no_new}",
        "secret cannot be used: permission denied; the person can change that",
    ], done.stderr
    assert (project / "protected").read_text() == "old"
    assert names_in(project / "folder") == ["a"]
