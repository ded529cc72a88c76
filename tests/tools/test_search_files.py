"""search_files: what it finds, shows and says."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rows import every_row
from ybs.security.sandbox.launch import Launch
from ybs.tools.builtin import search_files
from ybs.tools.builtin.search_files import names_of
from ybs.tools.searching import child, engine
from ybs.tools.searching import engine as engines

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def without_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start rg as it is: its sandbox, which test_ripgrep.py has, takes longer to start than rg."""

    def launch(words: Sequence[str], *_: object) -> Launch:
        return Launch(words, {})

    monkeypatch.setattr(engine, "launch_reader", launch)


IN_BINARY = "[matches not shown, in binary files: binary; use run_shell with grep -an]"


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


async def test_matches_come_with_their_context(bench: Any):
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
        "total_files": 1,
        "truncated": False,
    }
    assert answered.output == "src/a.py\n2-\t\n3:\tdef main():\n4-\t    os.exit()"
    assert answered.result.summary == "1 match for def \\w+ in 1 file"


CASES = {
    "main": ["latin:1", "src/a.py:3", "src/a.py:6", "src/b.txt:1", "wide:1"],
    "^main": ["src/a.py:6", "src/b.txt:1", "wide:1"],
    "street$": ["src/b.txt:1"],
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
    r"\bma(?!in)|(?<=def )main": ["src/a.py:3"],
    r"\<os\>": ["src/a.py:1", "src/a.py:4", "src/b.txt:2"],
    "grün": [],  # beyond ASCII, only what is in UTF-8 or UTF-16 is found
    "gr.?n|gr": ["latin:1"],
}


@every_row("pattern", CASES)
async def test_the_lines_that_match_are_found(bench: Any, pattern: str):
    display = (await bench.ok("search_files", pattern=pattern)).display
    assert [f"{match['file']}:{match['line']}" for match in display["matches"]] == CASES[pattern]
    assert display["total_matches"] == len(CASES[pattern])


async def test_an_empty_pattern_matches_every_line(bench: Any):
    assert (await bench.ok("search_files", pattern="")).display["total_matches"] == 11


@every_row("pattern", ["STREET", "(?-i:os)|STREET"])
async def test_case_is_ignored_on_request(bench: Any, pattern: str):
    answered = await bench.ok("search_files", pattern=pattern, ignore_case=True)
    assert answered.display["total_matches"] > 0
    assert not (await bench.ok("search_files", pattern="STREET")).display["total_matches"]


async def test_a_file_that_goes_before_it_is_shown_is_named(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    find = engines.find

    def find_and_lose(*arguments: Any) -> Any:
        found = find(*arguments)
        (project / "src/a.py").unlink()
        (project / "latin").write_text("")
        return found

    monkeypatch.setattr(engines, "find", find_and_lose)
    answered = await bench.ok("search_files", pattern="main")
    assert {match["file"] for match in answered.display["matches"]} == {"src/b.txt", "wide"}
    assert "could not be read: src/a.py]" in answered.output


async def test_nothing_found_is_said(bench: Any):
    said = (await bench.ok("search_files", pattern="nowhere")).output
    assert (
        said
        == "No matches.\n[files that git ignores were not searched; `include_ignored` searches them]"
    )


async def test_all_matches_are_counted_when_only_some_are_shown(bench: Any):
    answered = await bench.ok("search_files", pattern="main", max_results=2, context_lines=0)
    assert answered.output == (
        "latin\n1:\tgrün main\nsrc/a.py\n3:\tdef main():\n"
        "[2 of 5 matches in 4 files shown; narrow the pattern, path or file_pattern]\n"
        f"{IN_BINARY}"
    )
    assert answered.display["total_matches"] == 5
    assert answered.display["truncated"]
    assert answered.result.summary == "5 matches for main in 4 files"


@every_row(
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
        ({"include_ignored": True, "file_pattern": "*.log"}, ["x.log"]),
        ({"file_pattern": "!*.py"}, ["latin", "src/b.txt", "wide"]),
        ({"file_pattern": "*.py,*.txt,!b.*"}, ["src/a.py"]),
        ({"file_pattern": "**/src/*.py"}, ["src/a.py"]),
    ],
)
async def test_the_files_can_be_chosen(bench: Any, arguments: dict[str, Any], files: list[str]):
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


async def test_of_a_long_word_around_a_match_a_few_characters_are_shown(bench, project: Path):
    token = "eyJ" + "x7Rt2mQp" * 300 + "end"
    (project / "a.json").write_text(f'{{"name": "{"a " * 100}", "t": "{token}", "z": "zz"}}\n')

    async def found(pattern: str) -> str:
        return (await bench.ok("search_files", pattern=pattern, path="a.json")).output

    head, after = "a.json\n1:\t", '", "z": "zz"}'
    assert await found("eyJ") == f'{head}[...] {" a" * 45} ", "t": " [...]eyJx7Rt2mQpx[...]'
    assert await found("p[e]nd") == f"{head}[...]pend[...] {after}"
    assert await found("x7Rt2mQp[e]") == f"{head}[...]x7Rt2mQpend[...] {after}"
    assert await found("zz") == f"{head}[...] {after}"


