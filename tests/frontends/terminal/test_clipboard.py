"""The clipboard: by a program where there is one, else by the terminal."""

import asyncio
import base64
from pathlib import Path

import pytest
from stage import staged

from fake_session import FakeSession
from ybs.config.host import Host
from ybs.frontends.terminal import clipboard
from ybs.frontends.terminal.clipboard import MAX_OSC_BYTES, copy_by_program, osc52, programs, said
from ybs.session.reply import Reply, TerminalActions


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMUX", "STY", "DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("ybs.security.launcher.SYSTEM_FOLDERS", ())


def install(folder: Path, name: str, script: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_the_terminal_gets_what_was_seen_in_base64_and_nothing_too_long() -> None:
    sequence = osc52("ü\x1b[2J\n", {})
    assert sequence.startswith("\x1b]52;c;")
    assert base64.b64decode(sequence[7:-1]).decode() == "ü␛[2J\n"
    assert osc52("x" * MAX_OSC_BYTES, {})
    assert osc52("x" * (MAX_OSC_BYTES + 1), {}) == ""


def test_programs_are_those_of_the_desktop_in_front_of_the_person() -> None:
    names = {
        "": {},
        "wl-copy": {"WAYLAND_DISPLAY": "wayland-0"},
        "xclip xsel": {"DISPLAY": ":0"},
        "wl-copy xclip xsel": {"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"},
        "tmux": {"TMUX": "x", "DISPLAY": ":0", "SSH_CONNECTION": "a b c d"},
    }
    for wanted, environ in names.items():
        assert " ".join(command[0] for command in programs(environ)) == wanted


@pytest.mark.integration
async def test_the_first_program_that_works_gets_the_text(tmp_path, monkeypatch):
    project, own = tmp_path / "project", tmp_path / "own"
    for folder in (project / "bin", own):
        folder.mkdir(parents=True, mode=0o755)
    install(project / "bin", "xclip", f"touch {tmp_path}/ran")
    install(own, "xclip", "exit 1")
    install(own, "xsel", f"cat > {tmp_path}/got; env > {tmp_path}/seen; echo noise")
    monkeypatch.chdir(project)
    Host.of({}).work_in(project)
    environ = {
        "PATH": f".:bin:{project}/bin:{own}:/usr/bin:/bin",
        "DISPLAY": ":0",
        "XAUTHORITY": "/x",
        "OPENAI_API_KEY": "canary",
    }
    assert await copy_by_program("a\x1b[2J", environ) == "xsel"
    assert (tmp_path / "got").read_text() == "a␛[2J"
    assert not (tmp_path / "ran").exists()  # what the project brings
    seen = (tmp_path / "seen").read_text()
    assert "XAUTHORITY=/x" in seen
    assert "canary" not in seen
    assert await copy_by_program("a", {}) == ""


@pytest.mark.integration
async def test_a_program_that_hangs_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(clipboard, "PROGRAM_SECONDS", 0.05)
    install(tmp_path, "wl-copy", "exec sleep 60")
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", "WAYLAND_DISPLAY": "w"}
    async with asyncio.timeout(5):
        assert await copy_by_program("a", environ) == ""


def test_what_is_said_is_true() -> None:
    assert said("x", "wl-copy", is_sent=False) == "copied 1 character (wl-copy)"
    assert said("x" * 1200, "", is_sent=True).startswith("1,200 characters sent to the terminal")
    assert "not copied" in said("x" * 80_000, "", is_sent=False)


@pytest.mark.integration
async def test_the_terminal_copies_what_a_command_gives() -> None:
    session = FakeSession()
    session.replies["/copy"] = Reply(terminal=TerminalActions(clipboard="the answer"))
    session.replies["/copy all"] = Reply(terminal=TerminalActions(clipboard="x" * 80_000))
    async with staged(session) as stage:
        stage.keys("/copy\r")
        await stage.sees("10 characters sent to the terminal (OSC 52")
        assert "\x1b]52;c;dGhlIGFuc3dlcg==\x07" in stage.raw
        stage.keys("/copy all\r")
        await stage.sees("not copied: 80,000 characters are more than")
        assert stage.raw.count("\x1b]52") == 1
