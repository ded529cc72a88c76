"""The ledger of what is said, delivered by the channel Telegram to a platform on loopback."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import select, update

from chat_platform import BOT, TOKEN, ChatPlatform
from ybs.frontends.gateway.channel import Button, ChatPlace, MaybeSentError, OutgoingFile
from ybs.frontends.gateway.outbox import (
    MARK,
    MOST_AGE_SECONDS,
    MOST_TRIES,
    Outbox,
    of_ledger,
)
from ybs.frontends.gateway.store import GatewayStore, ledger, sqlite_engine
from ybs.frontends.gateway.telegram import Telegram, make_channel

pytestmark = pytest.mark.integration

NOTED = MARK.strip()


def place(chat: int = 1, account: str = str(BOT["id"])) -> ChatPlace:
    return ChatPlace(channel="telegram", account=account, kind="private", chat=str(chat))


class Time:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        """Return the seconds."""
        return self.seconds


class Chat:
    """A platform, a bot on it, and an outbox whose clock the test turns."""

    def __init__(self, platform: ChatPlatform, channel: Telegram, store: GatewayStore) -> None:
        self.platform, self.channel, self.store = platform, channel, store
        self.time = Time()
        self.owners = list[ChatPlace]()
        self.outbox = self.made()

    def made(self, **channels: Any) -> Outbox:
        """Return another outbox over the same ledger, as another process has it."""
        return Outbox(
            self.store,
            channels or {"telegram": self.channel},
            self._owners,
            now=self.time,
            clock=self.time,
        )

    async def _owners(self, channel: str, account: str) -> list[ChatPlace]:
        assert (channel, account) == ("telegram", str(BOT["id"]))
        return self.owners

    @asynccontextmanager
    async def delivering(self) -> AsyncGenerator[None]:
        """Run the outbox."""
        task = asyncio.create_task(self.outbox.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def rows(self) -> list[Any]:
        """Return the ledger."""
        return list(
            await self.store.do(lambda c: c.execute(select(ledger).order_by(ledger.c.number)).all())
        )

    async def states(self) -> list[str]:
        """Return the state of each message."""
        return [row.state for row in await self.rows()]

    async def until(self, *states: str, step: float = 2.0) -> None:
        """Wait until these are the states of all messages, turning the clock."""
        async with asyncio.timeout(8):
            while await self.states() != list(states):
                self.time.seconds += step
                self.outbox._wake.set()
                await asyncio.sleep(0.01)

    async def noted(self) -> None:
        """Wait until the first message has not been sent, for a reason that is noted."""
        async with asyncio.timeout(5):
            for _ in count():
                if (await self.rows())[0].error:
                    return
                await asyncio.sleep(0.01)

    async def begun(self, method: str, count: int = 1) -> None:
        """Wait until so many requests have come."""
        await self.platform.until(
            lambda: [each.method for each in self.platform.calls].count(method) >= count
        )


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncGenerator[Chat]:
    store = GatewayStore(sqlite_engine(tmp_path / "gateway" / "gateway.db"))
    async with ChatPlatform() as platform:
        channel = make_channel("telegram", {"token": TOKEN, "base_url": platform.url})
        await channel._start()
        yield Chat(platform, channel, store)
        await channel.close()
    store.close()


# The way of a message


async def test_a_message_is_delivered_once_with_markup(chat: Chat) -> None:
    for _ in range(2):
        await chat.outbox.post(place(), "**hello**", id="a")
    async with chat.delivering():
        await chat.until("delivered")
    assert chat.platform.texts() == ["<b>hello</b>"]
    assert [each.message for each in await chat.rows()] == [str(chat.platform.sent[0].message)]


async def test_a_long_message_arrives_in_order_with_the_buttons_under_its_end(chat: Chat) -> None:
    text = "\n\n".join(f"paragraph {number} " + "word " * 100 for number in range(20))
    await chat.outbox.post(place(), text, id="a", buttons=[[Button("Yes", "t")]])
    ids = [row.id for row in await chat.rows()]
    assert ids == ["a", *(f"a:{number}" for number in range(2, len(ids) + 1))]
    async with chat.delivering():
        await chat.until(*["delivered"] * len(ids))
    assert "".join(chat.platform.texts()).count("paragraph") == 20
    assert [bool(each.buttons) for each in chat.platform.sent] == [*[False] * (len(ids) - 1), True]


async def test_the_answer_takes_the_place_of_the_progress(chat: Chat) -> None:
    shown = await chat.outbox.progress(place(), "working", message="")
    assert await chat.outbox.progress(place(), "still working", message=shown) == shown
    await chat.outbox.post(place(), "done", id="a", edits=shown)
    async with chat.delivering():
        await chat.until("delivered")
    assert [each.texts for each in chat.platform.sent] == [["working", "still working", "done"]]
    assert [each.message for each in await chat.rows()] == [shown]


async def test_a_message_that_is_still_on_its_way_is_edited_when_it_has_come(chat: Chat) -> None:
    """Somebody presses a button before the platform's answer has come, which says what the question is called there."""
    chat.platform.knob("wait", "sendMessage")
    buttons = [[Button("Yes", "t")]]
    async with chat.delivering():
        await chat.outbox.post(place(), "really?", id="a", buttons=buttons)
        await chat.outbox.post(place(), "yes", id="a:done", edits=of_ledger("a"))
        await chat.outbox.post(place(), "lost", id="c", edits=of_ledger("b"))
        await chat.until(*["delivered"] * 3)
    assert [each.texts for each in chat.platform.sent] == [["really?", "yes"], ["lost"]]
    assert not chat.platform.sent[0].buttons


