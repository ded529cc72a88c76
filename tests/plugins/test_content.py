"""The files of a plugin: nothing leads out of it, nothing is larger than it may be, and one byte changes its digest."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from trusting import put
from ybs.plugins import content as content_module
from ybs.plugins.cloning import of_tar
from ybs.plugins.content import BadPlugin, PluginFiles, read_folder, write_folder


def packed(*members: tarfile.TarInfo) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for each in members:
            archive.addfile(each, io.BytesIO(b"x" * each.size) if each.isreg() else None)
    return data.getvalue()


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


@pytest.mark.parametrize(
    "name", ["../out.md", "/etc/out.md", "a/../../out", "a\\..\\out", "a\x1b[2J", "x/" * 20 + "y"]
)
def test_no_path_that_git_gives_leads_out(name: str):
    with pytest.raises(BadPlugin, match=r"outside|too deep"):
        of_tar(packed(member("commands/go.md"), member(name)))


def test_no_link_that_git_gives_leads_out():
    kinds = {tarfile.SYMTYPE: "leads out", tarfile.LNKTYPE: "neither", tarfile.CHRTYPE: "neither"}
    for kind, why in kinds.items():
        with pytest.raises(BadPlugin, match=why):
            of_tar(packed(member("commands/go.md"), member("a", 0, kind, "/etc/passwd"))).settled()
    with pytest.raises(BadPlugin):
        of_tar(packed(member("d", 0, tarfile.SYMTYPE, "/tmp"), member("d/out.md"))).settled()


def test_no_more_is_read_than_a_plugin_may_have(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(content_module, "MOST_BYTES", 1_000_000)
    with pytest.raises(BadPlugin, match="too large"):
        of_tar(packed(member("commands/go.md", 1_100_000)))
    monkeypatch.setattr(content_module, "MOST_FILES", 10)
    with pytest.raises(BadPlugin, match="more than 10 files"):
        of_tar(packed(*(member(f"f{n}") for n in range(12))))


def test_two_files_of_one_name_are_refused():
    content = PluginFiles()
    content.add("a", b"")
    with pytest.raises(BadPlugin, match="twice"):
        content.add("./a", b"")
