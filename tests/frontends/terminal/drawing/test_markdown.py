"""Drawing Markdown."""

import re

from ybs.frontends.terminal.drawing.markdown import draw

COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7]m|\x1b\[[0-9;]*9[0-7]m")


def plain(markup: str, width: int = 60) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", draw(markup, width, has_colour=True))


def test_html_is_shown_as_it_stands() -> None:
    assert (
        plain("use the <div> tag\n\n<script>x</script>")
        == "use the <div> tag\n\n<script>x</script>"
    )


def test_a_heading_stands_at_the_left_edge_without_a_box() -> None:
    assert plain("# Title") == "Title"


def test_code_keeps_every_character_and_its_indentation() -> None:
    assert plain("```python\ndef f():\n\n    return 1\n```") == "  def f():\n\n      return 1"


def test_a_long_line_of_code_is_folded_and_not_cut() -> None:
    drawn = plain("```\n" + "x" * 50 + "\n```", 20)
    assert drawn.replace("\n", "").replace(" ", "") == "x" * 50
    assert all(len(line) <= 20 for line in drawn.split("\n"))


def test_a_list_is_drawn_with_dashes_and_numbers() -> None:
    assert plain("- a\n- b\n\n3. c\n4. d") == "- a\n- b\n\n3. c\n4. d"


def test_the_address_of_a_link_is_shown() -> None:
    assert plain("[here](http://x.y/z)") == "here (http://x.y/z)"


def test_lines_end_without_white_space() -> None:
    drawn = plain("> quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n# head")
    assert [line for line in drawn.split("\n") if line != line.rstrip()] == []


def test_without_colour_bold_is_left() -> None:
    drawn = draw("**b** `c` [l](x)\n\n```python\nimport os\n```", 60, has_colour=False)
    assert "\x1b[1mb" in drawn
    assert not COLOUR.search(drawn)


def test_a_very_narrow_terminal_is_no_problem() -> None:
    assert plain("| a | b |\n|---|---|\n| longword | other |\n\n- item\n\n1. x", 3)
