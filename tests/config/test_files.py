import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ybs.config import document as files
from ybs.config.document import Unusable, read


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some.json"
    path.write_text("{}")
    path.chmod(0o644)
    return path


def always(facts: Any) -> Callable[..., Any]:
    """Make a function that knows one answer."""

    def answer(*_: object, **__: object) -> Any:
        return facts

    return answer


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the file somebody else's."""
    if os.getuid() == 0:
        os.chown(path, 4242, -1)
    else:
        monkeypatch.setattr(files.os, "getuid", lambda: 4242)


def test_a_missing_file_is_no_problem(tmp_path: Path, file: Path):
    assert read(tmp_path / "none.json", "own") is None
    assert read(file / "below.json", "own") is None


def test_a_regular_file_is_read(file: Path):
    assert read(file, "own") == "{}"
    assert read(file, "project") == "{}"


def test_a_folder_a_pipe_and_a_device_are_refused(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    device = tmp_path / "device"
    device.symlink_to("/dev/zero")
    for path in (tmp_path, pipe, device):
        with pytest.raises(Unusable, match="not a regular file"):
            read(path, "own")


def test_a_link_is_followed_for_the_user_and_refused_in_a_project(file: Path):
    link = file.parent / "link.json"
    link.symlink_to(file)
    assert read(link, "own") == "{}"
    with pytest.raises(Unusable, match="is a link"):
        read(link, "project")


def test_a_link_to_itself_is_refused(tmp_path: Path):
    link = tmp_path / "loop"
    link.symlink_to(link)
    with pytest.raises(Unusable, match="cannot be read"):
        read(link, "own")


def test_a_file_that_turns_into_a_link_after_the_look_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch
):
    link = file.parent / "link.json"
    link.symlink_to(file)
    facts = file.stat()
    monkeypatch.setattr(Path, "stat", always(facts))
    with pytest.raises(Unusable, match="cannot be read"):
        read(link, "project")


def test_a_giant_is_refused_without_reading_it(tmp_path: Path):
    giant = tmp_path / "giant.json"
    with giant.open("wb") as handle:
        handle.truncate(1_000_000_000)
    giant.chmod(0o644)
    with pytest.raises(Unusable, match="larger than 256 kB"):
        read(giant, "own")


def test_a_file_that_lies_about_its_size_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files, "LARGEST_BYTES", 10)
    facts = file.stat()
    file.write_text("{" + " " * 50 + "}")
    monkeypatch.setattr(Path, "stat", always(facts))
    monkeypatch.setattr(files.os, "fstat", always(facts))
    with pytest.raises(Unusable, match="larger than"):
        read(file, "own")


@pytest.mark.parametrize("mode", [0o666, 0o646])
def test_a_user_file_that_others_can_write_is_refused(file: Path, mode: int):
    file.chmod(mode)
    with pytest.raises(Unusable, match=r"written by others .* chmod go-w"):
        read(file, "own")
    assert read(file, "project") == "{}"


@pytest.mark.parametrize(
    ("name", "members", "is_read"),
    [("ada", [], True), ("ada", ["ada"], True), ("ada", ["www-data"], False), ("staff", [], False)],
)
def test_a_user_file_that_a_group_can_write_is_read_where_the_group_is_the_users_alone(
    file: Path, monkeypatch: pytest.MonkeyPatch, name: str, members: list[str], is_read: bool
):
    group = SimpleNamespace(gr_name=name, gr_mem=members)
    monkeypatch.setattr("grp.getgrgid", always(group))
    monkeypatch.setattr("pwd.getpwuid", always(SimpleNamespace(pw_name="ada")))
    files._is_private.cache_clear()
    file.chmod(0o664)
    try:
        with nullcontext() if is_read else pytest.raises(Unusable, match="written by others"):
            assert read(file, "own") == "{}"
    finally:
        files._is_private.cache_clear()


def test_a_user_file_of_a_group_that_nobody_knows_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch
):
    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.setattr("grp.getgrgid", unknown)
    files._is_private.cache_clear()
    file.chmod(0o664)
    with pytest.raises(Unusable, match="written by others"):
        read(file, "own")
    files._is_private.cache_clear()


def test_a_user_file_of_somebody_else_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch):
    give_away(file, monkeypatch)
    with pytest.raises(Unusable, match="belongs to another user"):
        read(file, "own")


def test_a_project_file_of_neither_the_user_nor_the_folders_owner_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch
):
    mine = file.parent.stat()
    give_away(file, monkeypatch)
    if os.getuid() != 0:
        fields = list(mine)
        fields[4] = 4343
        monkeypatch.setattr(files.Path, "stat", always(os.stat_result(fields)))
    with pytest.raises(Unusable, match="belongs to another user"):
        read(file, "project")


def test_a_project_file_of_the_folders_owner_is_read(file: Path, monkeypatch: pytest.MonkeyPatch):
    give_away(file, monkeypatch)
    give_away(file.parent, monkeypatch)
    assert read(file, "project") == "{}"


def test_an_unreadable_file_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files.os, "open", refuse)
    with pytest.raises(Unusable, match=r"cannot be read .Permission denied"):
        read(file, "own")


def test_a_name_with_a_nul_is_refused():
    with pytest.raises(Unusable, match="cannot be read"):
        read(Path("a\0b"), "own")


def test_text_that_is_not_utf8_is_refused_with_its_line(file: Path):
    file.write_bytes(b"{\n\n  \xff}")
    with pytest.raises(Unusable, match="not UTF-8 text") as caught:
        read(file, "own")
    assert caught.value.line == 3
