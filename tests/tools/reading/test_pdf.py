"""PDFs, as read_file shows them."""

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from rows import every_row
from ybs.core.errors import ToolError
from ybs.tools.reading import pdf, pdf_text
from ybs.tools.searching.child import ChildOutput
from ybs.tools.searching.walk import Deadline


def pdf_of(*pages: str) -> bytes:
    """Make a PDF by hand, each page with one line of text or nothing."""
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    numbers = [4 + 2 * place for place in range(len(pages))]
    kids = " ".join(f"{number} 0 R" for number in numbers)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        font,
    ]
    for number, text in zip(numbers, pages, strict=True):
        drawn = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode() if text else b""
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            b"/Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>" % (number + 1),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        ]
    file = b"%PDF-1.4\n"
    places: list[int] = []
    for number, body in enumerate(objects, 1):
        places.append(len(file))
        file += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    count = len(objects) + 1
    head = b"xref\n0 %d\n0000000000 65535 f \n" % count
    return file + head + table + end % (count, len(file))


def encrypted(password: str) -> bytes:
    from pypdf import PdfWriter  # slow to import

    writer = PdfWriter(BytesIO(pdf_of("secret words")))
    writer.encrypt(password, "owner", algorithm="RC4-128")
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.mark.integration
async def test_the_text_comes_page_by_page(bench: Any, project: Path):
    (project / "a.pdf").write_bytes(pdf_of("first words", "", "last words"))
    answered = await bench.ok("read_file", path="a.pdf")
    assert answered.output == (
        "1\t--- page 1 of 3 ---\n2\tfirst words\n3\t--- page 2 of 3 ---\n4\t\n"
        "5\t--- page 3 of 3 ---\n6\tlast words\n"
        "[the text of a PDF of 3 pages; edit_file cannot change it]"
    )


async def test_the_next_part_does_not_take_the_text_out_again(bench, project, monkeypatch):
    count = 0

    def counted(*_: Any, **__: Any) -> ChildOutput:
        nonlocal count
        count += 1
        return ChildOutput(b'["total", 1]\n["page", "a\\nb"]\n', b"", 0)

    monkeypatch.setattr(pdf, "output_of", counted)
    (project / "a.pdf").write_bytes(pdf_of("x"))
    for _ in range(2):
        assert "3\tb" in (await bench.ok("read_file", path="a.pdf", offset=3)).output
    assert count == 1
    (project / "a.pdf").write_bytes(pdf_of("y"))
    await bench.ok("read_file", path="a.pdf")
    assert count == 2


def say(data: bytes, capsys: pytest.CaptureFixture[str]) -> str:
    """Take the text out in this process, which is quicker than in another."""
    pdf_text.run(data)
    return capsys.readouterr().out


@pytest.mark.integration
def test_a_locked_pdf_is_told(capsys: pytest.CaptureFixture[str]):
    assert say(encrypted("word"), capsys) == '["problem", "encrypted"]\n'
    assert "secret words" in say(encrypted(""), capsys)


@pytest.mark.integration
def test_no_more_than_a_bounded_text_is_taken(capsys, monkeypatch):
    monkeypatch.setattr(pdf_text, "_MOST_CHARS", 7)
    said = say(pdf_of("abcd", "efgh", "ijkl"), capsys)
    assert said == '["total", 3]\n["page", "abcd"]\n["page", "efg"]\n'


@every_row(
    ("said", "code", "words"),
    [
        (b'["problem", "encrypted"]\n', 0, "an encrypted PDF"),
        (b'["problem", "pypdf is not installed"]\n', 0, "pypdf is not installed"),
        (b'["total", 2]\n["page", " "]\n["page", ""]\n', 0, "2 pages without text"),
        (b"", 1, "a damaged PDF"),
        (b'["total", 2]\n["pag', -9, "too much time"),
        (b"", 0, "too much time"),
    ],
)
def test_what_has_no_text_is_said_with_what_to_do(monkeypatch, said, code, words):
    monkeypatch.setattr(pdf, "output_of", lambda *_, **__: ChildOutput(said, b"", code))
    with pytest.raises(ToolError, match=words):
        pdf.text_of(b"", "a.pdf", Deadline(9))


def test_of_a_pdf_that_takes_too_long_the_pages_until_then_are_kept(monkeypatch):
    said = b'["total", 9]\n["page", "one"]\n["page", "tw'
    monkeypatch.setattr(pdf, "output_of", lambda *_, **__: ChildOutput(said, b"", -9))
    made = pdf.text_of(b"", "a.pdf", Deadline(9))
    assert made == pdf.Pdf("--- page 1 of 9 ---\none\n", 9, True)


@pytest.mark.integration
def test_a_process_out_of_time_is_killed():
    with pytest.raises(ToolError, match="too much time"):
        pdf.text_of(pdf_of("x"), "a.pdf", Deadline(-1))


@pytest.mark.integration
async def test_a_damaged_pdf_is_an_error(bench: Any, project: Path):
    (project / "a").write_bytes(b"%PDF-1.4\n" + b"rubbish " * 50)
    assert "a damaged PDF" in await bench.fails("read_file", path="a")


async def test_a_pdf_too_large_to_be_held_is_refused(bench: Any, project: Path):
    with (project / "a").open("wb") as file:
        file.write(b"%PDF-1.7\n")
        file.truncate(30_000_000)
    assert "too large a PDF; use run_shell" in await bench.fails("read_file", path="a")


@pytest.mark.integration
def test_an_interpreter_that_cannot_be_started_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(ToolError, match=r"a\.pdf could not be read"):
        pdf.text_of(b"", "a.pdf", Deadline(9))
