"""Questions, menus and the plain terminal of the real command on a real terminal."""

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from screen import Screen
from ybs.testing import call

pytestmark = pytest.mark.slow
Start = Callable[..., Screen]


def test_keys_that_go_on_while_a_question_comes_up_answer_nothing(start, project):
    screen = start([call("run_shell", command="touch made"), "finished"])
    screen.sees(r"› *\n")
    screen.keys("go\r")
    screen.sees(r"› go\n(?s:.*)› *\n|wants to run")
    ends_at = time.monotonic() + 2
    while time.monotonic() < ends_at:  # somebody types on, before the question, and into it
        screen.keys("y")
        screen.stays(0.05)
    assert re.search(r"\[y\] yes\s+\[n\] no", screen.text)
    assert not (project / "made").exists()
    screen.stays(0.5)
    screen.keys("\r")  # is not an answer either
    screen.stays(0.5)
    assert re.search(r"\[y\] yes\s+\[n\] no", screen.text)
    screen.keys("r")
    screen.sees("because:\n")
    screen.keys("not now\r")
    screen.sees(r"\[r\] no, because: not now")
    screen.sees("finished")
    assert not (project / "made").exists()


def test_a_menu_is_chosen_from_and_closed_in_a_narrow_terminal(start: Start) -> None:
    screen = start(["hello"], columns=40, rows=12)
    screen.sees(r"› *\n")
    screen.keys("/mode\r")
    screen.sees(r"› • 1 ask")
    screen.keys("acc")
    screen.sees(r"›   2 accept-edits")
    screen.stays(0.4)  # what comes sooner chooses nothing
    screen.keys("\r")
    screen.sees(r"(?s)› /mode accept-edits.*accept-edits  ctx")
    screen.keys("/mode\r")
    screen.sees(r"› • 2 accept-edits")
    screen.keys("\x1b")
    screen.sees(r"› *\n")
    screen.keys("\x0c")
    screen.keys("hello\r")
    screen.sees(r"\d+ in · \d+ out")
    screen.keys("\x04")
    assert screen.ends() == 0


def test_all_keys_in_one_write_do_what_was_typed(start: Start) -> None:
    screen = start(["hello"])
    screen.sees(r"› *\n")
    screen.keys("/mode\r\x1b[B\rhello")
    screen.sees(r"(?s)› /mode accept-edits.*› hello")
    screen.keys("\x15/mode\r\x1b[B\x1b[B\x1b[B\x1b[A\r")
    screen.sees("› /mode plan")
    screen.keys("/mo\r\x1b[B\r")  # the first that is offered: /model
    screen.sees("(?s)Models? of|› /model")
    screen.keys_until_it_ends("\x1b\x03\x04")


def test_the_plain_terminal_moves_no_cursor_and_knows_menus(start, project):
    made = call("run_shell", command="touch made")
    screen = start([made, "finished", "again"], "--plain", columns=120)
    screen.sees(r"You:$")
    screen.keys("/mode\r")
    text = screen.sees(r"Number \(Enter for none\):$")
    number = re.search(r"(\d+)\. accept-edits", text)
    assert number is not None
    screen.stays(0.4)  # what comes sooner is not an answer
    screen.keys(f"{number[1]}\r")
    screen.sees(r"accept-edits[^.]*\n+You:$")
    screen.keys("go\rthen this\r")
    screen.sees(r"(?s)Will be sent later: then this.*|no because \.\.\.:$")
    screen.stays(0.5)
    screen.keys("yes\r")
    screen.sees("finished")
    assert (project / "made").exists()
    screen.sees(r"(?s)again.*You:$")  # the words that came too early
    screen.keys("\x04")
    assert screen.ends() == 0
    assert "\x1b" not in screen.raw


