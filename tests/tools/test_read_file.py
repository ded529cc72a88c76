"""read_file."""

import asyncio
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from ybs.tools import read_file
from ybs.tools.document import is_binary

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


async def test_lines_come_with_their_numbers(bench: Any, project: Path):
    (project / "a").write_text("one\n\n\tthree")
    answered = await bench.ok("read_file", path="a")
    assert answered.output == "1\tone\n2\t\n3\t\tthree"
    assert answered.display == {"content": answered.output, "total_lines": 3, "truncated": False}
    assert answered.result.summary == "a: 3 lines"


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


async def test_a_long_line_is_cut_and_said(bench: Any, project: Path):
    (project / "a").write_text("x" * 2500 + "\n")
    output = (await bench.ok("read_file", path="a")).output
    assert output == f"1\t{'x' * 2000} [... 500 more characters]"


async def test_an_empty_file_is_said(bench: Any, project: Path):
    (project / "a").write_text("")
    answered = await bench.ok("read_file", path="a")
    assert answered.output == "(the file is empty)"
    assert answered.display == {"content": "", "total_lines": 0, "truncated": False}


async def test_offsets_out_of_the_file_are_errors(bench: Any, project: Path):
    (project / "a").write_text("one\n")
    assert await bench.fails("read_file", path="a", offset=2) == "a has 1 line; there is no line 2"
    assert "1 or more" in await bench.fails("read_file", path="a", offset=-1)
    assert "1 or more" in await bench.fails("read_file", path="a", limit=0)
    assert (await bench.ok("read_file", path="a", offset=0)).output == "1\tone"


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"a\r\nb\r\n", "1\ta\n2\tb"),
        ("grün\n".encode("latin-1"), "1\tgrün"),
        (b"\xef\xbb\xbfx\n", "1\tx"),
        ("日本\n".encode("utf-16"), "1\t日本"),
        (b"a\x0cb\xe2\x80\xa8c\n", "1\ta\x0cb\u2028c"),
        (b"a\rb\n", "1\ta\rb"),
    ],
)
async def test_encodings_and_line_ends_are_understood(
    bench: Any, project: Path, data: bytes, shown: str
):
    (project / "a").write_bytes(data)
    assert (await bench.ok("read_file", path="a")).output == shown


async def test_a_missing_file_is_an_error_with_close_names(bench: Any, project: Path):
    (project / "reader.py").write_text("x")
    (project / "README").write_text("x")
    assert await bench.fails("read_file", path="readr.py") == (
        "readr.py does not exist. Close names there: reader.py."
    )
    assert "README" in await bench.fails("read_file", path="readme")
    assert "list_files" in await bench.fails("read_file", path="xyzzy")
    assert "nor does its folder" in await bench.fails("read_file", path="no/such/file")


async def test_p13_what_is_no_file_is_refused_without_hanging(bench: Any, project: Path):
    os.mkfifo(project / "pipe")
    (project / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        assert "a folder" in await bench.fails("read_file", path="folder")
        assert "a named pipe" in await bench.fails("read_file", path="pipe")
        assert "named pipe or a device" in await bench.fails("read_file", path="socket")


async def test_a_binary_file_is_refused_with_its_size(bench: Any, project: Path):
    (project / "a").write_bytes(b"ab\0c" * 500)
    assert "binary file of 2,000 bytes" in await bench.fails("read_file", path="a")
    assert not is_binary(b"a" * 9000 + b"\0")


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0\0", "image/jpeg"),
        (b"GIF89a\0", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
async def test_a_picture_is_returned_as_one(
    bench: Any, project: Path, data: bytes, media_type: str
):
    (project / "a").write_bytes(data)
    answered = await bench.ok("read_file", path="a")
    assert [(image.media_type, image.data) for image in answered.result.images] == [
        (media_type, data)
    ]
    assert media_type in answered.output


async def test_a_picture_that_is_too_large_is_refused(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(read_file, "_IMAGE_BYTES", 10)
    (project / "a").write_bytes(PNG)
    assert "10 can be sent" in await bench.fails("read_file", path="a")


async def test_of_a_huge_file_only_the_lines_asked_for_are_held(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(read_file, "_WHOLE_BYTES", 1000)
    monkeypatch.setattr(read_file, "_CHUNK", 100)
    (project / "a").write_text("".join(f"line {n}\n" for n in range(1, 10_001)))
    answered = await bench.ok("read_file", path="a", offset=5000, limit=3)
    assert answered.output.startswith(
        "5000\tline 5000\n5001\tline 5001\n5002\tline 5002\n[lines 5003-10000"
    )
    assert (await bench.ok("read_file", path="a", offset=10_000)).output == "10000\tline 10000"
    assert (await bench.ok("read_file", path="a", limit=2)).output.startswith(
        "1\tline 1\n2\tline 2\n[lines 3-"
    )
    assert "no line 10001" in await bench.fails("read_file", path="a", offset=10_001)


async def test_a_file_that_fails_while_it_is_read_is_an_error(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "a").write_text("x")

    def broken(descriptor: int, size: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", broken)
    assert "Input/output error" in await bench.fails("read_file", path="a")


async def test_a_file_without_permission_is_an_error(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "a").write_text("x")

    def denied(*args: Any, **options: Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    assert await bench.fails("read_file", path="a") == "a cannot be used: permission denied"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("äöü€ line {} é\r\n", "utf-8"),
        ("äöü€ line {} é\n", "utf-8-sig"),
        ("日本ਗ line {}\n", "utf-16"),
        ("grün {}\n", "latin-1"),
    ],
)
async def test_every_part_of_a_large_file_is_decoded_as_its_beginning(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch, text: str, encoding: str
):
    monkeypatch.setattr(read_file, "_WHOLE_BYTES", 500)
    monkeypatch.setattr(read_file, "_CHUNK", 101)
    lines = [text.format(number) for number in range(1, 301)]
    (project / "a").write_bytes("".join(lines).encode(encoding))
    for number in (1, 2, *range(3, 300, 7), 300):
        answered = await bench.ok("read_file", path="a", offset=number, limit=1)
        assert answered.output.splitlines()[0] == f"{number}\t{lines[number - 1].rstrip()}"
        assert answered.display["total_lines"] == 300


async def test_a_large_file_that_begins_in_ascii_is_decoded_by_its_part(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(read_file, "_WHOLE_BYTES", 500)
    monkeypatch.setattr(read_file, "_CHUNK", 100)
    (project / "a").write_bytes(b"x\n" * 300 + "grün\n".encode("latin-1"))
    assert (await bench.ok("read_file", path="a", offset=301)).output == "301\tgrün"
    (project / "b").write_text("é" * 1000 + "\nlast\n")
    assert (await bench.ok("read_file", path="b")).output.startswith("1\téééé")
    (project / "c").write_text("a\n" + "b" * 1000 + "\n" + "c" * 1000)
    output = (await bench.ok("read_file", path="c")).output
    assert output == "1\ta\n[lines 2-3 not shown; go on with offset=2]"
    output = (await bench.ok("read_file", path="c", offset=2)).output
    assert output.startswith("2\tbbb")


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


async def test_a_read_that_takes_too_long_is_an_error(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(read_file, "TIME_LIMIT_SECONDS", -1)
    (project / "a").write_text("x")
    assert "takes too long" in await bench.fails("read_file", path="a")
