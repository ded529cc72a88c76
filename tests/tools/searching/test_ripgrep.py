"""The program rg: which one is used, what it is asked, how it is read, and what happens where it breaks off."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hosts import this_host
from rows import every_row
from ybs.core.errors import ToolError
from ybs.security.paths.roots import Roots
from ybs.tools.searching import child, engine
from ybs.tools.searching.choice import GlobChoice
from ybs.tools.searching.walk import Deadline

pytestmark = pytest.mark.integration


def fake_rg(folder: Path, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "rg"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_rg_is_the_one_beside_ybs(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fake_rg(tmp_path / "other", "true")
    assert engine.program({"PATH": f"{tmp_path}/other"}) == str(Path(sys.executable).parent / "rg")
    user = fake_rg(tmp_path / "user", "true")
    monkeypatch.setattr("sys.executable", str(tmp_path / "nowhere/python"))

    def scripts(*_: object) -> str:
        return str(user.parent)

    monkeypatch.setattr("sysconfig.get_path", scripts)
    assert engine.program({}) == str(user)


def test_s20_an_rg_of_path_does_not_count_where_the_project_could_have_put_it(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(engine, "_beside_ybs", lambda: iter(()))
    monkeypatch.setattr("ybs.security.launcher.SYSTEM_FOLDERS", ())
    inside = fake_rg(project / "bin", "true")
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "rg").symlink_to(inside)
    outside, more = fake_rg(tmp_path / "outside", "true"), fake_rg(tmp_path / "more", "true")
    this_host().work_in(project)
    path = f".:bin::{project}/bin:{linked}:/nonexistent"
    assert engine.program({"PATH": f"{path}:{outside.parent}"}) == str(outside)
    this_host().work_in(more.parent)
    assert engine.program({"PATH": f"{path}:{more.parent}"}) == ""
    monkeypatch.setenv("PATH", path)
    with pytest.raises(ToolError, match="can install ybs again"):
        engine.Search(Roots(this_host(), project), project, Deadline(5), ["--regexp", "x"])


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what makes a search with an rg that runs a script."""

    def search(script: str, seconds: float = 5) -> engine.Search:
        rg = fake_rg(tmp_path / "rg", script)
        monkeypatch.setattr(engine, "_beside_ybs", lambda: iter([str(rg)]))
        return engine.Search(
            Roots(this_host(), rg.parent), rg.parent, Deadline(seconds), ["--regexp", "x"]
        )

    return search


def test_counts_are_read_from_its_output_and_names_may_hold_line_ends(fake: Any):
    script = (
        r"printf './a\nb\0002\r\n./c\0001\n./\377\0001\r\n'"
        "\necho 'rg: ./d: Permission denied (os error 13)' >&2"
        "\necho 'rg: ./e: PCRE2: error matching: match limit exceeded' >&2\nexit 2"
    )
    found = fake(script).below()
    assert found.files == {"a\nb": 2, "c": 1, "\udcff": 1}
    assert (found.skipped, found.slow, found.was_cut) == (["d"], ["e"], False)
    assert fake("exit 1").below() == engine.Counts()


@every_row(
    ("script", "words"),
    [
        ("echo no such option >&2; exit 2", "The search failed: no such option"),
        ("echo bwrap: no >&2; exit 1", "The search failed: bwrap: no"),
    ],
)
def test_what_it_cannot_do_is_an_error_and_never_no_matches(fake: Any, script: str, words: str):
    with pytest.raises(ToolError, match=words):
        fake(script).below()


def test_one_that_cannot_be_started_is_an_error(fake: Any, tmp_path: Path):
    search = fake("true")
    (tmp_path / "rg/rg").unlink()
    with pytest.raises(ToolError, match="could not be started"):
        search.below()


def test_a_lower_limit_of_the_system_stays(monkeypatch: pytest.MonkeyPatch):
    limits: list[object] = []

    def limit(_: object, pair: tuple[int, int]) -> None:
        limits.append(pair)

    def limits_now(_: object) -> tuple[int, int]:
        return 5, 5

    monkeypatch.setattr("resource.getrlimit", limits_now)
    monkeypatch.setattr("resource.setrlimit", limit)
    child.bounded(lambda: limits.append("before"))()
    assert limits == ["before", (0, 0), (5, 5)]


