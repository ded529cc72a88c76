"""What every Guard keeps: each built-in one, the fakes of the tests, and one that has the protocol's parts and nothing else."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import get_args

import pytest

from compacted import Shrinking, guard, is_valid
from ybs.agent.prompt_context import PromptContext
from ybs.config.schema import FirewallSettings
from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.errors import ToolError
from ybs.core.events import EndReason
from ybs.core.messages import UserMessage
from ybs.core.ports import Guard, Turn
from ybs.guards.limits import CallLimit, DryRun, Limits, TurnDeadline
from ybs.guards.loops import Loops
from ybs.guards.recovery import Recovery
from ybs.guards.steering import Steering
from ybs.security.firewall.masking import Firewall
from ybs.session.journal import Journal, Syncing
from ybs.session.options import Options
from ybs.session.settings import environment_of, load_settings
from ybs.small_models.endings import Endings
from ybs.testing import RecordedEvents, ScriptedModel, ScriptedToolbox, call
from ybs.transcripts.store import SessionStore


class Foreign:
    """A guard without the base class."""

    async def before_step(self, turn: Turn) -> None:
        if turn.steps == 1:
            turn.say(UserMessage.of("Be quick.", origin="guard"))

    async def wants_more(self, turn: Turn) -> bool:
        return False


def context() -> Guard:
    options = Options.of(Path.cwd(), {})
    return PromptContext(environment_of(options, load_settings(options)))


def steering() -> Guard:
    async def compose(words: str, _typed: str | None) -> UserMessage:
        return UserMessage.of(words)

    made = Steering(compose)
    made.add("And be brief.")
    return made


def syncing() -> Guard:
    folder = Path.cwd() / "sessions"
    firewall = Firewall(FirewallSettings(), [])
    return Syncing(
        Journal(lambda: SessionStore(folder), lambda: firewall, lambda _event: None, may_write=True)
    )


MAKERS: dict[str, Callable[[], Guard]] = {
    "call limit": CallLimit,
    "compaction": lambda: guard(200),
    "context": context,
    "deadline": lambda: TurnDeadline(60),
    "dry run": DryRun,
    "endings": lambda: Endings(lambda _call: True, lambda _words: False),
    "foreign": Foreign,
    "limits": lambda: Limits(max_steps=6, max_cost_usd=1.0, spent_usd=lambda: 0.0),
    "loops": lambda: Loops(lambda: "same"),
    "recovery": Recovery,
    "shrinking": Shrinking,
    "steering": steering,
    "syncing": syncing,
}


@pytest.fixture(params=list(MAKERS))
async def made(request: pytest.FixtureRequest, project: Path) -> AsyncIterator[Guard]:
    """Make a guard of each kind."""
    guard = MAKERS[request.param]()
    yield guard
    if isinstance(guard, PromptContext):
        await guard.aclose()  # its map is made in another process


class Watched:
    """Passes on what a guard is asked, and remembers what it wanted and what it had said by the next step."""

    def __init__(self, inner: Guard) -> None:
        self._inner = inner
        self._has_wanted_at: int | None = None
        self.is_silent_wish = False

    async def before_step(self, turn: Turn) -> None:
        await self._inner.before_step(turn)
        wanted_at, self._has_wanted_at = self._has_wanted_at, None
        if wanted_at is not None:
            new = turn.conversation.messages[wanted_at:]
            self.is_silent_wish |= not any(isinstance(each, UserMessage) for each in new)

    async def wants_more(self, turn: Turn) -> bool:
        count = len(turn.conversation.messages)
        wants = await self._inner.wants_more(turn)
        self._has_wanted_at = count if wants else None
        return wants


def agent(guard: Guard, script: list[object], conversation: Conversation) -> Agent:
    toolbox = ScriptedToolbox({"look": "seen " * 40, "fail": ToolError("no such file")})
    model = ScriptedModel(script)  # pyright: ignore[reportArgumentType] - a list of entries
    return Agent(model, toolbox, RecordedEvents(), conversation, [guard])


async def test_a_turn_comes_to_its_end_and_the_conversation_can_be_sent_again(made: Guard):
    conversation = Conversation("Be brief.")
    script: list[object] = [call("look"), call("fail"), "Done."]
    finished = await agent(made, script, conversation).run(UserMessage.of("go"))
    assert finished.reason == ("dry_run" if isinstance(made, DryRun) else "done")
    assert is_valid(conversation)
    assert conversation.messages[0] == UserMessage.of("go")


async def test_a_turn_in_which_nothing_works_ends_for_a_reason_and_nothing_else_is_raised(made):
    conversation = Conversation()
    script: list[object] = [*(call("fail") for _ in range(14)), "I give up."]
    finished = await agent(made, script, conversation).run(UserMessage.of("go"))
    assert finished.reason in get_args(EndReason)
    assert finished.reason == "done" or finished.message
    assert is_valid(conversation)


async def test_one_guard_serves_all_turns_of_a_conversation(made: Guard):
    conversation = Conversation()
    for words in ("one", "two", "three"):
        finished = await agent(made, [call("look"), words], conversation).run(UserMessage.of(words))
        assert finished.reason == ("dry_run" if isinstance(made, DryRun) else "done")
    assert is_valid(conversation)


async def test_who_wants_more_gives_the_model_a_reason_before_the_next_step(made: Guard):
    """Else the same request would go out again."""
    watched = Watched(made)
    conversation = Conversation()
    finished = await agent(watched, ["", "Done."], conversation).run(UserMessage.of("go"))
    assert finished.reason == "done"
    assert not watched.is_silent_wish
    assert is_valid(conversation)


async def test_looking_at_a_turn_again_says_nothing_twice(made: Guard):
    conversation = Conversation()
    turn = Turn(conversation, RecordedEvents())
    turn.say(UserMessage.of("go"))
    await made.before_step(turn)
    told = list(conversation.messages)
    await made.before_step(turn)
    assert conversation.messages == told
