"""The terminal of whole sentences: lines that are typed early, menus, long work."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from select import select
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from fake_session import EndTurn, FakeSession, asks, hangs, question_of, says
from ybs.core.events import ThinkingStreamed, ToolFinished, ToolStarted
from ybs.core.ports import Answer
from ybs.session.questions import NO_REASON
from ybs.session.reply import Column, Menu, MenuItem, Reply, Row, Table, TerminalActions

Open = Callable[..., Any]


@pytest.mark.integration
async def test_a_line_typed_too_early_is_no_answer_and_words_are_not_lost(talking: Open) -> None:
    session = FakeSession(asks(question_of()), says("first"), says("second"))
    async with talking(session) as talk:
        talk.types("go\nthen this\nyes\n")  # the second line is there before the question
        await talk.sees("no because ...: ")
        assert "Will be sent later: then this\n" in talk.text
        assert "Typed before the question, so not taken as its answer: yes\n" in talk.text
        talk.types("and that\n")  # within the first moment
        await talk.sees("Will be sent later: and that")
        assert session.answers == []
        talk.clock.now += 1
        talk.types("no\n")
        await talk.sees("second")
    assert session.answers == [Answer(is_allowed=False, reason=NO_REASON)]
    assert session.lines == ["go", "then this", "and that"]


@pytest.mark.integration
async def test_a_thousand_lines_typed_at_once_are_worked_off_in_their_order(talking: Open) -> None:
    session = FakeSession()
    async with talking(session) as talk:
        for start in range(0, 1000, 100):
            talk.types("".join(f"/do {n}\n" for n in range(start, start + 100)))
        await talk.until(lambda: len(session.lines) == 1000)
    assert session.lines == [f"/do {n}" for n in range(1000)]


async def test_lines_that_waited_behind_a_stopped_turn_are_told_and_not_sent(talking: Open) -> None:
    session = FakeSession(hangs)
    async with talking(session) as talk:
        talk.types("go\n")
        await talk.until(lambda: session.is_busy)
        talk.types("next, do this\n")
        await talk.until(lambda: select([sys.stdin.fileno()], [], [], 0) == ([], [], []))
        os.kill(os.getpid(), signal.SIGINT)
        await talk.sees("Not sent, because you stopped: next, do this")
    assert session.lines == ["go"]


@pytest.mark.integration
async def test_a_menu_is_a_numbered_list(talking: Open) -> None:
    items = (
        MenuItem("/model a", "model-a", "32k", is_current=True),
        MenuItem("/model b", "model-b\x1b[2J"),
    )
    session = FakeSession()
    session.replies["/model"] = Reply(text="the same", menu=Menu("A model:", items))
    session.replies["/none"] = Reply(text="none", menu=Menu("None", ()))
    async with talking(session) as talk:
        talk.types("/model\n")
        await talk.sees("Number (Enter for none): ")
        shown = "A model:\n1. model-a, 32k, current\n2. model-b␛[2J\nNumber (Enter for none): "
        assert shown in talk.text
        talk.types("2\n")
        await talk.sees("Typed before the question, so not taken as its answer: 2")
        talk.clock.now += 1
        talk.types("2\n")
        await talk.sees("answer to /model b")
        for typed in ("\n", "3\n", "0\n", "²\n", f"{'9' * 5000}\n"):
            chosen, asked = (talk.text.count(words) for words in ("was chosen.", "for none): "))
            talk.types("/model\n")
            await talk.until(lambda n=asked: talk.text.count("for none): ") > n)
            talk.clock.now += 1
            talk.types(typed)
            await talk.until(lambda n=chosen: talk.text.count("was chosen.") > n)
        talk.types("/none\n")
        await talk.sees("none\n")
    assert [line for line in session.lines if line != "/model"] == ["/model b", "/none"]


async def test_what_a_command_asks_of_the_door_is_told_exactly_once(
    talking: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "TMUX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    session = FakeSession()
    session.replies["/rewind 1"] = Reply(
        text="Back there.", terminal=TerminalActions(draft="fix the cart")
    )
    table = Table((Column("count"), Column("share"), Column("tokens")), (Row((1, 0.9, 10)),))
    session.replies["/cost"] = Reply(tables=(table,), diff="-old\n+new\x1b[2J\n")
    session.replies["/copy"] = Reply(terminal=TerminalActions(clipboard="words"))
    async with talking(session) as talk:
        talk.types("/cost\n/rewind 1\n/copy\n")
        await talk.sees("  1  90%    10\n-old\n+new␛[2J\n")
        await talk.sees("Back there.\nYour words were: fix the cart\n")
        await talk.sees("Not copied: there is no clipboard here")
    assert "\x1b" not in talk.text
    for told in ("  1  90%    10", "-old", "+new", "Back there.", "fix the cart", "Not copied"):
        assert talk.text.count(told) == 1, told


@pytest.mark.integration
async def test_long_work_is_told_less_and_less_often_and_rings_at_its_end(
    talking: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ybs.frontends.terminal.plain.plain.TICK_SECONDS", 0.001)
    end = asyncio.Event()

    async def work(session: FakeSession) -> None:
        arguments = Raw(msgspec.json.encode({"command": "pytest -q"}))
        session.emit(ToolStarted(id="1", name="run_shell", arguments=arguments))
        await end.wait()
        session.emit(ToolFinished(id="1", name="run_shell", success=True, output=""))
        await asks(question_of())(session)
        stop = EndTurn("limit", "enough")
        stop.finished = replace(stop.finished, duration_seconds=30.0)
        raise stop

    session = FakeSession(work)
    async with talking(session, "go") as talk:
        await talk.until(lambda: session.is_busy)
        for _ in range(45):
            talk.clock.now += 1
            await asyncio.sleep(0.003)
        told = [line for line in talk.text.split("\n") if line.startswith("Still")]
        assert [line.partition("q, ")[0] for line in told] == ["Still running: shell pytest -"] * 3
        assert 9 < float(told[0].split()[-2]) < 20
        end.set()
        await talk.sees("no because ...: ")
        talk.clock.now += 500
        for _ in range(20):
            await asyncio.sleep(0.001)
        talk.types("no\n")
        await talk.sees("enough")
    assert talk.text.count("Still") == 3, "a question is no work"
    assert talk.text.count("\a") == 2


async def test_thinking_and_whole_output_are_told_where_more_is_wanted(talking: Open) -> None:
    async def think(session: FakeSession) -> None:
        for _ in range(200):
            session.emit(ThinkingStreamed(text="let me see "))
        output = "".join(f"row {n}\\n" for n in range(90))
        display = Raw(f'{{"exit_code":0,"stdout":"{output}","stderr":""}}'.encode())
        session.emit(
            ToolFinished(id="1", name="run_shell", success=True, output="", display=display)
        )
        await says("Done.")(session)

    session = FakeSession(think, think)
    async with talking(session) as talk:
        talk.types("go\n")
        await talk.sees("Done.")
        assert "let me see" not in talk.text
        assert "row 42" not in talk.text
        session.view.is_verbose = True
        talk.types("again\n")
        await talk.until(lambda: talk.text.count("Done.") == 2)
    thought = talk.text.partition("Thought: ")[2].partition("run_shell")[0]
    assert 200 < len(thought) < 400
    assert "..." in thought
    assert talk.text.count("row 42\n") == 1


async def test_the_work_is_told_whole_where_that_is_wanted(talking: Open) -> None:
    async def reads(session: FakeSession) -> None:
        arguments = Raw(b'{"path":"a.py","offset":3}')
        session.emit(ToolStarted(id="1", name="read_file", arguments=arguments))
        session.emit(
            ToolFinished(
                id="1", name="read_file", success=True, output="row 1\nrow 2", summary="ok"
            )
        )
        await says("Done.")(session)

    session = FakeSession(reads, reads)
    async with talking(session) as talk:
        talk.types("go\n")
        await talk.sees("Done.")
        assert "row 1" not in talk.text
        session.view.is_verbose = True
        talk.types("again\n")
        await talk.until(lambda: talk.text.count("Done.") == 2)
    assert '  {"path":"a.py","offset":3}\n  row 1\n  row 2\n' in talk.text


async def test_the_words_at_which_other_programs_leave_are_no_prompt(talking: Open) -> None:
    session = FakeSession(says("never"))
    async with talking(session) as talk:
        talk.types("exit\n")
        assert talk.task is not None
        await talk.until(talk.task.done)
    assert session.sent == []


async def test_a_command_that_shows_something_answers_beside_the_turn_but_leaving_waits(
    talking: Open,
) -> None:
    gate = asyncio.Event()

    async def waits(session: FakeSession) -> None:
        await gate.wait()
        await says("the answer")(session)

    session = FakeSession(waits, says("second"))
    async with talking(session) as talk:
        talk.types("go\n")
        await talk.until(lambda: session.is_busy)
        talk.types("/background\n/clear\nand this\n/status\n/quit\n")
        await talk.sees("answer to /status")
        assert session.lines == ["go", "/background", "/status"]
        gate.set()
        await talk.sees("second")
    assert session.lines == ["go", "/background", "/status", "/clear", "and this"]
