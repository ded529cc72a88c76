"""read_file."""

import asyncio
import base64
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from rows import every_row
from ybs.config.schema import Config, SafetySettings
from ybs.core.ports import Answer, Question
from ybs.security.firewall.masking import Firewall
from ybs.security.paths.names import shown_name
from ybs.tools.builtin import read_file
from ybs.tools.reading import content
from ybs.tools.reading.document import is_binary


async def test_lines_come_with_their_numbers(bench: Any, project: Path):
    (project / "a").write_text("one\n\n\tthree")
    answered = await bench.ok("read_file", path="a")
    assert answered.output == "1\tone\n2\t\n3\t\tthree"
    assert answered.display == {"content": answered.output, "total_lines": 3, "truncated": False}
    assert answered.result.summary == "a: 3 lines"


async def test_a_link_that_leads_elsewhere_since_the_question_is_not_followed_again(
    make_bench: Any, project: Path
):
    for name in ("asked about", "another"):
        (project / name).write_text(name)
    link = project / "link"
    link.symlink_to("asked about")

    async def confirm(question: Question) -> Answer:
        assert question.preview.title == "Read 'asked about'"
        link.unlink()
        link.symlink_to("another")
        return Answer(is_allowed=True)

    config = Config(safety=SafetySettings(ask=("read_file",)))
    bench = make_bench(mode="ask", confirm=confirm, config=config)
    assert (await bench.ok("read_file", path="link")).output == "1\tasked about"


async def test_a_plain_file_takes_one_thread(bench, project, monkeypatch):
    (project / "a.py").write_text("one")
    calls: list[str] = []

    def counted(name: str, run: Any) -> Any:
        async def counting(function: Any, *words: Any) -> Any:
            calls.append(name)
            return await run(function, *words)

        return counting

    monkeypatch.setattr(asyncio, "to_thread", counted("to_thread", asyncio.to_thread))
    monkeypatch.setattr(read_file, "in_thread", counted("in_thread", read_file.in_thread))
    assert (await bench.ok("read_file", path="a.py")).output == "1\tone"
    assert calls == ["in_thread"]


def test_what_was_judged_is_what_is_read_whatever_calls_were_judged_in_between(
    bench: Any, project: Path
):
    tool, link = read_file.ReadFile(bench.workspace), project / "link"
    link.symlink_to("a")
    calls = [read_file.ReadFileArguments(path="link") for _ in range(201)]
    assert [tool.target(each)[1] for each in calls[:200]] == ["a"] * 200
    link.unlink()
    link.symlink_to("b")
    assert tool.target(calls[0])[1] == "a"
    assert tool.target(calls[200])[1] == "b"
    assert tool.target(calls[1])[1] == "a"


async def test_a_part_says_where_to_go_on(bench: Any, project: Path):
    (project / "a").write_text("".join(f"{n}\n" for n in range(1, 11)))
    answered = await bench.ok("read_file", path="a", offset=4, limit=3)
    assert answered.output == "4\t4\n5\t5\n6\t6\n[lines 7-10 not shown; go on with offset=7]"
    assert answered.display["truncated"]
    assert answered.result.summary == "a: lines 4-6 of 10"
    last = await bench.ok("read_file", path="a", offset=10)
    assert last.output == "10\t10"
    assert last.display["truncated"]


async def test_a_file_of_many_lines_is_cut_where_a_line_ends(make_bench: Any, project: Path):
    (project / "a").write_text("".join(f"line {n}\n" for n in range(1, 1001)))
    answered = await make_bench(max_output_chars=500).ok("read_file", path="a")
    lines = answered.output.splitlines()
    last = int(lines[-2].split("\t")[0])
    assert lines[-1] == f"[lines {last + 1}-1000 not shown; go on with offset={last + 1}]"
    assert len(answered.output) <= 500


