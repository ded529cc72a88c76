"""Short words for calls, times and numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.commands.figures import amount
from ybs.core.events import RequestStarted
from ybs.core.messages import Usage
from ybs.frontends.terminal.words import (
    cells,
    duration,
    fold,
    fold_table,
    one_line,
    reason_of,
    routed_words,
    shorten,
    usage_line,
    verb,
    wrap,
    wrap_words,
)


def test_an_unknown_tool_keeps_its_name_and_hides_no_control_character() -> None:
    assert verb("web\x1b[0m") == "web␛[0m"
    assert verb("web\x1b]0;x\x07") == "web␛]0;x␇"
    assert verb("run_shell") == "shell"
    assert verb("shell_job") == "job"


@every_row(
    ("seconds", "said"),
    [
        (0.0, "1 ms"),
        (0.0042, "4 ms"),
        (0.9996, "1.0 s"),
        (1.94, "1.9 s"),
        (99.96, "1m 40s"),
        (125, "2m 05s"),
        (7200, "120 min"),
    ],
)
def test_durations_are_short(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@every_row(
    ("tokens", "said"),
    [(0, "0"), (812, "812"), (9234, "9.2k"), (9999, "10k"), (120_000, "120k"), (1_200_000, "1.2M")],
)
def test_amounts_are_short(tokens: int, said: str) -> None:
    assert amount(tokens) == said


def test_usage_names_what_is_known() -> None:
    usage = Usage(input_tokens=1200, output_tokens=34, cached_tokens=1000, cost_usd=0.0021)
    assert usage_line(usage, 3.2) == "1.2k in · 34 out · 1.0k cached · $0.0021 · 3.2 s"
    unpriced = Usage(input_tokens=1, output_tokens=2)
    assert usage_line(unpriced, 1, "|") == "1 in | 2 out | cost unknown | 1.0 s"
    free = Usage(input_tokens=1, output_tokens=2, cost_usd=0.0)
    assert usage_line(free, 1, "|") == "1 in | 2 out | 1.0 s"
    assert usage_line(free + unpriced, 1, "|") == "2 in | 4 out | $0 + unknown | 1.0 s"


def test_wide_characters_count_twice_and_attributes_not_at_all() -> None:
    assert cells("日本") == 4
    assert cells("\x1b[1mab\x1b[22m") == 2


def test_shortening_says_that_something_is_missing() -> None:
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("日本語", 5) == "日本…"
    assert shorten("abc", 3) == "abc"
    assert shorten("abc", 0) == ""


def test_wrapping_indents_the_rest_of_a_line() -> None:
    assert wrap("abcdefghij", 6) == ["abcd", "  efgh", "  ij"]


def test_folding_breaks_between_words_and_keeps_empty_lines() -> None:
    assert fold("one two three\n\nfour", 8) == ["one two", "three", "", "four"]


@pytest.mark.integration
@given(
    st.text(alphabet=st.characters(exclude_characters="\n\t", exclude_categories=["Cc", "Cs"])),
    st.integers(8, 40),
)
def test_wrapping_leaves_nothing_out(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert "".join([lines[0], *(line[2:] for line in lines[1:])]) == text
    assert all(cells(line) <= width for line in lines)


@pytest.mark.integration
@given(st.text(), st.integers(0, 30))
def test_a_shortened_text_never_takes_more_room(text: str, width: int) -> None:
    assert cells(shorten(one_line(text), width)) <= width


def test_a_table_that_does_not_fit_a_narrow_screen_is_a_list() -> None:
    text = "  /model [NAME]  show or change the model\n  /quit          leave\n3 commands"
    assert fold_table(text, 30) == [
        "/model [NAME]",
        "    show or change the model",
        "/quit",
        "    leave",
        "3 commands",
    ]


def test_a_table_that_fits_a_narrow_screen_stays_a_table() -> None:
    assert fold_table("  mode  ask\n  model  x", 20) == ["  mode  ask", "  model  x"]


def test_words_are_kept_together_and_no_character_is_lost() -> None:
    text = "always: run_shell(echo one  two three)" + "x" * 40
    lines = wrap_words(text, 20)
    assert lines[0] == "always: "
    assert "".join(lines) == text
    assert all(len(line) <= 20 for line in lines)


@every_row(
    ("message", "reason"),
    [
        (
            "it does not answer (connection refused).\nCheck it.",
            "it does not answer (connection refused)",
        ),
        (
            "x has received too many requests (429): busy\nTry again",
            "x has received too many requests (429): busy",
        ),
        ("busy", "busy"),
        ("", ""),
    ],
)
def test_the_reason_of_a_retry_is_short(message: str, reason: str) -> None:
    assert reason_of(message) == reason


def test_a_command_with_a_hyphen_is_not_broken_at_it() -> None:
    lines = fold("Start `llama-server` or set --endpoint", 14)
    assert lines == ["Start", "`llama-server`", "or set", "--endpoint"]


@every_row(
    ("model", "reason"),
    [
        ("gpt-5", "best for fix by results: 0.83 - 0.07"),
        ("claude-sonnet-4-5-20250929", "best for refactor by the catalogue: 0.83 - 0.07"),
        ("a" * 200, "all rest after errors, this one shortest"),
    ],
)
def test_what_a_router_picked_and_why_fits_a_line(model: str, reason: str) -> None:
    told = routed_words(RequestStarted(model=model, decision="dd99ef7e", reason=reason))
    assert len(told) <= 78
    assert told.endswith(f": {reason} (dd99ef7e)")
    assert told.startswith(model[:16])


def test_the_rest_of_a_row_goes_on_below_its_last_column_without_a_blank_before_it() -> None:
    text = "  Ctrl-G, Ctrl-X Ctrl-E   edit the prompt in $EDITOR\n\nplain words"
    assert fold_table(text, 50) == [
        "  Ctrl-G, Ctrl-X Ctrl-E   edit the prompt in",
        "                          $EDITOR",
        "",
        "plain words",
    ]
