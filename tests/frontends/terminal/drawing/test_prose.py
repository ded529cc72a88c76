"""Blocks of Markdown as lines of the screen."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ybs.frontends.terminal.drawing.blocks import Block, BlockLimits, Blocks
from ybs.frontends.terminal.drawing.markdown import draw
from ybs.frontends.terminal.drawing.prose import prose_lines
from ybs.frontends.terminal.signs import Paint
from ybs.frontends.terminal.words import cells, fold_drawn

COLOURED = Paint(has_colour=True)
SMALL = BlockLimits(lines=3, code_lines=3, list_lines=3, characters=60, line=30)


def drawn(
    markup: str, width: int, size: int = 10_000, limits: BlockLimits | None = None
) -> list[str]:
    blocks = Blocks(limits)
    pieces = [markup[start : start + size] for start in range(0, len(markup), size)]
    found = [block for piece in pieces for block in blocks.feed(piece)]
    return [
        line
        for block in [*found, *blocks.finish()]
        for line in ([] if block.goes_on else [""]) + prose_lines(block, width, COLOURED)
    ]


def bare(lines: list[str]) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(lines))


WIDE = st.text(
    alphabet="ab 漢字\t\n\u200b\u0301\u202e\U0001f600\u200d\U0001f468\ufe0f\u05d0שe\u0e33|-`*#1.>[]()\x1b\x07~",
    max_size=300,
)


@pytest.mark.integration
@settings(max_examples=20)
@given(WIDE, st.sampled_from([8, 20, 40, 80]))
def test_no_line_is_wider_than_the_screen(text: str, width: int) -> None:
    for markup in (text, f"```py\n{text}\n```", f"- {text}", f"| a | b |\n|---|---|\n| {text}"):
        lines = [line for whole in drawn(markup, width) for line in whole.split("\n")]
        assert max(map(cells, lines), default=0) <= width
        pieces = drawn(markup, width, 7, SMALL)
        assert max(map(cells, pieces), default=0) <= width


LINES = ("w{}", "- w{}", "{}. w{}", "  w{} w{}", "    w{}", "## w{}", "> w{}", "| w{} | w{} |")
SOURCE = st.lists(st.sampled_from([*LINES, "|---|---|", "```", "", "", "   ```py"]), max_size=30)


@pytest.mark.integration
@settings(max_examples=20)
@given(SOURCE, st.integers(1, 30))
def test_every_word_is_drawn_once_in_any_pieces(lines: list[str], size: int) -> None:
    numbers = iter(range(1, 999))
    filled = [re.sub(r"\{\}", lambda _: str(next(numbers)), line) for line in lines]
    text = "\n".join(filled)
    words = re.findall(r"w\d+", text)
    whole = drawn(text, 80)
    assert drawn(text, 80, size) == whole
    assert re.findall(r"w\d+", bare(whole)) == words
    assert re.findall(r"w\d+", bare(drawn(text, 80, size, SMALL))) == words


def test_a_word_of_thousands_of_letters_is_folded() -> None:
    for word in ("x" * 5_000, "漢" * 2_500, "e\u0301" * 4_000):
        lines = drawn(word, 40)
        assert max(map(cells, lines)) <= 40
        assert "".join("".join(lines).split()) == word


def test_a_drawn_line_is_broken_with_its_attributes() -> None:
    assert fold_drawn("ab\x1b[1mcdef\x1b[22mgh", 4) == ["ab\x1b[1mcd", "ef\x1b[22mgh"]
    assert fold_drawn("漢字漢", 5) == ["漢字", "漢"]
    assert fold_drawn("", 5) == [""]


def test_a_piece_of_a_list_stands_under_its_item() -> None:
    block = Block(text="more words", margin=3, goes_on=True)
    assert prose_lines(block, 60, COLOURED) == ["     more words"]


WHOLE = (
    "# A heading",
    "Some **bold** words and `code`, [a link](http://x.y), which go on over the end of a line here.",
    "- one\n- two\n  - nested\n\n  more of two\n- three",
    "9. nine\n10. ten\n\n    ```sh\n    ls\n    ```",
    "> a quote\n> of two lines",
    "| a | b |\n|---|--:|\n| one | 2 |\n| two | 33 |",
    "```python\ndef f(x):\n\n\treturn x  # done\n```",
    "~~~\nno language\n~~~",
    "---",
)


@pytest.mark.integration
@settings(max_examples=12)
@given(st.lists(st.sampled_from(WHOLE), max_size=6), st.integers(1, 40))
def test_blocks_of_a_usual_size_look_as_if_all_was_drawn_at_once(blocks, size):
    text = "\n\nthen\n\n".join(blocks)
    at_once = bare(draw(text, 78, has_colour=True).split("\n")).split("\n")
    found = bare(drawn(text, 80, size)).split("\n")
    assert [line[2:] for line in found if line] == [line for line in at_once if line]
