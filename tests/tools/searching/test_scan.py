"""Python's own search: what a process tells of each file, and how files of any size are read."""

import marshal
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rows import every_row
from ybs.tools.searching import blocks, scan
from ybs.tools.searching.dialect import pattern_of
from ybs.tools.searching.excerpt import matches_in


def request_for(pattern: str, paths: list[str], **options: Any) -> dict[str, Any]:
    read = pattern_of(pattern)
    wanted = {"most": 50, "folder": str(Path.cwd()), "first": 0, "step": 1, "named": False}
    return {
        "text": read.text,
        "data": read.data,
        "seeds": read.seeds,
        "folds": read.folds,
        "literal": read.is_literal,
        "wide": read.is_wide,
        "paths": paths,
        **wanted,
        **options,
    }


def told(pattern: str, *paths: str, **options: Any) -> list[str]:
    lines: list[str] = []
    scan.run(request_for(pattern, list(paths), **options), lines.append)
    return lines


def test_each_file_is_told_with_count_and_places(project: Path):
    (project / "a").write_text("no\nyes éyes yes\nno\nyes\nyes")
    (project / "b").write_bytes(b"\xef\xbb\xbfyes\n")
    (project / "c").write_bytes(b"yes\0")
    for pattern in ("yes", "[y]e*s", "y[e]s", "(?i)yEs", "y|yes|es"):
        assert told(pattern, "a", "b", "c", "none", most=3) == [
            "hit 0 3 1:0 3:0 4:0",
            "hit 1 1 ",
            "binary 2",
            "skipped 3",
        ]
    assert told("é", "a", most=0) == ["hit 0 1 "]


@every_row(
    ("encoding", "head", "word"),
    [
        ("utf-16-le", "main 日本の", "こん"),
        ("utf-16-be", "main 日本の", "こん"),
        ("utf-32", "main 日本の", "こん"),
        ("cp932", "main 日本の", "こん"),
        ("gb18030", "main 你好", "世界"),
        ("latin-1", "main gr", "ün"),
    ],
)
def test_files_in_other_encodings_are_searched(project: Path, encoding: str, head: str, word: str):
    (project / "a").write_bytes((f"{head}{word}\n" * 9).encode(encoding))
    byte = len(head.encode("utf-8" if encoding.startswith("utf") else encoding))
    assert told("main", "a", named=True, most=0) == ["hit 0 9 "]
    assert told(word, "a", named=True, most=1) == [f"hit 0 9 0:{byte}"]
    assert matches_in(os.open("a", os.O_RDONLY), "a", [(1, byte)], 0)[0].content == head + word


def test_large_files_are_read_in_blocks_of_whole_lines(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(blocks, "MOST_BYTES", 50)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 16)
    monkeypatch.setattr(blocks, "_FIRST_BYTES", 16)
    monkeypatch.setattr(blocks, "MOST_OF_LINE", 30)
    content = "äé one\r\ntwo\näé three\n" + "y" * 90 + " four\nfive\nthree"
    (project / "large").write_text(content, newline="")
    (project / "wide").write_bytes(("main wide\n" * 9).encode("utf-16"))
    (project / "late").write_bytes(b"three\n" * 20 + b"\0")
    assert told("three|^five|four", "large", "wide", "late") == [
        "shortened 0",
        "hit 0 3 2:5 4:0 5:0",
        "binary 2",
    ]
    assert told("wide", "wide", most=1) == ["hit 0 9 0:5"]
    matches = matches_in(
        os.open(project / "large", os.O_RDONLY), "large", [(3, 5), (6, 0), (99, 0)], 1
    )
    assert [
        (match.content, match.context_before, match.context_after[0:0]) for match in matches
    ] == [
        ("äé three", ["two"], []),
        ("three", ["five"], []),
    ]
    assert matches_in(os.open(project / "late", os.O_RDONLY), "late", [(99, 0)], 1) == []


@every_row("pattern", ["en+d", "e(nd)?", "end", "x*end", r"\w+$"])
def test_a_long_line_is_searched_to_its_end(project: Path, pattern: str):
    (project / "long").write_text("x" * 300_000 + "end\nend\n" + "-" * 30_000 + "end")
    assert told(pattern, "long", most=0) == ["hit 0 3 "]


@pytest.mark.parametrize("most", [0, 5])
@pytest.mark.parametrize("content", ["ä", "a", ""])
def test_what_takes_for_ever_in_one_file_is_ended_and_said_and_the_rest_is_searched(
    project: Path, monkeypatch: pytest.MonkeyPatch, content: str, most: int
):
    monkeypatch.setattr(scan, "_BLOCK_SECONDS", 0.01)
    (project / "trap").write_text(f"{content}\na\n" + "a" * 60 + "!\na\n")
    (project / "good").write_text("a\n")
    found = 1 + (content == "a")
    places = "".join(f" {line}:0" for line in range(2 - found, 2)) if most else " "
    assert told("(a|a)+$", "trap", "good", most=most) == [
        "slow 0",
        f"hit 0 {found}{places}",
        f"hit 1 1 {'0:0' if most else ''}",
    ]


def test_a_pattern_that_wants_too_much_memory_is_a_slow_one(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("ybs.tools.searching.scan._Matcher.count", fail)
    (project / "a").write_text("main\n")
    assert told("main", "a") == ["slow 0"]


def test_the_process_answers_and_limits_itself(project: Path, monkeypatch: pytest.MonkeyPatch):
    limits: list[Any] = []

    def limit(*given: Any) -> None:
        limits.append(given)

    written: list[bytes] = []
    (project / "a").write_text("main\n")
    monkeypatch.setattr("resource.setrlimit", limit)
    data = marshal.dumps(request_for("main", ["a"]))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=SimpleNamespace(read=lambda: data)))

    def write(_: int, data: bytes) -> int:
        written.append(data[:4])
        return 4

    monkeypatch.setattr(os, "write", write)
    scan.main()
    assert b"".join(written) == b"hit 0 1 0:0\n"
    assert limits


def test_a_folder_that_has_gone_or_became_a_link_is_not_searched(project: Path):
    (project / "real").mkdir()
    (project / "real/a").write_text("word\n")
    (project / "link").symlink_to("real")
    for folder in ("link", "gone"):
        assert told("word", "a", "b", folder=str(project / folder)) == ["skipped 0", "skipped 1"]
    assert told("word", "link/a", "real/a", "gone/a", "real/b") == [
        "skipped 0",
        "hit 1 1 0:0",
        "skipped 2",
        "skipped 3",
    ]
