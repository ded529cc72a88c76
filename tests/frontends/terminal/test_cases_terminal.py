"""What models, tools, files and servers say never acts on the terminal: T01 to T08."""

import asyncio
import io
import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from prompt_toolkit.data_structures import Size
from stage import staged

from fake_session import FakeSession, asks, question_of, says
from hostile_git import lay_out
from hostile_text import ACTING, HOSTILE, OWN, acting_in, hostile_events, sound
from rows import every_row
from screen import YBS, Screen
from scripted import ServerProcess
from ybs.cli import complain
from ybs.config.schema import Config, UiSettings
from ybs.core.envelope import MAIN, Envelope
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer
from ybs.frontends.headless.output import (
    Format,
    Pipe,
    Result,
    make_output,
    tell,
    write_json,
    write_table,
)
from ybs.frontends.terminal.output import GatedOutput
from ybs.frontends.terminal.plain.plain import PlainTerminal
from ybs.frontends.terminal.questions.confirm import whole_body
from ybs.frontends.terminal.questions.late import ask
from ybs.security.gate import drawn
from ybs.security.unicode import printable


@every_row("kind", ACTING)
def test_t01_t02_t03_t07_what_acts_is_shown(kind: str):
    shown = printable(ACTING[kind])
    assert acting_in(shown) == []
    assert shown == printable(shown)
    assert acting_in(drawn(f"\x1b[1m{ACTING[kind]}\x1b[22m"), OWN) == []


async def every_event(session: FakeSession) -> None:
    for number, event in enumerate(hostile_events(HOSTILE)):
        session.emit(event)
        if number % 4 == 0:
            await asyncio.sleep(0)


@pytest.mark.integration
async def test_t01_t02_t03_t04_t07_nothing_in_any_event_acts_on_the_terminal():
    body = f"--- {HOSTILE}\n+++ b\n@@ -1 +1 @@\n-old\n+{HOSTILE}"
    questions = [
        question_of(HOSTILE, "execute", HOSTILE, warnings=(HOSTILE,), grant=HOSTILE, command="x"),
        question_of("write_file", "write", body, title=HOSTILE, grant="", path="x"),
    ]
    session = FakeSession(
        every_event,
        *(asks(question, HOSTILE) for question in questions),
        warnings=(HOSTILE,),
        config=Config(ui=UiSettings(notify="off")),  # the bell acts on purpose
    )
    session.model = HOSTILE
    async with staged(session, prompt="go", columns=60, rows=50) as stage:
        await stage.until(lambda: not stage.terminal.work.is_busy)
        for number, _ in enumerate(questions):
            stage.terminal.work.submit(f"say {HOSTILE}")
            await stage.sees("[y] yes")
            stage.clock.now += 1
            stage.keys("n")
            await stage.until(lambda n=number: len(session.answers) > n)
            await stage.until(lambda: "[y] yes" not in stage.screen)
            await stage.until(lambda: not stage.terminal.work.is_busy)
        assert acting_in(stage.raw, OWN) == []
        assert "73137" in stage.raw


@pytest.mark.integration
async def test_t01_t02_t03_t04_t07_nothing_acts_on_the_plain_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    reading, writing = os.pipe()
    keyboard = os.fdopen(reading)
    monkeypatch.setattr(sys, "stdin", keyboard)
    session = FakeSession(every_event, warnings=(HOSTILE,))
    session.model = HOSTILE
    task = asyncio.create_task(PlainTerminal(session.as_session).run(f"go {HOSTILE}"))
    question = question_of(
        HOSTILE, "execute", HOSTILE, warnings=(HOSTILE,), grant=HOSTILE, command="x"
    )
    os.close(writing)
    assert await task == 0
    assert (await ask(question, HOSTILE)) == Answer(is_allowed=False, reason="the person said no")
    keyboard.close()
    written = capsys.readouterr()
    assert acting_in(written.out) == acting_in(written.err) == []
    assert written.out.count("73137") > 20
    assert "73137" in written.err


@every_row(
    ("cell", "shown"),
    [
        ("a", "a"),
        ("ü", "ü"),
        ("a\u202e", "a"),
        ("\u115f", "??"),
        ("ی\u200c", "ی\u200c"),
        ("\x1b", "?"),
    ],
)
def test_t01_u01_pasted_words_in_the_prompt_are_drawn_safe(cell: str, shown: str):
    file = io.StringIO()
    output = GatedOutput(file, lambda: Size(rows=24, columns=80))
    output.write(cell)
    output.flush()
    assert file.getvalue() == shown


