"""What every Confirm keeps: those that ask a person, those that ask nobody, and the fake."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace
from stage import Stage, staged

from fake_session import FakeSession, asks, question_of
from ybs.core.ports import Answer, Confirm, Question
from ybs.frontends.headless.advice import refuse
from ybs.frontends.subcommands.tools import agree, refuse_call
from ybs.frontends.terminal.plain.plain import PlainTerminal
from ybs.security.policy.confirm import nobody
from ybs.testing import ScriptedConfirm

pytestmark = pytest.mark.integration

#: Asks a question and has the person, where there is one, give the answer: "yes", "no" or "always".
Ask = Callable[[Question, str], Awaitable[Answer]]
KEYS = {"yes": "y", "no": "n", "always": "a"}


def alone(confirm: Confirm) -> Ask:
    async def ask(question: Question, _answer: str) -> Answer:
        return await confirm(question)

    return ask


async def scripted(question: Question, answer: str) -> Answer:
    said = Answer(
        is_allowed=answer != "no",
        is_for_session=answer == "always" and bool(question.grant),
        reason="" if answer != "no" else "not now",
    )
    return await ScriptedConfirm([said])(question)


@asynccontextmanager
async def in_terminal() -> AsyncIterator[Ask]:
    async with staged(FakeSession()) as stage:

        async def ask(question: Question, answer: str) -> Answer:
            asked = asyncio.create_task(stage.session.confirm(question))
            await stage.sees("[y] yes")
            await stage.settles()
            stage.clock.now += 1
            await pressed(stage, asked, KEYS[answer])
            return await asked

        yield ask


async def pressed(stage: Stage, asked: "asyncio.Task[Answer]", key: str) -> None:
    """Press a key; one that means nothing here is followed by a no."""
    stage.keys(key)
    await stage.settles()
    stage.clock.now += 1
    for _ in range(100):
        if asked.done():
            return
        await asyncio.sleep(0.005)
    stage.keys("n")


@asynccontextmanager
async def in_sentences(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> AsyncIterator[Ask]:
    reading, writing = os.pipe()

    class Stdin:
        def fileno(self) -> int:
            return reading

    monkeypatch.setattr("sys.stdin", Stdin())
    now = [100.0]
    session = FakeSession()
    terminal = PlainTerminal(session.as_session, clock=lambda: now[0])
    running = asyncio.create_task(terminal.run())

    async def ask(question: Question, answer: str) -> Answer:
        """Ask in a turn: only then nobody else waits for a line."""
        session.script.append(asks(question))
        os.write(writing, b"go\n")
        async with asyncio.timeout(5):
            while "Answer yes" not in capsys.readouterr().out:  # noqa: ASYNC110 - a terminal tells nobody when it has written
                await asyncio.sleep(0.002)
        now[0] += 1
        os.write(writing, f"{answer}\n".encode())
        count = len(session.answers)
        async with asyncio.timeout(5):
            while len(session.answers) == count or session.is_busy:  # noqa: ASYNC110 - nor when it has read
                await asyncio.sleep(0.002)
        return session.answers[-1]

    try:
        yield ask
    finally:
        os.close(writing)
        await running
        os.close(reading)


UNATTENDED = {"nobody": nobody, "headless": refuse, "tool call": refuse_call}
KINDS = ("nobody", "headless", "tool call", "agreeing", "scripted", "terminal", "plain")


@pytest.fixture(params=KINDS)
async def kind(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> AsyncIterator[tuple[str, Ask]]:
    """Give a Confirm of each kind, with its person."""
    monkeypatch.setattr("ybs.frontends.terminal.questions.confirm.HOLD_SECONDS", 0.005)
    monkeypatch.setattr("ybs.frontends.terminal.plain.line_input.HOLD_SECONDS", 0.005)
    match request.param:
        case "terminal":
            async with in_terminal() as ask:
                yield request.param, ask
        case "plain":
            async with in_sentences(monkeypatch, capsys) as ask:
                yield request.param, ask
        case "scripted":
            yield request.param, scripted
        case "agreeing":
            yield request.param, alone(agree)
        case unattended:
            yield request.param, alone(UNATTENDED[unattended])


async def test_a_yes_is_a_yes_for_this_call_alone_and_where_nobody_is_there_it_is_a_no(kind):
    name, ask = kind
    answer = await ask(question_of(), "yes")
    assert answer.is_allowed is (name not in UNATTENDED)
    assert not answer.is_for_session
    assert answer.is_unattended is (name in UNATTENDED)


async def test_a_no_has_a_reason_that_the_model_reads(kind: tuple[str, Ask]):
    name, ask = kind
    answer = await ask(question_of(), "no")
    if name != "agreeing":
        assert not answer.is_allowed
        assert answer.reason.strip()


async def test_always_is_taken_only_where_it_was_offered(kind: tuple[str, Ask]):
    name, ask = kind
    offered = await ask(question_of(), "always")
    assert offered.is_for_session is (name in ("scripted", "terminal", "plain"))
    answer = await ask(replace(question_of(), grant=""), "always")
    assert not answer.is_for_session


async def test_one_question_after_the_other_is_answered(kind: tuple[str, Ask]):
    name, ask = kind
    answers = [(await ask(question_of(), answer)).is_allowed for answer in ("yes", "no", "yes")]
    expected = [False] * 3 if name in UNATTENDED else [True, name == "agreeing", True]
    assert answers == expected
