"""Commands that would destroy what undo cannot bring back are seen before they run."""

from pathlib import Path

import pytest

from hosts import host_at, this_host
from rows import every_row
from ybs.security.paths.bulk import MOST_KEPT_BYTES
from ybs.security.paths.roots import Roots
from ybs.tools.shell.losses import loss


@pytest.fixture
def planted(project: Path) -> Path:
    (project / ".gitignore").write_text("node_modules/\n*.log\n/local/\n")
    for path in ("node_modules/left/index.js", "src/dist/kept.js", "app.log", "a.txt"):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text("x")
    (project / "local/cache").mkdir(parents=True)
    (project / "local/cache/CACHEDIR.TAG").write_text("")
    (project / "web/node_modules").mkdir(parents=True)
    (project / "data").mkdir()
    for path in ("big.bin", "data/large.db"):
        with (project / path).open("wb") as file:
            file.truncate(MOST_KEPT_BYTES + 1)
    (project / "link").symlink_to("big.bin")
    (project.parent / "outside.txt").write_text("x")
    return project


@pytest.mark.integration
@every_row(
    "command, named",
    [
        ("rm big.bin", "big.bin: it is over 10 MB"),
        ("rm *.bin", "big.bin"),
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
        ("env X=1 rm big.bin", "big.bin"),
        ("rm ../outside.txt", "outside.txt: it lies outside of the project"),
        ("echo x > ../outside.txt", "outside.txt"),
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
    ],
)
def test_what_undo_brings_back_is_not_named(planted: Path, command: str):
    assert not loss(command, planted, Roots(this_host(), planted)), command


def test_a_repository_within_has_rules_of_its_own(planted: Path):
    (planted / "web/.git").mkdir()
    (planted / "web/node_modules/x").write_text("x")
    assert not loss("rm web/node_modules/x", planted, Roots(this_host(), planted))
    assert loss("rm node_modules/left/index.js", planted, Roots(this_host(), planted))


def test_the_home_folder_is_that_of_the_host(planted: Path):
    roots = Roots(host_at(planted.parent), planted)
    assert "outside.txt" in loss("rm ~/outside.txt", planted, roots)