async def test_an_answer_whose_place_is_gone_is_a_message_of_its_own(chat: Chat) -> None:
    await chat.outbox.post(place(), "done", id="a", edits="77777")
    async with chat.delivering():
        await chat.until("delivered")
    assert chat.platform.texts() == ["done"]


async def test_a_file_is_sent_with_its_words_and_then_not_kept(chat: Chat) -> None:
    file = OutgoingFile(name="a.txt", data=b"x" * 1000)
    await chat.outbox.post(place(), "look", id="a", file=file)
    assert len((await chat.rows())[0].body) > 1000
    async with chat.delivering():
        await chat.until("delivered")
    sent = chat.platform.sent[0]
    assert (sent.text, sent.file, sent.data) == ("look", "a.txt", file.data)
    assert len((await chat.rows())[0].body) < 1000


async def test_markup_that_the_platform_refuses_is_sent_as_plain_text(chat: Chat) -> None:
    chat.platform.knob("error", "sendMessage", description="Bad Request: can't parse entities")
    await chat.outbox.post(place(), "**hello** & more", id="a")
    async with chat.delivering():
        await chat.until("delivered")
    assert [(each.text, each.parse_mode) for each in chat.platform.sent] == [("hello & more", "")]


async def test_what_the_platform_refuses_for_good_is_not_tried_again(chat: Chat) -> None:
    chat.platform.knob("error", "sendMessage", description="Bad Request: no", times=2)
    await chat.outbox.post(place(), "**bad**", id="a")
    await chat.outbox.post(place(), "good", id="b")
    async with chat.delivering():
        await chat.until("failed", "delivered")
    assert chat.platform.texts() == ["good"]


async def test_what_another_process_posts_is_delivered_as_plain_text(chat: Chat) -> None:
    await chat.made(other=chat.channel).post(place(), "you **are** let in & more", id="a")
    async with chat.delivering():
        await chat.until("delivered")
    assert chat.platform.texts() == ["you are let in & more"]


# Lost replies on restart; replies shown twice


