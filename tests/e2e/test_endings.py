"""However ybs ends, in whatever state: the terminal is left as it was found."""

import re
import signal
import termios
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from processes import is_alive
from screen import YBS, Screen
from scripted.faults import Interrupted
from serving import serving
from ybs.testing.script import answer, call

pytestmark = pytest.mark.slow
STALLED = Interrupted(how="stall", answer=answer("half of it and the rest"), after_frames=2)
#: What is typed, and what is seen then.
STATES: dict[str, tuple[str, str]] = {
    "waiting": ("", r"› *\n"),
    "typing": ("some words", r"some words"),
    "completing": ("/mo", r"/model"),
    "picking": ("/model\r", r"› • 1 scripted"),
    "streaming": ("say half\r", r"half of"),
    "running": ("run\r", r"shell +echo begun(.|\n)*\n +begun"),
    "printing": ("!echo begun; sleep 60\r", r"\n +begun"),
    "asking": ("write\r", r"\[y\] yes"),
    "explaining": ("write\r", r"\[y\] yes"),
}
#: A SIGHUP is not among them: what it means is said by the terminal (test_a_terminal_that_is_closed_ends_it).
ENDS = {"SIGTERM": (signal.SIGTERM, 143)}


def entry_of(request: Any) -> Any:
    """Answer as the person's words say."""
    words = str(request.body["messages"][-1]["content"])
    if words.endswith("say half"):
        return STALLED
    if words.endswith("run"):
        return call("run_shell", command="echo begun; sleep 60")
    return call("write_file", path="made", content="x")


def brought_to(state: str, stack: ExitStack) -> Screen:
    server = stack.enter_context(serving([entry_of]))
    allowed = ("--allow", "run_shell(echo *)", "--allow", "run_shell(sleep *)")
    words = ("--endpoint", server.url, "-m", "scripted", "--no-sandbox", *allowed)
    screen = stack.enter_context(Screen(*words))
    screen.sees(r"› *\n")
    keys, pattern = STATES[state]
    screen.keys(keys)
    screen.sees(pattern)
    if state == "explaining":
        screen.stays()
        screen.keys("r")
        screen.sees("because:")
    return screen


def modes_left_on(raw: str) -> list[str]:
    """List what was switched on and not off again: modes that are not usual, a pushed keyboard, a hidden cursor."""
    left = [mode for mode in set(re.findall(r"\x1b\[\?(\d+)[hl]", raw)) - {"25", "7", "12"}
            if raw.rfind(f"\x1b[?{mode}h") > raw.rfind(f"\x1b[?{mode}l")]  # fmt: skip
    if raw.rfind("\x1b[?25l") > raw.rfind("\x1b[?25h"):
        left.append("hidden cursor")
    if len(re.findall(r"\x1b\[>\d+u", raw)) > len(re.findall(r"\x1b\[<\d*u", raw)):
        left.append("keyboard protocol")
    if raw.rfind("\x1b[>4;") > raw.rfind("\x1b[>4m"):
        left.append("modified keys")
    return left


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("state", STATES)
def test_a_signal_leaves_the_terminal_as_it_was(state: str, end: str, project: Path) -> None:
    number, code = ENDS[end]
    with ExitStack() as stack:
        screen = brought_to(state, stack)
        assert termios.tcgetattr(screen.child.child_fd)[3] & termios.ICANON == 0
        screen.child.kill(number)
        assert screen.ends() == code
        now = termios.tcgetattr(screen.child.child_fd)
        assert now[3] & termios.ICANON
        assert now[3] & termios.ECHO
        assert modes_left_on(screen.raw) == []
        assert "Traceback" not in screen.raw
        assert not (project / "made").exists()


@pytest.mark.parametrize("state", STATES)
def test_a_terminal_that_is_closed_ends_it(state: str, project: Path) -> None:
    with ExitStack() as stack:
        screen = brought_to(state, stack)
        children = children_of(screen.child.pid)
        assert bool(children) == (state in ("running", "printing"))
        screen.child.ptyproc.fileobj.close()
        assert comes(lambda: not screen.child.isalive())
        assert screen.child.exitstatus == 129
        assert comes(lambda: not any(map(is_alive, children)))
        assert not (project / "made").exists()


@pytest.mark.timeout(60)
def test_a_chat_whose_shell_was_killed_ends_too(project: Path, home: Path) -> None:
    """The shell leads the session, so the terminal is taken away a moment after the signal."""
    line = f"{YBS} -p openai --endpoint http://127.0.0.1:9 -m x; true\r"
    with Screen(command=("/bin/sh",)) as screen:
        screen.keys(line)
        screen.sees(r"› *\n")
        (chat,) = children_of(screen.child.pid)
        screen.child.kill(signal.SIGKILL)
        assert comes(lambda: not is_alive(chat))


def comes(is_so: Callable[[], bool]) -> bool:
    """Return whether something becomes so within a while."""
    ends_at = time.monotonic() + 8
    while not is_so():
        if time.monotonic() > ends_at:
            return False
        time.sleep(0.01)
    return True


def children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(word) for task in tasks for word in (task / "children").read_text().split()]
