"""edit_file: exact and unique, or refused; everything else in the file survives."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.core.changes import FileChange
from ybs.tools.reading.document import TextFile


async def test_one_place_is_replaced(bench: Any, project: Path):
    (project / "a").write_text("one\ntwo\nthree\n")
    answered = await bench.ok("edit_file", path="a", old_text="two\n", new_text="2\n2b\n")
    assert (project / "a").read_text() == "one\n2\n2b\nthree\n"
    assert answered.output == "Edited a: 1 replacement (+2 -1 lines)."
    assert answered.display == {
        "success": True,
        "replacements": 1,
        "error": None,
    }
    texts = {"before": "one\ntwo\nthree\n", "after": "one\n2\n2b\nthree\n"}
    assert answered.result.changes == (FileChange(path="a", added=2, removed=1, **texts),)


async def test_a_text_that_occurs_twice_is_refused_with_its_lines(bench: Any, project: Path):
    (project / "a").write_text("x = 1\ny\nx = 1\n")
    message = await bench.fails("edit_file", path="a", old_text="x = 1", new_text="x = 2")
    assert "occurs 2 times in a, in lines 1, 3" in message
    assert (project / "a").read_text() == "x = 1\ny\nx = 1\n"
    answered = await bench.ok(
        "edit_file", path="a", old_text="x = 1", new_text="x = 2", replace_all=True
    )
    assert answered.display["replacements"] == 2
    assert (project / "a").read_text() == "x = 2\ny\nx = 2\n"


async def test_a_text_that_is_not_there_is_refused_with_the_nearest_lines(
    bench: Any, project: Path
):
    (project / "a").write_text("def f(x):\n    return x\n\ndef g(y):\n    return y\n")
    message = await bench.fails(
        "edit_file", path="a", old_text="  def f(x):\n  return y", new_text="z"
    )
    assert "was not found in a" in message
    assert message.endswith("The nearest lines:\n1\tdef f(x):\n2\t    return x")
    message = await bench.fails("edit_file", path="a", old_text="def f(z):", new_text="z")
    assert "1\tdef f(x):" in message
    message = await bench.fails("edit_file", path="a", old_text="????", new_text="z")
    assert "nearest" not in message
    message = await bench.fails("edit_file", path="a", old_text=" \n \n \n", new_text="z")
    assert "nearest" not in message


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("", "x", "old_text is empty"),
        ("one", "one", "are the same"),
        ("a\r\nb", "a\nb", "are the same"),
    ],
)
async def test_an_edit_without_sense_is_refused(
    bench: Any, project: Path, old: str, new: str, words: str
):
    (project / "a").write_text("one\n")
    assert words in await bench.fails("edit_file", path="a", old_text=old, new_text=new)


async def test_an_empty_file_wants_write_file(bench: Any, project: Path):
    (project / "a").write_text("")
    assert "write_file" in await bench.fails("edit_file", path="a", old_text="", new_text="x")
    assert "write_file" in await bench.fails("edit_file", path="none", old_text="", new_text="x")


@pytest.mark.integration
@every_row(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nb\r\n", "x\r\n", b"x\r\n"),
        (b"a\r\nb\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\n"),
        (b"a\nb\n", "a", "x\r\ny", b"x\ny\nb\n"),
        (b"a\nb\r\nc\nd\r\n", "b\n", "x\ny\n", b"a\nx\r\ny\r\nc\nd\r\n"),
        (b"a\nb\r\nc\nd\n", "c\n", "x\ny\n", b"a\nb\r\nx\ny\nd\n"),
        (b"\xef\xbb\xbfa\n", "a", "ü", b"\xef\xbb\xbf\xc3\xbc\n"),
        ("grün\n".encode("latin-1"), "grün", "grüß", "grüß\n".encode("latin-1")),
        ("ab\r\nc".encode("utf-16"), "b\nc", "x\ny", "ax\r\ny".encode("utf-16")),
        (b"a\rb\n", "b", "c", b"a\rc\n"),
        (b"no end", "end", "end\n", b"no end\n"),
    ],
)
async def test_line_ends_mark_and_encoding_survive(
    make_bench: Any, project: Path, before: bytes, old: str, new: str, after: bytes
):
    (project / "a").write_bytes(before)
    (project / "a").chmod(0o755)
    await make_bench().ok("edit_file", path="a", old_text=old, new_text=new)
    assert (project / "a").read_bytes() == after
    assert (project / "a").stat().st_mode & 0o777 == 0o755


async def test_a_character_that_the_encoding_lacks_is_refused(bench: Any, project: Path):
    data = "grün\n".encode("latin-1")
    (project / "a").write_bytes(data)
    message = await bench.fails("edit_file", path="a", old_text="grün", new_text="緑")
    assert "latin-1" in message
    assert (project / "a").read_bytes() == data


async def test_a_file_that_changed_since_it_was_read_is_refused(bench: Any, project: Path):
    (project / "a").write_text("one\n")
    await bench.ok("read_file", path="a")
    (project / "a").write_text("one\ntwo\n")
    message = await bench.fails("edit_file", path="a", old_text="one", new_text="1")
    assert "changed on disk since it was read. Read it again" in message
    await bench.ok("read_file", path="a")
    await bench.ok("edit_file", path="a", old_text="one", new_text="1")
    await bench.ok(
        "edit_file", path="a", old_text="two", new_text="2"
    )  # its own write counts as read
    assert (project / "a").read_text() == "1\n2\n"


async def test_a_file_that_was_only_touched_may_be_edited(bench: Any, project: Path):
    (project / "a").write_text("one\n")
    await bench.ok("read_file", path="a")
    (project / "a").touch()
    await bench.ok("edit_file", path="a", old_text="one", new_text="1")


async def test_a_huge_file_is_compared_by_time_and_size(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ybs.tools.reading.content.WHOLE_BYTES", 10)
    (project / "a").write_text("one\n" * 10 + "two\n")
    await bench.ok("read_file", path="a", limit=1)
    await bench.ok("edit_file", path="a", old_text="two", new_text="2")
    await bench.ok("read_file", path="a", limit=1)
    (project / "a").write_text("one\n" * 10 + "three\n")
    assert "Read it again" in await bench.fails(
        "edit_file", path="a", old_text="three", new_text="3"
    )


async def test_a_binary_file_is_refused(bench: Any, project: Path):
    (project / "a").write_bytes(b"a\0b")
    assert "binary" in await bench.fails("edit_file", path="a", old_text="a", new_text="b")


async def test_p16_git_is_not_edited_even_when_everything_is_allowed(bench: Any, project: Path):
    (project / ".git").mkdir()
    (project / ".git/config").write_text("x")
    assert "read-only" in await bench.fails(
        "edit_file", path=".git/config", old_text="x", new_text="y"
    )


async def test_what_was_overlooked_is_told_to_model_and_person(bench: Any, project: Path):
    (project / "a").write_bytes(b"def f():\r\n\treturn 1\r\n")
    old, new = "def f():\n    return 1\n", "def f():\n    return 2\n"
    answered = await bench.ok("edit_file", path="a", old_text=old, new_text=new)
    assert (project / "a").read_bytes() == b"def f():\r\n\treturn 2\r\n"
    assert answered.output == (
        "Edited a: 1 replacement (+1 -1 lines). Matched although old_text differed in: indentation. "
        "The lines are now:\n@@ -1,2 +1,2 @@\ndef f():\r\n\treturn 2\r"
    )
    assert answered.result.summary == "Edited a (+1 -1) (fuzzy: indentation)"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("first = 1\n", "second = 2\nthird = 3\n", "has this change already"),
        ("second = 2\n", "# ... rest of the code ...\n", "leaves code out"),
        ("second = 9\n", "x\n", "was not found"),
    ],
)
async def test_a_refusal_says_why_and_leaves_the_file(
    bench: Any, project: Path, old: str, new: str, words: str
):
    (project / "a").write_text("second = 2\nthird = 3\n")
    assert words in await bench.fails("edit_file", path="a", old_text=old, new_text=new)
    assert (project / "a").read_text() == "second = 2\nthird = 3\n"


BLOCK = "<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    "block",
    [
        BLOCK,
        f"**a**:\n```python\n{BLOCK}```\n",
        BLOCK.replace("\n", "\r\n"),
        "<<<<< search\ntwo\n=====\n2\n>>>>>>>>> replace",
    ],
)
async def test_one_search_replace_block_stands_for_both_texts(
    bench: Any, project: Path, block: str
):
    (project / "a").write_text("one\ntwo\n")
    await bench.ok("edit_file", path="a", old_text=block, new_text="")
    assert (project / "a").read_text() == "one\n2\n"


async def test_an_underline_is_not_taken_for_the_middle_of_a_block(bench: Any, project: Path):
    (project / "a").write_text("Title\n=====\n")
    block = BLOCK.replace("two", "Title\n=====")
    await bench.ok("edit_file", path="a", old_text=block, new_text="")
    assert (project / "a").read_text() == "2\n"


async def test_a_block_in_doubt_is_refused(bench: Any, project: Path):
    (project / "a").write_text("one\ntwo\n")
    for block, words in (
        (BLOCK.replace("=======\n", ""), "no middle"),
        (BLOCK.replace("two", "two\n======="), "no middle"),
        (BLOCK * 2, "one call for each"),
        (BLOCK.replace(">>>>>>> REPLACE", ""), "not found"),
        ("<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> branch\n", "not found"),
    ):
        assert words in await bench.fails("edit_file", path="a", old_text=block, new_text="")


@given(
    st.lists(st.sampled_from(["a", "b", "\n", "\r\n", "\r"]), max_size=30),
    st.integers(0, 30),
    st.integers(0, 5),
)
def test_an_edit_changes_nothing_outside_its_span(pieces: list[str], start: int, length: int):
    document = TextFile("".join(pieces).encode())
    start = min(start, len(document.text))
    stop = min(start + length, len(document.text))
    raw = document.replaced([(start, stop, "NEW")])
    before, after = raw.split("NEW")
    assert document.raw.startswith(before)
    assert document.raw.endswith(after)
    assert before.replace("\r\n", "\n") == document.text[:start]
    assert after.replace("\r\n", "\n") == document.text[stop:]
    assert document.replaced([]) == document.raw


@pytest.mark.integration
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
async def test_stray_bytes_in_a_text_in_utf_8_survive_an_edit(
    bench: Any, project: Path, mark: bytes
):
    (project / "a").write_bytes(mark + "café\nbad ".encode() + b"\xff\nold\n")
    read = await bench.ok("read_file", path="a")
    assert read.output == "1\tcafé\n2\tbad \ufffd\n3\told"
    answered = await bench.ok("edit_file", path="a", old_text="old", new_text="thé")
    assert "\nbad \ufffd" in answered.result.changes[0].after
    assert (project / "a").read_bytes() == mark + "café\nbad ".encode() + b"\xff\nth\xc3\xa9\n"
    assert "\ufffd" in await bench.fails("edit_file", path="a", old_text="bad x", new_text="y")
    assert (await bench.ok("search_files", pattern="bad", path="a")).output.startswith("a\n")


async def test_a_small_model_breaks_no_file_that_could_be_read(make_bench: Any, project: Path):
    small, large = make_bench(is_short=True), make_bench()
    begun = "def add(a, b):\r\n    return a - b\r\n"
    edit = {"path": "a.py", "old_text": "add(a, b):", "new_text": "add(a, b): return a + b"}
    (project / "a.py").write_bytes(begun.encode())
    message = await small.fails("edit_file", **edit)
    assert message.startswith(
        "Nothing was changed: a.py could not be read any more (unexpected indent in line 2):\n"
        "1\tdef add(a, b): return a + b\n2\t    return a - b\nGive in old_text all the lines"
    )
    assert (project / "a.py").read_bytes() == begun.encode()
    await small.ok("edit_file", path="a.py", old_text="a - b", new_text="a + b")
    await large.ok("edit_file", **edit)
    another = make_bench(is_short=True)  # what is broken already may stay so
    await another.ok("edit_file", path="a.py", old_text="def add", new_text="def plus")
    (project / "a.json").write_text('{"a": 1}')
    message = await small.fails("edit_file", path="a.json", old_text="}", new_text=', "b": }')
    assert "could not be read any more (Expecting value in line 1)" in message


async def test_an_edit_makes_no_binary_file_of_a_text(bench: Any, project: Path):
    (project / "run").write_text("a\nb\n")
    said = await bench.fails("edit_file", path="run", old_text="a\n", new_text="a\0\n")
    assert "NUL character" in said
    assert (project / "run").read_text() == "a\nb\n"
