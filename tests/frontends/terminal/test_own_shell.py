"""The person's own shell on a real pseudo-terminal: what passes, what is kept, and what is left of the terminal's modes."""

import asyncio
import fcntl
import os
import struct
import termios
import tty
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from processes import comes, is_alive
from ybs.frontends.terminal.own_shell import run_own, shell_of
from ybs.session.own_commands import OwnRun

pytestmark = pytest.mark.timeout(30)


class Person:
    """A person at a terminal: types, and sees what is written."""

    def __init__(self) -> None:
        self.master, self.terminal = os.openpty()
        os.set_blocking(self.master, False)
        self.seen = b""

    def close(self) -> None:
        os.close(self.master)
        os.close(self.terminal)

    def look(self) -> bytes:
        with suppress(BlockingIOError):
            while data := os.read(self.master, 65_536):
                self.seen += data
        return self.seen

    async def sees(self, text: bytes) -> None:
        assert await comes(lambda: text in self.look(), 15), self.seen[-1000:]

    def types(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def begins(self, command: str, folder: Path, **environ: str) -> "asyncio.Task[OwnRun]":
        environment = {"PATH": os.environ["PATH"], "SHELL": "/bin/sh", **environ}
        terminal = (self.terminal, self.terminal)
        return asyncio.create_task(run_own(command, folder, terminal=terminal, environ=environment))

    async def runs(self, command: str, folder: Path, **environ: str) -> OwnRun:
        task = self.begins(command, folder, **environ)
        assert await comes(lambda: bool(self.look() or 1) and task.done(), 25)
        self.look()
        return task.result()


@pytest.fixture
def person() -> Iterator[Person]:
    person = Person()
    yield person
    person.close()


@pytest.mark.integration
async def test_it_has_the_persons_folder_environment_and_a_terminal(person, project):
    ran = await person.runs(
        'echo "$MARK in $PWD"; test -t 0 && test -t 1 && test -t 2 && test -r /dev/tty && echo tty',
        project,
        MARK="mine",
    )
    assert ran == OwnRun(exit_code=0, output=f"mine in {project}\ntty")
    assert b"mine in " in person.seen


@pytest.mark.integration
async def test_it_is_the_persons_shell(project: Path, person: Person, tmp_path: Path) -> None:
    shell = tmp_path / "bash"
    shell.write_text('#!/bin/sh\necho "mine with $1: $2"\n')
    shell.chmod(0o755)
    assert (await person.runs("ls", project, SHELL=str(shell))).output == "mine with -ic: ls"


def test_a_shell_that_is_not_one_is_not_taken() -> None:
    for name in ("/nowhere/zsh", "relative/bash"):
        assert Path(shell_of({"SHELL": name})[0]).is_absolute()
        assert os.access(shell_of({"SHELL": name})[0], os.X_OK)
    assert shell_of({"SHELL": "/bin/sh"}) == ["/bin/sh", "-c"]


@pytest.mark.integration
async def test_what_is_typed_goes_to_the_program_and_ctrl_c_too(person, project):
    task = person.begins(
        "trap 'echo caught; exit 7' INT; read line; echo got $line; while :; do sleep 0.05; done",
        project,
    )
    person.types(b"hello\r")
    await person.sees(b"got hello")
    person.types(b"\x03")
    ran = await task
    assert ran.exit_code == 7
    assert "caught" in ran.output


@pytest.mark.integration
async def test_the_modes_are_restored_after_a_program_that_died_without_doing_so(person, project):
    before = termios.tcgetattr(person.terminal)
    ran = await person.runs(
        "stty raw -echo; printf 'kept\\033[?1049h\\033[?25l\\033[?1000;1006h\\033[1mhidden'; kill -9 $$",
        project,
    )
    assert termios.tcgetattr(person.terminal) == before
    assert ran == OwnRun(exit_code=-9, output="kept")
    after = person.seen.rpartition(b"hidden")[2]
    for sequence in (b"\x1b[?1049l", b"\x1b[?1000l", b"\x1b[?1006l", b"\x1b[?25h", b"\x1b[0m"):
        assert sequence in after, sequence


@pytest.mark.integration
async def test_modes_that_the_program_took_back_are_left_alone(person, project):
    await person.runs("printf '\\033[?1049h\\033[?2004hx\\033[?2004l\\033[?1049l\\n'", project)
    assert person.seen.count(b"\x1b[?1049l") == 1
    assert person.seen.endswith(b"\x1b[0m\x1b>")


@pytest.mark.integration
async def test_the_next_line_begins_in_the_first_column(person: Person, project: Path) -> None:
    await person.runs("printf 'no line end\\033[0m'", project)
    assert person.seen.endswith(b"\r\n")


@pytest.mark.integration
async def test_it_follows_the_size_of_the_terminal(person: Person, project: Path) -> None:
    person.resize(24, 80)
    task = person.begins("stty size; while test -z \"$(stty size | grep '^33 99$')\"; do sleep 0.05; done; echo seen", project)  # fmt: skip
    await person.sees(b"24 80")
    person.resize(33, 99)
    assert (await task).output == "24 80\nseen"


@pytest.mark.integration
async def test_of_long_output_beginning_and_end_are_kept(person, project, monkeypatch):
    monkeypatch.setattr("ybs.frontends.terminal.own_shell.MOST_HEAD", 100)
    monkeypatch.setattr("ybs.frontends.terminal.own_shell.MOST_TAIL", 200)
    ran = await person.runs("echo first; yes 0123456789 | head -n 3000; echo last", project)
    assert ran.output.startswith("first\n0123456789\n")
    assert ran.output.endswith("\nlast")
    assert " bytes left out ...]\n" in ran.output
    assert len(ran.output) < 400
    assert person.seen.count(b"0123456789") == 3000  # the person has seen all of it


@pytest.mark.integration
async def test_what_is_kept_is_clean(person: Person, project: Path) -> None:
    ran = await person.runs(
        "printf '\\033[31mred\\033[0m \\033]0;title\\007a\\bb 1%%\\r2%%\\n'", project
    )
    assert ran.output == "2%"


@pytest.mark.integration
async def test_what_goes_on_in_the_background_keeps_nobody_waiting(person, project):
    async with asyncio.timeout(5):
        ran = await person.runs("trap '' HUP; sleep 8 & echo $!", project)
    assert ran.exit_code == 0
    os.kill(int(ran.output), 9)


@pytest.mark.integration
async def test_who_stops_it_ends_the_program_and_gets_the_terminal_back(person, project):
    before = termios.tcgetattr(person.terminal)
    task = person.begins("echo pid $$; trap '' HUP TERM; while :; do sleep 0.05; done", project)
    await person.sees(b"\n")
    pid = int(person.seen.split()[1])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await comes(lambda: not is_alive(pid))
    assert termios.tcgetattr(person.terminal) == before


@pytest.mark.integration
async def test_a_terminal_in_raw_mode_stays_what_it_was(person: Person, project: Path) -> None:
    tty.setraw(person.terminal)
    before = termios.tcgetattr(person.terminal)
    await person.runs("true", project)
    assert termios.tcgetattr(person.terminal) == before