@pytest.mark.integration
async def test_a_long_line_is_cut_and_said(bench: Any, project: Path):
    (project / "a").write_text("x" * 2500 + "\n")
    output = (await bench.ok("read_file", path="a")).output
    assert output == f"1\t{'x' * 2500}"  # alone it has more room
    (project / "a").write_text("x " + "x" * 2500 + "\n\n")
    output = (await bench.ok("read_file", path="a")).output
    assert output.startswith(
        "1\tx  [... 2,500 more characters]\n2\t\n[long lines were cut; limit=1"
    )  # no part of what may be a token
    (project / "a").write_text("12345678 " * 300 + "\n\n")
    output = (await bench.ok("read_file", path="a")).output
    assert output.startswith(f"1\t{'12345678 ' * 222} [... 702 more characters]\n2\t\n")
    (project / "a").write_text("x" * 50_000)
    output = (await bench.ok("read_file", path="a")).output
    assert output.startswith(f"1\t{'x' * 8000} [... 42,000 more characters]\n[long lines")
    assert len(output) < 10_000
    (project / "a").write_text("x" * 6_000_000)  # not all of it is held
    output = (await bench.ok("read_file", path="a")).output
    assert output.startswith(f"1\t{'x' * 8000} [... over 900,000 more characters]\n[long lines")


async def test_an_empty_file_is_said(bench: Any, project: Path):
    (project / "a").write_text("")
    answered = await bench.ok("read_file", path="a")
    assert answered.output == "(the file is empty)"
    assert answered.display == {"content": "", "total_lines": 0, "truncated": False}


async def test_offsets_out_of_the_file_are_errors(bench: Any, project: Path):
    (project / "a").write_text("one\n")
    assert await bench.fails("read_file", path="a", offset=2) == "a has 1 line; there is no line 2"
    assert "1 or more" in await bench.fails("read_file", path="a", limit=0)
    assert (await bench.ok("read_file", path="a", offset=0)).output == "1\tone"


@pytest.mark.integration
@every_row(
    ("data", "shown"),
    [
        (b"a\r\nb\r\n", "1\ta\n2\tb"),
        ("grün\n".encode("latin-1"), "1\tgrün"),
        (b"\xef\xbb\xbfx\n", "1\tx"),
        ("日本\n".encode("utf-16"), "1\t日本"),
        (b"a\x0cb\n", "1\ta\x0cb"),
        (b"a\rb\n", "1\ta\rb"),
        ("hello\nwörld\n".encode("utf-16-le"), "1\thello\n2\twörld"),
        ("hello\nworld\n".encode("utf-16-be"), "1\thello\n2\tworld"),
        ("日本\n".encode("utf-32"), "1\t日本"),
        ("“it’s” – 5 €\n".encode("cp1252"), "1\t“it’s” – 5 €"),
        ("# 这是测试\n".encode("gb18030"), "1\t# 这是测试"),
        ("# テスト\n".encode("shift_jis"), "1\t# テスト"),
        (b"x" * 9000 + b"\n\0\n", "1\t" + "x" * 2000 + " [... 7,000 more characters]\n2\t\u2400"),
    ],
)
async def test_encodings_and_line_ends_are_understood(bench, project, data, shown):
    (project / "a").write_bytes(data)
    output = (await bench.ok("read_file", path="a")).output
    assert output.partition("\n[long lines")[0] == shown


@pytest.mark.integration
async def test_a_negative_offset_counts_from_the_end(bench: Any, project: Path):
    (project / "a").write_text("".join(f"{n}\n" for n in range(1, 11)))
    answered = await bench.ok("read_file", path="a", offset=-2)
    assert answered.output == "9\t9\n10\t10\n[lines 1-8 not shown; see them with a smaller offset]"
    assert answered.result.summary == "a: lines 9-10 of 10"
    part = (await bench.ok("read_file", path="a", offset=-4, limit=2)).output
    assert part == "7\t7\n8\t8\n[lines 1-6 not shown; see them with a smaller offset]\n" + (
        "[lines 9-10 not shown; go on with offset=9]"
    )
    whole = await bench.ok("read_file", path="a", offset=-99)
    assert whole.output.startswith("1\t1\n")
    assert whole.output.endswith("\n10\t10")
    assert not whole.display["truncated"]
    (project / "a").write_text("")
    assert (await bench.ok("read_file", path="a", offset=-5)).output == "(the file is empty)"


async def test_of_a_tail_too_long_for_the_answer_the_end_is_kept(make_bench: Any, project: Path):
    (project / "a").write_text("".join(f"line {n}\n" for n in range(1, 1001)))
    answered = await make_bench(max_output_chars=800).ok("read_file", path="a", offset=-500)
    lines = answered.output.splitlines()
    first = int(lines[0].split("\t")[0])
    assert first > 501
    assert lines[-2:] == [
        "1000\tline 1000",
        f"[lines 1-{first - 1} not shown; see them with a smaller offset]",
    ]


