"""What every frontend knows of its terminal in the same way."""

import pytest

from ybs.frontends.tty import columns, fit_width, has_colour, is_dumb


def test_colours_need_a_terminal_that_has_some_and_no_objection() -> None:
    for environ, dumb, colour in (
        ({"TERM": "xterm-256color"}, False, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, False, True),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "unknown"}, True, False),
        ({"TERM": ""}, True, False),
        ({}, True, False),
    ):
        assert (is_dumb(environ), has_colour(environ)) == (dumb, colour), environ


def test_only_what_a_terminal_has_no_room_for_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "  " + "word-word " * 5 + "x" * 50
    monkeypatch.setenv("COLUMNS", "40")
    assert fit_width(line) == line, "a pipe has room for all"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert columns() == 40
    first, second, third = fit_width(line).split("\n")
    assert (len(first) < 40, second[:3], third) == (True, "  w", f"  {'x' * 50}")
    assert fit_width(line, " " * 9).split("\n")[1].startswith(" " * 9 + "w")
