"""A PDF's text, page by page, taken out in a process that can be ended: a hostile file may take for ever."""

from pathlib import Path

import msgspec
from msgspec import Struct

from ybs.core.errors import ToolError
from ybs.security.launcher import python
from ybs.tools.searching.child import output_of
from ybs.tools.searching.walk import Deadline

_OPTIONS = ("-X", "utf8", "-W", "ignore")


class Pdf(Struct, frozen=True):
    """The text of the pages that could be read, and how many there are. `was_cut`: time or room ran out."""

    text: str
    pages: int
    was_cut: bool


def text_of(data: bytes, shown: str, deadline: Deadline) -> Pdf:
    """Take the text out. It may be slow: call it in a thread. Raises ToolError where there is none."""
    try:
        output = output_of(
            python("-m", "ybs.tools.reading.pdf_text", options=_OPTIONS),
            folder=Path("/"),
            deadline=deadline,
            data=data,
        )
    except OSError as error:
        raise ToolError(f"{shown} could not be read: {error.strerror or error}") from error
    pages, total, problem = _said(output.text)
    if problem == "encrypted":
        raise ToolError(
            f"{shown} is an encrypted PDF; ask the person for a copy without a password"
        )
    if not any(page.strip() for page in pages):
        raise ToolError(_without_text(shown, total, problem, output.code))
    parts = [f"--- page {number} of {total} ---\n{page}" for number, page in enumerate(pages, 1)]
    return Pdf("\n".join(parts) + "\n", total, len(pages) < total)


def _said(output: bytes) -> tuple[list[str], int, str]:
    pages: list[str] = []
    total, problem = 0, ""
    for line in output.split(b"\n")[:-1]:  # the last one may be unfinished
        kind, value = msgspec.json.decode(line, type=tuple[str, str | int])
        if kind == "page":
            pages.append(str(value))
        elif kind == "total":
            total = int(value)
        else:
            problem = str(value)
    return pages, total, problem


def _without_text(shown: str, total: int, problem: str, code: int) -> str:
    if problem:
        return f"{shown} was not read: {problem}; try run_shell with pdftotext"
    if code > 0:
        return f"{shown} is a damaged PDF and was not read; try run_shell with pdftotext"
    if code < 0 or not total:
        return f"{shown} takes too much time or memory to read; try run_shell with pdftotext"
    return (
        f"{shown} is a PDF of {total:,} pages without text, probably scanned; "
        "run_shell with pdftoppm makes pictures of them, which read_file shows"
    )