async def test_a_reply_that_waited_when_the_process_ended_is_delivered_by_the_next(
    chat: Chat,
) -> None:
    await chat.outbox.post(place(), "kept", id="a")
    chat.outbox = chat.made()
    async with chat.delivering():
        await chat.until("delivered")
    assert chat.platform.texts() == ["kept"], "it was not sent before, so it has no mark"


async def killed_in_the_midst(chat: Chat, fault: Any) -> None:
    """End a process while it sends its first message."""
    chat.platform.knob(fault, "sendMessage")
    task = asyncio.create_task(chat.outbox.run())
    await chat.begun("sendMessage")
    for each in (*chat.outbox._sending.values(), task):
        each.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await chat.states() == ["attempting"]


async def test_a_reply_that_was_being_sent_comes_again_with_a_visible_mark(chat: Chat) -> None:
    await chat.outbox.post(place(), "**kept**", id="a")
    await killed_in_the_midst(chat, "hang")
    chat.outbox = chat.made()
    async with chat.delivering():
        await chat.until("delivered")
    assert chat.platform.texts() == [f"<b>kept</b>\n\n{NOTED}"]


async def test_an_edit_that_was_being_made_is_made_again_without_a_mark(chat: Chat) -> None:
    shown = await chat.outbox.progress(place(), "working", message="")
    await chat.outbox.post(place(), "done", id="a", edits=shown)
    chat.platform.knob("drop_after", "editMessageText")
    async with chat.delivering():
        await chat.until("delivered")
    assert chat.platform.texts() == ["done"]


async def test_a_connection_that_breaks_after_sending_gives_a_marked_second_message(
    chat: Chat,
) -> None:
    chat.platform.knob("drop_after", "sendMessage")
    await chat.outbox.post(place(), "hello", id="a")
    async with chat.delivering():
        await chat.until("delivered")
    assert chat.platform.texts() == ["hello", f"hello\n\n{NOTED}"]


async def test_a_platform_that_is_out_of_order_for_hours_loses_no_message(chat: Chat) -> None:
    chat.platform.knob("fail", "sendMessage", times=100)
    await chat.outbox.post(place(), "hello", id="a")
    began = chat.time.seconds
    async with chat.delivering():
        async with asyncio.timeout(8):
            while chat.time.seconds < began + 4 * 3_600:
                chat.time.seconds += 60
                chat.outbox._wake.set()
                await asyncio.sleep(0.01)
        chat.platform.knobs.clear()
        await chat.until("delivered", step=60.0)
    assert chat.platform.texts() == [f"hello\n\n{NOTED}"]


async def test_a_message_is_tried_for_hours_and_not_for_ever(chat: Chat) -> None:
    chat.platform.knob("fail", "sendMessage", times=100)
    await chat.outbox.post(place(), "hello", id="a")
    async with chat.delivering():
        await chat.until("failed", step=100.0)
    assert [each.method for each in chat.platform.calls].count("sendMessage") == MOST_TRIES
    assert (await chat.rows())[0].error


async def test_a_message_that_ends_the_process_each_time_is_given_up(chat: Chat) -> None:
    await chat.outbox.post(place(), "poison", id="a")
    for _ in range(MOST_TRIES):
        chat.platform.calls.clear()
        await killed_in_the_midst(chat, "hang")
        chat.outbox = chat.made()
    async with chat.delivering():
        await chat.until("failed")


async def test_a_message_that_could_not_be_sent_for_a_day_is_given_up(chat: Chat) -> None:
    chat.platform.knob("wait", "sendMessage", retry_after=int(MOST_AGE_SECONDS), times=100)
    await chat.outbox.post(place(), "hello", id="a")
    async with chat.delivering():
        await chat.noted()
        chat.time.seconds += MOST_AGE_SECONDS + 1
        await chat.until("failed")
    assert [each.method for each in chat.platform.calls].count("sendMessage") == 1


