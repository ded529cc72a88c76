"""Signs, colours and encodings."""

from io import BytesIO, TextIOWrapper

import pytest

from ybs.frontends.terminal.signs import ASCII, UNICODE, Paint, fit_encoding, signs_for


def stream(encoding: str) -> TextIOWrapper:
    return TextIOWrapper(BytesIO(), encoding=encoding)


def test_a_terminal_without_unicode_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert signs_for(stream("latin-1")) == ASCII
    assert signs_for(stream("utf-8")) == UNICODE


def test_the_linux_console_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "linux")
    assert signs_for(stream("utf-8")) == ASCII


def test_paint_without_colour_only_knows_bold_and_dim() -> None:
    paint = Paint(has_colour=False)
    assert paint.bad(paint.good(paint.warn(paint.ground(paint.accent("x"))))) == "x"
    assert paint.bold("x") == "\x1b[1mx\x1b[22m"
    assert paint.dim("x") == "\x1b[2mx\x1b[22m"


def test_paint_ends_each_colour() -> None:
    paint = Paint(has_colour=True)
    assert paint.good("x") == "\x1b[32mx\x1b[39m"
    assert paint.ground("x") == "\x1b[100mx\x1b[49m"


def test_text_is_fitted_to_the_encoding() -> None:
    assert fit_encoding("a → b … • 日", "ascii") == "a -> b ... * ?"
    assert fit_encoding("a → b", "utf-8") == "a → b"
    assert fit_encoding("é", "no-such-encoding") == "?"
