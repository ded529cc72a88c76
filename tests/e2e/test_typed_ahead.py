"""What is typed before the prompt is drawn, or while another program has the terminal, is there when the prompt is."""

from collections.abc import Callable

import pytest

from screen import Screen

Start = Callable[..., Screen]

pytestmark = pytest.mark.slow


def test_a_line_typed_before_the_prompt_is_drawn_is_sent(start: Start) -> None:
    screen = start(["hello"])
    screen.keys("hi you\r")
    screen.sees(r"› hi you\n(.*\n)*.*hello")


def test_words_typed_before_the_prompt_is_drawn_stand_in_it_only(start: Start) -> None:
    screen = start(["hello"])
    screen.keys("fix th")
    screen.sees(r"(?m)^› fix th$")
    assert screen.stays().count("fix th") == 1
    assert screen.text.startswith("ybs ")
    screen.keys("e bug\r")
    screen.sees(r"› fix the bug\n(.*\n)*.*hello")


def test_a_line_typed_while_a_program_has_the_terminal_is_sent(start: Start) -> None:
    screen = start(["hello"], environ={"OLLAMA_HOST": "127.0.0.1:9"})
    screen.sees(r"› *\n")
    screen.keys("/doctor\r")
    screen.sees(r"ok +python")
    screen.keys("hi you\r")
    screen.sees(r"› hi you\n(.*\n)*.*hello")


def test_enter_typed_while_the_editor_has_the_terminal_sends_nothing(start: Start) -> None:
    screen = start(["hello"], environ={"EDITOR": "sh -c 'echo begun; sleep 1; echo new > \"$0\"'"})
    screen.sees(r"› *\n")
    screen.keys("old\x18\x05")
    screen.sees("begun")
    screen.keys("\rand more")
    screen.sees(r"(?m)^› new\n  and more$")
    assert "hello" not in screen.stays()


def test_several_lines_typed_before_the_prompt_is_drawn_are_one_prompt(start: Start) -> None:
    screen = start(["hello", "again"])
    screen.keys("grün\rand blue\r")
    screen.sees(r"› grün\n  and blue\n(.*\n)*.*hello")
    screen.keys("one\ntwo\r")  # Ctrl-J is a new line again
    screen.sees(r"› one\n  two\n(.*\n)*.*again")


def test_a_long_paste_without_brackets_is_one_prompt(start: Start) -> None:
    screen = start(["hello"])
    screen.sees(r"› *\n")
    screen.keys(f"{'x' * 31}\r" * 64)  # a read of 1,024 bytes ends with a line
    screen.sees("hello")
    assert screen.stays(1.0).count("› x") == 1