async def test_a_ban_holds_after_a_restart(chat: Chat) -> None:
    chat.platform.knob("wait", "sendMessage", retry_after=600)
    await chat.outbox.post(place(), "hello", id="a")
    async with chat.delivering():
        await chat.noted()
    chat.outbox = chat.made()
    async with chat.delivering():
        for _ in range(30):
            chat.time.seconds += 10
            chat.outbox._wake.set()
            await asyncio.sleep(0.005)
        assert [each.method for each in chat.platform.calls].count("sendMessage") == 1
        await chat.until("delivered", step=20.0)
    assert chat.platform.texts() == ["hello"]


async def test_a_chat_that_has_another_id_gets_what_waits_there(chat: Chat) -> None:
    moved = list[tuple[ChatPlace, str]]()

    async def move(of: ChatPlace, chat_id: str) -> None:
        moved.append((of, chat_id))
        values = {"chat": f"telegram\n{BOT['id']}\n{chat_id}"}
        values["place"] = msgspec.json.encode(place(int(chat_id)))
        await chat.store.do(lambda c: c.execute(update(ledger).values(**values)))

    chat.outbox.when_moved(move)
    words = "Bad Request: group chat was upgraded to a supergroup chat"
    parameters = {"migrate_to_chat_id": 2}
    chat.platform.knob("error", chat=1, code=400, description=words, parameters=parameters)
    await chat.outbox.post(place(1), "hello", id="a")
    async with chat.delivering():
        await chat.until("delivered")
    assert moved == [(place(1), "2")]
    assert chat.platform.texts(2) == ["hello"]
    assert chat.platform.texts(1) == []


async def test_a_platform_that_is_away_costs_no_tries(tmp_path: Path) -> None:
    store = GatewayStore(sqlite_engine(tmp_path / "gateway" / "gateway.db"))
    async with ChatPlatform() as platform:
        channel = make_channel("telegram", {"token": TOKEN, "base_url": platform.url})
        await channel._start()
        port = platform.port
    chat = Chat(platform, channel, store)
    await chat.outbox.post(place(), "hello", id="a")
    async with chat.delivering():
        await chat.noted()
        assert [row.tries for row in await chat.rows()] == [0]
        async with ChatPlatform(port=port) as chat.platform:
            await chat.until("delivered")
    assert chat.platform.texts() == ["hello"], "nothing had been sent, so it has no mark"
    await channel.close()
    store.close()


# Flood control


async def test_one_ban_holds_one_chat_and_nobody_else(chat: Chat) -> None:
    """One of 5,827 s, met at the start, froze all platforms elsewhere."""
    chat.platform.knob("wait", "sendMessage", chat=1, retry_after=5827)
    await chat.outbox.post(place(1), "to the banned", id="a")
    await chat.outbox.post(place(2), "to the other", id="b")
    async with chat.delivering():
        await chat.platform.until(lambda: chat.platform.texts(2))
        assert chat.platform.texts(1) == []
        assert (await chat.rows())[0].tries == 0, "it was not sent, so it was no try"
        chat.time.seconds += 5800
        await asyncio.sleep(0.05)
        assert chat.platform.texts(1) == []
        chat.time.seconds += 28
        await chat.until("delivered", "delivered")
    assert chat.platform.texts(1) == ["to the banned"]


async def test_nothing_is_sent_into_a_ban_not_even_typing(chat: Chat) -> None:
    chat.platform.knob("wait", retry_after=100)
    shown = await chat.outbox.progress(place(), "working", message="")
    assert shown == ""
    calls = len(chat.platform.calls)
    assert await chat.outbox.progress(place(), "working on", message="") == ""
    await chat.outbox.show_typing(place())
    assert len(chat.platform.calls) == calls
    chat.time.seconds += 101
    await chat.outbox.show_typing(place())
    assert await chat.outbox.progress(place(), "working on", message="")


