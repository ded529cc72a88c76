"""search_files: the same answers with rg and without."""

import asyncio
import io
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ybs.security.paths import Roots
from ybs.tools import child, line_search, ripgrep, search_files
from ybs.tools.engine import as_python
from ybs.tools.line_search import run
from ybs.tools.search_files import _names
from ybs.tools.walk import Deadline

RG = shutil.which("rg")


@pytest.fixture(
    params=[
        "python",
        pytest.param("rg", marks=pytest.mark.skipif(not RG, reason="rg is not installed")),
    ]
)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    path = str(Path(RG or "").parent) if request.param == "rg" else "/nonexistent"
    monkeypatch.setenv("PATH", path)
    return request.param


@pytest.fixture(autouse=True)
def tree(project: Path) -> Path:
    (project / "src").mkdir()
    (project / "src/a.py").write_text("import os\n\ndef main():\n    os.exit()\n\nmain()\n")
    (project / "src/b.txt").write_text("main street\r\nos\r\n")
    (project / "binary").write_bytes(b"main\0main\n")
    (project / "latin").write_bytes("grün main\n".encode("latin-1"))
    (project / "wide").write_bytes("main wide\n".encode("utf-16"))
    (project / "empty").write_bytes(b"")
    (project / ".gitignore").write_text("*.log\n")
    (project / "x.log").write_text("main\n")
    return project


async def test_matches_come_with_their_context(bench: Any, engine: str):
    answered = await bench.ok("search_files", pattern=r"def \w+", context_lines=1)
    assert answered.display == {
        "matches": [
            {
                "file": "src/a.py",
                "line": 3,
                "content": "def main():",
                "context_before": [""],
                "context_after": ["    os.exit()"],
            }
        ],
        "total_matches": 1,
        "truncated": False,
    }
    assert answered.output == "src/a.py\n2-\t\n3:\tdef main():\n4-\t    os.exit()"
    assert answered.result.summary == "1 match for def \\w+ in 1 file"


CASES = {
    "main": ["latin:1", "src/a.py:3", "src/a.py:6", "src/b.txt:1", "wide:1"],
    "^main": ["src/a.py:6", "src/b.txt:1", "wide:1"],
    "street$": ["src/b.txt:1"],
    "grün": ["latin:1"],
    "^$": ["src/a.py:2", "src/a.py:5"],
    r"os\.": ["src/a.py:4"],
    r"\bos\b": ["src/a.py:1", "src/a.py:4", "src/b.txt:2"],
    "(?i)MAIN st": ["src/b.txt:1"],
    "main(?= street)": ["src/b.txt:1"],
    r"(s)\1|ee": ["src/b.txt:1"],
    "i[mn]p|s{1}t": ["src/a.py:1", "src/b.txt:1"],
    "log": [".gitignore:1"],
    "-x": [],
    r"^\s": ["src/a.py:4"],
    r"\Amain": ["src/a.py:6", "src/b.txt:1", "wide:1"],
}


@pytest.mark.parametrize("pattern", CASES)
async def test_both_engines_find_the_same_lines(bench: Any, engine: str, pattern: str):
    display = (await bench.ok("search_files", pattern=pattern)).display
    assert [f"{match['file']}:{match['line']}" for match in display["matches"]] == CASES[pattern]
    assert display["total_matches"] == len(CASES[pattern])


async def test_nothing_found_is_said(bench: Any, engine: str):
    assert (await bench.ok("search_files", pattern="nowhere")).output == "No matches."


