"""What holds of sub-agents whatever they do: budgets, lifetimes, and whose events are whose."""

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from conductor_cast import Cast, delegated, is_sub_agents, opened, results
from rows import every_row
from ybs.conductor.budget import Budget, Purse, Used
from ybs.conductor.sub_agent import Spending
from ybs.core.conversation import Conversation
from ybs.core.envelope import Envelope
from ybs.core.errors import ProviderDown, StopTurn
from ybs.core.events import RequestStarted, ToolStarted, TurnFinished
from ybs.core.messages import AssistantMessage, Usage
from ybs.core.ports import Turn
from ybs.testing import ScriptedModel, answer, call

BUDGETS = some.builds(
    Budget,
    steps=some.none() | some.integers(0, 50),
    tokens=some.none() | some.integers(0, 50_000),
    cost_usd=some.none() | some.integers(0, 100).map(lambda cents: cents / 4),
    seconds=some.none() | some.floats(0, 100),
)


def spent_of(budget: Budget, share: float) -> Used:
    """Return a part of a budget."""
    return Used(
        steps=int((budget.steps or 0) * share),
        tokens=int((budget.tokens or 0) * share),
        cost_usd=(budget.cost_usd or 0.0) * share,
    )


@pytest.mark.integration
@given(
    left=BUDGETS,
    calls=some.lists(some.lists(BUDGETS, min_size=1, max_size=6), max_size=5),
    share=some.floats(0, 1),
    settles=some.lists(some.booleans(), min_size=30, max_size=30),
)
def test_budgets_are_never_overdrawn_in_whatever_order_they_are_taken_and_given_back(
    left: Budget, calls: list[list[Budget]], share: float, settles: list[bool]
) -> None:
    purse, open_budgets, used = Purse(), dict[str, Budget](), Used()
    for number, wanted in enumerate(calls):
        names = [f"{number}-{place}" for place in range(len(wanted))]
        given_out = purse.reserve(list(zip(names, wanted, strict=True)), left)
        for name, want, budget in zip(names, wanted, given_out, strict=True):
            open_budgets[name] = budget
            assert budget == budget.within(want).within(left)
        promised = sum((spent_of(each, 1) for each in open_budgets.values()), used)
        assert left.steps is None or promised.steps <= left.steps
        assert left.tokens is None or promised.tokens <= left.tokens
        assert left.cost_usd is None or promised.cost_usd <= left.cost_usd + 1e-9
        for name in [name for name in names if settles.pop()]:
            spent = spent_of(open_budgets.pop(name), share)
            purse.settle(name, spent)
            used += spent
    assert purse.used == used


@pytest.mark.integration
@given(
    budget=some.integers(1, 5_000),
    answers=some.lists(some.integers(1, 400), min_size=1, max_size=30),
    longest=some.integers(1, 400),
)
async def test_no_request_is_sent_that_could_go_over_the_tokens_of_a_budget(
    budget: int, answers: list[int], longest: int
) -> None:
    turn, request = Turn(Conversation(), lambda _: None), 100
    guard = Spending(Budget(tokens=budget), lambda _: request + longest)
    for size in answers:
        try:
            await guard.before_step(turn)
        except StopTurn:
            break
        turn.usage += Usage(input_tokens=request, output_tokens=min(size, longest))
        turn.steps += 1
        assert turn.usage.input_tokens + turn.usage.output_tokens <= budget


async def test_money_ends_a_sub_agent_before_an_answer_as_dear_as_the_dearest_has_no_room() -> None:
    turn = Turn(Conversation(), lambda _: None)
    guard = Spending(Budget(cost_usd=1.0), lambda _: 0)
    for cost in (0.25, 0.5):
        await guard.before_step(turn)
        turn.usage += Usage(input_tokens=1, cost_usd=cost)
        turn.steps += 1
    with pytest.raises(StopTurn, match=r"\$1\.0000 has no room"):
        await guard.before_step(turn)


@every_row(
    "budget, word",
    [
        (Budget(steps=0), "requests"),
        (Budget(tokens=0), "tokens"),
        (Budget(cost_usd=0.0), "money"),
        (Budget(seconds=0.0), "time"),
        (Budget(steps=1, tokens=1, cost_usd=0.1, seconds=1), ""),
        (Budget(), ""),
    ],
)
def test_a_budget_says_what_it_lacks(budget: Budget, word: str) -> None:
    assert budget.missing == word


