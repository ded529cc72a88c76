"""Cutting streamed Markdown into blocks."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.frontends.terminal.drawing.blocks import Block, BlockLimits, Blocks


def blocks_of(text: str, size: int = 1) -> list[str]:
    return [source_of(block) for block in cut(text, size)]


def cut(text: str, size: int, limits: BlockLimits | None = None) -> list[Block]:
    blocks = Blocks(limits)
    found: list[Block] = []
    for start in range(0, len(text), size):
        found += blocks.feed(text[start : start + size])
    return [*found, *blocks.finish()]


def source_of(block: Block) -> str:
    return f"```{block.language}\n{block.text}\n```" if block.kind == "code" else block.text


def test_a_paragraph_ends_at_a_blank_line() -> None:
    assert blocks_of("one\ntwo\n\nthree") == ["one\ntwo", "three"]


def test_a_blank_line_inside_a_fence_ends_nothing() -> None:
    assert blocks_of("```py\na\n\nb\n```\nafter") == ["```py\na\n\nb\n```", "after"]


def test_a_fence_is_closed_only_by_one_of_its_kind_and_length() -> None:
    text = "````md\n```\ninner\n```\n~~~~\n````"
    assert [block.text for block in cut(text, 1)] == ["```\ninner\n```\n~~~~"]


def test_a_heading_is_a_block_without_waiting_for_a_blank_line() -> None:
    assert list(Blocks().feed("# Title\nte")) == [Block(text="# Title")]


def test_a_fence_ends_the_paragraph_before_it() -> None:
    assert blocks_of("see:\n```\nx\n```") == ["see:", "```\nx\n```"]


def test_a_list_stays_whole_over_blank_lines_and_indented_lines() -> None:
    text = "1. one\n\n   more\n\n2. two"
    assert blocks_of(text + "\n\nend") == [text, "end"]


def test_a_list_with_a_fence_in_an_item_stays_whole() -> None:
    text = "- run\n  ```sh\n  ls\n\n  pwd\n  ```\n- look"
    assert blocks_of(text) == [text]


def test_a_list_right_after_a_paragraph_is_a_block_of_its_own() -> None:
    assert blocks_of("two things:\n- a\n- b") == ["two things:", "- a\n- b"]


@every_row("rule", ["* * *", "- - -", "***", " *  *  * ", "---"])
def test_a_rule_is_no_list(rule: str) -> None:
    assert blocks_of(f"{rule}\n\n  text\n\nend") == [rule, "  text", "end"]


def test_inline_code_of_three_ticks_on_one_line_opens_no_fence() -> None:
    assert blocks_of("```x``` is code\n\nend") == ["```x``` is code", "end"]


def test_an_unfinished_fence_is_given_back_at_the_end() -> None:
    assert blocks_of("```py\nx = 1") == ["```py\nx = 1\n```"]


def test_carriage_returns_before_newlines_are_dropped() -> None:
    assert blocks_of("a\r\n\r\nb\r\n") == ["a", "b"]


def test_what_is_open_can_be_looked_at() -> None:
    blocks = Blocks()
    assert list(blocks.feed("done\n\nin pro")) == [Block(text="done")]
    assert blocks.open == Block(text="in pro")
    assert list(blocks.feed("gress\n```py\nx = 1\n``")) == [Block(text="in progress")]
    assert blocks.open == Block(text="x = 1", kind="code", language="py")


@every_row("text", ["", "\n\n\n", "   \n"])
def test_nothing_but_white_space_is_no_block(text: str) -> None:
    assert blocks_of(text) == []


def words_of(lines: list[str]) -> list[str]:
    """Leave out what is never shown: blank lines, and the marks around code.

    Numbers of items are left out too: the rest of a list that was cut begins with the number that is drawn.
    """
    shown = [
        line for line in lines if line.strip() and not line.lstrip().startswith(("```", "~~~"))
    ]
    return [re.sub(r"^\d+(?=[.)] )", "#", line) for line in shown]


MARKDOWN = st.lists(
    st.sampled_from(["a", "- b", "```", "# c", "", "  d", "1. e", "|f|", "~~~", "    g", "2) h"])
)


@pytest.mark.integration
@given(MARKDOWN)
def test_no_line_is_lost_and_none_comes_twice(lines: list[str]) -> None:
    found = "\n".join(blocks_of("\n".join(lines), 3)).split("\n")
    assert words_of(found) == words_of(lines)


SMALL = BlockLimits(lines=3, code_lines=3, list_lines=3, characters=40, line=16)


@pytest.mark.integration
@given(st.text(alphabet="ab`-#~| \n1.é", max_size=400), st.integers(1, 9))
def test_the_size_of_the_pieces_does_not_matter(text: str, size: int) -> None:
    assert cut(text, size) == cut(text, 1)
    assert cut(text, size, SMALL) == cut(text, len(text) or 1, SMALL)


def endless(line: str, count: int) -> str:
    return "\n".join(line.format(number=number) for number in range(count))


@pytest.mark.integration
@every_row(
    "text",
    [
        "```py\n" + endless("x{number} = 1", 4_000),
        endless("1. item{number}", 4_000),
        "1. item\n   ```\n" + endless("   code{number}", 4_000) + "\n   ```\n\n2. two",
        "| a | b |\n|---|---|\n" + endless("| c{number} | d |", 3_000),
        endless("word{number}", 4_000),
        " ".join(f"word{number}" for number in range(4_000)),
        "x" * 50_000,
        "- " + "#" * 50_000,
        "> " + "> quoted\n" * 4_000,
    ],
    ids=["code", "list", "code in a list", "table", "lines", "words", "letters", "signs", "quote"],
)
def test_a_block_without_end_is_printed_as_it_comes(text: str) -> None:
    blocks, most, found = Blocks(), 0, list[Block]()
    for start in range(0, len(text), 997):
        found += blocks.feed(text[start : start + 997])
        most = max(most, len(blocks.open.text) if blocks.open else 0)
    found += blocks.finish()
    assert most < 25_000
    assert max(len(block.text) for block in found) < 25_000
    assert sum(block.goes_on for block in found) == len(found) - 1
    if "1. item" not in text:  # the words are all there, once
        heads = [
            block.text.split("\n", 2)[-1] if block.repeats_head else block.text for block in found
        ]
        assert "".join("".join(heads).split()) in "".join(text.split())
        assert sum(len("".join(head.split())) for head in heads) >= len("".join(text.split())) - 8


def test_pieces_of_a_list_keep_their_numbers_and_their_place() -> None:
    found = cut("\n".join(f"1. item {number}\n   more" for number in range(9)), 5, SMALL)
    assert [block.text.split("\n")[0] for block in found[:3]] == [
        "1. item 0",
        "3. item 2",
        "5. item 4",
    ]
    text = "- run\n  ```sh\n" + endless("  ls {number}", 7) + "\n  ```\n  so\n- look"
    assert [
        (block.kind, block.margin, block.text.split("\n")[-1]) for block in cut(text, 5, SMALL)
    ] == [
        ("markdown", 0, "  ls 3"),
        ("code", 2, "ls 6"),
        ("markdown", 2, "so"),
        ("markdown", 0, "- look"),
    ]


def test_a_table_in_pieces_has_its_head_once() -> None:
    text = "| a |\n|---|\n" + endless("| {number} |", 9)
    assert [block.repeats_head for block in cut(text, 5, SMALL)] == [False, True, True, True]