async def test_all_matches_are_counted_when_only_some_are_shown(bench: Any, engine: str):
    answered = await bench.ok("search_files", pattern="main", max_results=2, context_lines=0)
    assert answered.output == (
        "latin\n1:\tgrün main\nsrc/a.py\n3:\tdef main():\n"
        "[2 of 5 matches shown; narrow the pattern, path or file_pattern]"
    )
    assert answered.display["total_matches"] == 5
    assert answered.display["truncated"]
    assert answered.result.summary == "5 matches for main"


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        ({"file_pattern": "*.py"}, ["src/a.py"]),
        ({"file_pattern": "src/*.{py,txt}"}, ["src/a.py", "src/b.txt"]),
        ({"file_pattern": "*.log"}, []),
        ({"path": "src"}, ["src/a.py", "src/b.txt"]),
        ({"path": "src", "file_pattern": "*.txt"}, ["src/b.txt"]),
        ({"path": "src/b.txt"}, ["src/b.txt"]),
        ({"path": "x.log"}, ["x.log"]),
        ({"path": "binary"}, []),
    ],
)
async def test_the_files_can_be_chosen(
    bench: Any, engine: str, arguments: dict[str, Any], files: list[str]
):
    display = (await bench.ok("search_files", pattern="main", **arguments)).display
    assert sorted({match["file"] for match in display["matches"]}) == files


async def test_lines_between_near_matches_are_shown_once(bench: Any, project: Path):
    (project / "n").write_text("".join(f"{n}\n" for n in range(1, 10)))
    output = (await bench.ok("search_files", pattern="^[357]$", path="n", context_lines=1)).output
    assert output == "n\n2-\t2\n3:\t3\n4-\t4\n5:\t5\n6-\t6\n7:\t7\n8-\t8"
    output = (await bench.ok("search_files", pattern="^[34]$", path="n", context_lines=2)).output
    assert output == "n\n1-\t1\n2-\t2\n3:\t3\n4:\t4\n5-\t5\n6-\t6"


async def test_of_a_long_line_the_part_around_the_match_is_shown(bench: Any, project: Path):
    (project / "min.js").write_text("start" + "x" * 10_000 + "end\nstart\n")
    answered = await bench.ok("search_files", pattern="start", path="min.js", context_lines=0)
    assert answered.output == "min.js\n1:\tstart" + "x" * 295 + " [...]\n2:\tstart"
    output = (await bench.ok("search_files", pattern="e[n]+d", path="min.js")).output
    assert output == "min.js\n1:\t[...] " + "x" * 100 + "end\n2-\tstart"


async def test_what_is_not_searched_of_a_very_long_line_is_said(bench: Any, project: Path):
    (project / "min.js").write_text("x" * 30_000 + "end\n")
    answered = await bench.ok("search_files", pattern="en+d", path="min.js")
    assert answered.output == (
        "No matches.\n[only the beginning of very long lines was searched in: min.js]"
    )
    assert (await bench.ok("search_files", pattern="end", path="min.js")).display["total_matches"]


async def test_files_that_cannot_be_read_are_named(bench: Any, engine: str, project: Path):
    (project / "wide").write_bytes("grün main\n".encode("utf-16") * 10)
    found: list[tuple[str, Any]] = []
    run(request_for("grün", ["gone", "src", "pipe" * 99, "src/../gone2"]), collect(found))
    assert [kind for kind, _ in found] == ["skipped"] * 4
    os.mkfifo(project / "pipe")
    output = (await bench.ok("search_files", pattern="x(?=y)", path="pipe")).output
    assert output == "No matches.\n[not searched, could not be read: pipe]"
    assert _names([str(number) for number in range(5)]) == "0, 1, 2 and 2 more"


