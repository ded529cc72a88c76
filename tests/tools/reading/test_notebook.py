"""Notebooks, as read_file shows them."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from rows import every_row
from tools.reading.test_images import png
from ybs.tools.reading.notebook import rendered


def code(source: Any, *outputs: Any) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": 3, "source": source, "outputs": list(outputs)}


def picture(data: bytes) -> dict[str, Any]:
    shown = {"image/png": b64encode(data).decode(), "text/plain": ["<Figure>"]}
    return {"output_type": "display_data", "data": shown}


def book(*cells: Any) -> str:
    return json.dumps({"cells": list(cells), "nbformat": 4, "metadata": {}}, indent=1)


BOOK = book(
    {"cell_type": "markdown", "source": ["# Title\n", "words"]},
    code("x = 1\nx", {"output_type": "execute_result", "data": {"text/plain": "1"}}),
    code([], {"output_type": "stream", "text": ["a\n", "\x1b[31mb\x1b[0m\n"]}),
)
VIEW = """\
1\t--- cell 1: markdown ---
2\t# Title
3\twords
4\t--- cell 2: code, run 3 ---
5\tx = 1
6\tx
7\t--- output of cell 2 ---
8\t1
9\t--- cell 3: code, run 3 ---
10\t
11\t--- output of cell 3 ---
12\ta
13\tb
[a notebook, rendered; edit_file works on its JSON, which raw=true shows]"""


async def test_cells_are_numbered_with_their_source_and_outputs(bench: Any, project: Path):
    (project / "a.ipynb").write_text(BOOK)
    answered = await bench.ok("read_file", path="a.ipynb")
    assert answered.output == VIEW
    part = (await bench.ok("read_file", path="a.ipynb", offset=-2)).output
    assert part.startswith("12\ta\n13\tb\n[lines 1-11 not shown")


async def test_the_json_can_be_read_and_edited(bench: Any, project: Path):
    (project / "a.ipynb").write_text(BOOK)
    raw = (await bench.ok("read_file", path="a.ipynb", raw=True)).output
    assert raw.startswith('1\t{\n2\t "cells": [')
    assert "rendered" not in raw
    await bench.ok("edit_file", path="a.ipynb", old_text="x = 1", new_text="x = 2")
    assert "5\tx = 2\n" in (await bench.ok("read_file", path="a.ipynb")).output


@pytest.mark.integration
@every_row(
    "text",
    [
        "no json",
        "{",
        "[]",
        "null",
        "{}",
        '{"cells": 5}',
        '{"cells": []}',
        '{"cells": [5]}',
        "[" * 50_000,
        '{"worksheets": []}',
    ],
)
async def test_what_is_no_notebook_is_shown_as_it_is(bench: Any, project: Path, text: str):
    (project / "a.ipynb").write_text(text)
    assert (await bench.ok("read_file", path="a.ipynb")).output.startswith(f"1\t{text[:1000]}")


def test_odd_cells_do_no_harm():
    odd: list[Any] = [
        {},
        {"cell_type": 5, "source": {"a": 1}, "outputs": [5, {}, {"data": 7}, {"text": [1, "x"]}]},
        code(
            None, {"output_type": "error", "ename": "E", "evalue": "bad", "traceback": ["\x1b[1mT"]}
        ),
        code("", {"data": {"text/html": "<b>"}}, {"data": {"image/png": "%%%"}}),
        code("", {"data": {"image/jpeg": "ab"}}),
    ]
    made = rendered(book(*odd).encode())
    assert made is not None
    assert made.cells == 5
    assert made.images == ()
    for words in ("E: bad\nT", "HTML or SVG only", "(a picture, image/png, 0 bytes, not shown)"):
        assert words in made.text
    assert "(a damaged picture, image/jpeg)" in made.text


def test_long_outputs_are_cut_and_few_pictures_are_handed_over():
    long = {"output_type": "stream", "text": "line\n" * 5000}
    made = rendered(book(code("", long), *[code("", picture(png()))] * 5).encode())
    assert made is not None
    assert len(made.text) < 3000
    assert "left out. raw=true has the whole" in made.text
    assert [image.data for image in made.images] == [png()] * 3
    assert made.text.count("of those that follow") == 3
    assert made.text.count("not shown)") == 2


@pytest.mark.integration
async def test_pictures_come_with_the_first_part_only(bench: Any, project: Path):
    (project / "a.ipynb").write_text(book(code("x", picture(png()))))
    assert len((await bench.ok("read_file", path="a.ipynb")).result.images) == 1
    assert (await bench.ok("read_file", path="a.ipynb", offset=2)).result.images == ()
    assert (await bench.ok("read_file", path="a.ipynb", raw=True)).result.images == ()
