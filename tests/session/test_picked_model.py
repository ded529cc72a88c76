"""A session whose model picks another one: status and figures name the one that answered."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from scripted import HttpError, OpenAIServer, PickingModel
from ybs.agent.build import AgentSpec, BuiltAgent
from ybs.agent.environment import ToolEnvironment
from ybs.core.events import AssistantSaid, Emit, Noticed, RequestStarted
from ybs.core.ports import Request
from ybs.session.session import Session
from ybs.testing import RecordedEvents, ScriptedModel

pytestmark = pytest.mark.integration

Open = Callable[..., tuple[Session, RecordedEvents]]


async def test_status_and_figures_name_the_model_that_answered(open_session, monkeypatch):
    small, large = ScriptedModel(["a"], name="small"), ScriptedModel(["b"], name="large")
    picked, shown = iter([0, 1]), list[str]()

    def pick(_: Request) -> int:
        shown.append(session.status().shown_model)
        return next(picked)

    picking = PickingModel([small, large], pick)

    def build(spec: AgentSpec, environment: ToolEnvironment, emit: Emit) -> BuiltAgent:
        return BuiltAgent(
            replace(spec, around={"small models": lambda _: picking}), environment, emit
        )

    monkeypatch.setattr("ybs.session.main_agent.BuiltAgent", build)
    async with OpenAIServer([]) as server:
        session, events = open_session(server)
        async with session:
            assert session.status().shown_model == "scripted"
            for words, name in (("one", "small"), ("two", "large")):
                await session.send(words)
                assert (session.status().model, session.status().shown_model) == ("scripted", name)
            assert shown == ["scripted", "small"]
            name = session.journal.name
            assert [turn.model for turn in session.turns] == ["small", "large"]
            await session.switch_model(provider=None, model="other")
            assert session.status().shown_model == "other"
        assert [each.model for each in events.of(AssistantSaid)] == ["small", "large"]
        started = [(each.model, each.step) for each in events.of(RequestStarted)]
        assert started == [("picking", 1), ("small", 0), ("picking", 1), ("large", 0)]
        again, _ = open_session(server, resume=name)
        async with again:
            assert [turn.model for turn in again.turns] == ["small", "large"]


async def test_a_fallback_goes_on_with_the_turn_and_says_so_in_one_line(open_session: Open):
    gone = HttpError(status=404, message="no such model")
    async with OpenAIServer([gone]) as first, OpenAIServer(["hello", "again"]) as second:
        settings = {
            "providers.spare.endpoint": second.url,
            "providers.spare.model": "spare-model",
            "llm.fallback": ["spare"],
        }
        session, events = open_session(first, overrides=settings)
        async with session:
            outcome = await session.send("one")
            assert outcome.text == "hello"
            await session.send("two")
            assert [turn.model for turn in session.turns] == ["spare-model"] * 2
            assert session.status().shown_model == "spare-model"
            assert session.status().model == "scripted"
        told = [each.text for each in events.of(Noticed) if "instead" in each.text]
        assert len(told) == 1
        assert "no such model" in told[0]
        assert told[0].endswith("spare-model (spare) is asked instead.")
        assert len(first.requests) == 1
