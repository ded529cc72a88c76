"""Cutting streamed Markdown into blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ybs.ui.blocks import Blocks


def blocks_of(text: str, size: int = 1) -> list[str]:
    blocks = Blocks()
    found: list[str] = []
    for start in range(0, len(text), size):
        found += blocks.feed(text[start : start + size])
    return [*found, *blocks.finish()]


def test_a_paragraph_ends_at_a_blank_line() -> None:
    assert blocks_of("one\ntwo\n\nthree") == ["one\ntwo", "three"]


def test_a_blank_line_inside_a_fence_ends_nothing() -> None:
    assert blocks_of("```py\na\n\nb\n```\nafter") == ["```py\na\n\nb\n```", "after"]


def test_a_fence_is_closed_only_by_one_of_its_kind_and_length() -> None:
    text = "````md\n```\ninner\n```\n~~~~\n````"
    assert blocks_of(text) == [text]


def test_a_heading_is_a_block_without_waiting_for_a_blank_line() -> None:
    assert list(Blocks().feed("# Title\nte")) == ["# Title"]


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


def test_inline_code_of_three_ticks_on_one_line_opens_no_fence() -> None:
    assert blocks_of("```x``` is code\n\nend") == ["```x``` is code", "end"]


def test_an_unfinished_fence_is_given_back_at_the_end() -> None:
    assert blocks_of("```py\nx = 1") == ["```py\nx = 1"]


def test_carriage_returns_before_newlines_are_dropped() -> None:
    assert blocks_of("a\r\n\r\nb\r\n") == ["a", "b"]


def test_what_is_open_can_be_looked_at() -> None:
    blocks = Blocks()
    assert list(blocks.feed("done\n\nin pro")) == ["done"]
    assert blocks.rest == "in pro"


@pytest.mark.parametrize("text", ["", "\n\n\n", "   \n"])
def test_nothing_but_white_space_is_no_block(text: str) -> None:
    assert blocks_of(text) == []


@given(st.lists(st.sampled_from(["a", "- b", "```", "# c", "", "  d", "1. e", "|f|", "~~~"])))
def test_no_line_is_lost_and_none_comes_twice(lines: list[str]) -> None:
    text = "\n".join(lines)
    found = "\n".join(blocks_of(text, 3)).split("\n")
    assert [line for line in found if line.strip()] == [line for line in lines if line.strip()]


@given(st.text(alphabet="ab`-#~ \n1."), st.integers(1, 9))
def test_the_size_of_the_pieces_does_not_matter(text: str, size: int) -> None:
    assert blocks_of(text, size) == blocks_of(text, 1)
