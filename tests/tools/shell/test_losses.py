"""Commands that would destroy what undo cannot bring back are seen before they run."""

import os
from pathlib import Path
from typing import Any

import pytest

from hosts import host_at, this_host
from rows import every_row
from ybs.agent import project_walk
from ybs.checkpoints import scan
from ybs.checkpoints.store import NoRoom, Pack
from ybs.core.errors import ToolError
from ybs.security.paths.bulk import MOST_KEPT_BYTES
from ybs.security.paths.opening import OpenEntry
from ybs.security.paths.roots import Roots
from ybs.session import undoing
from ybs.session.undoing import Checkpoints
from ybs.tools.shell.losses import loss as loss_in
from ybs.tools.workspace import Workspace


def loss(command: str, folder: Path, roots: Roots) -> str:
    """Return what a session with nothing kept yet says of a command."""
    find_lost = Checkpoints(roots, "session-1", may_write=True).first_lost
    return loss_in(command, folder, Workspace(roots, first_lost=find_lost))


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
        ("rm ../outside.txt", "outside.txt: it lies where undo does not look"),
        ("echo x > ../outside.txt", "outside.txt"),
        ("for f in big.bin; do echo x > $f; done", "big.bin"),
        ("X=1; echo $X > big.bin", "big.bin"),
        ('echo "$(date)" > big.bin', "big.bin"),
        ("for f in a; do echo $f > big.bin; done", "big.bin"),
        ("cat <<E > big.bin\n$x\nE", "big.bin"),
        ("echo a &> big.bin", "big.bin"),
        ("(cd data; ls); rm big.bin", "big.bin"),
        ("sh -c 'cd data; ls'; rm big.bin", "big.bin"),
        ("cd nowhere; rm big.bin", "big.bin"),
        ("cd nowhere && rm x; rm big.bin", "big.bin"),
        ("cd data || rm big.bin", "big.bin"),
        ("pushd data && rm large.db", "data/large.db"),
        ("env -C data rm large.db", "data/large.db"),
        ("cd data && rm ../big.bin", "big.bin"),
        ("git rm -f big.bin", "big.bin"),
        ("git -C data mv large.db x", "data/large.db"),
        ("cp -t node_modules a.txt", "node_modules"),
        ("cp -at data other/large.db", "data/large.db"),
        ("mv --target-directory=data other/large.db", "data/large.db"),
        ("sort -o big.bin a.txt", "big.bin"),
        ("curl -fsSLo big.bin localhost", "big.bin"),
        ("wget --output-document=big.bin localhost", "big.bin"),
        ("rsync a.txt big.bin", "big.bin"),
        ("trash big.bin", "big.bin"),
        ("sed -Ei s/a/b/ big.bin", "big.bin"),
        ("rm node_modules/{x,y}", "node_modules holds dependencies"),
        ("HOME=node_modules; rm ~/x", "node_modules: it holds dependencies"),
        ("d=big; rm $d.bin", "big.bin"),
        ("d=big; cp a.txt ${d}.bin", "big.bin"),
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
        "rm src/node_modules",  # a file
        "mv src away",  # nothing ignores its folder `dist`
        "rm -r .",
        "cp big.bin",
        "cat -i big.bin",
        "ruby -Ilib big.bin",
        "cd data && rm big.bin",  # nothing is there
        "gzip -dc big.bin | tar x",
        "ls -C data && rm a.txt",
        "sort -o",
        "cd && rm a.txt",
        "for f in big.bin; do lint $f > report; done",
        "for f in a.txt app.log; do echo x >> $f; done",
        "f() { rm ../outside.txt; }; f",  # not clear, so nothing is said of what lies outside
    ],
)
def test_what_undo_brings_back_is_not_named(planted: Path, command: str):
    assert not loss(command, planted, Roots(this_host(), planted)), command


def test_a_file_of_just_the_size_is_kept(planted: Path):
    (planted / "just.bin").touch()
    os.truncate(planted / "just.bin", MOST_KEPT_BYTES)
    assert not loss("rm just.bin", planted, Roots(this_host(), planted))