#: What a sub-agent may do in a made-up session.
DEEDS = some.sampled_from(["answers", "reads", "fails", "breaks", "hangs", "delegates", "loops"])
TASKS = some.lists(some.tuples(DEEDS, some.booleans(), some.integers(1, 4)), max_size=6, min_size=1)


class Made:
    """A model whose main agent delegates once, and whose sub-agents do what the first word of their task says."""

    def __init__(self, tasks: list[tuple[str, bool, int]]) -> None:
        self.has_hung = asyncio.Event()
        self.model = ScriptedModel([self.play] * 500, window=200_000)
        self._delegation = delegated(
            *(
                {"task": f"{deed} it", "kind": "explore", "background": behind, "steps": steps}
                for deed, behind, steps in tasks
            )
        )

    async def play(self, request: Any) -> Any:
        if not is_sub_agents(request):
            return self._delegation if len(request.messages) == 1 else "done"
        steps = sum(isinstance(each, AssistantMessage) for each in request.messages)
        match request.messages[0].text.split()[0]:
            case "hangs":
                self.has_hung.set()
                return await asyncio.Event().wait()
            case "breaks":
                raise ZeroDivisionError
            case deed:
                return self.entry(deed, steps)

    def entry(self, deed: str, steps: int) -> Any:
        match deed:
            case "fails":
                return ProviderDown("gone")
            case "delegates" if steps == 0:
                return delegated({"task": "more", "kind": "explore"})
            case "reads" if steps == 0:
                return answer(call("list_files"), call("read_file", path="a.txt"))
            case "loops":
                return call("list_files", path="." + "/." * steps)
            case _:
                return "Found."


async def played(tasks: list[tuple[str, bool, int]], *, cancels: bool, most: int) -> list[Envelope]:
    """Take a turn in which sub-agents do these deeds, and return the events; nothing may be left of it."""
    made = Made(tasks)
    with tempfile.TemporaryDirectory() as folder:
        session, events = opened(Path(folder), made.model, max_turns=most)
        async with session:
            turn = asyncio.create_task(session.send("go"))
            hung = asyncio.create_task(made.has_hung.wait())
            await asyncio.wait((turn, hung), return_when=asyncio.FIRST_COMPLETED)
            if cancels or not turn.done():
                session.cancel()
            hung.cancel()
            await asyncio.wait((turn, hung))
        assert not session.conversation.open_calls
    assert asyncio.all_tasks() == {asyncio.current_task()}
    return list(events.envelopes)


def check(told: list[Envelope], most_agents: int, most_requests: int) -> None:
    """Check that every event belongs to one agent, whose turn has one end, and to one call."""
    begun = {
        each.event.id
        for each in told
        if isinstance(each.event, ToolStarted) and each.event.name == "delegate" and each.is_main
    }
    agents = {each.agent for each in told}
    assert len(agents - {"main"}) <= most_agents
    for agent in agents - {"main"}:
        own = [each for each in told if each.agent == agent]
        assert [isinstance(each.event, TurnFinished) for each in own].index(True) == len(own) - 1
        assert {each.started_by for each in own} <= begun
    assert sum(isinstance(each.event, RequestStarted) for each in told) <= most_requests


@pytest.mark.integration
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tasks=TASKS, cancels=some.booleans(), most=some.integers(1, 30))
def test_nothing_outlives_its_parent_and_every_event_belongs_to_one_agent(tasks, cancels, most):
    told = asyncio.run(played(tasks, cancels=cancels, most=most))
    check(told, len(tasks), most)


@pytest.mark.integration
async def test_a_command_that_a_sub_agent_leaves_running_ends_with_it(project: Path) -> None:
    long = call("run_shell", command="echo $$ > pid; exec sleep 3000", background=True)
    wait = call("run_shell", command="while ! test -s pid; do sleep 0.01; done; cat pid")
    cast = Cast([delegated({"task": "start", "kind": "test"}), "done"], start=[long, wait, "ok"])
    session, events = opened(project, cast.model, mode="bypass")
    async with session:
        await session.send("go")
        assert results(events)[0].success
        with pytest.raises(ProcessLookupError):
            os.kill(int(results(events, "run_shell")[1].output.split()[0]), 0)
        assert session.status().jobs == 0
