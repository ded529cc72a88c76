"""A new file where the person wants it: never over another one, never among credentials, whole or not at all."""

import os
from pathlib import Path

import pytest

from hosts import this_host
from ybs.core.errors import Refused, YbsError
from ybs.security.paths.new_file import find_place, write_new
from ybs.security.paths.roots import Roots


@pytest.fixture
def roots(project: Path) -> Roots:
    return Roots(this_host(), project, blocked=("~/.config",))


def test_nothing_is_overwritten_be_it_file_folder_or_dead_link(project: Path, roots: Roots):
    (project / "there.md").write_text("mine")
    (project / "dead.md").symlink_to(project / "nowhere")
    (project / "sub").mkdir()
    (project / "sub" / "default.md").write_text("mine")
    for name in ("there.md", "dead.md", "sub", str(project / "there.md")):
        with pytest.raises(YbsError, match="exists already"):
            find_place(roots, name, "default.md")
    assert not (project / "nowhere").exists()


def test_a_file_that_comes_in_between_stays(project: Path, roots: Roots):
    place = find_place(roots, "new.md", "default.md")
    place.write_text("quicker")
    with pytest.raises(YbsError, match="exists already"):
        write_new(roots, place, b"late")
    assert place.read_text() == "quicker"
    assert [path.name for path in project.iterdir()] == ["new.md"]


def test_credentials_settings_and_blocked_paths_are_refused(home, project, roots):
    for folder in (".ssh", ".aws", ".config/ybs", ".config/other"):
        (home / folder).mkdir(parents=True)
    (project / "way").symlink_to(home / ".ssh")
    names = ("~/.ssh/x", "~/.aws/x.md", "~/.config/ybs/x", "~/.config/other/x", "way/x", "way")
    for name in (*names, "~/.netrc", "~/.bash_history", "~/.ybs.json", "sub/../way/x"):
        with pytest.raises(Refused, match="blocked"):
            find_place(roots, name, "default.md")
    assert list((home / ".ssh").iterdir()) == []


def test_what_other_programs_run_or_take_settings_from_is_refused(home, project, roots):
    folders = (".git/hooks", ".github/workflows", ".husky", ".hg", "bare/objects", "bare/refs")
    for folder in folders:
        (project / folder).mkdir(parents=True)
    (project / "bare" / "HEAD").write_text("ref: refs/heads/main")
    (project / "way").symlink_to(project / ".git")
    names = (".git/hooks/pre-commit", ".git/x.md", ".GIT/x", "way/x", "bare/config", ".gitmodules")
    names = (
        *names,
        ".hg/hgrc",
        ".ybs.json",
        ".mcp.json",
        ".MCP.json",
        ".envrc",
        ".github/workflows/x.yml",
    )
    names = (*names, ".husky/pre-push", "~/.bashrc", "~/.zshenv", "~/.profile", "~/.gitconfig")
    (project / ".GIT").mkdir(exist_ok=True)
    for name in names:
        with pytest.raises(Refused, match=r"would run|blocked"):
            find_place(roots, name, "default.md")
    assert find_place(roots, ".github/x.md", "default.md").name == "x.md"


def test_names_that_cannot_be_are_refused(project: Path, roots: Roots):
    (project / "file").write_text("")
    names = ("a\x1b.md", "a\u202e.md", "a\nb", "a\0b", "a\ud800", "no/folder.md", "file/x")
    for name in (*names, "9" * 300, "x/" * 3000 + "y"):
        with pytest.raises(YbsError):
            find_place(roots, name, "default.md")


def test_a_name_hangs_on_the_project_and_may_be_a_folder_or_left_out(
    home: Path, project: Path, roots: Roots, tmp_path: Path
):
    (project / "sub").mkdir()
    for name, expected in (
        ("", project / "default.md"),
        ("a b.md", project / "a b.md"),
        ("sub", project / "sub" / "default.md"),
        ("sub/", project / "sub" / "default.md"),
        ("~/notes.md", home / "notes.md"),
        (str(tmp_path / "x.md"), tmp_path / "x.md"),
    ):
        assert find_place(roots, name, "default.md") == Path(os.path.realpath(expected)), name


def test_what_is_written_is_whole_and_its_owners_alone(project, roots, monkeypatch):
    on_disk: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: on_disk.append(os.fstat(file).st_size))
    before = os.umask(0)
    try:
        place = find_place(roots, "new.md", "default.md")
        write_new(roots, place, b"text")
    finally:
        os.umask(before)
    assert place.read_bytes() == b"text"
    assert on_disk == [4], "all of it before the file has its name"
    assert place.stat().st_mode & 0o777 == 0o600
    assert place.stat().st_nlink == 1
    assert [path.name for path in project.iterdir()] == ["new.md"]


def test_a_write_that_fails_leaves_nothing(project, roots, monkeypatch):
    def fail(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(YbsError, match=r"cannot be written: No space left on device\."):
        write_new(roots, find_place(roots, "new.md", "default.md"), b"text")
    assert list(project.iterdir()) == []


def test_a_folder_that_became_a_link_is_not_followed(home: Path, project: Path, roots: Roots):
    (project / "sub").mkdir()
    (home / ".ssh").mkdir()
    place = find_place(roots, "sub/new.md", "default.md")
    (project / "sub").rmdir()
    (project / "sub").symlink_to(home / ".ssh")
    with pytest.raises(YbsError):
        write_new(roots, place, b"text")
    assert list((home / ".ssh").iterdir()) == []


def test_what_lies_in_the_place_of_the_temporary_file_is_left_alone(project, monkeypatch):
    monkeypatch.setattr("ybs.security.paths.new_file.os.urandom", bytes)
    planted = project / f".ybs-{bytes(8).hex()}.tmp"
    planted.write_text("mine")
    with pytest.raises(YbsError):
        write_new(Roots(this_host(), project), project / "new", b"x")
    assert planted.read_text() == "mine"
    assert not (project / "new").exists()
