"""SIGHUP: a chat whose terminal is there reloads its tools, one whose terminal is gone ends."""

import os
from typing import Any, cast

from rows import every_row
from ybs.frontends.terminal.terminal import AGAIN_SECONDS, GONE, RELOAD, hung_up, is_gone


class Loop:
    """Runs what is to be done later when a test says so."""

    def __init__(self) -> None:
        self.later: list[Any] = []

    def call_later(self, seconds: float, function: Any) -> None:
        assert seconds == AGAIN_SECONDS
        self.later.append(function)


@every_row(
    ("looks", "expected"),
    [([True], [GONE]), ([False, False], [RELOAD]), ([False, True], [RELOAD, GONE])],
)
def test_what_a_hangup_means_is_said_by_the_terminal(looks: list[bool], expected: list[Any]):
    loop, done = Loop(), list[Any]()
    hung_up(cast("Any", loop), done.append, done.append, lambda: looks.pop(0))
    for function in loop.later:
        function()
    assert done == expected
    assert not looks


def test_what_is_not_the_terminal_of_this_process_is_gone():
    reading, writing = os.pipe()
    try:
        assert is_gone(reading)
    finally:
        os.close(reading)
        os.close(writing)
    assert is_gone(reading)
