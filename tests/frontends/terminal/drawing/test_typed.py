"""The output of a command that the person typed."""

import re

import pytest
from paper import Page

from ybs.core.events import ToolPrinted, TurnFinished, UserSaid
from ybs.session.injection import injection


def shell_said(ending: str = "Exit code: 0") -> UserSaid:
    return UserSaid(content=injection("x", f"{ending}\n\nOutput:\n"), origin="shell")


def test_the_output_of_a_typed_command_is_shown() -> None:
    page = Page()
    page.draw(
        ToolPrinted(id="typed_1", text="one\ntw"), ToolPrinted(id="typed_1", text="o\x1b[2J\nthr")
    )
    assert page.text == "  one\n  two␛[2J\n"
    page.draw(shell_said())
    assert page.text == "  one\n  two␛[2J\n  thr\n  exit code 0 · 1 ms\n"


def test_long_output_of_a_typed_command_keeps_its_beginning_and_its_end() -> None:
    page = Page()
    page.live.begin()
    page.clock.now += 0.02
    text = "".join(f"{number}\n" for number in range(1, 501))
    page.draw(ToolPrinted(id="typed_1", text=text))
    assert page.text.endswith("  8\n")
    assert page.passing()[1:] == ["    498", "    499", "    500"]
    page.draw(shell_said("Exit code: 1"))
    lines = page.text.split("\n")
    assert lines[8:10] == ["  … 484 lines …", "  493"]
    assert lines[-3:] == ["  500", "✗ exit code 1 · 20 ms", ""]


def test_output_of_a_typed_command_that_just_fits_is_not_cut() -> None:
    page = Page()
    page.draw(ToolPrinted(id="typed_1", text="x\n" * 17), shell_said())
    assert page.text.count("  x\n") == 17


def test_a_typed_command_is_shown_without_colours_and_without_what_was_overwritten() -> None:
    page = Page()
    page.draw(ToolPrinted(id="typed_1", text="\x1b[31mred\x1b[0m\n10 %\r90 %\r\n"))
    assert page.text == "  red\n  90 %\n"


def test_a_typed_command_that_is_stopped_shows_what_it_had_printed() -> None:
    page = Page()
    page.draw(ToolPrinted(id="typed_1", text="x\n" * 9 + "half"))
    page.draw(TurnFinished(reason="interrupted"))
    assert page.text == "  x\n" * 9 + "  half\n\n! interrupted\n"
    assert page.passing() == []


def test_a_typed_command_that_took_too_long_says_so() -> None:
    page = Page()
    page.draw(shell_said("Stopped: it took longer than its time limit."))
    assert page.text == "✗ stopped: it took longer than its time limit · 1 ms\n"


def test_a_typed_command_that_failed_says_why() -> None:
    content = injection("sudo x", "it is blocked", has_run=False)
    assert Page().draw(UserSaid(content=content, origin="shell")) == "✗ it is blocked\n"


@pytest.mark.integration
def test_many_thousand_lines_of_a_typed_command_keep_little() -> None:
    page = Page()
    lines = "".join(f"line {number}\n" for number in range(1_000))
    for _ in range(40):
        page.draw(ToolPrinted(id="typed_1", text=lines))
    page.draw(shell_said())
    assert page.text.count("\n") == 18
    assert "  … 39984 lines …\n" in page.text
    page.pieces.clear()
    assert page.renderer.unfold()
    assert re.match(
        r"\n  ! x\n  … \d+ lines before these   ctrl-o again shows all\n    line 500\n", page.text
    )
    assert page.text.endswith("    line 998\n    line 999\n")


def test_the_verbose_view_draws_all_lines_of_a_typed_command() -> None:
    page = Page(is_verbose=True)
    page.draw(ToolPrinted(id="typed_1", text="x\n" * 100), shell_said())
    assert page.text.count("  x\n") == 100
    assert not page.renderer.unfold()
