"""The sandbox of programs that ybs starts itself; more of it: `tests/git/test_sandbox.py`."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from rows import every_row
from ybs.security.sandbox import confined
from ybs.security.sandbox.launch import SandboxView


@every_row(
    ("platform", "program", "expected"),
    [
        ("linux", "/usr/bin/git", True),
        ("linux", "/opt/git/bin/git", True),
        ("linux", "/home/me/bin/git", False),
        ("darwin", "/usr/bin/git", False),
    ],
)
def test_a_shell_finds_git_in_the_folders_of_the_system(
    monkeypatch: pytest.MonkeyPatch, platform: str, program: str, expected: bool
) -> None:
    monkeypatch.setattr(confined, "sys", SimpleNamespace(platform=platform))
    assert confined.takes_scripts(program) is expected


@pytest.mark.parametrize(("is_writing", "how"), [(False, "--ro-bind"), (True, "--bind")])
def test_bubblewrap_is_told_what_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_writing: bool, how: str
) -> None:
    folders = [("/usr", ""), ("/bin", "usr/bin"), ("/etc", "")]
    monkeypatch.setattr(confined, "system_folders", lambda: folders)
    monkeypatch.setattr(confined, "_LOADER", (str(tmp_path), "/gone"))
    monkeypatch.setattr(confined, "checked", lambda opened, argv: (str(len(opened)), *argv))
    (tmp_path / "git").write_text("")
    view = SandboxView(
        folder="/w",
        git_folders=("/w/.git",),
        shown=("/w/b", "/w/a"),
        hidden=(str(tmp_path), str(tmp_path / "git")),
        is_writing=is_writing,
    )
    program = str(tmp_path / "git")
    assert " ".join(confined._in_bubblewrap("bwrap", (program, "status"), view)) == (
        "bwrap --unshare-user --unshare-pid --unshare-net --unshare-ipc --die-with-parent --cap-drop ALL --tmpfs / "
        f"--ro-bind /usr /usr --symlink usr/bin /bin --ro-bind {tmp_path} {tmp_path} "
        "--proc /proc --remount-ro /proc --dev-bind /dev/null /dev/null --dev-bind /dev/urandom /dev/urandom "
        f"--ro-bind {program} {program} --dir /w --ro-bind /w/a /w/a --ro-bind /w/b /w/b "
        f"--perms 0000 --tmpfs {tmp_path} --ro-bind /dev/null {program} {how} /w/.git /w/.git "
        f"--remount-ro / --chdir /w -- 16 {program} status"
    )
    assert not SandboxView(folder="/w", git_folders=()).is_writing
