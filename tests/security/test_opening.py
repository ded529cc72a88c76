"""Opening by a walk that follows no link."""

import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from ybs.core.errors import Refused
from ybs.security.paths import opening
from ybs.security.paths.opening import held, open_listed, read_beginning, read_whole


def _outside(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    return outside


def names(folder: Path | int) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)


def test_a_file_is_opened_in_its_folder(project: Path) -> None:
    (project / "a").mkdir()
    (project / "a" / "b.txt").write_text("text")
    with held(project / "a" / "b.txt") as place:
        descriptor = place.open(os.O_RDONLY)
    assert os.read(descriptor, 100) == b"text"
    os.close(descriptor)


def test_a_folder_that_became_a_link_is_refused(project: Path, tmp_path: Path) -> None:
    (project / "a").symlink_to(_outside(tmp_path))
    with pytest.raises(Refused, match="'a' became a link"), held(project / "a" / "secret.txt"):
        pass


def test_a_link_in_the_last_place_is_not_followed(project: Path, tmp_path: Path) -> None:
    (project / "a").symlink_to(_outside(tmp_path) / "secret.txt")
    with held(project / "a") as place, pytest.raises(OSError, match="symbolic"):
        place.open(os.O_RDONLY)


def test_a_file_on_the_way_is_no_link_but_an_error(project: Path) -> None:
    (project / "a").write_text("")
    with pytest.raises(NotADirectoryError), held(project / "a" / "b"):
        pass


def test_missing_folders_are_made_on_request_only(project: Path) -> None:
    with pytest.raises(FileNotFoundError), held(project / "a" / "b" / "c"):
        pass
    with held(project / "a" / "b" / "c", make_folders=True) as place:
        os.close(place.open(os.O_WRONLY | os.O_CREAT))
    assert (project / "a" / "b" / "c").is_file()


def test_a_folder_made_by_somebody_else_in_this_moment_is_used(project, monkeypatch):
    make = os.mkdir

    def made_before(name: str, *, dir_fd: int) -> None:
        make(name, dir_fd=dir_fd)
        make(name, dir_fd=dir_fd)

    monkeypatch.setattr(opening.os, "mkdir", made_before)
    with held(project / "a" / "b", make_folders=True) as place:
        assert place.status() is None


def test_a_link_in_the_place_of_a_folder_to_be_made_is_refused(project, tmp_path, monkeypatch):
    outside = _outside(tmp_path)

    def planted(name: str, *, dir_fd: int) -> None:
        os.symlink(outside, name, dir_fd=dir_fd)
        raise FileExistsError

    monkeypatch.setattr(opening.os, "mkdir", planted)
    with pytest.raises(Refused), held(project / "a" / "b", make_folders=True):
        pass
    assert names(outside) == ["secret.txt"]


def test_what_vanishes_while_it_is_judged_is_refused(project, monkeypatch):
    (project / "a").write_text("")

    def gone(*_: object, **__: object) -> os.stat_result:
        raise FileNotFoundError

    monkeypatch.setattr(opening.os, "stat", gone)
    with pytest.raises(Refused), held(project / "a" / "b"):
        pass


def test_a_place_knows_its_status_and_that_of_a_link(project: Path) -> None:
    (project / "link").symlink_to("nowhere")
    with held(project / "link") as place:
        status = place.status()
        assert status is not None
        assert stat.S_ISLNK(status.st_mode)
        assert place.beside("other").status() is None


def test_a_place_takes_the_place_of_another_and_goes_away(project: Path) -> None:
    (project / "new").write_text("new")
    (project / "old").write_text("old")
    with held(project / "old") as place:
        place.beside("new").replace(place)
        assert (project / "old").read_text() == "new"
        place.unlink()
    assert list(project.iterdir()) == []


def test_a_folder_stays_the_one_that_was_judged(project: Path, tmp_path: Path) -> None:
    outside = _outside(tmp_path)
    (project / "a").mkdir()
    with held(project / "a" / "x") as place:
        (project / "a").rename(project / "moved")
        (project / "a").symlink_to(outside)
        os.close(place.open(os.O_WRONLY | os.O_CREAT))
    assert (project / "moved" / "x").exists()
    assert names(outside) == ["secret.txt"]


def test_a_folder_is_listed_by_its_descriptor(project: Path, tmp_path: Path) -> None:
    (project / "a").mkdir()
    (project / "a" / "b").write_text("")
    descriptor = open_listed(project / "a")
    assert names(descriptor) == ["b"]
    os.close(descriptor)
    (project / "link").symlink_to(_outside(tmp_path))
    with pytest.raises(Refused):
        open_listed(project / "link")


def test_the_top_is_listed_too() -> None:
    descriptor = open_listed(Path("/"))
    assert "etc" in names(descriptor)
    os.close(descriptor)


def test_a_file_is_read_whole_or_not_at_all(project: Path):
    (project / "a").write_bytes(b"123456")
    assert read_whole(project / "a", 6) == b"123456"
    with pytest.raises(ValueError, match="a is longer than 5 bytes"):
        read_whole(project / "a", 5)
    with pytest.raises(ValueError, match="is not a regular file"):
        read_whole(project, 5)
    with pytest.raises(OSError, match="none"):
        read_whole(project / "none", 5)


def test_the_beginning_is_that_of_a_regular_file_and_nobody_waits(project: Path, tmp_path: Path):
    (project / "a").write_bytes(b"123456")
    os.mkfifo(project / "pipe")
    (project / "link").symlink_to(_outside(tmp_path) / "secret.txt")
    before = names(Path("/dev/fd"))
    assert read_beginning(project / "a", 4) == b"1234"
    assert read_beginning(project / "pipe", 4) is None
    assert read_beginning(project, 4) is None
    for name in ("link", "none"):
        with pytest.raises(OSError, match=name):
            read_beginning(project / name, 4)
    descriptor = open_listed(project)
    assert read_beginning("a", 9, folder=descriptor) == b"123456"
    os.close(descriptor)
    assert len(names(Path("/dev/fd"))) == len(before)


def test_no_descriptor_is_left_open(project: Path, tmp_path: Path) -> None:
    (project / "a").symlink_to(_outside(tmp_path))
    before = names(Path("/dev/fd"))
    for path in (project / "a" / "b", project / "none" / "b", project / "c"):
        with suppress(Refused, OSError), held(path):
            pass
    assert len(names(Path("/dev/fd"))) == len(before)
