"""Words said while a turn runs: each is read once, in order, or given back."""

from collections.abc import Sequence
from typing import Any

from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.errors import ProviderDown, StopTurn
from ybs.core.events import TurnFinished, UserSaid
from ybs.core.messages import ToolResult, UserMessage
from ybs.core.ports import Guard, Request, Turn
from ybs.guards.limits import Limits
from ybs.guards.recovery import Recovery
from ybs.guards.steering import Steering
from ybs.testing import RecordedEvents, ScriptedModel, ScriptedToolbox, call
from ybs.testing.model import Cue


async def compose(words: str, typed: str | None) -> UserMessage:
    return UserMessage.of(words if typed is None else f"{words} (typed: {typed})")


class Stage:
    def __init__(self, *script: Any, guards: Sequence[Guard] = ()) -> None:
        self.steering = Steering(compose)
        self.events = RecordedEvents()
        self.model = ScriptedModel(script)
        tools = ScriptedToolbox({"work": "fine"})
        self.conversation = Conversation("system")
        self.agent = Agent(
            self.model, tools, self.events, self.conversation, [Recovery(), *guards, self.steering]
        )

    async def run(self) -> TurnFinished:
        return await self.agent.run(UserMessage.of("go"))

    @property
    def said(self) -> list[str]:
        return [event.content for event in self.events.of(UserSaid)]

    def saying(self, *words: str, then: Any = "done") -> Cue:
        async def cue(_request: Request) -> Any:
            for each in words:
                self.steering.add(each)
            return then

        return cue


async def test_words_are_read_at_the_next_step_after_the_results() -> None:
    stage = Stage()
    stage.model = stage.agent.model = ScriptedModel(
        [stage.saying("use tabs", "and be quick", then=call("work")), "ok"]
    )
    assert (await stage.run()).reason == "done"
    *_, result, first, second = stage.model.requests[1].messages
    assert isinstance(result, ToolResult)
    assert first == UserMessage.of("use tabs")
    assert second == UserMessage.of("and be quick")
    assert stage.said == ["go", "use tabs", "and be quick"]
    assert stage.steering.take_all() == ()


async def test_a_turn_goes_on_for_words_that_came_with_its_last_answer() -> None:
    stage = Stage()
    stage.model = stage.agent.model = ScriptedModel(
        [stage.saying("one more thing", then="finished"), "that too"]
    )
    assert (await stage.run()).steps == 2
    assert stage.model.requests[1].messages[-1] == UserMessage.of("one more thing")


async def test_words_taken_back_are_never_said() -> None:
    stage = Stage("answer")
    stage.steering.add("first")
    stage.steering.add("second", "sec")
    assert stage.steering.take_back() == "second"
    await stage.run()
    assert stage.said == ["go", "first"]
    assert stage.steering.take_back() == ""


async def test_words_taken_back_while_they_are_composed_are_never_said() -> None:
    stage = Stage("answer")

    async def slow(words: str, typed: str | None) -> UserMessage:
        assert stage.steering.take_back() == words
        return await compose(words, typed)

    stage.steering = Steering(slow)
    stage.agent.guards = [stage.steering]
    stage.steering.add("never mind")
    await stage.run()
    assert stage.said == ["go"]


class Stops(Guard):
    async def before_step(self, turn: Turn) -> None:
        raise StopTurn("limit", "enough")


async def test_words_that_a_turn_did_not_come_to_read_are_given_back_in_order() -> None:
    stopped = Stage("never asked", guards=[Stops()])
    stopped.steering.add("a")
    stopped.steering.add("b")
    assert (await stopped.run()).reason == "limit"
    assert stopped.steering.take_all() == ("a", "b")
    assert stopped.steering.take_all() == ()


async def test_words_stay_in_the_conversation_when_the_provider_fails_after_them() -> None:
    failed = Stage(ProviderDown("gone"))
    failed.steering.add("a")
    assert (await failed.run()).reason == "error"
    assert failed.conversation.messages[-1] == UserMessage.of("a")
    assert failed.steering.take_all() == ()


async def test_what_was_typed_of_the_words_comes_along() -> None:
    stage = Stage("nice")
    stage.steering.add("look @here\nmail", "look @here")
    await stage.run()
    said = UserMessage.of("look @here\nmail (typed: look @here)")
    assert stage.model.requests[0].messages[-1] == said


async def test_the_words_that_a_turn_goes_on_for_cannot_be_taken_back_but_later_ones_can() -> None:
    taken: list[str] = []

    class TakesBack(Guard):
        async def before_step(self, turn: Turn) -> None:
            if turn.steps:
                taken.extend((stage.steering.take_back(), stage.steering.take_back()))

    stage = Stage(guards=[TakesBack()])
    cue = stage.saying("one", "two", then="finished")
    stage.model = stage.agent.model = ScriptedModel([cue, "that too"])
    assert (await stage.run()).steps == 2
    assert taken == ["two", ""]
    assert stage.said == ["go", "one"]
    stage.steering.add("three")
    assert stage.steering.take_back() == "three"


async def test_words_that_a_limit_keeps_from_an_answer_stay_unread() -> None:
    stage = Stage(guards=[Limits(max_steps=1)])
    stage.model = stage.agent.model = ScriptedModel([stage.saying("and this", then="finished")])
    assert (await stage.run()).reason == "limit"
    assert stage.said == ["go"]
    assert (len(stage.steering), stage.steering.take_all()) == (1, ("and this",))
