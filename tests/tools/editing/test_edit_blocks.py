"""SEARCH/REPLACE blocks are read as models write them, or refused."""

import pytest

from rows import every_row
from ybs.tools.editing.edit_blocks import BlockError, EditBlock, is_block, parse_blocks

BLOCK = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n"


@every_row(
    "text",
    [
        f"a.py\n{BLOCK}",
        f"I change this:\n\na.py\n```python\n{BLOCK}```\n",
        f"```python a.py\n{BLOCK}```\n",
        f"```a.py\n{BLOCK}```",
        f"**`a.py`**:\n```\n{BLOCK}```",
        f"### a.py\n{BLOCK}",
        f"File: a.py\n\n{BLOCK}",
        f"### File: a.py\n{BLOCK}",
        f"**File:** `a.py`\n{BLOCK}",
        f"// path: a.py\n{BLOCK}",
        f"a.py\nis one\nof them\n{BLOCK}",
        f"# a.py\n{BLOCK}".replace("\n", "\r\n"),
        "a.py\n<<<<< search\nold\n=====\nnew\n>>>>>>>>> replace",
    ],
)
def test_a_file_is_named_in_many_ways(text: str):
    assert parse_blocks(text) == [EditBlock("a.py", "old\n", "new\n")]


def test_several_blocks_follow_each_other():
    text = f"a.py\n{BLOCK}{BLOCK}then\nb.py\n```\n{BLOCK}```\n"
    assert [block.path for block in parse_blocks(text)] == ["a.py", "a.py", "b.py"]


def test_an_empty_half_makes_a_file_or_deletes_lines():
    text = "<<<<<<< SEARCH\n=======\nnew\n>>>>>>> REPLACE"
    assert parse_blocks(text, path="a") == [EditBlock("a", "", "new\n")]
    text = "<<<<<<< SEARCH\nold\n=======\n>>>>>>> REPLACE"
    assert parse_blocks(text, path="a") == [EditBlock("a", "old\n", "")]


def test_an_underline_is_not_taken_for_the_middle():
    text = BLOCK.replace("old", "Title\n=====")
    assert parse_blocks(text, path="a") == [EditBlock("a", "Title\n=====\n", "new\n")]


@every_row(
    ("text", "words"),
    [
        (BLOCK, "the block in line 1 does not say which file"),
        (f"\n{BLOCK}", "the block in line 2 does not say which file"),
        ("a\n" + BLOCK.replace(">>>>>>> REPLACE", ""), "has no end"),
        ("a\n" + BLOCK.replace(">>>>>>> REPLACE", "") + BLOCK, "line 2 has no end"),
        (f"a\nis one\nof the\nfiles so\n{BLOCK}", "line 5 does not say which file"),
        ("a\n<<<<<<< SEARCH\n>>>>>>> REPLACE", "the block in line 2 has no middle"),
        ("a\n" + BLOCK.replace("=======\n", ""), "the block in line 2 has no middle"),
        ("a\n" + BLOCK.replace("old", "old\n======="), "line 2 has 2 lines like .* is not clear"),
    ],
)
def test_what_is_in_doubt_is_refused(text: str, words: str):
    with pytest.raises(BlockError, match=words):
        parse_blocks(text)


def test_ordinary_text_is_no_block():
    assert is_block(f"a.py\n```\n{BLOCK}```")
    assert not is_block("x = 1 << 5\n")
    assert not is_block("<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> branch\n")
    assert parse_blocks("no block here\n") == []


@every_row("lines, expected", [(0, True), (3, True), (4, False)])
def test_a_text_begins_as_a_block_if_at_most_a_name_and_a_fence_stand_before(
    lines: int, expected: bool
):
    assert is_block("\nx\n" * lines + BLOCK) is expected
    assert not is_block("x\n" * lines + BLOCK.replace(">>>>>>> REPLACE", ""))
