"""The title of the terminal's window, as a real terminal gets it."""

import re
from collections.abc import Callable

import pytest

from screen import Screen
from ybs.testing import call

Start = Callable[..., Screen]


@pytest.mark.slow
def test_the_title_says_whether_it_works_or_waits_and_the_old_one_comes_back(start: Start) -> None:
    screen = start([call("run_shell", command="true"), "done"], "--no-sandbox")
    screen.sees(r"› *\n")
    screen.keys("/rename The cart\r")
    screen.sees("Title: The cart")
    screen.keys("go\r")
    screen.sees(r"\[y\] yes")
    screen.stays()
    screen.keys("y")
    screen.sees("done")
    screen.keys_until_it_ends("\x04")
    raw = screen.raw
    titles = re.findall(r"\x1b\]2;([^\x1b]*)\x1b\\", raw)
    folder = titles[0].removeprefix("ybs - ")
    assert titles[:5] == [
        f"{start} - {folder}"
        for start in ("ybs", "The cart", "* The cart", "? The cart", "* The cart")
    ]
    assert titles[-1] == f"The cart - {folder}"
    assert raw.count("\x1b[22;2t") == raw.count("\x1b[23;2t") == 1
    assert raw.index("\x1b[22;2t") < raw.index("\x1b]2;") < raw.index("\x1b[23;2t")
