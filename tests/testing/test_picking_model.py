"""A Model that picks a Model: the one that really answers is named everywhere."""

from collections.abc import AsyncGenerator

from scripted import PickingModel
from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.errors import ModelError
from ybs.core.events import AssistantSaid, Event, RequestStarted, TextStreamed
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.session.tally import Tally
from ybs.testing import (
    Failing,
    RecordedEvents,
    ScriptedModel,
    ScriptedToolbox,
)
from ybs.transcripts.facts import SessionFacts


def by_length(request: Request) -> int:
    return int(len(request.messages) > 2)


async def test_the_model_that_answers_is_named_in_events_and_figures():
    small, large = ScriptedModel(["a"], name="small"), ScriptedModel(["b"], name="large")
    events = RecordedEvents()
    agent = Agent(
        PickingModel([small, large], by_length), ScriptedToolbox(), events, Conversation()
    )
    facts, tally = SessionFacts(), Tally()
    for words in ("first", "second"):
        await agent.run(UserMessage.of(words))
    for event in events.events:
        facts.add(event)
        tally.add(event)
    assert [each.model for each in events.of(RequestStarted)] == [
        "picking",
        "small",
        "picking",
        "large",
    ]
    assert [each.model for each in events.of(AssistantSaid)] == ["small", "large"]
    assert [each.model for each in facts.turns] == ["small", "large"]
    assert tally.model == "large"


class Falling:
    """Begins with one model's answer and gives it up for another one's, which breaks off too."""

    name, window = "falling", 8_000

    async def stream(self, _request: Request) -> AsyncGenerator[Event, None]:
        for model in ("small", "large"):
            yield RequestStarted(model=model)
            yield TextStreamed(text=f"from {model}")
        raise ModelError("gone")


async def test_what_came_of_an_answer_that_was_given_up_for_another_models_is_not_kept():
    events = RecordedEvents()
    agent = Agent(Falling(), ScriptedToolbox(), events, Conversation())
    await agent.run(UserMessage.of("go"))
    (said,) = events.of(AssistantSaid)
    assert (said.model, said.content) == ("large", "from large")


async def test_an_answer_that_broke_off_names_the_model_that_gave_it():
    broken = ScriptedModel([Failing("half an ans", ModelError("gone"))], name="small")
    events = RecordedEvents()
    agent = Agent(PickingModel([broken], lambda _: 0), ScriptedToolbox(), events, Conversation())
    await agent.run(UserMessage.of("go"))
    (said,) = events.of(AssistantSaid)
    assert (said.model, said.content, said.stop_reason) == ("small", "half an ans", "cut_off")