@pytest.mark.integration
@pytest.mark.parametrize("style", ["text", "json", "stream-json"])
def test_t01_t02_t03_t04_nothing_acts_in_what_a_run_without_a_terminal_writes(
    style: Format, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    text = HOSTILE if style == "text" else sound(HOSTILE)
    output = make_output(style, Pipe(), is_verbose=True)
    for event in hostile_events(text):
        output.event(Envelope("s", MAIN, event))
    output.result(Result(result=text, reason="error", is_error=True, exit_code=1, message=text))
    written = out.getvalue().decode()
    assert acting_in(written) == acting_in(capsys.readouterr().err) == []
    if style != "text":
        lines = [json.loads(line) for line in written.splitlines()]
        assert lines[-1]["result"] == text


def test_t04_no_table_or_error_of_a_subcommand_acts(capfd: pytest.CaptureFixture[str]):
    write_table([(HOSTILE, HOSTILE), ("a", HOSTILE)])
    write_json({sound(HOSTILE): sound(HOSTILE)})
    tell(HOSTILE)
    complain(HOSTILE)
    written = capfd.readouterr()
    assert acting_in(written.out) == acting_in(written.err) == []
    assert written.err.count("73137") > 10


def run_call(command: str) -> ToolCall:
    return ToolCall(
        id="", name="run_shell", arguments=Raw(msgspec.json.encode({"command": command}))
    )


def script_of(project: Path) -> list[Any]:
    """Let a model and the files of a project say what acts."""
    name = ACTING["title"].replace("/", "_")
    (project / name).write_text(HOSTILE, encoding="utf-8", errors="surrogatepass")
    read = ToolCall(id="", name="read_file", arguments=Raw(msgspec.json.encode({"path": name})))
    text = sound(HOSTILE)
    return [
        run_call(f"ls; cat *; echo {ACTING['clipboard']!r}"),
        read,
        f"# {text}\n\n- {text}\n\n```\n{text}\n",
    ]


@pytest.mark.slow
def test_t01_t02_t03_t04_nothing_acts_in_what_the_real_command_writes(
    project: Path, tmp_path: Path
):
    with ExitStack() as stack:
        server = stack.enter_context(ServerProcess("openai", script_of(project), tmp_path))
        words = ("--endpoint", server.url, "-m", f"m{ACTING['title']}", "--mode", "bypass")
        done = subprocess.run(
            [YBS, *words, "-P", "-v", "go"], capture_output=True, stdin=subprocess.DEVNULL,
            check=False, timeout=9,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert acting_in(done.stdout.decode()) == acting_in(done.stderr.decode()) == []
    assert "73137" in done.stdout.decode()


@pytest.mark.slow
def test_t01_t02_t03_t04_t07_nothing_acts_on_a_real_terminal(project: Path, tmp_path: Path):
    lay_out(project, f"ref: refs/heads/b{ACTING['title']}\n")
    with ExitStack() as stack:
        server = stack.enter_context(ServerProcess("openai", script_of(project), tmp_path))
        words = ("--endpoint", server.url, "-m", f"m{ACTING['title']}", "--mode", "bypass")
        screen = stack.enter_context(Screen(*words, "go"))
        screen.sees(r"tokens|\d out")
        screen.keys("\x04")
        assert screen.ends() == 0
    assert acting_in(screen.raw, OWN) == []
    assert "73137" in screen.raw


@every_row(
    ("command", "seen"),
    [
        ("ls" + " " * 200 + "; rm -rf ~", "ls <200 spaces> ; rm -rf ~"),
        ("ls" + "\u3000" * 200 + "; rm -rf ~", "ls <200 spaces> ; rm -rf ~"),
        ("ls\n" + "\n" * 200 + "rm -rf ~", "ls\n<200 empty lines>\nrm -rf ~"),
        ("rm -rf ~\n" + " \t\n" * 200 + "ls", "rm -rf ~\n<200 empty lines>\nls"),
        ("ls " + "x" * 500 + "; rm", "ls " + "x" * 500 + "; rm"),
        ("if a\nthen\n    b\n\n\nfi", "if a\nthen\n    b\n\n\nfi"),
    ],
)
def test_t06_a_payload_behind_blanks_is_seen(command: str, seen: str):
    assert whole_body(question_of(body=command)) == seen


def test_t06_a_long_command_says_how_long_it_is():
    body = "\n".join(f"echo {number}" for number in range(50))
    assert whole_body(question_of(body=body)) == f"{body}\n<50 lines in all>"


async def test_t06_the_whole_command_is_on_the_screen():
    command = "echo " + "a" * 300 + " " * 300 + "; rm -rf ~/" + "b" * 100
    session = FakeSession(asks(question_of(body=command)))
    async with staged(session, prompt="go", columns=40) as stage:
        await stage.sees("[y] yes")
        seen = re.sub(r"[\s↳]", "", stage.screen)
        assert "a" * 300 + "<300spaces>;rm-rf~/" + "b" * 100 in seen


@pytest.mark.integration
async def test_t08_a_million_accents_hang_nothing():
    flood = "e" + "\u0301" * 1_000_000
    assert printable(flood) == "e" + "\u0301" * 16 + "<999984 marks>"
    assert whole_body(question_of(body=flood)).endswith("marks>")
    session = FakeSession(says(flood, size=300_000))
    async with staged(session, prompt="go") as stage:
        await stage.sees("<U+0301 and 3999 more>")


def test_t08_letters_with_a_few_marks_stay():
    for text in ("ệ", "שָׁלוֹם", "ก็", "a" + "\u0301" * 16):
        assert printable(text) is text
