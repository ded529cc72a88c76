"""`ybs attach` on a real pseudo-terminal, beside programs and other terminals, and `ybs --background`."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from rows import every_row
from screen import Screen
from served import YBS, Serving, asked, served, short_home, until, until_there
from serving import serving
from ybs.frontends.serve import protocol as wire
from ybs.session.options import BadOption, Options
from ybs.testing import call

pytestmark = [pytest.mark.integration, pytest.mark.timeout(30)]
DELETE = call("delete_file", path="a")
READY = r"› *\n"
Attach = Callable[..., Screen]


@pytest.fixture
def own() -> Iterator[Path]:
    """Make a home folder for the server: that of the tests is handed on."""
    with short_home() as folder:
        yield folder


@pytest.fixture
def attach(own: Path) -> Iterator[Attach]:
    """Return a function that attaches a terminal."""
    with ExitStack() as stack:

        def attached(*words: str) -> Screen:
            environ = {"HOME": str(own), "OPENAI_API_KEY": "k"}
            return stack.enter_context(Screen("attach", *words, environ=environ))

        yield attached


async def opened(client: Any, serving: Serving, **more: Any) -> str:
    session = (await client.call("open", **{**serving.opening, **more}))["session"]
    await client.call("subscribe", session=session)
    return session


async def test_a_terminal_a_program_and_one_that_never_reads_hold_one_session(own, project, attach):
    (project / "a").write_text("text")
    async with served(own, project, DELETE, "it is gone", "and so on") as serving:
        client, lazy = await serving.client(), await serving.bare(greets=True)
        session = await opened(client, serving)
        await lazy.ask("subscribe", session=session, lines=True)
        turn = asyncio.create_task(client.call("send", session=session, text="delete it"))
        question = await asked(client)
        screen = attach()
        text = await asyncio.to_thread(screen.sees, r"\[y\] yes")
        assert re.search(
            r"› delete it\n.*\? delete_file wants to delete a, in\s[^:]+:", text, re.DOTALL
        )
        given = {"session": session, "question": question["id"], "is_allowed": True}
        assert await client.call("answer", **given) == {"done": True}
        await asyncio.to_thread(screen.sees, r"it is gone[\s\S]*› *\n")
        assert "[y] yes" not in screen.text.splitlines()[-3:]
        assert (await turn)["outcome"]["text"] == "it is gone"
        screen.keys("more words\r")
        assert (await until(client, "user"))["content"] == "more words"
        await asyncio.to_thread(screen.sees, "and so on")
        assert screen.text.count("more words") == 1
        screen.keys("\x04")
        text = await asyncio.to_thread(screen.sees, r"Come back with: ybs attach session-\S+")
        assert await asyncio.to_thread(screen.ends) == 0
        assert [each["doing"] for each in await client.call("list")] == ["done"]
        await client.close()
        await lazy.close()


async def test_a_question_is_answered_in_one_of_two_terminals_and_both_show_what_either_sends(
    own: Path, project: Path, attach: Attach
):
    (project / "a").write_text("text")
    async with served(own, project, DELETE, "it is gone") as serving:
        client = await serving.client()
        await opened(client, serving)
        first, second = attach(), attach()
        for screen in (first, second):
            await asyncio.to_thread(screen.sees, READY)
        first.keys("delete it\r")
        for screen in (first, second):
            await asyncio.to_thread(screen.sees, r"› delete it\n[\s\S]*\[y\] yes")
        await asyncio.sleep(0.5)  # keys that come before a question can be read are none
        second.keys("y")
        for screen in (first, second):
            await asyncio.to_thread(screen.sees, r"it is gone[\s\S]*› *\n")
        assert not (project / "a").exists()
        second.keys("/mode plan\r")
        for screen in (first, second):
            await asyncio.to_thread(screen.sees, r"› /mode plan\n\nMode: plan")
        await asyncio.to_thread(first.sees, r"m  plan")
        first.keys("/mode\r\x1b[B\r")  # the arrow is for the menu, which comes from the server
        await asyncio.to_thread(second.sees, r"Mode: (?!plan)")
        second.keys("/help\r")
        await asyncio.to_thread(second.sees, r"Ctrl-G, Ctrl-X")
        await client.close()


async def test_an_open_session_keeps_its_options_and_others_are_refused(
    own: Path, project: Path, attach: Attach
):
    options = ("--mode", "plan", "--deny", "run_shell(git push*)", "--incognito")
    async with served(own, project) as serving:
        client = await serving.client()
        session = await opened(client, serving, mode="auto")
        for name in ((session,), ()):
            screen = attach(*name, *options)
            await asyncio.to_thread(screen.sees, "keeps the options")
            assert "mode, incognito, deny cannot be given" in " ".join(screen.text.split())
            assert await asyncio.to_thread(screen.ends) == 1
        screen = attach(session, "--mode", "auto")  # it has that
        await asyncio.to_thread(screen.sees, READY)
        await client.close()


async def test_leaving_at_a_question_leaves_it_open(own: Path, project: Path, attach: Attach):
    (project / "a").write_text("text")
    async with served(own, project, DELETE, "it is gone") as serving:
        client = await serving.client()
        session = await opened(client, serving)
        screen = attach(session)
        await asyncio.to_thread(screen.sees, READY)
        screen.keys("delete it\r")
        question = await asked(client)
        await asyncio.to_thread(screen.sees, r"\[y\] yes")
        screen.__exit__()  # the terminal is closed
        listed = await client.call("list")
        assert [each["doing"] for each in listed] == ["asks"]
        again = attach(session)
        await asyncio.to_thread(again.sees, r"\[y\] yes")
        given = {"session": session, "question": question["id"], "is_allowed": True}
        assert await client.call("answer", **given) == {"done": True}
        await asyncio.to_thread(again.sees, "it is gone")
        await client.close()


async def test_lines_wait_in_all_terminals_and_the_own_shell_is_that_of_the_terminal(
    own: Path, project: Path, attach: Attach
):
    (project / "a").write_text("text")
    async with served(own, project, "I see it", DELETE, "one", "two") as serving:
        client = await serving.client()
        session = await opened(client, serving)
        screen = attach()
        await asyncio.to_thread(screen.sees, READY)
        screen.keys("!!echo from-$TERM\r")
        await asyncio.to_thread(screen.sees, r"from-xterm-256color[\s\S]*exit code 0")
        screen.keys("/share look\r")
        message = await until(client, "user")
        assert message["origin"] == "shell"
        assert "from-xterm-256color" in message["content"]
        await asyncio.to_thread(screen.sees, r"› /share look\n[\s\S]*I see it")
        screen.keys("/verbose on\r")
        await asyncio.to_thread(screen.sees, r"› /verbose on\n[\s\S]*in full")
        turn = asyncio.create_task(client.call("send", session=session, text="delete it"))
        question = await asked(client)
        waits = asyncio.create_task(
            client.call("send", session=session, text="wait for it", waits=True)
        )
        await asyncio.to_thread(screen.sees, r"\[y\] yes")
        given = {"session": session, "question": question["id"], "is_allowed": False}
        await client.call("answer", **given)
        assert (await turn)["outcome"]["text"] == "one"
        assert (await waits)["outcome"]["text"] == "two"
        text = await asyncio.to_thread(screen.sees, r"› wait for it[\s\S]*two")
        assert text.index("one") < text.index("› wait for it")
        await client.close()


async def test_a_terminal_goes_on_when_the_server_was_killed_in_a_turn(own, project, attach):
    begun = call("run_shell", command="echo 1 >> made; sleep 30")
    async with served(own, project, begun, "all done", "more") as serving:
        client = await serving.client()
        session = await opened(client, serving)
        await client.call("set_mode", session=session, mode="bypass")
        screen = attach(session)
        await asyncio.to_thread(screen.sees, READY)
        screen.keys("make it\r")
        await until(client, "tool_call", name="run_shell")
        await asyncio.to_thread(screen.sees, r"shell +echo 1")
        await until_there(project / "made")
        await client.close()
        await serving.kill()
        try:
            text = await asyncio.to_thread(screen.sees, r"It is started again[\s\S]*all done")
            assert text.count("make it") == 1
            await asyncio.to_thread(screen.sees, r"all done[\s\S]*› *\n[\s\S]* m  bypass")
            screen.keys("and more\r")
            await asyncio.to_thread(screen.sees, r"› and more\n\n +more")
            screen.keys("\x04")
            assert await asyncio.to_thread(screen.ends) == 0
        finally:
            await asyncio.to_thread(_end_server, own)
        assert (project / "made").read_text() == "1\n"


async def test_what_is_typed_in_an_incognito_session_is_not_kept(own, project, attach):
    async with served(own, project, "hello", "again") as serving:
        client = await serving.client()
        for is_incognito in (True, False):
            session = await opened(client, serving, incognito=is_incognito)
            screen = attach(session)
            await asyncio.to_thread(screen.sees, READY)
            screen.keys(f"typed {is_incognito}\r")
            await asyncio.to_thread(screen.sees, "hello|again")
            screen.keys("\x04")
            await asyncio.to_thread(screen.ends)
        kept = b"".join(path.read_bytes() for path in _files(own / ".local/state/ybs/history"))
        assert b"typed False" in kept
        assert b"typed True" not in kept
        await client.close()


async def test_a_line_that_waits_behind_incognito_and_a_draft_there_are_not_kept(
    own, project, attach
):
    waits = call("run_shell", command="until [ -e go ]; do sleep 0.05; done")
    async with served(own, project, waits, "first", "second") as serving:
        client = await serving.client()
        session = await opened(client, serving, mode="bypass")
        screen = attach(session)
        await asyncio.to_thread(screen.sees, READY)
        screen.keys("begin\r")
        await until(client, "tool_call", name="run_shell")
        for line in ("/incognito", "a private question"):
            screen.keys(f"{line}\r")
            await asyncio.to_thread(screen.sees, rf"› {line}  \(sent when")
        (project / "go").touch()
        await asyncio.to_thread(screen.sees, r"› a private question\n[\s\S]*second")
        screen.keys("a private draft")
        await asyncio.to_thread(screen.sees, "› a private draft")
        await asyncio.to_thread(_hang_up, screen)
        assert _history(own) == ["begin", "/incognito"]
        await client.close()


async def test_what_an_attached_terminal_keeps_has_what_the_session_knows_as_secrets_masked(
    own, project, attach
):
    secret, other = "Vt7qLm2Zx9Kd4Rw8Pn3S", "cJlCK11rtodUkRx63idB"
    rounds = f'with "password": "{other} https://bob:V5WBExE5c0yAha2H@h.example/x"'
    async with served(own, project, "one", "two", "three") as serving:
        client = await serving.client()
        session = await opened(client, serving)
        screen = attach(session)
        await asyncio.to_thread(screen.sees, READY)
        said = {f"db_password={secret}": "one", f"is {secret} long": "two", rounds: "three"}
        for line, answer in said.items():
            screen.keys(f"{line}\r")
            question = await asked(client)  # whether to mask it for the model
            given = {"session": session, "question": question["id"], "is_allowed": True}
            await client.call("answer", **given)
            await asyncio.to_thread(screen.sees, rf"{answer}[\s\S]*› *\n")
        screen.keys(f"!!true {secret}\r")
        await asyncio.to_thread(screen.sees, "exit code 0")
        screen.keys(f"and {secret}")
        await asyncio.to_thread(screen.sees, f"› and {secret}")
        await asyncio.to_thread(_hang_up, screen)
        kept = _history(own)
        assert len(kept) == 5
        assert kept[:2] == ["db_password=[assigned-secret]", "is [assigned-secret] long"]
        assert kept[3:] == ["!!true [assigned-secret]", "and [assigned-secret]"]
        assert not [each for each in kept if secret in each or other in each]
        await client.close()


def _hang_up(screen: Screen) -> None:
    pty = screen.child.ptyproc
    pty.fileobj.close()  # the window is closed
    pty.closed = True
    pty.wait()


def _history(own: Path) -> list[str]:
    (file,) = _files(own / ".local/state/ybs/history")
    return [json.loads(line)["text"] for line in file.read_text().splitlines()]


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def ybs(own: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "HOME": str(own), "OPENAI_API_KEY": "k"}
    return subprocess.run((YBS, *words), env=environ, capture_output=True, text=True, timeout=60)


def test_a_prompt_in_the_background_starts_a_server_which_is_listed_and_attached_to(
    own: Path, project: Path, attach: Attach
):
    (project / "a").write_text("text")
    with serving([DELETE, "it is gone"]) as model:
        where = ("-p", "openai", "-m", "m", "--endpoint", model.url, "--no-sandbox")
        said = ybs(own, *where, "--background", "delete it").stderr
        try:
            name = re.findall(r"ybs attach (session-\S+)", said)[0]
            screen = attach(name)
            screen.sees(r"\[y\] yes")
            listed = json.loads(ybs(own, "sessions", "--format", "json").stdout)
            assert [(each["session"], each["doing"]) for each in listed] == [(name, "asks")]
            screen.stays(0.5)
            screen.keys("y")
            screen.sees("it is gone")
            assert ybs(own, "sessions").stdout.rstrip().endswith("done")
        finally:
            _end_server(own)


def _end_server(own: Path) -> None:
    with socket.socket(socket.AF_UNIX) as link:
        folder = os.open(own / ".local/state/ybs/serve", os.O_RDONLY)
        link.connect(f"/proc/self/fd/{folder}/serve.sock")
        os.close(folder)
        link.sendall(b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"version":1}}\n')
        pid = json.loads(link.recv(1000))["result"]["pid"]
        os.kill(pid, signal.SIGTERM)
        while link.recv(1000):
            pass


def test_what_cannot_be_attached_to_is_said(own: Path, project: Path):
    assert "needs a terminal" in ybs(own, "attach").stderr
    assert "needs a prompt" in ybs(own, "--background").stderr
    assert "--print" in ybs(own, "--background", "--print", "words").stderr


@every_row(
    "options",
    [
        ("--config", "strict.json"),
        ("--system-prompt-file", "strict.json"),
        ("--output-schema", "strict.json"),
        ("--dry-run",),
    ],
)
def test_what_a_server_is_not_told_is_not_lost_but_refused(
    own: Path, project: Path, options: tuple[str, ...]
):
    (project / "strict.json").write_text('{"type": "object", "safety": {"mode": "plan"}}')
    found = ybs(own, *options, "--background", "tidy up")
    assert (found.returncode, found.stdout) == (2, "")
    assert f"{options[0]} cannot be used for a session of the server" in found.stderr
    assert not (own / ".local/state/ybs/serve").exists()  # none was started for it


def test_each_option_of_a_session_travels_or_is_refused(project: Path):
    bare = Options.of(project, {})
    for name in {*Options.__struct_fields__}.difference(wire.Opening.__struct_fields__):
        if name not in ("host", "overrides", "before_incognito"):
            with pytest.raises(BadOption):
                wire.for_server(replace(bare, **{name: object()}))
    with pytest.raises(BadOption, match="safety\\.sandbox-network"):
        wire.for_server(Options.of(project, {"overrides": {"safety.sandbox_network": False}}))
    told = {"mode": "plan", "max_turns": 3, "max_cost": 1.0, "timeout": 2.0, "incognito": True}
    told |= {"provider": "p", "model": "m", "endpoint": "http://e", "profile": "x", "trust": True}
    told |= {"deny": ("a",), "allow": ("b",), "sandbox": False}
    opening = wire.for_server(Options.of(project, {**told, "plain": True, "add_dirs": (project,)}))
    assert {name: getattr(opening, name) for name in told} == told
    assert opening.add_dirs == (str(project),)
    assert not {*wire.Opening.__struct_fields__} - {*told, "add_dirs", "folder", "environ"}
