"""What every session keeps that a frontend holds: the real one, and the fake of the frontends' tests."""

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fake_session import FakeSession, asks, fails, hangs, question_of, says
from ybs.commands.open import SlashCommands
from ybs.core.envelope import MAIN
from ybs.core.errors import ProviderDown, YbsError
from ybs.core.events import Noticed, SessionEnded, TextStreamed, UserSaid
from ybs.core.ports import Answer, Question
from ybs.session.reply import Outcome, Reply
from ybs.session.session import Session
from ybs.session.status import Status
from ybs.testing import RecordedEvents, ScriptedModel, call

#: What the fake has besides: how a test tells it what to play, and what it remembers.
OWN = {
    "answers", "as_session", "is_closed", "is_incognito", "jobs", "lines", "model", "replies", "script", "sent", "steered",
    "steered_in",
}  # fmt: skip


async def never(_request: object) -> str:
    """Stand for a provider that says nothing and does not end."""
    await asyncio.Event().wait()
    return ""


class Kit:
    """Makes a session that plays: says, asks about a command, fails, or never ends."""

    def __init__(self, make: Callable[..., Any], moves: dict[str, Any]) -> None:
        self._make, self._moves = make, moves

    def session(self, *moves: str) -> Any:
        return self._make([self._moves[move] for move in moves])


def real(project: Path) -> Kit:
    def make(script: list[Any]) -> Session:
        lines = [line for move in script for line in move]
        model = ScriptedModel(lines)
        return Session.open(project, model=model, sandbox=False, commands=SlashCommands())

    moves = {
        "says": ["Hello."],
        "asks": [call("run_shell", command="true"), "Hello."],
        "fails": [ProviderDown("The server went.")],
        "hangs": [never],
    }
    return Kit(make, moves)


def fake(_project: Path) -> Kit:
    moves = {
        "says": says("Hello."),
        "asks": asks(question_of(), "Hello."),
        "fails": fails(ProviderDown("The server went.")),
        "hangs": hangs,
    }
    return Kit(lambda script: FakeSession(*script), moves)


@pytest.fixture(params=[real, fake])
def kit(request: pytest.FixtureRequest, project: Path) -> Kit:
    return request.param(project)


async def begun(session: Any, kind: type[Any]) -> None:
    """Wait until an event of this kind has been told."""
    seen = asyncio.Event()
    session.subscribe(lambda envelope: seen.set() if isinstance(envelope.event, kind) else None)
    await seen.wait()


def kinds(events: RecordedEvents) -> list[str]:
    """Return which of the events come that every turn has, in order."""
    known = ("SessionStarted", "UserSaid", "RequestStarted", "AssistantSaid", "TurnFinished")
    return [name for name in events.names if name in known]


@pytest.mark.integration
async def test_a_turn_is_told_in_order_and_summed_up(kit: Kit):
    session, events = kit.session("says", "says"), RecordedEvents()
    session.subscribe(events)
    outcome = await session.send("Hi.")
    assert isinstance(outcome, Outcome)
    assert (outcome.text, outcome.finished.reason, outcome.refusals) == ("Hello.", "done", 0)
    turn = ["UserSaid", "RequestStarted", "AssistantSaid", "TurnFinished"]
    assert kinds(events) == ["SessionStarted", *turn]
    assert isinstance(await session.handle("Hi again."), Outcome)
    assert kinds(events) == ["SessionStarted", *turn, *turn]
    assert [event.content for event in events.of(UserSaid)] == ["Hi.", "Hi again."]
    assert {(each.session, each.agent) for each in events.envelopes} == {(session.id, MAIN)}
    await session.close()


@pytest.mark.integration
async def test_the_person_is_asked_and_a_no_is_counted(kit: Kit):
    session, asked = kit.session("asks", "asks"), list[Question]()

    async def confirm(question: Question) -> Answer:
        asked.append(question)
        return Answer(is_allowed=len(asked) > 1, reason="not now")

    async with session:
        refused = await session.send("Do it.")  # whoever sets no `confirm` has nobody to ask
        assert refused.refusals == 1
        session.confirm = confirm
    session = kit.session("asks", "asks")
    session.confirm = confirm
    async with session:
        assert [(await session.send("Do it.")).refusals for _ in range(2)] == [1, 0]
    assert {question.call.name for question in asked} == {"run_shell"}


