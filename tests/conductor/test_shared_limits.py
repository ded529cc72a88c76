"""What the limits of a turn and of a session mean while sub-agents work, and what is undone of theirs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from conductor_cast import Cast, delegated, opened, results
from ybs.commands.open import SlashCommands
from ybs.core.errors import YbsError
from ybs.core.events import RequestStarted
from ybs.core.messages import Usage
from ybs.testing import RecordedEvents, answer, call

pytestmark = pytest.mark.integration


def look(number: int) -> Any:
    """Make a call that no other one is like, so that it is not taken for a loop."""
    return call("read_file", path=f"f{number}")


def sent(events: RecordedEvents) -> int:
    """Count the requests of all agents."""
    return sum(isinstance(each.event, RequestStarted) for each in events.envelopes)


async def ended(session: Any) -> None:
    """Wait until no sub-agent works in the background."""
    while session.parts.main.delegating.conductor.in_background:
        await session.parts.main.delegating.conductor.wait()


@pytest.mark.parametrize(
    "limit", [{"steps": 0}, {"steps": -100}, {"tokens": 0}, {"cost_usd": -5}, {"seconds": 0}]
)
async def test_a_limit_of_nothing_or_less_is_refused(project: Path, limit: dict[str, Any]) -> None:
    cast = Cast([delegated({"task": "one", "kind": "explore", **limit}), "done"], one=["never"])
    session, events = opened(project, cast.model)
    async with session:
        await session.send("go")
    (result,) = results(events)
    assert not result.success
    assert next(iter(limit)) in result.output
    assert cast.requests["one"] == []


async def test_the_main_agent_stops_where_those_in_the_background_may_need_the_rest(project):
    turns = [answer(str(number), look(number)) for number in range(40)]
    task = {"task": "bg", "kind": "explore", "background": True}
    cast = Cast([delegated(task), *turns], bg=list(turns))
    session, events = opened(project, cast.model, max_turns=20)
    async with session:
        outcome = await session.send("go")
        await ended(session)
    assert outcome.finished.reason == "limit"
    assert "of the turn's 20, sub-agents" in outcome.finished.message
    assert len(cast.requests["main"]) > 8  # half of what was left stayed with it
    assert sent(events) <= 20


async def test_money_that_is_reserved_for_the_background_is_not_spent_twice(project: Path) -> None:
    dear = Usage(input_tokens=1, output_tokens=1, cost_usd=0.1)
    turns = [answer(str(number), look(number), usage=dear) for number in range(40)]
    task = {"task": "bg", "kind": "explore", "background": True}
    cast = Cast([answer(delegated(task), usage=dear), *turns], bg=list(turns))
    session, events = opened(project, cast.model, overrides={"agent.max_cost_usd": 1.0})
    async with session:
        outcome = await session.send("go")
        await ended(session)
        assert outcome.finished.reason == "limit"
        assert sent(events) <= 10


async def test_sub_agents_leave_the_turn_time_to_read_their_results(project: Path) -> None:
    given = list[float]()

    async def look(_request: Any) -> Any:
        working = session.parts.main.delegating.conductor
        assert working is not None
        given.extend(each.budget.seconds or 0.0 for each in working.working.values())
        return "ok"

    cast = Cast([delegated({"task": "one", "kind": "explore"}), "done"], one=[look])
    session, _events = opened(project, cast.model, overrides={"agent.max_seconds": 100})
    async with session:
        await session.send("go")
    (seconds,) = given
    assert 0 < seconds <= 90


async def test_what_a_background_command_of_a_sub_agent_changed_is_undone(project: Path) -> None:
    (project / "old").write_text("old\n")
    job = "until [ -e go ]; do sleep 0.01; done; echo job > old; echo job > late; touch done; sleep 3000"
    see = "touch go; until [ -e done ]; do sleep 0.01; done"
    one = [call("run_shell", command=job, background=True), call("run_shell", command=see), "ok"]
    cast = Cast([delegated({"task": "one", "kind": "general"}), "done"], one=one)
    session, _events = opened(project, cast.model, mode="bypass", commands=SlashCommands())
    async with session:
        await session.send("go")
        assert (project / "old").read_text() == "job\n"
        await session.handle("/undo")
    assert (project / "old").read_text() == "old\n"
    assert not (project / "late").exists()


async def test_no_prompt_is_taken_while_sub_agents_end_for_another_session(project: Path) -> None:
    is_working, is_closing, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hang(_request: Any) -> Any:
        is_working.set()
        try:
            await asyncio.Event().wait()
        finally:
            is_closing.set()
            await may_end.wait()

    task = {"task": "bg", "kind": "explore", "background": True}
    cast = Cast([delegated(task), "first"], bg=[hang])
    session, _events = opened(project, cast.model)
    async with session:
        await session.send("go")
        await is_working.wait()
        anew = asyncio.create_task(session.start_anew(is_incognito=False))
        await is_closing.wait()
        with pytest.raises(YbsError, match="Another session is being opened"):
            await session.send("words typed in that moment")
        may_end.set()
        await anew
