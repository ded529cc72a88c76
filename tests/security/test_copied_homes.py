"""Homes that are copies of another one: each program finds what was fetched, and nothing of what another one left."""

import os
import stat
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from ybs.core.errors import ConfigError
from ybs.security.sandbox import copied_homes
from ybs.security.sandbox.copied_homes import borrow, is_ready, mark_ready, mark_unready

ODD = os.fsdecode(b"odd-\xff")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with what a server fetched."""
    home = tmp_path / "residents/mcp-demo"
    package = home / "temporary/home/.npm/_npx/package"
    package.mkdir(parents=True)
    (package / "main.js").write_text("trusted")
    (package / "run").symlink_to("main.js")
    (package / ODD).write_text("odd")
    (package / "main.js").chmod(0o755)
    for folder in (home.parent, home):
        folder.chmod(0o700)
    mark_ready(home)
    return home


def look(place: Path) -> dict[str, str]:
    """Return all that lies in a copy: a file's text, where a link leads, and when a folder has changed."""
    return {
        str(path.relative_to(place)): str(path.readlink())
        if path.is_symlink()
        else path.read_text()
        if path.is_file()
        else str(path.stat().st_mtime_ns)
        for path in place.rglob("*")
    }


def lend(home: Path, change: Callable[[Path], object] = lambda _: None, **given: bool) -> Path:
    """Have a program use a copy, and change it."""
    with ExitStack() as until:
        place = borrow(home, until, **{"may_reuse": True, **given})
        assert look(place) == look(home)
        change(place / "temporary/home/.npm/_npx/package")
    return place


def numbers(place: Path) -> set[int]:
    return {path.lstat().st_ino for path in place.rglob("*")}


def write_in_place(package: Path) -> None:
    """Change a file as far as a program can without a trace: the same number, size, mode and time."""
    main, facts = package / "main.js", (package / "main.js").stat()
    while main.stat().st_ctime_ns == facts.st_ctime_ns:  # the kernel's clock for files has steps
        main.write_text("planted")
        os.utime(main, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def replace(package: Path) -> None:
    (package / "main.js").unlink()
    (package / "main.js").write_text("planted")


def fill(package: Path) -> None:
    deep = package / "more/deeper"
    deep.mkdir(parents=True)
    (deep / "index.js").write_text("planted")
    (deep / "out").symlink_to("/")
    os.mkfifo(package / "pipe")


def link_folder(package: Path) -> None:
    package.rename(package.with_name("away"))
    package.symlink_to("away")


def lock_folder(package: Path) -> None:
    (package / "main.js").write_text("planted")
    package.chmod(0o111)


def relink(package: Path) -> None:
    (package / "run").unlink()
    (package / "run").symlink_to("away")


@pytest.mark.parametrize(
    "change",
    [
        write_in_place,
        replace,
        fill,
        link_folder,
        lock_folder,
        relink,
        lambda package: (package / "main.js").chmod(0o600),
        lambda package: os.link(package / "main.js", package / "other.js"),
    ],
)
def test_what_a_program_left_is_found_by_no_other_one(home: Path, change: Callable[[Path], object]):
    place = lend(home)
    before = numbers(place)
    for _ in range(2):
        assert lend(home, change) == place
    assert lend(home) == place
    package = place / "temporary/home/.npm/_npx/package"
    assert stat.S_IMODE((package / "main.js").stat().st_mode) == 0o755
    assert len(numbers(place) & before) >= 4, "the rest was not copied again"


def test_a_copy_that_nobody_changed_is_not_copied_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    place = lend(home)

    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(copied_homes, "_copy_entry", never)
    assert lend(home) == place


def test_two_at_once_have_a_copy_each(home: Path):
    with ExitStack() as one, ExitStack() as other:
        places = {borrow(home, each, may_reuse=True) for each in (one, other)}
        assert len(places) == 2
    assert lend(home) in places


def test_a_copy_that_a_process_may_still_have_is_made_anew(home: Path):
    main = lend(home) / "temporary/home/.npm/_npx/package/main.js"
    for _ in range(2):
        with main.open("a") as held:
            lend(home, may_reuse=False)
            held.write("planted")
        assert main.read_text() == "trusted"


def test_what_was_fetched_anew_is_copied_anew(home: Path):
    lend(home)
    (home / "temporary/home/.npm/_npx/package/main.js").write_text("newer")
    mark_unready(home)
    assert not is_ready(home)
    lend(home)
    mark_ready(home)
    lend(home)
    mark_ready(home)
    lend(home)


def test_what_is_fetched_while_it_is_copied_is_copied_once_more(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    copy = copied_homes._copy_tree

    def meanwhile(home: Path, to: Path) -> None:
        copy(home, to)
        (home / "temporary/home/new").write_text("fetched")
        mark_ready(home)

    with ExitStack() as until, monkeypatch.context() as patch:
        patch.setattr(copied_homes, "_copy_tree", meanwhile)
        borrow(home, until, may_reuse=True)
    lend(home)


def test_a_home_that_is_not_there_is_an_empty_one(tmp_path: Path):
    for _ in range(2):
        with ExitStack() as until:
            place = borrow(tmp_path / "residents/none", until, may_reuse=True)
            assert list(place.iterdir()) == []
            (place / "left").write_text("x")


def test_what_is_gone_from_the_home_is_gone_from_the_copy(home: Path):
    lend(home, replace)
    (home / "temporary/home/.npm/_npx/package/main.js").unlink()
    for _ in range(2):
        lend(home)


@pytest.mark.parametrize("may_reuse", [True, False])
def test_what_cannot_be_removed_stops_the_start(
    home: Path, monkeypatch: pytest.MonkeyPatch, may_reuse: bool
):
    lend(home, fill)
    monkeypatch.setattr(copied_homes, "remove_folder", lambda *_: None)
    with ExitStack() as until, pytest.raises(OSError, match=r"exist|not empty"):
        borrow(home, until, may_reuse=may_reuse)


def test_a_copy_with_broken_notes_is_made_anew(home: Path):
    place = lend(home, fill)
    notes = place.with_name("1.json")
    notes.write_bytes(notes.read_bytes()[:40])
    assert lend(home) == place


def test_notes_that_others_could_write_are_not_believed(home: Path):
    place = lend(home)
    place.with_name("1.json").chmod(0o666)
    with ExitStack() as until, pytest.raises(ConfigError, match="written by others"):
        borrow(home, until, may_reuse=True)