async def test_progress_is_dropped_before_an_answer_waits(chat: Chat) -> None:
    shown = await chat.outbox.progress(place(), "1", message="")
    for number in range(2, 10):
        assert await chat.outbox.progress(place(), str(number), message=shown) == shown
    assert len(chat.platform.sent[0].texts) == 2, "the pace holds, and one message is left free"
    await chat.outbox.post(place(), "the answer", id="a")
    async with chat.delivering():
        await chat.platform.until(lambda: "the answer" in chat.platform.texts())
    assert chat.time.seconds == 1_000.0, "it did not have to wait"


async def test_chunks_after_a_pause_are_not_dropped(chat: Chat) -> None:
    await chat.outbox.post(place(), "word " * 3000, id="a")
    count = len(await chat.rows())
    assert count > 2
    chat.platform.knob("wait", "sendMessage", retry_after=30)
    async with chat.delivering():
        await chat.until(*["delivered"] * count)
    assert sum(each.split().count("word") for each in chat.platform.texts()) == 3000


async def test_a_message_to_one_chat_is_one_message(chat: Chat) -> None:
    for key in ("a", "a", "a"):
        await chat.outbox.post(place(), "status", id=key)
    async with chat.delivering():
        await chat.until("delivered")
    assert len(chat.platform.sent) == 1


async def test_progress_that_may_have_arrived_is_not_shown_twice(chat: Chat) -> None:
    chat.platform.knob("drop_after", "sendMessage")
    with pytest.raises(MaybeSentError):
        await chat.outbox.progress(place(), "working", message="")


# Chats that are gone; accounts


async def test_the_owner_is_told_once_of_a_chat_that_is_dead(chat: Chat) -> None:
    chat.owners = [place(9)]
    words = "Forbidden: bot was blocked by the user"
    chat.platform.knob("error", chat=1, code=403, description=words, times=100)
    for key in ("a", "b"):
        await chat.outbox.post(place(1), "hello", id=key)
    async with chat.delivering():
        await chat.until("failed", "failed", "delivered")
    assert chat.platform.texts(1) == []
    (told,) = chat.platform.texts(9)
    assert "blocked by the user" in told


async def test_an_owner_whose_own_chat_is_dead_is_not_told_there(chat: Chat) -> None:
    chat.owners = [place(1)]
    chat.platform.knob("error", code=403, description="Forbidden: bot was blocked", times=100)
    await chat.outbox.post(place(1), "hello", id="a")
    async with chat.delivering():
        await chat.until("failed")


async def test_a_bot_does_not_speak_for_another_account(chat: Chat) -> None:
    await chat.outbox.post(place(1, account="5"), "hello", id="a")
    async with chat.delivering():
        await chat.until("failed")
    assert chat.platform.sent == []


async def test_old_messages_are_forgotten(chat: Chat) -> None:
    await chat.outbox.post(place(), "old", id="a")
    async with chat.delivering():
        await chat.until("delivered")
    await chat.outbox.post(place(), "old, and not sent", id="b")
    chat.time.seconds += 100
    await chat.outbox.post(place(), "new", id="c")
    await chat.outbox.forget(50)
    assert [row.id for row in await chat.rows()] == ["b", "c"]


async def test_a_message_that_was_never_tried_is_sent_however_old_the_clock_makes_it(
    chat: Chat,
) -> None:
    await chat.outbox.post(place(), "hello", id="a")
    chat.time.seconds += 40 * MOST_AGE_SECONDS
    async with chat.delivering():
        await chat.until("delivered")


async def test_a_channel_that_breaks_its_promise_holds_nobody(chat: Chat) -> None:
    async def broken(*_: object) -> str:
        raise RuntimeError("a bug of somebody else's")

    send, chat.channel.send = chat.channel.send, broken  # pyright: ignore[reportAttributeAccessIssue] - a channel of somebody else's
    await chat.outbox.post(place(), "hello", id="a")
    async with chat.delivering():
        await chat.noted()
        chat.channel.send = send
        await chat.until("delivered")
    assert chat.platform.texts() == [f"hello\n\n{NOTED}"]