def test_large_files_are_searched_line_by_line(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(line_search, "MOST_BYTES", 50)
    monkeypatch.setattr(line_search, "_MOST_OF_LINE", 20)
    (project / "large").write_bytes(
        "äé one\r\ntwo\näé three\n".encode() + b"y" * 50 + b" four\nfive\nthree"
    )
    (project / "wide").write_bytes("main wide\n".encode("utf-16") * 10)
    found: list[tuple[str, Any]] = []
    run(request_for("three|^five|y{3}", ["large", "wide"], context=1), collect(found))
    matches = [value for kind, value in found if kind == "match"]
    assert [(match["line"], match["content"]) for match in matches] == [
        (3, "äé three"),
        (4, "y" * 20),
        (5, "five"),
        (6, "three"),
    ]
    assert matches[0]["context_before"] == ["two"]
    assert matches[2]["context_after"] == ["three"]
    assert [item for item in found if item[0] != "match"] == [
        *[("shortened", "large")] * 2,
        ("total", 4),
        ("skipped", "wide"),
    ]


def request_for(pattern: str, paths: list[str], **options: Any) -> dict[str, Any]:
    wanted = {"context": 0, "most": 50, "folder": os.curdir, "counts": None, **options}
    return {"pattern": pattern, "paths": paths, **wanted}


def collect(found: list[tuple[str, Any]]) -> line_search.Emit:
    return lambda kind, value: found.append((kind, value))


def test_the_process_answers_with_lines_and_limits_itself(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    limits: list[Any] = []
    monkeypatch.setattr("resource.setrlimit", lambda *limit: limits.append(limit))
    source = io.TextIOWrapper(io.BytesIO(json.dumps(request_for("main(", [])).encode()))
    target = io.StringIO()
    monkeypatch.setattr("sys.stdin", source)
    monkeypatch.setattr("sys.stdout", target)
    line_search.main()
    assert json.loads(target.getvalue())[0] == "error"
    assert limits


@pytest.mark.parametrize("pattern", [r"(a|a)+$", "((a+))+$", "(a+)+$"])
async def test_a_pattern_that_takes_for_ever_stops_nothing_and_is_ended(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
):
    monkeypatch.setattr(search_files, "TIME_LIMIT_SECONDS", 0.5)
    monkeypatch.setenv("PATH", "/nonexistent")
    (project / "0").write_text("first a\n")
    (project / "trap").write_text("a" * 60 + "!\n")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    answered = await bench.ok("search_files", pattern=pattern)
    ticking.cancel()
    assert answered.output.startswith("0\n1:\tfirst a")
    assert "took too long" in answered.output
    assert ticks > 10


async def test_a_pattern_that_crosses_lines_does_not_make_a_large_file_slow(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", "/nonexistent")
    (project / "a.csv").write_text("id,name,value 12345\n" * 5000)
    answered = await bench.ok("search_files", pattern='[^"]*TODO')
    assert answered.output == "No matches."


async def test_a_cancelled_search_is_ended_at_once(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    ended = asyncio.Event()
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    class Watched(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            loop.call_soon_threadsafe(began.set)

        def __exit__(self, *error: Any) -> None:
            super().__exit__(*error)
            loop.call_soon_threadsafe(ended.set)

    monkeypatch.setattr(child, "Popen", Watched)
    monkeypatch.setenv("PATH", "/nonexistent")
    (project / "trap").write_text("a" * 60 + "!\n")
    task = asyncio.create_task(bench.call("search_files", pattern="(a|a)+$"))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(ended.wait(), 5)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("foo[[:space:]]+bar", r"foo[\s]+bar"),
        ("[^_[:alpha:][:digit:]]", "[^_a-zA-Z0-9]"),
        (r"\[[:x]", r"\[[:x]"),
        ("[[:odd:]]", "[[:odd:]]"),
        ("[:alpha:]", "[:alpha:]"),
        (r"[]\]:[:punct:]]", r"[]\]:!-/:-@\[-`{-~]"),
    ],
)
def test_posix_classes_are_understood(given: str, expected: str):
    assert as_python(given) == expected


async def test_a_pattern_in_another_dialect_gets_its_matches_or_a_hint(
    bench: Any, engine: str, project: Path, capfd: pytest.CaptureFixture[str]
):
    (project / "c.txt").write_text("foo   bar = 1\n")
    answered = await bench.ok("search_files", pattern="foo[[:space:]]+bar", path="c.txt")
    assert answered.display["total_matches"] == 1
    answered = await bench.ok("search_files", pattern=r"foo\|bar", path="c.txt")
    assert "`\\|` means the character `|` itself" in answered.output
    await bench.ok("search_files", pattern="[[]x--", path="c.txt")
    assert capfd.readouterr().err == ""


async def test_a_name_with_a_line_end_spoils_nothing(bench: Any, engine: str, project: Path):
    (project / "a\nb.txt").write_text("hit\nhit\n")
    (project / "c.txt").write_text("hit\n")
    answered = await bench.ok("search_files", pattern="hit")
    assert [match["file"] for match in answered.display["matches"]] == [
        *["a\nb.txt"] * 2,
        "c.txt",
    ]


def test_a_name_with_a_line_end_is_read_from_its_output(tmp_path: Path):
    rg = fake_rg(tmp_path / "rg", "printf 'a\\nb.txt\\0002\\nc\\0001\\n'")
    assert counts(rg) == {"a\nb.txt": 2, "c": 1}


@pytest.mark.parametrize(
    ("program", "words"), [("/none", "be started"), ("/bin/false", "run_shell")]
)
async def test_a_search_that_cannot_be_done_is_an_error(
    bench: Any, monkeypatch: pytest.MonkeyPatch, program: str, words: str
):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("sys.executable", program)
    assert words in await bench.fails("search_files", pattern="x")


async def test_a_result_is_cut_to_the_allowed_characters(make_bench: Any, project: Path):
    (project / "many").write_text("some match\n" * 1000)
    bench = make_bench(max_output_chars=1000)
    answered = await bench.ok("search_files", pattern="match", path="many", max_results=500)
    shown = len(answered.display["matches"])
    assert 0 < shown < 500
    assert f"[{shown} of 1,000 matches shown" in answered.output
    assert len(answered.output) <= 1000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pattern": "("}, "no regular expression"),
        ({"pattern": "x", "path": "none"}, "does not exist"),
        ({"pattern": "x", "path": ".."}, "--add-dir"),
        ({"pattern": "x", "max_results": 0}, "1 or more"),
        ({"pattern": "x", "file_pattern": "/etc/*"}, "leads out"),
    ],
)
async def test_what_makes_no_sense_is_an_error(bench: Any, arguments: dict[str, Any], words: str):
    assert words in await bench.fails("search_files", **arguments)


async def test_a_search_that_takes_too_long_is_cut_and_said(
    bench: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(search_files, "TIME_LIMIT_SECONDS", -1)
    for path in (".", "src/a.py"):
        answered = await bench.ok("search_files", pattern="main", path=path)
        assert answered.display["truncated"]
        assert "took too long" in answered.output


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
    assert ripgrep.program(Roots(project)) == str(outside)
    monkeypatch.setenv("PATH", f"{project}/bin")
    assert ripgrep.program(Roots(project)) == ""


def counts(rg: Path, pattern: str = "x", paths: tuple[str, ...] = ("a",)) -> dict[str, int] | None:
    return ripgrep.counts(str(rg), pattern, rg.parent, paths, Deadline(5))


def test_counts_are_read_from_its_output_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ripgrep, "_BATCH_CHARS", 5)
    rg = fake_rg(
        tmp_path / "rg", 'while [ "$1" != -- ]; do shift; done; shift; printf "%s\\0%s\\n" "$1" $#'
    )
    assert counts(rg, paths=("aaa", "bbb", "ccc")) == {"aaa": 2, "ccc": 1}
    assert counts(rg, paths=()) == {}


def test_when_it_cannot_do_it_there_is_no_answer(tmp_path: Path):
    assert counts(fake_rg(tmp_path / "one", "exit 2")) is None
    assert counts(fake_rg(tmp_path / "two", "exit 1")) == {}
    assert counts(tmp_path / "missing") is None
    assert counts(fake_rg(tmp_path / "four", "exit 0"), "a(?=b)") is None

    late = fake_rg(tmp_path / "five", "exec sleep 60")
    assert ripgrep.counts(str(late), "x", late.parent, ["a"], Deadline(0.1)) is None


async def test_with_counts_only_the_files_that_are_shown_are_searched(
    bench: Any, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    script = 'printf "binary\\0002\\nempty\\0000\\nlatin\\0001\\nsrc/a.py\\0002\\nsrc/b.txt\\0007\\nzero\\0009\\n"'
    monkeypatch.setenv("PATH", str(fake_rg(tmp_path / "rg", script).parent))
    display = (await bench.ok("search_files", pattern="main", max_results=1)).display
    assert [match["file"] for match in display["matches"]] == ["latin"]
    assert display["total_matches"] == 10
