"""`!!command` in the real ybs on a real terminal, and what is handed on of it."""

from collections.abc import Callable

import pytest

from screen import Screen

pytestmark = pytest.mark.integration

Start = Callable[..., Screen]


def test_the_persons_own_shell_has_the_terminal_and_gives_it_back(start, project, home):
    environ = {"SHELL": "/bin/sh", "MARK": "mine"}
    screen = start(["!!touch by-model", "I see it."], environ=environ)
    screen.sees(r"› *\n")
    screen.keys("hello\r")
    screen.sees("touch by-model")
    screen.keys(f'!!stty size; read word; echo "$MARK got $word" | tee {home}/outside\r')
    screen.sees(r"24 80", 20)
    screen.keys("typed\r")
    text = screen.sees(r"exit code 0; the model does not see this")
    assert "mine got typed" in text
    assert (home / "outside").read_text() == "mine got typed\n"
    stubborn = (
        "trap 'stty raw -echo; exit 3' INT; printf 'be%s\\n' gun; while :; do sleep 0.1; done"
    )
    screen.keys(f"!!{stubborn}\r")
    screen.sees("begun", 20)
    screen.keys("\x03")
    screen.sees(r"exit code 3; the model does not see this")
    screen.keys("/share what is it?\r")
    screen.sees("I see it")
    assert not (project / "by-model").exists()
    screen.keys("/quit\r")
    assert screen.ends() == 0
    assert "Traceback" not in screen.raw, screen.raw[-3000:]


def test_plain_it_has_the_terminal_too(start: Start) -> None:
    screen = start(["Fine."], "--plain", environ={"SHELL": "/bin/sh"})
    screen.sees("You:", 20)
    screen.keys("!!printf 're%s\\n' ady; read word; echo got $word\r")
    screen.sees("ready", 20)
    screen.keys("typed\r")
    screen.sees("got typed")
    screen.sees("Exit code 0; the model does not see this|exit code 0; the model does not see")
    screen.keys("hello\r")
    screen.sees(r"Fine\.")
    screen.keys("/quit\r")
    assert screen.ends() == 0
