"""The output of commands: kept within bounds, and as a terminal would leave it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from timing import takes_at_most
from ybs.tools.shell import output
from ybs.tools.shell.output import CommandOutput, KeptBytes, OutputWindow
from ybs.tools.shell.terminal_text import as_seen


def kept_of(*pieces: bytes, most_chars: int = 10) -> KeptBytes:
    kept = KeptBytes(most_chars)
    for piece in pieces:
        kept.add(piece)
    return kept


def test_an_output_that_fits_is_whole():
    kept = kept_of(b"abc", b"", b"defg")
    assert kept.shown() == ("abcdefg", False)
    assert kept.shown(4) == ("a\n[... 5 bytes left out ...]\ng", True)


def test_a_long_output_keeps_both_ends_and_true_numbers():
    kept = kept_of(b"first\n", b"x\n" * 100_000, b"last", most_chars=20)
    text, is_cut = kept.shown()
    assert is_cut
    assert text == "first\nx\nx\n[... 199,992 bytes (99,996 lines) left out ...]\nx\nx\nlast"
    wide, is_cut = kept_of("\U0001f600".encode() * 100, most_chars=10).shown()
    assert is_cut
    assert "[... 380 bytes left out ...]" in wide


@every_row(
    ("most_chars", "data", "limit", "shown"),
    [
        (1, b"abcdefgh", None, "\n[... 7 bytes left out ...]\nh"),
        (3, b"abcdefgh", None, "\n[... 7 bytes left out ...]\nh"),
        (9, b"abcdefghij", None, "ab\n[... 6 bytes left out ...]\nij"),
        (8, b"abcdefgh", None, "abcdefgh"),
        (8, b"abcdefgh", 100, "abcdefgh"),
        (4, "日本語字".encode(), None, "日本語字"),
        (8, b"abcdefghi", 100, "ab\n[... 5 bytes left out ...]\nhi"),
        (8, b"abcdefgh", 5, "a\n[... 6 bytes left out ...]\nh"),
        (8, b"abcdefgh", 1, "\n[... 7 bytes left out ...]\nh"),
        (4, b"abc\nef", None, "a\n[... 4 bytes left out ...]\nf"),
        (4, b"ab\ncd\nef", None, "a\n[... 6 bytes (2 lines) left out ...]\nf"),
        (4, b"\xff" * 6, None, "\ufffd\n[... 0 bytes left out ...]\n\ufffd"),
        (100, b"\0abcdef\xff", None, "abcdef\ufffd"),  # an eighth is not UTF-8
        (100, b"\0abcde\xff\xff", None, "[8 bytes that are not text]\n"),
        (100, b"\xff" * 8, None, "\ufffd" * 8),
    ],
)
def test_of_what_came_both_ends_are_shown(most_chars, data, limit, shown):
    text, is_cut = kept_of(data, most_chars=most_chars).shown(limit)
    assert text == shown
    assert is_cut == ("left out" in text or "not text" in text)


def test_what_comes_after_streams_were_joined_goes_to_the_one():
    joined = CommandOutput(1000)
    joined.join()
    joined.add(0, b"a")
    joined.add(1, b"b")
    assert joined.stdout.text() == joined.stderr.text() == "ab"
    apart = CommandOutput(1000)
    apart.add(0, b"a")
    apart.add(1, b"b")
    assert (apart.stdout.text(), apart.stderr.text(), apart.size) == ("a", "b", 2)


@given(st.lists(st.binary(max_size=200), max_size=30), st.integers(1, 60))
def test_memory_and_text_stay_within_bounds_whatever_comes(pieces: list[bytes], most: int):
    kept = kept_of(*pieces, most_chars=most)
    whole = b"".join(pieces)
    text, is_cut = kept.shown()
    assert (kept.size, kept.lines) == (len(whole), whole.count(b"\n"))
    assert len(kept._head) + len(kept._tail) <= 12 * max(most, 2) + 200
    assert len(text) <= max(most, 2) + 80
    assert is_cut or text == as_seen(whole.decode(errors="replace"))


@pytest.mark.integration
@given(st.text(max_size=40), st.lists(st.integers(0, 160), max_size=8))
def test_taken_in_parts_nothing_is_lost_and_no_character_is_torn(text: str, places: list[int]):
    data = text.encode(errors="replace")
    cuts = sorted({0, *(min(place, len(data)) for place in places), len(data)})
    taken = CommandOutput(1000, streams=1)
    parts: list[str] = []
    for start, end in pairwise(cuts):
        taken.add(0, data[start:end])
        kept = taken.take(is_last=False)
        parts.append(bytes(kept._head + kept._tail).decode())
    kept = taken.take(is_last=True)
    parts.append(bytes(kept._head + kept._tail).decode())
    assert "".join(parts) == data.decode()


@every_row("begun", [b"\xc3", b"\xe0", b"\xe0\xa0", b"\xf0", b"\xf0\x90\x80"])
def test_a_character_that_never_ends_is_told_at_the_end(begun: bytes):
    taken = CommandOutput(100, streams=1)
    taken.add(0, b"a" + begun)
    assert taken.take(is_last=False).text() == "a"
    assert taken.take(is_last=True).text() == "\ufffd"


@every_row(
    ("raw", "expected"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07text \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "text link"),
        ("\x1b]0;never ended\nnext", "\nnext"),
        ("\x1bP1$r0m\x1b\\after", "after"),
        ("\x1b(Bplain\x1b)0", "plain"),
        ("\x1b=\x1b>\x1b7\x1b8keys\x1b", "keys"),
        ("N\bNA\bAM\bME\bE", "NAME"),
        ("_\bu_\bn", "un"),
        ("abc\b\b\b\b\bxy", "xy"),
        ("10%\r50%\r100%\ndone\r", "100%\ndone"),
        ("hello\r\r\nworld\r\n", "hello\nworld\n"),
        ("\x1b[2K\rBuilding\x1b[K\r\x1b[2KBuilt", "Built"),
        ("bell\x07 nul\x00 form\x0c tab\t", "bell nul form tab\t"),
        ("grün 日本", "grün 日本"),
    ],
)
def test_what_a_terminal_would_not_show_is_left_out(raw: str, expected: str):
    assert as_seen(raw) == expected


@given(st.text(alphabet="a\x1b[]m0;\x07\\\b\r\n(P", max_size=60))
def test_no_control_character_is_left(text: str):
    assert all(c in "\n\t" or c >= " " for c in as_seen(text))


@pytest.mark.integration
@every_row("raw", ["\x1b]", "\x1b[", "\r", "a\b", "\x1b[0", "\x1bP;", "a\r", "\x1b("])
def test_cleaning_takes_linear_time(raw: str):
    with takes_at_most(1):
        as_seen(raw * 50_000 + "a" * 50_000 + "\b" * 50_000)


def test_what_is_shown_live_ends_with_a_whole_word(monkeypatch):
    monkeypatch.setattr(output, "LIVE_CHARS", 100)
    live = OutputWindow(lambda text: None)
    shown = live.read(0, b"a line " * 10 + b"x7Rt2mQp" * 5 + b"\n")
    assert shown == "a line " * 10 + "\n[only some lines of the rest are shown here]\n"


def test_the_beginning_is_shown_whole_and_then_some_lines_now_and_then(monkeypatch):
    clock = [10.0]
    monkeypatch.setattr(output, "LIVE_CHARS", 5)
    monkeypatch.setattr(output, "monotonic", lambda: clock[0])
    live = OutputWindow(lambda text: None)
    assert [live.read(0, piece) for piece in (b"ab\xc3", b"\xbc", b"")] == ["ab", "ü", ""]
    assert live.read(0, b"d efg\n") == "d \n[only some lines of the rest are shown here]\n"
    assert live.waits
    assert live.read(0, b"1\n2\n3\n4\n5") == "\n2\n3\n4\n"
    assert live.read(0, b"five\n") == ""  # too soon
    assert live.waits
    assert live.look() == ""
    clock[0] += output.LOOK_SECONDS
    assert live.look() == "\n5five\n"
    assert not live.waits
    clock[0] += output.LOOK_SECONDS
    assert live.read(0, b"x" * 5000 + b"10 %\r20 %\r30") == "\n20 %\n"


def test_lines_too_long_for_a_look_are_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(output, "LIVE_CHARS", 0)
    live = OutputWindow(lambda text: None)
    assert live.read(0, b"x" * 401 + b"\n") == ""
    assert live.read(0, b"x" * 10_000_000) == ""
    assert len(live._rest) < 3000


def test_nothing_is_shown_once_the_call_is_over():
    shown: list[str] = []
    live = OutputWindow(shown.append)
    live.close()
    live("late")
    assert live.read(0, b"late") == live.look() == ""
    assert shown == []


def test_joined_streams_begin_a_line_where_they_meet():
    wrong: list[str] = []
    for out, errors, joined in (
        (b"half", b"error\n", "half\nerror\n"),
        (b"whole\n", b"error", "whole\nerror"),
        (b"", b"error", "error"),
        (b"half", b"", "half"),
    ):
        output = CommandOutput(1000)
        output.add(0, out)
        output.add(1, errors)
        output.join()
        if output.stdout.text() != joined or output.size != len(joined):
            wrong.append(joined)
    assert wrong == []


def test_the_end_of_an_output_begins_with_a_whole_line_or_word():
    output = CommandOutput(100)
    output.add(0, b"in all\n")
    assert output.recent == "in all\n"
    token = b"ghp_" + b"aB3dE5fG7hI9jK1l" + b"M2nO4pQ6rS8tU0vWxYz1"
    output.add(0, b"signed in as " + token + b" here\n" + b"GET /index.html 200\n" * 399)
    assert output.recent.startswith("GET /index.html 200\n")
    assert len(output.recent) > 7_900
    output.add(0, token + b" " + b"x" * 7_970)
    assert output.recent.strip() == "x" * 7_970
