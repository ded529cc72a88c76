"""read_file on files too large to be held."""

from pathlib import Path
from typing import Any

import pytest

from ybs.tools.reading import content

pytestmark = pytest.mark.integration


async def test_of_a_huge_file_only_the_lines_asked_for_are_held(bench, project, monkeypatch):
    monkeypatch.setattr(content, "WHOLE_BYTES", 1000)
    monkeypatch.setattr(content, "CHUNK", 100)
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
    monkeypatch.setattr(content, "WHOLE_BYTES", 500)
    monkeypatch.setattr(content, "CHUNK", 101)
    lines = [text.format(number) for number in range(1, 301)]
    (project / "a").write_bytes("".join(lines).encode(encoding))
    for number in (1, 2, *range(3, 300, 31), 300):
        answered = await bench.ok("read_file", path="a", offset=number, limit=1)
        assert answered.output.splitlines()[0] == f"{number}\t{lines[number - 1].rstrip()}"
        assert answered.display["total_lines"] == 300


async def test_a_large_file_that_begins_in_ascii_is_decoded_by_its_part(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(content, "WHOLE_BYTES", 500)
    monkeypatch.setattr(content, "CHUNK", 100)
    (project / "a").write_bytes(b"x\n" * 300 + "grün\n".encode("latin-1"))
    assert (await bench.ok("read_file", path="a", offset=301)).output == "301\tgrün"
    (project / "b").write_text("é" * 1000 + "\nlast\n")
    assert (await bench.ok("read_file", path="b")).output.startswith("1\téééé")
    (project / "c").write_text("a\n" + "b" * 1000 + "\n" + "c" * 1000)
    output = (await bench.ok("read_file", path="c")).output
    assert output == "1\ta\n[lines 2-3 not shown; go on with offset=2]"
    output = (await bench.ok("read_file", path="c", offset=2)).output
    assert output.startswith("2\tbbb")


async def test_the_end_of_a_huge_file_is_found(bench, project, monkeypatch):
    monkeypatch.setattr(content, "WHOLE_BYTES", 1000)
    monkeypatch.setattr(content, "CHUNK", 100)
    for encoding in ("utf-8", "utf-16-le", "utf-32"):
        text = "".join(f"line {n}\n" for n in range(1, 2001))
        (project / "a").write_bytes(text.encode(encoding))
        answered = await bench.ok("read_file", path="a", offset=-2)
        assert answered.output.startswith("1999\tline 1999\n2000\tline 2000\n[lines 1-1998 ")
        answered = await bench.ok("read_file", path="a", offset=-2000, limit=1)
        assert answered.output.startswith("1\tline 1\n[lines 2-2000 ")


async def test_a_gigabyte_of_nothing_is_refused_at_once(bench: Any, project: Path):
    with (project / "a").open("wb") as file:
        file.truncate(1_000_000_000)
    assert "(1,000,000,000 bytes) is binary" in await bench.fails("read_file", path="a")


@pytest.mark.slow
async def test_of_a_large_file_with_holes_the_lines_asked_for_are_read(bench: Any, project: Path):
    with (project / "a").open("wb") as file:
        file.write(b"line\n" * 2000)
        file.seek(300_000_000)
        file.write(b"\nlast\n")
    answered = await bench.ok("read_file", path="a", offset=-1)
    assert answered.output.startswith("2002\tlast\n")
    assert (await bench.ok("read_file", path="a", limit=1)).output.startswith("1\tline\n")