def test_a_large_file_is_seen_however_many_are_before_it(planted: Path):
    (planted / "many/deep").mkdir(parents=True)
    for number in range(1_500):
        (planted / f"many/{number}").write_text("")
    (planted / "data/large.db").rename(planted / "many/z.db")
    for command in ("mv many away", "rm many/*"):
        assert "many/z.db" in loss(command, planted, Roots(this_host(), planted)), command


@every_row(
    "command, named",
    [
        ("rm ../outside.txt", "outside.txt"),
        ("echo x > ../other/kept.txt", "other/kept.txt"),
        ("for f in ../other/*; do rm $f; done", "other/kept.txt"),
        ("mv ../other gone", "other"),
        ("rm out/kept.txt", "elsewhere/kept.txt"),
    ],
)
def test_what_undo_does_not_look_at_is_lost(planted: Path, command: str, named: str):
    for path in ("other/kept.txt", "elsewhere/kept.txt", f"{planted.name}/.git/HEAD"):
        (planted.parent / path).parent.mkdir(exist_ok=True)
        (planted.parent / path).write_text("x")
    if not (planted / "out").exists():
        (planted / "out").symlink_to("../elsewhere")
    roots = Roots(this_host(), planted, ("./", ".."))  # all of a larger folder is not looked at
    assert loss(command, planted, roots).endswith(f"{named}: it lies where undo does not look")
    assert not loss("rm a.txt link .git/HEAD; cp a.txt ..; mv a.txt .", planted, roots)


def test_a_link_on_the_way_hides_nothing(planted: Path):
    (planted / "nm").symlink_to("node_modules")
    said = loss("rm nm/x", planted, Roots(this_host(), planted))
    assert "node_modules holds dependencies" in said


@every_row(
    "limit, why",
    [
        ("MOST_IGNORED", "is ignored by git, and undo keeps 5,000 such files"),
        ("MOST_IGNORED_BYTES", "with 100 MB in all"),
        ("MOST_PATHS", "there are more than 1 files and folders"),
        ("MOST_NEW_BYTES", "the files hold more than 1 bytes"),
    ],
)
def test_each_limit_of_undo_is_asked_about(
    planted: Path, monkeypatch: pytest.MonkeyPatch, limit: str, why: str
):
    roots = Roots(this_host(), planted)
    (planted / "other.log").write_text("more")
    assert not loss("rm app.log other.log", planted, roots)
    for module in (scan, project_walk):
        monkeypatch.setattr(module, limit, 1, raising=False)
    said = loss("rm app.log other.log", planted, roots)
    assert said.startswith("undo cannot bring back ")
    assert why in said


async def test_what_the_last_look_has_seen_is_not_looked_for_again(
    planted: Path, monkeypatch: pytest.MonkeyPatch
):
    roots = Roots(this_host(), planted)
    checkpoints = Checkpoints(roots, "session-1", may_write=True)
    workspace = Workspace(roots, first_lost=checkpoints.first_lost)

    def said(command: str) -> str:
        return loss_in(command, planted, workspace)

    monkeypatch.setattr(scan, "UNSETTLED_NS", -(10**12))
    for turn in range(2):
        checkpoints.begin()
        await checkpoints.before_change("execute", ())
        (planted / "made.txt").write_text(str(turn))
        await checkpoints.end()
    looks: list[Roots] = []

    def looked(*given: Any) -> Any:
        looks.append(given[0])
        return project_walk.listings(*given)

    monkeypatch.setattr(undoing, "listings", looked)
    assert not said("rm a.txt app.log link; echo x > made.txt")
    assert "big.bin" in said("rm big.bin")
    assert looks == []
    (planted / "app.log").write_text("other, so that nobody knows whether there is room for it")
    assert not said("rm app.log")
    assert looks == [roots]
    checkpoints.begin()
    await checkpoints.before_change("write", [f"{planted}/new.txt"])
    (planted / "new.txt").write_text("x")
    assert not said("rm new.txt")
    assert looks == [roots]
    checkpoints.close()