async def test_a_compressed_file_says_how_to_look_into_it(bench: Any, project: Path):
    for name, data, word in (
        ("a.docx", b"PK\x03\x04\0\0", "unzip"),
        ("a.gz", b"\x1f\x8b\x08\0", "zcat"),
    ):
        (project / name).write_bytes(data)
        assert word in await bench.fails("read_file", path=name)


@pytest.mark.parametrize("stray", [b"caf\xe9.txt", b"\xff\xfe", "日本".encode("shift_jis")])
async def test_a_name_that_is_no_utf_8_is_written_with_escapes(bench, project, stray):
    (project / os.fsdecode(stray)).write_bytes(b"x\n")
    name = shown_name(os.fsdecode(stray))
    assert name.encode()
    answered = await bench.ok("read_file", path=name)
    assert answered.output == "1\tx"
    assert answered.result.summary == f"{name}: 1 line"
    absolute = f"{project}/{name}"
    assert (await bench.ok("read_file", path=absolute)).output == "1\tx"


async def test_a_name_that_only_looks_escaped_has_a_spelling_of_its_own(bench: Any, project: Path):
    (project / "a\\xff").write_text("mine\n")
    assert (await bench.ok("read_file", path="a\\x5cxff")).output == "1\tmine"
    assert "does not exist" in await bench.fails("read_file", path="a\\xff")


@pytest.mark.integration
async def test_a_file_that_grows_while_it_is_read_is_an_error(bench, project, monkeypatch):
    (project / "a").write_text("x")

    def endless(descriptor: int, size: int) -> bytes:
        return b"x" * 1_000_000

    monkeypatch.setattr(os, "read", endless)
    assert "grows while it is read" in await bench.fails("read_file", path="a")


