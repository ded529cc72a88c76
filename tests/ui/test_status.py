"""The start line and the bottom line."""

import pytest
from msgspec.structs import replace

from ybs.core.messages import Usage
from ybs.ui.signs import ASCII, UNICODE, Paint
from ybs.ui.status import State, start_line, toolbar
from ybs.ui.words import cells

STATE = State(
    provider="ollama",
    model="qwen3:14b",
    mode="ask",
    sandbox="no sandbox",
    folder="/srv/shop",
    branch="main",
    context_percent=3,
    usage=Usage(input_tokens=1000, output_tokens=200),
)
PLAIN = Paint(has_colour=False)


def bare(text: str) -> str:
    return text.replace("\x1b[1m", "").replace("\x1b[22m", "").replace("\x1b[2m", "")


def test_the_start_line_says_what_is_known() -> None:
    line = bare(start_line("0.1", STATE, 80, PLAIN, UNICODE))
    assert line.startswith("ybs 0.1  ollama qwen3:14b · ask · no sandbox ")
    assert line.endswith(" /srv/shop  main")
    assert cells(line) == 80


def test_the_start_line_takes_two_lines_where_one_is_too_short() -> None:
    lines = bare(start_line("0.1", STATE, 50, PLAIN, ASCII)).split("\n")
    assert lines == ["ybs 0.1  ollama qwen3:14b | ask | no sandbox", "/srv/shop  main"]


@pytest.mark.parametrize("width", [4, 10, 20, 30, 40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for line in start_line("0.1", STATE, width, PLAIN, UNICODE).split("\n"):
        assert cells(line) <= width
    assert cells(toolbar(STATE, width, UNICODE)) <= width
    assert cells(toolbar(STATE, width, UNICODE, "a hint that is rather long for this")) <= width


def test_a_narrow_bottom_line_keeps_model_mode_and_context() -> None:
    assert toolbar(STATE, 30, UNICODE) == " qwen3:14b  ask  ctx 3%  main"


def test_a_wide_bottom_line_has_the_branch_at_its_end() -> None:
    line = toolbar(STATE, 80, UNICODE)
    assert line.startswith(" qwen3:14b  ask  ctx 3%  no sandbox  1.2k tok ")
    assert line.endswith(" main")


def test_a_hint_takes_the_bottom_line() -> None:
    assert (
        toolbar(STATE, 80, UNICODE, "press Ctrl-C again to leave") == " press Ctrl-C again to leave"
    )


def test_incognito_stands_first_in_both_lines() -> None:
    state = replace(STATE, incognito=True)
    assert toolbar(state, 80, UNICODE).startswith(" incognito  qwen3:14b  ask  ctx 3%")
    line = bare(start_line("0.1", state, 90, PLAIN, UNICODE))
    assert line.startswith("ybs 0.1  incognito · ollama qwen3:14b · ask · no sandbox ")


@pytest.mark.parametrize("width", [11, 20, 30])
def test_incognito_is_the_last_that_a_narrow_bottom_line_gives_up(width: int) -> None:
    line = toolbar(replace(STATE, incognito=True), width, UNICODE)
    assert line.startswith(" incognito")
    assert cells(line) <= width