async def test_a_failing_provider_ends_the_turn_and_not_the_session(kit: Kit):
    async with kit.session("fails", "says") as session:
        finished = (await session.send("Hi.")).finished
        assert (finished.reason, finished.message) == ("error", "The server went.")
        assert (await session.send("Hi.")).text == "Hello."


async def test_a_running_turn_can_be_stopped_and_takes_words_meanwhile(kit: Kit):
    session = kit.session("hangs", "says")
    assert (session.is_busy, session.cancel(), session.steer("too early")) == (False, False, False)
    turn = asyncio.create_task(session.send("Hi."))
    await begun(session, UserSaid)
    await asyncio.sleep(0)
    assert session.is_busy
    with pytest.raises(YbsError):
        await session.send("At once.")
    assert session.steer("one")
    assert session.steer("two")
    assert (session.unread_count, session.take_back(), session.unread_count) == (2, "two", 1)
    assert session.cancel()
    assert (await turn).finished.reason == "interrupted"
    assert not session.is_busy
    assert session.unread() == ("one",)
    assert (session.unread(), session.take_back()) == ((), "")
    assert (await session.send("Hi.")).finished.reason == "done"
    await session.close()


async def test_lines_are_commands_or_words(kit: Kit):
    async with kit.session() as session:
        assert (await session.handle("/quit")).terminal.wants_quit
        assert isinstance(await session.handle("/status"), Reply)
        assert session.resumed is None


async def test_whoever_leaves_hears_nothing_more_and_the_others_do(kit: Kit):
    session, one, other = kit.session("says"), RecordedEvents(), RecordedEvents()
    leave = session.subscribe(one)
    session.subscribe(other)
    leave()
    session.emit(Noticed(level="info", text="hello"), agent="explore-1")
    assert one.events == []
    assert [(each.agent, each.event) for each in other.envelopes] == [
        ("explore-1", Noticed(level="info", text="hello"))
    ]
    await session.close()


async def test_what_a_sub_agent_says_is_not_the_answer(kit: Kit):
    session = kit.session("says")

    def also(envelope: Any) -> None:
        if envelope.is_main and isinstance(envelope.event, TextStreamed):
            session.emit(TextStreamed(text="mine"), agent="explore-1")

    session.subscribe(also)
    async with session:
        assert (await session.send("Hi.")).text == "Hello."


async def test_it_is_closed_once_and_says_so_where_it_had_begun(kit: Kit):
    for moves, ends in (((), 0), (("says",), 1)):
        session, events = kit.session(*moves), RecordedEvents()
        session.subscribe(events)
        for _ in moves:
            await session.send("Hi.")
        await session.close()
        await session.close()
        assert len(events.of(SessionEnded)) == ends


async def test_closing_stops_a_running_turn(kit: Kit):
    session = kit.session("hangs")
    turn = asyncio.create_task(session.send("Hi."))
    await begun(session, UserSaid)
    await asyncio.sleep(0)
    await session.close()
    await asyncio.wait((turn,), timeout=5)
    assert turn.done()
    assert not session.is_busy


async def test_its_state_is_there_to_be_shown_and_some_of_it_to_be_changed(kit: Kit):
    async with kit.session() as session:
        status = session.status()
        assert isinstance(status, Status)
        assert (status.mode, session.mode, session.config.safety.mode) == ("ask",) * 3
        session.mode = "plan"
        assert session.status().mode == "plan"
        assert session.warnings == ()
        assert session.view.streams
        await session.prepare()


async def test_the_fake_has_nothing_that_the_real_one_has_not_and_takes_the_same(project: Path):
    made = FakeSession()
    names = {name for name in dir(made) if not name.startswith("_")} - OWN
    async with Session.open(project, model=ScriptedModel([]), sandbox=False) as session:
        real_names = set(dir(Session)) | set(vars(session))
    assert names <= real_names
    for name in names & set(dir(Session)):
        theirs, mine = getattr(Session, name), getattr(FakeSession, name, None)
        if inspect.isfunction(theirs) and inspect.isfunction(mine):
            assert list(inspect.signature(theirs).parameters) == list(
                inspect.signature(mine).parameters
            ), name
            assert inspect.iscoroutinefunction(theirs) == inspect.iscoroutinefunction(mine), name
