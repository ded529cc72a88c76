"""Cutting long text in the middle."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.core.cutting import whole_words
from ybs.core.messages import ToolCall
from ybs.core.ports import ToolOutput
from ybs.security.firewall.masking import Firewall
from ybs.tools.calls.cut import cut, from_line, up_to_line
from ybs.tools.calls.results import failed, result_of


def test_the_summary_of_a_failure_is_its_first_line():
    result = failed(ToolCall(id="1", name="x"), "It broke.\nHere.", "", most_chars=100)
    assert (result.summary, result.output) == ("It broke.", "It broke.\nHere.")
    assert (
        failed(ToolCall(id="1", name="x"), "It broke.", "broken", most_chars=9).summary == "broken"
    )


def test_short_text_stays():
    assert cut("a\nb", 3) == "a\nb"


def test_head_and_tail_are_whole_lines_and_the_cut_is_described():
    text = "".join(f"line {number}\n" for number in range(1000))
    shown = cut(text, 1000, "Use offset")
    lines = shown.splitlines()
    assert len(shown) <= 1000
    assert "" not in lines
    assert lines[0] == "line 0"
    assert lines[-1] == "line 999"
    note = next(line for line in lines if line.startswith("["))
    kept = [line for line in lines if line.startswith("line")]
    missing = len(text) - sum(len(line) + 1 for line in kept)
    assert (
        note
        == f"[... {missing:,} characters ({1000 - len(kept):,} lines) left out. Use offset ...]"
    )
    assert all(f"{line}\n" in text for line in kept)


def test_one_long_line_is_cut_within():
    shown = cut("a" * 5000 + "b" * 5000, 400)
    assert shown.startswith("a" * 50)
    assert shown.endswith("b" * 50)


def test_no_part_of_a_long_token_is_left_beside_a_cut():
    token = "eyJ" + "x7Rt2mQp" * 400
    for place in range(0, 1000, 37):
        shown = cut("12345678 " * 100 + token + " 12345678" * 100, 300 + place)
        assert "x7Rt2mQp" not in shown


@every_row(
    ("text", "head", "tail"),
    [
        ("\nab cd", "\nab ", "ab cd"),
        ("a\nbbbb", "a\nb", "bbbb"),
        ("aaaa\nb", "aaaa\n", "a\nb"),
        ("aa\nbbb", "aa\n", "\nbbb"),
        ("aa\nbbbbb", "aa\nb", "bbbbb"),
        ("abc", "a", "bc"),
        ("the word isc", "the word ", " word isc"),
    ],
)
def test_a_line_that_is_cut_goes_where_half_of_the_rest_or_more_stays(text, head, tail):
    assert (up_to_line(text), from_line(text)) == (head, tail)


@pytest.mark.integration
def test_no_cut_leaves_a_part_of_a_token_or_password_that_is_not_known_as_one():
    password, token = "Vq7tRw2mZk4Lp8x9", "ghp" + "_" + "x7Rt2mQp" * 4 + "Kd4w"
    firewall = Firewall()
    for secret in (f"postgres://shop:{password}@db", token):
        for place in range(700, 860):
            line = ('{"id":1},' * 300)[:place] + f'"{secret}",' + '{"id":1},' * 200
            for shown in (cut(line, 1200), cut(line, 3200 - place), whole_words(line, 800)):
                clean = firewall.mask(shown)
                assert not any(part in clean for part in (password[:6], password[-6:]))
                assert not any(part in clean for part in (token[:8], token[-8:]))


@pytest.mark.integration
@given(st.text(alphabet="ab\n", max_size=600), st.integers(0, 500))
def test_the_limit_always_holds(text: str, limit: int):
    assert len(cut(text, limit, "hint")) <= limit


_NOTE = re.compile(r"\[\.\.\. ([\d,]+) characters(?: \(([\d,]+) lines\))? left out\. hint \.\.\.\]")


@pytest.mark.integration
@given(
    st.text(alphabet="ab\n\u65e5\U0001f600", min_size=20, max_size=40),
    st.integers(230, 399),
)
def test_head_and_tail_are_the_text_s_own_and_what_is_missing_is_counted(piece: str, limit: int):
    text = "".join(f"{number}{piece}" for number in range(20))
    shown = cut(text, limit, "hint")
    assert len(shown) <= limit
    note = _NOTE.search(shown)
    assert note is not None
    head, tail = shown[: note.start()], shown[note.end() + 1 :]
    if not text.startswith(head):
        head = head.removesuffix("\n")  # the note stands in a line of its own
    assert text.startswith(head)
    assert text.endswith(tail)
    missing = len(text) - len(head) - len(tail)
    assert int(note[1].replace(",", "")) == missing
    left_out = text[len(head) : len(text) - len(tail)]
    lines = left_out.count("\n")
    assert int((note[2] or "0").replace(",", "")) == (lines if lines > 1 else 0)


def test_the_summary_of_a_failure_and_of_a_result_ends_with_a_whole_word():
    """The firewall comes behind it, and would not know a part of a token."""
    token = "ghp_" + "aB3dE5fG7hI9jK1l" + "M2nO4pQ6rS8tU0vWxYz1"
    told = failed(ToolCall(id="1", name="x"), "said " * 36 + token, "", most_chars=999)
    assert told.summary == ("said " * 36).rstrip() + "…"
    output = ToolOutput(output="x", summary="said " * 195 + token)
    assert (
        result_of(ToolCall(id="1", name="x"), output, (), most_chars=999).summary == "said " * 195
    )
