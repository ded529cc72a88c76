"""The files of a plugin: nothing leads out of it, nothing is larger than it may be, and one byte changes its digest."""

import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from trusting import put
from ybs.plugins import content as content_module
from ybs.plugins.archives import read_archive
from ybs.plugins.content import BadPlugin, Content, read_folder, write_folder


def packed_zip(path: Path, files: dict[str, bytes], *, links: tuple[str, ...] = ()) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            kind = stat.S_IFLNK if name in links else stat.S_IFREG
            info.external_attr = (kind | 0o755) << 16
            archive.writestr(info, data)
    return path


def packed_tar(path: Path, members: list[tarfile.TarInfo], mode: Any = "w:gz") -> Path:
    archive: Any
    with tarfile.open(path, mode) as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size) if member.isreg() else None)
    return path


def member(
    name: str, size: int = 1, kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.size, made.type, made.linkname = size, kind, link
    return made


def test_a_folder_is_read_and_written_as_it_is(tmp_path: Path):
    put(tmp_path, "a/commands/go.md", "Go.")
    put(tmp_path, "a/tools/run", "#!/bin/sh", 0o755)
    put(tmp_path, "a/.git/config", "no")
    (tmp_path / "a/link.md").symlink_to("commands/go.md")
    content = read_folder(tmp_path / "a")
    assert set(content.files) == {"commands/go.md", "tools/run", "link.md"}
    write_folder(content.files, tmp_path / "b/plugin")
    again = read_folder(tmp_path / "b/plugin")
    assert again.digest == content.digest
    assert (tmp_path / "b/plugin/tools/run").stat().st_mode & 0o777 == 0o700
    assert not (tmp_path / "b/plugin/link.md").is_symlink()
    put(tmp_path, "b/plugin/tools/run", "#!/bin/sh\nrm", 0o755)
    assert read_folder(tmp_path / "b/plugin").digest != content.digest
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["plugin"]


def test_a_link_or_a_device_in_a_folder_does_not_lead_out(tmp_path: Path):
    put(tmp_path, "secret", "s")
    for target in ("../secret", str(tmp_path / "secret"), "commands", "nowhere"):
        folder = tmp_path / f"of-{target.replace('/', '_')}"
        put(folder, "commands/go.md", "Go.")
        (folder / "link").symlink_to(target)
        with pytest.raises(BadPlugin, match="link"):
            read_folder(folder)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadPlugin, match="not a regular file"):
        read_folder(tmp_path)


def test_archives_are_read_and_their_one_folder_at_the_top_is_left_out(tmp_path: Path):
    file = packed_zip(tmp_path / "a.zip", {"p-1.0/commands/go.md": b"Go.", "p-1.0/tools/x": b"y"})
    assert set(read_archive(file).files) == {"commands/go.md", "tools/x"}
    for mode in ("w", "w:gz", "w:bz2", "w:xz"):
        tar = packed_tar(
            tmp_path / "a.tar", [member("commands/go.md"), member("d", 0, tarfile.DIRTYPE)], mode
        )
        assert set(read_archive(tar).files) == {"commands/go.md"}


@pytest.mark.parametrize(
    "name", ["../out.md", "/etc/out.md", "a/../../out", "a\\..\\out", "a\x1b[2J", "x/" * 20 + "y"]
)
def test_no_path_in_an_archive_leads_out(tmp_path: Path, name: str):
    with pytest.raises(BadPlugin, match=r"outside|too deep"):
        read_archive(packed_zip(tmp_path / "a.zip", {"commands/go.md": b"x", name: b"x"}))
    with pytest.raises(BadPlugin):
        read_archive(packed_tar(tmp_path / "a.tgz", [member(name)]))


def test_no_link_in_an_archive_leads_out(tmp_path: Path):
    files = {"commands/go.md": b"Go.", "a": b"../../etc/passwd"}
    with pytest.raises(BadPlugin, match="leads out"):
        read_archive(packed_zip(tmp_path / "a.zip", files, links=("a",)))
    for kind, why in (
        (tarfile.SYMTYPE, "leads out"),
        (tarfile.LNKTYPE, "neither"),
        (tarfile.CHRTYPE, "neither"),
        (tarfile.FIFOTYPE, "neither"),
    ):
        members = [member("commands/go.md"), member("a", 0, kind, "/etc/passwd")]
        with pytest.raises(BadPlugin, match=why):
            read_archive(packed_tar(tmp_path / "a.tgz", members))
    through = [member("d", 0, tarfile.SYMTYPE, "/tmp"), member("d/out.md")]
    with pytest.raises(BadPlugin):
        read_archive(packed_tar(tmp_path / "a.tgz", through))


@pytest.mark.integration
def test_bombs_are_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(content_module, "MOST_BYTES", 1_000_000)
    with pytest.raises(BadPlugin, match="larger than 1 MB"):
        read_archive(packed_zip(tmp_path / "a.zip", {"commands/go.md": bytes(1_100_000)}))
    with pytest.raises(BadPlugin, match="too large"):
        read_archive(packed_tar(tmp_path / "a.tgz", [member("commands/go.md", 1_100_000)]))
    monkeypatch.setattr("ybs.plugins.archives._MOST_UNPACKED", 1_000_000)
    with pytest.raises(BadPlugin, match="unpacks to more"):
        read_archive(packed_tar(tmp_path / "a.txz", [member("x", 1_100_000)], "w:xz"))
    monkeypatch.setattr(content_module, "MOST_FILES", 10)
    with pytest.raises(BadPlugin, match="more than 10 files"):
        read_archive(packed_zip(tmp_path / "b.zip", {f"f{n}": b"" for n in range(12)}))


@pytest.mark.parametrize(
    "data", [b"", b"PK\x03\x04broken", b"\x1f\x8bbroken", b"BZhbroken", b"\xfd7zXZ\0", b"words"]
)
def test_what_is_no_archive_is_said_to_be_none(tmp_path: Path, data: bytes):
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(BadPlugin, match="not an archive"):
        read_archive(tmp_path / "a")


def test_two_files_of_one_name_are_refused():
    content = Content()
    content.add("a", b"")
    with pytest.raises(BadPlugin, match="twice"):
        content.add("./a", b"")