async def test_a_file_cut_short_or_deleted_while_it_is_read_gives_what_was_there(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(content, "CHUNK", 10)
    path = project / "a"
    path.write_text("line\n" * 10)
    read = os.read

    def cutting(descriptor: int, size: int) -> bytes:
        piece = read(descriptor, size)
        if path.exists():
            os.truncate(path, 15)
            path.unlink()
        return piece

    monkeypatch.setattr(os, "read", cutting)
    assert (await bench.ok("read_file", path="a")).output == "1\tline\n2\tline\n3\tline"


async def test_a_missing_file_is_an_error_with_close_names(bench: Any, project: Path):
    (project / "reader.py").write_text("x")
    (project / "README").write_text("x")
    assert await bench.fails("read_file", path="readr.py") == (
        "readr.py does not exist. Close names there: reader.py."
    )
    assert "README" in await bench.fails("read_file", path="readme")
    assert "list_files" in await bench.fails("read_file", path="xyzzy")
    assert "nor does its folder" in await bench.fails("read_file", path="no/such/file")


async def test_names_of_any_length_are_answered(bench: Any, project: Path):
    (project / ("x" * 255)).write_text("y\n")
    assert (await bench.ok("read_file", path="x" * 255)).output == "1\ty"
    for path in ("x" * 256, "x" * 300 + "/y", "日" * 86):
        assert "has a name that is too long" in await bench.fails("read_file", path=path)
    (project / "file").write_text("x")
    assert "nor does its folder" in await bench.fails("read_file", path="file/y/z")


async def test_p13_what_is_no_file_is_refused_without_hanging(bench: Any, project: Path):
    os.mkfifo(project / "pipe")
    (project / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        assert "a folder" in await bench.fails("read_file", path="folder")
        assert "a named pipe" in await bench.fails("read_file", path="pipe")
        assert "a socket" in await bench.fails("read_file", path="socket")


async def test_a_binary_file_is_refused_with_its_size(bench: Any, project: Path):
    (project / "a").write_bytes(b"ab\0c" * 500)
    assert await bench.fails("read_file", path="a") == (
        "a (2,000 bytes) is binary; it has no lines to read. "
        "run_shell with xxd, strings or file looks into it"
    )
    assert not is_binary(b"a" * 9000 + b"\0")


async def test_a_file_that_fails_while_it_is_read_is_an_error(bench, project, monkeypatch):
    (project / "a").write_text("x")

    def broken(descriptor: int, size: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", broken)
    assert "Input/output error" in await bench.fails("read_file", path="a")


async def test_a_file_without_permission_is_an_error(bench, project, monkeypatch):
    (project / "a").write_text("x")

    def denied(*args: Any, **options: Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    assert await bench.fails("read_file", path="a") == (
        "a cannot be used: permission denied; the person can change that"
    )


async def test_p14_a_cancelled_read_keeps_its_descriptor_until_its_thread_has_ended(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "a").write_text("x" * 100)
    may_go_on, ended = threading.Event(), threading.Event()
    began = asyncio.Event()
    loop = asyncio.get_running_loop()
    mine: list[int] = []
    reads: list[int] = []
    read, close = os.read, os.close

    def slow(descriptor: int, size: int) -> bytes:
        mine.append(descriptor)
        loop.call_soon_threadsafe(began.set)
        may_go_on.wait(5)
        reads.append(len(closed))
        return read(descriptor, 1)

    closed: list[int] = []

    def noticed(descriptor: int) -> None:
        close(descriptor)
        if descriptor in mine:
            closed.append(descriptor)
            ended.set()

    monkeypatch.setattr(os, "read", slow)
    monkeypatch.setattr(os, "close", noticed)
    task = asyncio.create_task(bench.call("read_file", path="a"))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not closed
    may_go_on.set()
    assert await asyncio.to_thread(ended.wait, 5)
    assert reads == [0]  # it stopped at the next look


async def test_a_read_that_takes_too_long_is_an_error(bench, project, monkeypatch):
    monkeypatch.setattr(read_file, "TIME_LIMIT_SECONDS", -1)
    (project / "a").write_text("x")
    assert "takes too long" in await bench.fails("read_file", path="a")


TOKEN = "gh" + "p_" + "NqVwYS81VP7Hb1DX8pPd5khxE3pyIgKpaUnA"


def wrapped(text: str) -> str:
    code = base64.b64encode(f"the password is {text}".encode()).decode()
    return "\n".join(code[start : start + 20] for start in range(0, len(code), 20))


@pytest.mark.integration
@pytest.mark.parametrize(
    "disguise",
    [
        "\u200b".join,
        "\u00ad".join,
        lambda text: f"{text[:20]}\n{text[20:]}",
        lambda text: f"{text[:9]}\x1b[31m{text[9:]}",
        wrapped,
    ],
)
async def test_a_disguised_token_in_a_file_is_masked(make_bench, project, disguise):
    bench = make_bench()
    (project / "a.txt").write_text(f"one\n{disguise(TOKEN)}\nlast\n")
    read = await bench.ok("read_file", path="a.txt")
    found = await bench.ok("search_files", pattern=".")
    for shown in (read.output, found.output):
        assert "[ybs:secret:" in Firewall().mask(shown), shown


@pytest.mark.integration
async def test_the_firewall_hears_of_a_private_key_around_the_lines_that_are_read(
    bench: Any, project: Path
) -> None:
    marks = [f"-----{word} " + "PRIVATE KEY-----" for word in ("BEGIN", "END")]
    text = "\n".join(["one", marks[0], *(f"{n}" * 64 for n in range(5)), marks[1], ""])
    (project / "key.txt").write_text(text)
    (project / "wide.txt").write_bytes(text.encode("utf-16"))
    (project / "plain.txt").write_text(text.replace("PRIVATE", "PUBLIC"))
    told: list[str] = []
    bench.workspace.learn_keys = told.append
    await bench.ok("read_file", path="key.txt", offset=1, limit=1)
    assert told == []
    await bench.ok("read_file", path="key.txt", offset=4, limit=2)
    await bench.ok("search_files", pattern="444", path="key.txt", context_lines=0)
    await bench.ok("read_file", path="wide.txt", offset=4, limit=2)
    assert told == [text] * 3
    await bench.ok("read_file", path="plain.txt", offset=4, limit=2)
    bench.workspace.hide_keys(project / "gone.txt")
    assert told == [text] * 3
    assert bench.workspace.apart().learn_keys is bench.workspace.learn_keys
