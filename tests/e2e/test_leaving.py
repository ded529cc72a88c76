"""What is said when a chat is left, and what it asks first."""

import re
from collections.abc import Callable

import pytest

from screen import Screen
from ybs.testing import call

Start = Callable[..., Screen]


@pytest.mark.slow
def test_leaving_names_the_session_and_how_it_is_continued(start: Start) -> None:
    screen = start(["hello", "again"])
    screen.sees(r"› *\n")
    screen.keys("hi\r")
    screen.sees("hello")
    screen.keys("\x04")
    text = screen.sees(r"Continue it with: ybs --resume session-\S+")
    assert re.search(r"Session session-\S+.*1 turn, .*tokens", text)
    assert screen.ends() == 0


@pytest.mark.slow
def test_leaving_nothing_behind_says_nothing(start: Start) -> None:
    screen = start([])
    screen.sees(r"› *\n")
    screen.keys("\x04")
    assert screen.ends() == 0
    assert "Session" not in screen.text


@pytest.mark.slow
def test_leaving_says_first_that_background_jobs_end(start: Start) -> None:
    sleep = call("run_shell", command="sleep 60", background=True)
    screen = start([sleep, "started"], "--mode", "bypass", "--no-sandbox")
    screen.sees(r"› *\n")
    screen.keys("go\r")
    screen.sees("started")
    screen.stays()
    screen.keys("/quit\r")
    screen.sees("Leaving stops 1 background job")
    screen.stays()
    assert screen.child.isalive()
    screen.keys("/quit\r")
    screen.sees("1 background job stopped")
    assert screen.ends() == 0
