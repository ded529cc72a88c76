"""What keeps a channel running."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from chat_platform import TOKEN, ChatPlatform
from ybs.core.errors import YbsError
from ybs.frontends.gateway import supervisor
from ybs.frontends.gateway.channel import Incoming
from ybs.frontends.gateway.supervisor import Supervisor, Timing
from ybs.frontends.gateway.telegram import Telegram, make_channel

pytestmark = pytest.mark.integration


class Watched:
    """A supervisor over a bot, and what came of it."""

    def __init__(self, platform: ChatPlatform, **section: Any) -> None:
        self.platform = platform
        self.channel: Telegram = make_channel(
            "telegram", {"token": TOKEN, "base_url": platform.url, **section}
        )
        self.told = list[tuple[str, str]]()
        self.taken = list[str]()
        self.fails = 0
        self._more = asyncio.Event()
        self.supervisor = Supervisor(
            "telegram",
            self.channel,
            self.take,
            self.say,
            Timing(probe=0.05, first_wait=0.02, steady=0.2),
        )

    async def take(self, incoming: Incoming) -> None:
        """Take an event, or fail a few times."""
        if self.fails:
            self.fails -= 1
            raise YbsError("the disk is full")
        self.taken.append(incoming.text)
        self._more.set()

    def say(self, state: str, sentence: str) -> None:
        """Note a state."""
        self.told.append((state, sentence))
        self._more.set()

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds of what came."""
        async with asyncio.timeout(5):
            while not holds():
                self._more.clear()
                await self._more.wait()

    def states(self) -> list[str]:
        """Return the states that were told."""
        return [state for state, _ in self.told]

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the supervisor."""
        task = asyncio.create_task(self.supervisor.run())
        try:
            yield
        finally:
            assert not task.done(), "a supervisor never ends by itself"
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.channel.close()


@asynccontextmanager
async def watched(**section: Any) -> AsyncGenerator[Watched]:
    async with ChatPlatform() as platform:
        yield Watched(platform, **section)


async def test_a_timeout_kills_nothing_and_the_channel_begins_again() -> None:
    """An unhandled one ended every profile elsewhere."""
    async with watched() as bot:
        bot.platform.knob("drop_before", "getUpdates", times=2)
        bot.platform.knob("half", "getMe")
        bot.platform.say("hello")
        async with bot.running():
            await bot.until(lambda: bot.taken)
        assert bot.taken == ["hello"]
        assert bot.states()[0] == "starting"
        assert "waiting" in bot.states()
        assert bot.supervisor.state == "connected"


async def test_polling_that_is_stuck_is_noticed_by_a_probe_and_begins_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervisor, "PROBE_TIMEOUT", 0.05)
    async with watched() as bot:
        async with bot.running():
            await bot.until(lambda: bot.supervisor.state == "connected")
            bot.platform.knob("hang", times=3)
            await bot.until(lambda: bot.supervisor.state == "waiting")
            assert "no sign of life" in bot.told[-1][1]
            bot.platform.knobs.clear()
            bot.platform.say("after it")
            await bot.until(lambda: bot.taken)
        assert bot.taken == ["after it"]


async def test_a_ban_met_at_the_start_holds_its_channel_alone() -> None:
    async with watched() as banned, watched() as free:
        banned.platform.knob("wait", "getMe", retry_after=5827)
        free.platform.say("hello")
        async with banned.running(), free.running():
            await banned.until(lambda: banned.supervisor.state == "waiting")
            await free.until(lambda: free.taken)
        assert "5827" in banned.told[-1][1]


async def test_a_wrong_token_is_said_once_and_the_supervisor_stays() -> None:
    wrong = ":".join(("9", "B" * 35))
    async with watched(token=wrong) as bot:
        async with bot.running():
            await bot.until(lambda: bot.supervisor.state == "refused")
            await asyncio.sleep(0.1)
        assert bot.states() == ["starting", "refused"]
        assert wrong not in str(bot.told)


async def test_a_rival_is_said_when_it_is_met_again() -> None:
    async with watched() as bot:
        bot.platform.knob("error", "getUpdates", code=409, description="Conflict: x", times=1)
        async with bot.running():
            await bot.until(lambda: bot.supervisor.state == "connected")
        assert "rival" not in bot.states(), "a process that was killed leaves one behind"
        bot.told.clear()
        bot.platform.knob("error", "getUpdates", code=409, description="Conflict: x", times=9)
        async with bot.running():
            await bot.until(lambda: bot.supervisor.state == "rival")
            assert "only one" in bot.told[-1][1]


async def test_a_rival_that_left_is_no_rival_any_more() -> None:
    async with watched() as bot:
        bot.platform.knob("error", "getUpdates", code=409, description="Conflict: x", times=3)
        async with bot.running():
            await bot.until(lambda: "rival" in bot.states())
            await bot.until(lambda: bot.supervisor.state == "connected")


async def test_an_event_that_could_not_be_kept_is_taken_again() -> None:
    async with watched() as bot:
        bot.fails = 2
        bot.platform.say("hello")
        async with bot.running():
            await bot.until(lambda: bot.taken)
            await bot.platform.until(lambda: not bot.platform.unread)
        assert bot.taken == ["hello"]
        assert "the disk is full" in str(bot.told)


async def test_a_channel_with_a_bug_is_begun_again() -> None:
    async with watched() as bot:
        run, calls = bot.channel.run, list[int]()

        async def broken(*arguments: Any) -> None:
            calls.append(1)
            if len(calls) == 1:
                raise RuntimeError("a bug")
            await run(*arguments)

        bot.channel.run = broken  # pyright: ignore[reportAttributeAccessIssue] - a channel of somebody else's
        bot.platform.say("hello")
        async with bot.running():
            await bot.until(lambda: bot.taken)
        assert ("waiting", "The channel failed: RuntimeError.") in bot.told