async def test_a_very_long_line_is_searched_whole(bench: Any, project: Path):
    (project / "min.js").write_text("x" * 100_000 + "end;" + "y" * 100_000 + "\nend\n")
    for pattern in ("e[n]+d", r"\bend$|x+end\W", "end"):
        answered = await bench.ok("search_files", pattern=pattern, context_lines=0)
        assert answered.display["total_matches"] == 2, pattern
        assert "shown" not in answered.output, pattern


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells that rg hangs")
@pytest.mark.parametrize("name", [".gitignore", "deep/.gitignore"])
async def test_a_pipe_in_the_place_of_an_ignore_file_holds_up_no_search(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    monkeypatch.setattr(child, "_STUCK_SECONDS", 0.05)
    (project / "deep").mkdir()
    (project / "deep/a.py").write_text("needle\n")
    (project / name).unlink(missing_ok=True)
    os.mkfifo(project / name)
    async with asyncio.timeout(6):
        answered = await bench.ok("search_files", pattern="needle")
    assert answered.display["total_matches"] == 1
    assert answered.display["truncated"] is False


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds the memory of rg")
async def test_a_line_too_long_for_memory_costs_its_own_file_and_no_other(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(child, "MOST_MEMORY", 20_000_000)
    monkeypatch.setattr(engines, "_LARGE_BYTES", 1_000_000)
    (project / "long.txt").write_bytes(b"needle and words " * 1_400_000 + b"\nneedle\n")
    (project / "large.txt").write_text("needle\n" + "hay\n" * 300_000)
    (project / "short.txt").write_text("needle\n")
    answered = await bench.ok("search_files", pattern="needle", context_lines=0)
    said = "[not searched, a line is too long: long.txt; use run_shell with grep]"
    assert answered.output == f"large.txt\n1:\tneedle\nshort.txt\n1:\tneedle\n{said}"
    assert (await bench.ok("search_files", pattern="x", path="long.txt")).output.endswith(said)


async def test_a_long_file_is_read_in_blocks_of_whole_lines(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(engine, "BLOCK_BYTES", 16)
    monkeypatch.setattr(engine, "MOST_OF_LINE", 30)
    (project / "n").write_text("one\n" * 9 + "y" * 90 + " four\nlast\nthree", newline="")
    answered = await bench.ok("search_files", pattern="four|three", path="n", context_lines=1)
    assert answered.output == f"n\n9-\tone\n10:\t{'y' * 44}\n11-\tlast\n12:\tthree"


@every_row(
    ("encoding", "text", "word"),
    [
        ("utf-16-le", "main 日本のこん", "こん"),
        ("utf-16-be", "main 日本のこん", "本の"),
        ("utf-16", "main grün", "ün"),
        ("utf-8-sig", "main grün", "^main"),
        ("latin-1", "main grün", "main"),
        ("cp932", "main 日本のこん", "main"),
    ],
)
async def test_a_named_file_in_another_encoding_is_searched(
    bench: Any, project: Path, encoding: str, text: str, word: str
):
    (project / "a").write_bytes(f"{text}\n".encode(encoding) * 9)
    answered = await bench.ok("search_files", pattern=word, path="a", max_results=1)
    assert answered.display["matches"][0]["content"] == text
    assert answered.display["total_matches"] == (1 if word == "^main" else 9)


async def test_files_that_cannot_be_read_and_binaries_are_named(bench: Any, project: Path):
    os.mkfifo(project / "pipe")
    output = await bench.fails("search_files", pattern="x(?=y)", path="pipe")
    assert output == "pipe is a named pipe, not a file"
    output = (await bench.ok("search_files", pattern="main", path="binary")).output
    assert output == f"No matches.\n{IN_BINARY}"
    assert names_of([str(number) for number in range(5)]) == "0, 1, 2 and 2 more"


async def test_source_files_with_a_nul_byte_are_searched_or_named(bench: Any, project: Path):
    (project / "src/early.ts").write_bytes(b"const key = `${F}\0${name}`;\nunion(needle)\n")
    far = b"// padding\n" * 5_000
    (project / "src/late.ts").write_bytes(b"needle(0)\n" + far + b"join('\0')\nneedle(1)\n")
    (project / "src/middle.ts").write_bytes(far[:9_999] + b"\n'\0'\nneedle(2)\n" + far)
    answered = await bench.ok("search_files", pattern="needle", context_lines=0)
    found = [(each["file"], each["content"]) for each in answered.display["matches"]]
    assert found == [
        ("src/late.ts", "needle(0)"),
        ("src/late.ts", "needle(1)"),
        ("src/middle.ts", "needle(2)"),
    ]
    assert answered.display["total_matches"] == 3
    assert "in binary files: src/early.ts;" in answered.output
    for glob in ("*.ts", "early.ts", "src/*.ts"):
        output = (await bench.ok("search_files", pattern="union", file_pattern=glob)).output
        assert output.startswith("No matches.\n[matches not shown, in binary files: src/early.ts")
    output = (await bench.ok("search_files", pattern="nowhere")).output
    assert "early.ts" not in output


async def test_files_in_which_the_pattern_takes_too_long_are_named_and_the_rest_is_searched(
    bench: Any, project: Path
):
    (project / "good").write_text("aab\n")
    (project / "trap").write_text("a" * 60 + "!\n")
    answered = await bench.ok("search_files", pattern="(a+)+(?=b)")
    said = "[not searched to the end, the pattern takes too long there: trap]"
    assert answered.output == f"good\n1:\taab\n{said}"
    assert answered.display["truncated"]


async def test_a_cancelled_search_is_ended_at_once(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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

    monkeypatch.setattr("subprocess.Popen", Watched)
    (tmp_path / "rg").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "rg").chmod(0o755)
    monkeypatch.setattr(engine, "_beside_ybs", lambda: iter([str(tmp_path / "rg")]))
    task = asyncio.create_task(bench.call("search_files", pattern="x"))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(ended.wait(), 5)


async def test_a_pattern_in_another_dialect_gets_its_matches_or_a_hint(
    bench: Any, project: Path, capfd: pytest.CaptureFixture[str]
):
    (project / "c.txt").write_text("foo   bar = 1\n")
    answered = await bench.ok("search_files", pattern="foo[[:space:]]+bar", path="c.txt")
    assert answered.display["total_matches"] == 1
    answered = await bench.ok("search_files", pattern=r"foo\|bar", path="c.txt")
    assert "`\\|` means the character `|` itself" in answered.output
    answered = await bench.ok("search_files", pattern=r"a\nfoo", path="c.txt")
    assert "`\\n` never matches" in answered.output
    await bench.ok("search_files", pattern="[[]x--", path="c.txt")
    assert capfd.readouterr().err == ""


async def test_a_name_with_a_line_end_spoils_nothing(bench: Any, project: Path):
    (project / "a\nb.txt").write_text("hit\nhit\n")
    (project / "c.txt").write_text("hit\n")
    answered = await bench.ok("search_files", pattern="hit")
    assert [match["file"] for match in answered.display["matches"]] == [
        *[r"a\x0ab.txt"] * 2,
        "c.txt",
    ]


async def test_a_result_is_cut_to_the_allowed_characters(make_bench: Any, project: Path):
    (project / "many").write_text("some match\n" * 1000)
    bench = make_bench(max_output_chars=1000)
    answered = await bench.ok("search_files", pattern="match", path="many", max_results=500)
    shown = len(answered.display["matches"])
    assert 0 < shown < 500
    assert f"[{shown} of 1,000 matches in 1 file shown" in answered.output
    assert len(answered.output) <= 1000


@every_row(
    ("arguments", "words"),
    [
        ({"pattern": "foo("}, "not a regular expression: unclosed group."),
        ({"pattern": "["}, "unclosed character class"),
        ({"pattern": "(?<=a+)b"}, "lookbehind assertion"),
        ({"pattern": "a\nb"}, "within one line"),
        ({"pattern": "a\0"}, "NUL"),
        ({"pattern": "a" * 5_001}, "5,000 are possible"),
        ({"pattern": "x", "path": "none"}, "does not exist"),
        ({"pattern": "x", "path": ".."}, "outside the folders that ybs may work in"),
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


async def test_a_search_that_found_nothing_says_what_it_did_not_look_at(bench: Any, project: Path):
    (project / "out/deep").mkdir(parents=True)
    (project / "out/deep/compose.yml").write_text("needle\n")
    (project / ".gitignore").write_text("out/\n")
    (project / "linked").symlink_to(project / "src")
    (project / "Releve\u0301\u202f8.txt").write_text("needle\n")
    twin = "[these names have other characters that look the same: Releve\u0301\u202f8.txt]"
    ignored = (
        "[1 file that git ignores would match: out/deep/compose.yml; `include_ignored` has them]"
    )
    linked = "[linked is a link; give it as `path` to look behind it]"
    rows = {
        "out/**": ignored, "*.yml": ignored, f"{project}/out/**/*.yml": ignored,
        "linked/*.py": linked, "Relevé 8.*": twin, "*.nothing": "[no file here has such a name]",
    }  # fmt: skip
    for glob, said in rows.items():
        found = await bench.ok("search_files", pattern="needle", file_pattern=glob)
        assert found.output == f"No matches.\n{said}"
    for glob in ("out/**", "**/*.yml", f"{project}/out/**/*.yml", "linked/*.py", "Relevé 8.txt"):
        found = await bench.ok("list_files", pattern=glob)
        assert (
            found.output == f"No files match.\n{rows.get(glob, twin if 'Rel' in glob else ignored)}"
        )
    assert (
        "out/deep" in (await bench.ok("list_files", pattern="out/**", include_ignored=True)).output
    )
    found = await bench.ok("search_files", pattern="né", include_ignored=True)
    assert found.output == "No matches.\n[text beyond ASCII is found in UTF-8 and UTF-16 only]"
