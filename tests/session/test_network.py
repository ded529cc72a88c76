"""The network of a command: closed, offered by the question, given once or always; and what is said where it was missing."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from opened import Open
from scripted import OpenAIServer
from ybs.core.events import ConfirmationAnswered, ToolFinished
from ybs.core.ports import Answer, Question
from ybs.session.session import Session
from ybs.testing import call

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]


@asynccontextmanager
async def listening() -> AsyncGenerator[int]:
    """Serve a word on a port of this machine's loopback."""

    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello from outside\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


def fetching(project: Path, port: int) -> None:
    for name in ("fetch", "other"):
        script = project / name
        script.write_text(f"#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/{port} && cat <&3\n")
        script.chmod(0o755)


class Person:
    """Answers questions in the order given, and keeps them."""

    def __init__(self, session: Session, *answers: Answer) -> None:
        self.questions: list[Question] = []
        self._answers = iter(answers)
        session.confirm = self._confirm
        if session.environment.sandbox.state != "full":
            pytest.skip(f"NOT TESTED: {session.environment.sandbox.backend.why}")

    async def _confirm(self, question: Question) -> Answer:
        self.questions.append(question)
        return next(self._answers)


FETCH, OTHER = call("run_shell", command="./fetch"), call("run_shell", command="./other")


async def test_a_yes_can_give_the_network_once(project: Path, open_session: Open) -> None:
    async with listening() as port, OpenAIServer([FETCH, FETCH, "done"]) as server:
        fetching(project, port)
        session, events = open_session(server, sandbox=True)
        async with session:
            given = Answer(is_allowed=True, with_network=True)
            person = Person(session, given, Answer(is_allowed=True))
            await session.send("fetch it")
    first, second = events.of(ToolFinished)
    assert first.success
    assert "hello from outside" in first.output
    assert not second.success
    assert "hello" not in second.output
    assert [each.offers_network for each in person.questions] == [True, True]
    assert person.questions[0].network_grant == "run_shell(./fetch) with network"


async def test_always_with_network_is_for_this_command_alone(project, open_session):
    async with listening() as port, OpenAIServer([FETCH, FETCH, OTHER, "done"]) as server:
        fetching(project, port)
        session, events = open_session(server, sandbox=True)
        async with session:
            given = Answer(is_allowed=True, is_for_session=True, with_network=True)
            person = Person(session, given, Answer(is_allowed=True))
            await session.send("fetch it")
    assert [each.success for each in events.of(ToolFinished)] == [True, True, False]
    assert len(person.questions) == 2
    assert events.of(ConfirmationAnswered)[0].grant == "run_shell(./fetch) with network"


async def test_always_with_network_of_one_host_covers_no_other(project, open_session):
    hosts = [
        call("run_shell", command=f"./fetch -h 127.0.0.{last}", network=True) for last in (1, 1, 9)
    ]
    async with listening() as port, OpenAIServer([*hosts, "done"]) as server:
        fetching(project, port)
        session, events = open_session(server, sandbox=True)
        async with session:
            always = Answer(is_allowed=True, is_for_session=True)
            person = Person(session, always, Answer(is_allowed=False))
            await session.send("fetch it")
    assert [each.success for each in events.of(ToolFinished)] == [True, True, False]
    assert [each.grant for each in person.questions] == [
        f"run_shell(./fetch -h 127.0.0.{last}) with network" for last in (1, 9)
    ]


async def test_where_a_command_has_the_network_anyway_nothing_is_offered(project, open_session):
    asking = call("run_shell", command="./fetch", network=True)
    async with listening() as port, OpenAIServer([asking, FETCH, "done", FETCH, "done"]) as server:
        fetching(project, port)
        session, events = open_session(server, sandbox=True)
        async with session:
            first = Person(session, Answer(is_allowed=True), Answer(is_allowed=True))
            await session.send("fetch it")
            session.environment.sandbox.is_open = True
            person = Person(session, Answer(is_allowed=True, with_network=True))
            await session.send("again")
    assert [each.offers_network for each in first.questions] == [False, True]
    assert [each.offers_network for each in person.questions] == [False]
    assert [each.success for each in events.of(ToolFinished)] == [True, False, True]


async def test_a_command_that_failed_for_lack_of_network_says_so_to_the_model_and_the_person(
    playing,
) -> None:
    command = call("run_shell", command="bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'")
    async with playing([command, "done"], sandbox=True) as (session, events, _):
        person = Person(session, Answer(is_allowed=False))
        await session.send("fetch it")
    (finished,) = events.of(ToolFinished)
    assert finished.summary == "exit code 1; there is no network in the sandbox"
    assert "it wants the network" in person.questions[0].warnings[0]
    assert "with network: true the person is asked for it" in finished.output