async def test_where_no_copy_can_be_kept_all_is_lost(
    planted: Path, monkeypatch: pytest.MonkeyPatch
):
    roots, a = Roots(this_host(), planted), f"{planted}/a.txt"
    checkpoints = Checkpoints(roots, "session-1", may_write=True)
    monkeypatch.setattr(Pack, "take", full)
    checkpoints.begin()
    for is_named in (False, True):
        assert checkpoints.first_lost([a], is_named=is_named) == (a, "the disk is full")
    with pytest.raises(ToolError, match="the disk is full"):
        await checkpoints.before_change("execute", ())
    monkeypatch.undo()
    why = "what commands change is no longer looked at in this turn"
    assert checkpoints.first_lost([a]) == (a, why)  # the next command has no look before it
    assert checkpoints.first_lost([a], is_named=True) == ("", "")
    await checkpoints.end()
    assert checkpoints.first_lost([a]) == ("", "")
    checkpoints.close()


def full(_pack: Pack, _data: bytes) -> str:
    raise NoRoom("the disk is full")


def test_a_file_that_cannot_be_read_is_lost_and_a_socket_is_not(
    planted: Path, monkeypatch: pytest.MonkeyPatch
):
    """One that a container has left, say; whoever runs the tests may read all files."""
    opened = OpenEntry.open

    def closed(entry: OpenEntry, flags: int, mode: int = 0o666) -> int:
        if entry.name == "a.txt":
            raise PermissionError
        return opened(entry, flags, mode)

    monkeypatch.setattr(OpenEntry, "open", closed)
    os.mkfifo(planted / "pipe")
    roots = Roots(this_host(), planted)
    assert loss("rm a.txt", planted, roots).endswith(
        "a.txt: it is not a plain file, or cannot be read"
    )
    assert not loss("rm -f pipe app.log", planted, roots)


async def test_where_looks_were_given_up_all_is_lost_but_what_tools_name(
    planted: Path, monkeypatch: pytest.MonkeyPatch
):
    checkpoints = Checkpoints(Roots(this_host(), planted), "session-1", may_write=True)
    monkeypatch.setattr(scan, "MOST_PATHS", 1)
    for _ in range(2):
        checkpoints.begin()
        await checkpoints.before_change("execute", ())
        await checkpoints.end()
    monkeypatch.undo()
    a = f"{planted}/a.txt"
    assert checkpoints.first_lost([a]) == (a, "there are more than 1 files and folders")
    assert checkpoints.first_lost([a], is_named=True) == ("", "")
    checkpoints.close()


async def test_while_a_job_runs_the_look_before_it_counts(planted: Path):
    roots = Roots(this_host(), planted)
    checkpoints = Checkpoints(roots, "session-1", may_write=True, has_jobs=lambda: True)
    checkpoints.begin()
    await checkpoints.before_change("execute", ())
    (planted / "data/huge.db").touch()
    os.truncate(planted / "data/huge.db", MOST_KEPT_BYTES + 1)
    huge, a, web = (f"{planted}/{name}" for name in ("data/huge.db", "a.txt", "web"))
    assert checkpoints.first_lost([huge, a]) == ("", "")  # it goes, as it was not there before
    assert checkpoints.first_lost([web])[1].startswith("web/node_modules holds")
    checkpoints.close()


def test_a_repository_within_has_rules_of_its_own(planted: Path):
    (planted / "web/.git").mkdir()
    (planted / "web/node_modules/x").write_text("x")
    assert not loss("rm web/node_modules/x", planted, Roots(this_host(), planted))
    assert loss("rm node_modules/left/index.js", planted, Roots(this_host(), planted))


def test_the_home_folder_is_that_of_the_host(planted: Path):
    roots = Roots(host_at(planted.parent), planted)
    assert "outside.txt" in loss("rm ~/outside.txt", planted, roots)
