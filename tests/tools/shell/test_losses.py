"""Commands that would destroy what undo cannot bring back are seen before they run."""

from pathlib import Path

import pytest

from hosts import host_at, this_host
from rows import every_row
from ybs.security.paths.bulk import MOST_KEPT_BYTES
from ybs.security.paths.roots import Roots
from ybs.tools.shell import losses
from ybs.tools.shell.losses import loss


@pytest.fixture
def planted(project: Path) -> Path:
    (project / ".gitignore").write_text("node_modules/\n*.log\n/local/\n")
    for path in (
        *("node_modules/left/index.js", "node_modules/x", "src/dist/kept.js", "src/node_modules"),
        *("app.log", "a.txt", "other/big.bin", "other/large.db"),
    ):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text("x")
    (project / "local/cache").mkdir(parents=True)
    (project / "local/cache/CACHEDIR.TAG").write_text("")
    (project / "web/node_modules").mkdir(parents=True)
    (project / "data").mkdir()
    for path in ("big.bin", "data/large.db"):
        with (project / path).open("wb") as file:
            file.truncate(MOST_KEPT_BYTES + 1)
    with (project / "just.bin").open("wb") as file:
        file.truncate(MOST_KEPT_BYTES)
    (project / "link").symlink_to("big.bin")
    (project.parent / "outside.txt").write_text("x")
    return project


@pytest.mark.integration
@every_row(
    "command, named",
    [
        ("rm big.bin", "big.bin: it is over 10 MB"),
        ("rm b*.bin", "big.bin"),
        ("> big.bin", "big.bin"),
        ("rm node_modules/x", "node_modules holds dependencies"),
        ("cp other/big.bin .", "big.bin"),
        ("cp a.txt other/large.db data/", "data/large.db"),
        ("eval rm big.bin", "big.bin"),
        ("cd data && rm large.db", "data/large.db"),
        ("rm -f node_modules/left/index.js", "node_modules holds dependencies"),
        ("mv node_modules gone", "node_modules"),
        ("mv web away", "web/node_modules"),
        ("mv data away", "data/large.db is over 10 MB"),
        ("rm local/cache/x local/cache/CACHEDIR.TAG", "local/cache"),
        ("cp a.txt big.bin", "big.bin"),
        ("cp -f a.txt node_modules/left/index.js", "node_modules"),
        ("echo x > big.bin", "big.bin"),
        ("echo x | tee node_modules/left/index.js", "node_modules"),
        ("sed -i s/a/b/ big.bin", "big.bin"),
        ("for f in *.bin; do rm $f; done", "big.bin"),
        ("f=big.bin; rm $f", "big.bin"),
        ("rm `echo big.bin`", "big.bin"),
        ("env X=1 rm big.bin", "big.bin"),
        ("rm ../outside.txt", "outside.txt: it lies outside of the project"),
        ("echo x > ../outside.txt", "outside.txt"),
        ("for f in big.bin; do echo x > $f; done", "big.bin"),
        ('for f in node_modules/left/*; do echo x >> "$f"; done', "index.js"),
    ],
)
def test_what_cannot_be_brought_back_is_named(planted: Path, command: str, named: str):
    said = loss(command, planted, Roots(this_host(), planted))
    assert said.startswith("undo cannot bring back ")
    assert named in said


@every_row(
    "command",
    [
        "rm a.txt app.log src/dist/kept.js",
        "rm link",
        "rm nothing-there.bin",
        "cat big.bin > copy",
        "cat ../outside.txt >> a.txt",
        "cp big.bin copy",
        "grep x large.db data > found",
        "cp ../outside.txt here",
        "mv a.txt b.txt",
        "mv a.txt ..",
        "cp src/dist/kept.js .",
        "sed s/a/b/ big.bin",
        "node_modules/.bin/lint > report",
        "for f in src; do node_modules/.bin/lint $f > report; done",
        "echo > /dev/null",
        "ls -l",
        "rm just.bin",
        "rm src/node_modules",  # a file
        "mv src away",  # nothing ignores its folder `dist`
        "rm -r .",
        "cp big.bin",
        "cat -i big.bin",
        "cd && rm a.txt",
        "for f in big.bin; do lint $f > report; done",
        "for f in a.txt app.log; do echo x >> $f; done",
        "f() { rm ../outside.txt; }; f",  # not clear, so nothing is said of what lies outside
    ],
)
def test_what_undo_brings_back_is_not_named(planted: Path, command: str):
    assert not loss(command, planted, Roots(this_host(), planted)), command


@pytest.mark.parametrize(("count", "is_found"), [(2, True), (3, False)])
def test_a_large_folder_is_looked_through_as_far_as_that_is_quick(
    planted: Path, monkeypatch: pytest.MonkeyPatch, count: int, is_found: bool
):
    monkeypatch.setattr(losses, "_MOST_ENTRIES", 2)
    (planted / "many/deep").mkdir(parents=True)
    for number in range(count):
        (planted / f"many/{number}").write_text("x")
    (planted / "data/large.db").rename(planted / "many/deep/large.db")
    assert bool(loss("mv many away", planted, Roots(this_host(), planted))) is is_found


def test_a_folder_that_cannot_be_listed_has_no_mark(planted: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(_folder: str) -> list[str]:
        raise PermissionError

    monkeypatch.setattr(losses.os, "listdir", refuse)
    roots = Roots(this_host(), planted)
    assert not loss("rm local/cache/CACHEDIR.TAG", planted, roots)


def test_a_repository_within_has_rules_of_its_own(planted: Path):
    (planted / "web/.git").mkdir()
    (planted / "web/node_modules/x").write_text("x")
    assert not loss("rm web/node_modules/x", planted, Roots(this_host(), planted))
    assert loss("rm node_modules/left/index.js", planted, Roots(this_host(), planted))


def test_the_home_folder_is_that_of_the_host(planted: Path):
    roots = Roots(host_at(planted.parent), planted)
    assert "outside.txt" in loss("rm ~/outside.txt", planted, roots)
