"""What a chat sees of a turn that runs."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from chat_platform import BOT, TOKEN, ChatPlatform
from fake_session import FakeSession
from ybs.core.events import AssistantSaid, Event, RequestRetried, TextStreamed, ToolStarted
from ybs.frontends.gateway import live
from ybs.frontends.gateway.channel import Capabilities, ChatPlace
from ybs.frontends.gateway.live import LiveTurn
from ybs.frontends.gateway.outbox import Outbox
from ybs.frontends.gateway.store import GatewayStore, sqlite_engine
from ybs.frontends.gateway.telegram import CAPABILITIES, make_channel

pytestmark = pytest.mark.integration

HOME = ChatPlace(channel="telegram", account=str(BOT["id"]), kind="private", chat="1")
READ = ToolStarted(id="1", name="read_file", arguments=Raw(b"{}"), title="Read a_b.py")


class Watching:
    """A session, a chat that watches it, and the ids of messages that were told."""

    def __init__(self, platform: ChatPlatform, outbox: Outbox) -> None:
        self.platform, self.outbox, self.session = platform, outbox, FakeSession()
        self.told = list[str]()

    def live(self, capabilities: Capabilities = CAPABILITIES, message: str = "") -> LiveTurn:
        """Return what shows the session."""
        return LiveTurn(self.outbox, capabilities, HOME, self.session, message, self._shown)  # pyright: ignore[reportArgumentType] - a session without a model

    async def _shown(self, message: str) -> None:
        self.told.append(message)

    async def tell(self, *events: Event) -> None:
        """Have the session tell events, and wait until the chat shows something new."""
        before = [list(each.texts) for each in self.platform.sent]
        for event in events:
            self.session.emit(event)
        await self.platform.until(lambda: [each.texts for each in self.platform.sent] != before)


@pytest.fixture
async def watching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Watching]:
    monkeypatch.setattr(live, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(live, "EVERY_SECONDS", 0.01)
    store = GatewayStore(sqlite_engine(tmp_path / "gateway" / "gateway.db"))
    async with ChatPlatform() as platform:
        channel = make_channel("telegram", {"token": TOKEN, "base_url": platform.url})
        await channel._start()
        seconds = iter(range(0, 10_000_000, 10))
        yield Watching(platform, Outbox(store, {"telegram": channel}, clock=lambda: next(seconds)))
        await channel.close()
    store.close()


async def test_tools_are_one_line_and_text_grows_in_one_message(watching: Watching) -> None:
    async with watching.live() as shown:
        await watching.tell(READ)
        await watching.tell(TextStreamed(text="The **answer"))
        await watching.tell(TextStreamed(text="** is"))
    (sent,) = watching.platform.sent
    assert sent.texts == [
        "<i>Read a_b.py \u2026</i>",
        "The **answer \u2026",
        "The <b>answer</b> is \u2026",
    ]
    assert shown.message == str(sent.message)
    assert watching.told == [shown.message], "so that the next process knows it as well"


async def test_an_answer_that_is_given_up_is_no_longer_shown(watching: Watching) -> None:
    async with watching.live():
        await watching.tell(TextStreamed(text="wrong"))
        retried = RequestRetried(attempt=1, wait_seconds=0.0, message="broken")
        await watching.tell(retried, TextStreamed(text="right"))
    assert watching.platform.texts() == ["right \u2026"]


async def test_what_sub_agents_say_is_not_shown(watching: Watching) -> None:
    async with watching.live():
        watching.session.emit(TextStreamed(text="inner"), agent="helper")
        await watching.tell(AssistantSaid(content="outer"))
    assert watching.platform.texts() == ["outer \u2026"]


async def test_it_goes_on_in_the_message_of_an_earlier_process(watching: Watching) -> None:
    first = await watching.outbox.progress(HOME, "before", message="")
    async with watching.live(message=first):
        await watching.tell(TextStreamed(text="after"))
    assert [each.texts for each in watching.platform.sent] == [["before", "after \u2026"]]
    assert watching.told == []


async def test_nothing_is_edited_any_more_when_it_is_over(watching: Watching) -> None:
    async with watching.live():
        await watching.tell(TextStreamed(text="one"))
        watching.session.emit(TextStreamed(text="two"))
    before = len(watching.platform.calls)
    await asyncio.sleep(0.05)
    assert len(watching.platform.calls) == before


async def test_typing_is_shown_where_the_platform_cannot_edit(watching: Watching) -> None:
    capabilities = msgspec.structs.replace(CAPABILITIES, can_edit=False)
    async with watching.live(capabilities):
        watching.session.emit(TextStreamed(text="one"))
        await watching.platform.until(
            lambda: "sendChatAction" in [each.method for each in watching.platform.calls]
        )
    assert watching.platform.sent == []


async def test_progress_that_may_have_arrived_is_the_last_of_it(watching: Watching) -> None:
    watching.platform.knob("drop_after", "sendMessage")
    async with watching.live() as shown:
        await watching.tell(TextStreamed(text="one"))
        watching.session.emit(TextStreamed(text="two"))
        await asyncio.sleep(0.05)
    assert shown.message == ""
    assert watching.platform.texts() == ["one \u2026"]