def test_always_in_this_project_is_asked_once_and_taken_back_by_permissions(start, project):
    text = "open('made', 'w').close(); print('it ' + 'works')\n"
    (project / "test_app.py").write_text(text)
    run = call("run_shell", command="PYTHONPATH=. python3 test_app.py 2>&1 | tail -3")
    screen = start([run, "finished"])
    screen.sees(r"› *\n")
    screen.keys("go\r")
    screen.sees(r"\[p\] always in this project")
    screen.stays(0.5)
    screen.keys("p")
    screen.sees(r"\[p\] always in this project: run_shell\(PYTHONPATH=\. python3 test_app\.py \*\)")
    screen.sees("it works")
    screen.sees("finished")
    screen.keys("\x04")
    assert screen.ends() == 0

    screen = start([run, "finished again"])
    screen.sees(r"› *\n")
    screen.keys("go\r")
    screen.sees("finished again")
    assert "wants to run" not in screen.text
    screen.keys("/permissions\r")
    screen.sees(r"1 +allowed +run_shell\(PYTHONPATH=\. python3 test_app\.py \*\)")
    screen.keys("/permissions remove 1\r")
    screen.sees("Removed: ")
    screen.keys("\x1b[Z")
    screen.sees("accept-edits: ")
    screen.keys("\x04")
    assert screen.ends() == 0


def test_a_read_outside_is_a_question_and_words_without_their_file_stay_in_the_prompt(
    start: Start, project: Path, tmp_path: Path
) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "notes.txt").write_text("plums and pears\n")
    read = call("read_file", path=str(other / "notes.txt"))
    screen = start([read, "finished", "attached"])
    screen.sees(r"› *\n")
    screen.keys("see @gone.py\r")
    screen.sees("ybs wants to send your message without the failed attachments")
    screen.sees("there is no file that matches @gone.py")
    screen.stays(0.5)
    screen.keys("n")
    screen.sees("Nothing was sent")
    screen.sees(r"› see @gone.py\n")
    screen.keys("\x15")
    screen.keys("go\r")
    screen.sees("read_file wants to read outside of the folders that ybs works in")
    screen.sees(r"\[a\] always this session: reading in")
    screen.stays(0.5)
    screen.keys("a")
    screen.sees("finished")
    screen.keys(f"see @{other}/notes.txt\r")
    screen.sees("Attached: ")
    screen.sees("attached\n")
    screen.keys("\x04")
    assert screen.ends() == 0


def test_a_plan_ends_in_a_question_and_yes_changes_the_mode_and_carries_it_out(start, project):
    write = call("write_file", path="made.txt", content="x")
    plan = "Plan:\n1. write made.txt\n2. look at it"
    screen = start([plan, write, "all is done"], "--mode", "plan")
    screen.sees(r"› *\n")
    screen.keys("make it\r")
    screen.sees("Go ahead with this plan")
    screen.sees(r"  \[1\] yes, in accept-edits")
    screen.stays(0.5)
    screen.keys("\x1b")  # keep planning
    screen.sees(r"› *\n")
    screen.keys("/plan\r")
    screen.sees("/plan go carries it out")
    screen.keys("/plan go\r")
    screen.sees("all is done")
    screen.sees(r"accept-edits +ctx|accept-edits  ")
    assert (project / "made.txt").read_text() == "x"
    screen.keys("\x04")
    assert screen.ends() == 0


def test_the_plain_terminal_asks_about_a_plan_in_words(start: Start, project: Path) -> None:
    write = call("write_file", path="made.txt", content="x")
    plan = "Plan:\n1. write made.txt\n2. look at it"
    screen = start([plan, write, "all is done"], "--plain", "--mode", "plan")
    screen.sees(r"You:$")
    screen.keys("make it\r")
    screen.sees(r"(?s)Go ahead with this plan\?.*1\. yes, in accept-edits.*Number[^\n]*:$")
    screen.stays(0.4)  # what comes sooner is not an answer
    screen.keys("3\r")
    screen.sees("all is done")
    assert (project / "made.txt").read_text() == "x"
    screen.sees(r"You:$")
    screen.keys("/status\r")
    screen.sees(r"mode +auto")
    screen.keys("\x04")
    assert screen.ends() == 0
