"""The rg program as an engine: which one is used, how it is read, and that it finds what Python finds."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hosts import this_host
from ybs.core.errors import ToolError
from ybs.security.paths.roots import Roots
from ybs.tools.searching import child, engine, ripgrep
from ybs.tools.searching.choice import GlobChoice
from ybs.tools.searching.dialect import pattern_of
from ybs.tools.searching.walk import Deadline

pytestmark = pytest.mark.integration

RG = shutil.which("rg") or ""
needs_rg = pytest.mark.skipif(not RG, reason="rg IS NOT INSTALLED: its results are not compared")


def fake_rg(folder: Path, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "rg"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_s20_only_an_rg_from_outside_the_project_is_used(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    inside = fake_rg(project / "bin", "true")
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "rg").symlink_to(inside)
    outside = fake_rg(tmp_path / "outside", "true")
    monkeypatch.setenv("PATH", f".:bin::{project}/bin:{linked}:/nonexistent:{outside.parent}")
    assert ripgrep.program(Roots(this_host(), project)) == str(outside)
    monkeypatch.setenv("PATH", f"{project}/bin")
    assert ripgrep.program(Roots(this_host(), project)) == ""


def counts(rg: Path, **options: Any) -> ripgrep.Counts | None:
    return ripgrep.counts(
        str(rg), "x", Roots(this_host(), rg.parent), rg.parent, Deadline(5), **options
    )


def test_counts_are_read_from_its_output_and_names_may_hold_line_ends(tmp_path: Path):
    rg = fake_rg(
        tmp_path / "rg",
        "printf './a\\nb\\0002\\n./c\\0001\\n./\\377\\0001\\n'\n"
        "echo './d: Permission denied (os error 13)' >&2\nexit 2",
    )
    found = counts(rg)
    assert found
    files = {"a\nb": 2, "c": 1, "\udcff": 1}
    assert (found.files, found.skipped, found.was_cut) == (files, ["d"], False)


def test_when_it_cannot_do_it_there_is_no_answer(tmp_path: Path):
    assert counts(fake_rg(tmp_path / "one", "echo no such option >&2; exit 2")) is None
    assert counts(fake_rg(tmp_path / "two", "exit 2")) is None
    assert counts(tmp_path / "missing") is None
    assert counts(fake_rg(tmp_path / "three", "exit 0"), rules_in=["/a/", "/b/"]) is None
    nothing = counts(fake_rg(tmp_path / "four", "exit 1"))
    assert nothing
    assert nothing.files == {}


def test_where_no_file_lies_in_memory_one_on_disk_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    found = counts(fake_rg(tmp_path / "rg", "printf './a\\0002\\n'"))
    assert found
    assert found.files == {"a": 2}


def test_at_the_deadline_it_is_ended_and_what_it_found_counts(tmp_path: Path):
    late = fake_rg(tmp_path / "late", "printf './a\\0001\\n'; exec sleep 60")
    found = ripgrep.counts(
        str(late), "x", Roots(this_host(), tmp_path), late.parent, Deadline(0.1), endings=(".py",)
    )
    assert found
    assert found.was_cut
    assert found.files == {"a": 1}


@pytest.mark.slow
def test_when_it_is_stuck_it_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if not Path("/proc/self/stat").exists():
        pytest.skip("THIS SYSTEM HAS NO /proc: a stuck rg is ended at the deadline only")
    monkeypatch.setattr(child, "_IDLE_SECONDS", 0.06)
    stuck = fake_rg(tmp_path / "rg", "exec cat .gitignore")
    os.mkfifo(stuck.parent / ".gitignore")
    assert counts(stuck) is None
    busy = fake_rg(tmp_path / "busy", "printf './a\\0001\\n'; while :; do :; done")
    found = ripgrep.counts(str(busy), "x", Roots(this_host(), tmp_path), tmp_path, Deadline(0.1))
    assert found
    assert (found.files, found.was_cut) == ({"a": 1}, True)


def test_paths_go_to_it_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ripgrep, "_BATCH_CHARS", 5)
    script = 'while [ "$1" != -- ]; do shift; done; printf "%s\\0%s:3:[...]\\n" "$2" $#'
    rg = fake_rg(tmp_path / "rg", script)
    found = ripgrep.places(
        str(rg),
        "x",
        Roots(this_host(), rg.parent),
        tmp_path,
        ["aaa", "bbb", "ccc"],
        most=9,
        deadline=Deadline(5),
    )
    assert found == {"aaa": [(3, 2)], "ccc": [(2, 2)]}


@pytest.mark.parametrize("failure", ["exit 2", "rm $0; printf './src/a.py\\0001\\n'"])
async def test_python_searches_where_it_fails(
    make_bench: Any, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
):
    (project / "a.py").write_text("main\n")
    monkeypatch.setenv("PATH", f"{fake_rg(tmp_path / 'rg', failure).parent}:/bin")
    display = (await make_bench().ok("search_files", pattern="main")).display
    assert display["total_matches"] == 1


def found_by(rg: bool, pattern: str, start: Path, roots: Roots, **options: Any) -> Any:
    path = os.environ["PATH"]
    os.environ["PATH"] = str(Path(RG).parent) if rg else "/nonexistent"
    try:
        roots.host = this_host()
        glob = options.pop("glob", "**")
        scope = engine.Scope(
            start=start, choice=GlobChoice(glob, names_anywhere=True), most=5, **options
        )
        return engine.find(pattern_of(pattern), scope, roots, Deadline(20))
    finally:
        os.environ["PATH"] = path


WORDS = [
    "a",
    "b",
    "ab",
    "foo",
    " ",
    "\t",
    "=",
    "K",
    "k",
    "é",
    "\u212a",
    "\u3042",
    "_",
    "\r",
    "7",
    "\x1c",
]
ATOMS = [
    "a",
    "b",
    "ab",
    "foo",
    ".",
    r"\w",
    r"\W",
    r"\s",
    r"\S",
    r"\d",
    "[^a]",
    "[ab_]",
    r"[\s=]",
    r"[^\S\n]",
    "[[:alpha:]]",
    r"\x61",
    "K",
    r"\D",
    r"[\W]",
    "[+--]",
    r"\h",
]
pieces = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "", "^", r"\b"]),
        st.sampled_from(ATOMS),
        st.sampled_from(["", "", "*", "+?", "?", "{2}"]),
        st.sampled_from(["", "", "$", r"\b"]),
    ),
)
patterns = st.recursive(
    pieces.filter(lambda text: text[:1] + text[1:2] not in ("^*",)),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("(%s|%s)".__mod__),
        inner.map("(?i:%s)".__mod__),
    ),
    max_leaves=4,
)
lines = st.lists(st.sampled_from(WORDS), max_size=5).map("".join)
texts = st.lists(lines, max_size=6).map("\n".join)
files = st.tuples(
    texts, st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]), st.booleans()
)


def compared(pattern: str, start: Path, roots: Roots, **options: Any) -> Any:
    by_rg = found_by(True, pattern, start, roots, **options)
    by_python = found_by(False, pattern, start, roots, **options)
    assert (by_rg.total, by_rg.files, by_rg.places) == (
        by_python.total,
        by_python.files,
        by_python.places,
    )
    return by_rg


@needs_rg
@pytest.mark.slow
@given(st.lists(files, min_size=1, max_size=4), st.lists(patterns, min_size=1, max_size=3))
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_both_engines_find_the_same_in_made_up_files(
    tmp_path: Path, contents: list[tuple[str, str, bool]], asked: list[str]
):
    folder = tmp_path / "made"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for number, (text, encoding, has_end) in enumerate(contents):
        data = (text + "\n" * has_end).encode(encoding, "replace")
        (folder / f"file{number}").write_bytes(data)
    for pattern in asked:
        try:
            pattern_of(pattern)
        except ToolError:
            continue
        compared(pattern, folder, Roots(this_host(), folder))


RULES = [
    "*.log",
    "build/",
    "/top.py",
    "a/**",
    "**/b",
    "!keep.log",
    "a/*.py",
    "[ab].txt",
    "x?",
    r"\#a",
    "*",
    "!*/",
]
NAMES = [
    "top.py",
    "a/top.py",
    "a/b/x.log",
    "a/keep.log",
    "build/x1",
    "b/a.txt",
    "c/c.txt",
    "x1",
    "#a",
    ".h/y.log",
]


def make_tree(folder: Path, rules: list[str], inner: list[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("word\n")
    (folder / ".gitignore").write_text("\n".join(rules))
    (folder / "a/.gitignore").write_text("\n".join(inner))


@needs_rg
@pytest.mark.slow
@given(st.lists(st.sampled_from(RULES), max_size=4), st.lists(st.sampled_from(RULES), max_size=2))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_both_engines_leave_out_the_same_files(tmp_path: Path, rules: list[str], inner: list[str]):
    folder = tmp_path / "made"
    make_tree(folder, rules, inner)
    compared("word", folder, Roots(this_host(), folder))
    compared("word", folder / "a", Roots(this_host(), folder))


@needs_rg
def test_both_engines_look_at_the_same_files(tmp_path: Path):
    folder, outside = tmp_path / "made", tmp_path / "outside"
    make_tree(folder, ["*.log", "!keep.log", "build/"], ["b"])
    (tmp_path / ".gitignore").write_text("*\n")
    (folder / ".ignore").write_text("*\n")
    (folder / "nested/.git").mkdir(parents=True)
    (folder / "nested/.git/config").write_text("word")
    (folder / "nested/n.log").write_text("word")
    outside.mkdir()
    (outside / "o").write_text("word")
    (folder / "out").symlink_to(outside)
    (folder / "o").symlink_to(outside / "o")
    (folder / "late").write_bytes(b"word\n" + b"x" * 70_000 + b"\0")
    for odd in (b"a\nb", b"\xff", b"n" * 255, b"-e", b"a b:1:2"):
        (folder / os.fsdecode(odd)).write_text("word")
    roots = Roots(this_host(), folder, ("./",), ("./c",))
    found = compared("word", folder, roots)
    assert list(found.places) == ["#a", "-e", "a\nb", "a b:1:2", "a/keep.log"]
    assert found.files == 12
    assert compared("word", folder / "a", roots).files == 2
    assert compared("word", folder, roots, includes_ignored=True).files == 15
    assert compared("word", folder, roots, glob="*.{py,log}").files == 4
    assert compared("word", folder, roots, glob="a/*.py,!keep*").files == 1