def test_where_no_file_lies_in_memory_one_on_disk_will_do(
    fake: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    assert fake(r"printf './a\0002\r\n'").below().files == {"a": 2}


def test_at_the_deadline_it_is_ended_and_what_it_found_counts(fake: Any):
    found = fake(r"printf './a\0001\r\n'; exec sleep 60", 0.1).below(endings=(".py",))
    assert found.was_cut
    assert found.files == {"a": 1}


def test_paths_go_to_it_in_batches(fake: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine, "_BATCH_CHARS", 5)
    script = r'while [ "$1" != -- ]; do shift; done; printf "%s\0%s:3:[...]\r\n" "$2" $#'
    found = fake(script).places(["aaa", "bbb", "ccc"], 9)
    assert found == {"aaa": [(3, 2)], "ccc": [(2, 2)]}


def test_where_it_breaks_off_even_without_large_files_the_search_is_an_error(
    fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fake("kill -6 $$")
    scope = engine.Scope(start=tmp_path, choice=GlobChoice("**"), most=5)
    with pytest.raises(ToolError, match="broke off"):
        engine.find(["--regexp", "x"], scope, Roots(this_host(), tmp_path), Deadline(5))


RULES = [
    *("*.log", "build/", "/top.py", "a/**", "**/b", "!keep.log", "a/*.py"),
    *("[ab].txt", "x?", r"\#a", "*", "!*/"),
]
NAMES = [
    *("top.py", "a/top.py", "a/b/x.log", "a/keep.log", "build/x1"),
    *("b/a.txt", "c/c.txt", "x1", "#a", ".h/y.log"),
]


def make_tree(folder: Path, rules: list[str], inner: list[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("word\n")
    (folder / ".gitignore").write_text("\n".join(rules))
    (folder / "a/.gitignore").write_text("\n".join(inner))


def break_off(*_: object) -> None:
    """Take the place of a run that breaks off."""


def compared(start: Path, roots: Roots, **options: Any) -> engine.SearchResult:
    """Search by what rg walks and by what a walk of our own lists: both find the same."""
    scope = engine.Scope(
        start=start,
        choice=GlobChoice(options.pop("glob", "**"), names_anywhere=True),
        most=5,
        **options,
    )
    found: list[engine.SearchResult] = []
    for breaks_off in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            if breaks_off:
                patch.setattr(engine.Search, "below", break_off)
            found.append(engine.find(["--regexp", "word"], scope, roots, Deadline(20)))
    assert found[0] == found[1]
    return found[0]


@pytest.mark.slow
@given(st.lists(st.sampled_from(RULES), max_size=4), st.lists(st.sampled_from(RULES), max_size=2))
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_rg_and_our_walk_leave_out_the_same_files(
    tmp_path: Path, rules: list[str], inner: list[str]
):
    folder = tmp_path / "made"
    make_tree(folder, rules, inner)
    compared(folder, Roots(this_host(), folder))
    compared(folder / "a", Roots(this_host(), folder))


def test_rg_and_our_walk_look_at_the_same_files(tmp_path: Path):
    folder, outside = tmp_path / "made", tmp_path / "outside"
    make_tree(folder, ["*.log", "!keep.log", "build/"], ["b"])
    (tmp_path / ".gitignore").write_text("*\n")
    (folder / ".ignore").write_text("*\n")
    (folder / ".git").mkdir()
    (folder / "nested/.git").mkdir(parents=True)
    (folder / "nested/.git/config").write_text("word")
    (folder / "nested/n.log").write_text("word")
    outside.mkdir()
    (outside / "o").write_text("word")
    (folder / "out").symlink_to(outside)
    (folder / "o").symlink_to(outside / "o")
    (folder / "0").write_bytes(b"word\n\0")
    for odd in (b"a\nb", b"\xff", b"n" * 255, b"-e", b"a b:1:2"):
        (folder / os.fsdecode(odd)).write_text("word")
    roots = Roots(this_host(), folder, ("./",), ("./c",))
    found = compared(folder, roots)
    assert found.binary == ["0"]
    assert list(found.places) == ["#a", "-e", "a\nb", "a b:1:2", "a/keep.log"]
    assert found.files == 12
    assert compared(folder / "a", roots).files == 2
    assert compared(folder, roots, includes_ignored=True).files == 15
    assert compared(folder, roots, glob="*.{py,log}").files == 4
    assert compared(folder, roots, glob="a/*.py,!keep*").files == 1
    (folder / "e/inner").mkdir(parents=True)
    (folder / "e/.gitignore").write_text("*.md")
    for name in ("a.md", "b.log", "c.txt"):
        (folder / "e/inner" / name).write_text("word")
    assert list(compared(folder / "e/inner", roots).places) == ["c.txt"], "two files of rules above"
