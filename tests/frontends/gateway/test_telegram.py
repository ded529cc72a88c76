"""The channel Telegram against a platform on loopback."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from chat_platform import BOT, TOKEN, ChatPlatform
from ybs.core.errors import YbsError
from ybs.frontends.gateway.channel import (
    BadSettingsError,
    Button,
    ChannelError,
    ChatGoneError,
    ChatPlace,
    Incoming,
    MaybeSentError,
    MessageGoneError,
    Outgoing,
    OutgoingFile,
    RefusedError,
    RivalError,
    UnreachableError,
    WaitError,
)
from ybs.frontends.gateway.telegram import Telegram, make_channel

pytestmark = pytest.mark.integration

ACCOUNT = str(BOT["id"])
HOME = ChatPlace(channel="telegram", account=ACCOUNT, kind="private", chat="1")
HELLO = Outgoing(text="<b>hello</b>", plain="hello")


class Taken:
    """Takes events, and notes them; `fails` has it refuse them."""

    def __init__(self) -> None:
        self.events = list[Incoming]()
        self.fails = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, incoming: Incoming) -> None:
        """Take an event."""
        await self.gate.wait()
        if self.fails:
            raise YbsError("the disk is full")
        self.events.append(incoming)


def channel_of(platform: ChatPlatform, **section: Any) -> Telegram:
    return make_channel("telegram", {"token": TOKEN, "base_url": platform.url, **section})


@asynccontextmanager
async def running(channel: Telegram, taken: Taken) -> AsyncGenerator[Callable[[], None]]:
    """Run a channel; the block begins when it is connected. What ends it is raised at the end."""
    connected = asyncio.Event()
    task = asyncio.create_task(channel.run(taken, connected.set))
    waiting = asyncio.create_task(connected.wait())
    await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    try:
        yield lambda: task.result() if task.done() else None
    finally:
        ended = task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await channel.close()
        if ended:
            task.result()


@asynccontextmanager
async def talking(**section: Any) -> AsyncGenerator[tuple[ChatPlatform, Telegram, Taken]]:
    async with ChatPlatform() as platform:
        channel, taken = channel_of(platform, **section), Taken()
        async with running(channel, taken):
            yield platform, channel, taken


async def one_event(**said: Any) -> Incoming:
    """Return what the bot makes of one message, or of none where it is followed by another."""
    async with talking() as (platform, _, taken):
        platform.say(**said)
        platform.say("after it", chat=99)
        await platform.until(lambda: taken.events and taken.events[-1].text == "after it")
        return taken.events[0]


# Receiving


async def test_a_message_in_a_private_chat_arrives_whole() -> None:
    event = await one_event(text="hello", name="Ann")
    assert event.place == HOME
    assert (event.text, event.person, event.name) == ("hello", "1", "Ann")
    assert event.is_addressed
    assert event.id.startswith(f"telegram:{ACCOUNT}:")


async def test_an_update_is_acknowledged_only_when_it_is_kept() -> None:
    async with talking() as (platform, _, taken):
        taken.gate.clear()
        platform.say("keep me")
        polls = platform.polls
        await asyncio.sleep(0.2)
        assert platform.unread == 1
        assert platform.polls <= polls + 1
        taken.gate.set()
        await platform.until(lambda: not platform.unread)
        assert [each.text for each in taken.events] == ["keep me"]


async def test_an_update_that_could_not_be_kept_comes_again() -> None:
    async with ChatPlatform() as platform:
        channel, taken = channel_of(platform), Taken()
        taken.fails = True
        platform.say("keep me")
        with pytest.raises(YbsError, match="disk is full"):
            await channel.run(taken, lambda: None)
        await channel.close()
        assert platform.unread == 1
        taken.fails = False
        channel = channel_of(platform)
        async with running(channel, taken):
            await platform.until(lambda: taken.events and not platform.unread)
        assert [each.text for each in taken.events] == ["keep me"]


async def test_what_was_said_while_nobody_listened_is_not_dropped() -> None:
    async with ChatPlatform() as platform:
        platform.webhook = "https://old.example"
        platform.say("said in the night")
        channel, taken = channel_of(platform), Taken()
        async with running(channel, taken):
            await platform.until(lambda: taken.events)
        assert taken.events[0].text == "said in the night"


async def test_updates_that_come_twice_and_backwards_keep_their_ids_and_order() -> None:
    async with ChatPlatform() as platform:
        platform.set(doubles=True, reorders=True)
        for text in ("one", "two", "three"):
            platform.say(text)
        channel, taken = channel_of(platform), Taken()
        async with running(channel, taken):
            await platform.until(lambda: not platform.unread)
        distinct = {each.id: each.text for each in taken.events}
        assert list(distinct.values()) == ["one", "two", "three"]


async def test_in_a_group_a_mention_or_an_answer_addresses_the_bot() -> None:
    group: dict[str, Any] = {"chat": -5, "kind": "supergroup"}
    plain = await one_event(text="hello all", **group)
    assert not plain.is_addressed
    assert plain.place.kind == "group"
    mentioned = await one_event(text="\U0001f600 hey @Yips_Bot look", **group)
    assert mentioned.is_addressed
    assert mentioned.text == "\U0001f600 hey  look"
    other = await one_event(text="hey @somebody", **group)
    assert not other.is_addressed
    assert other.text == "hey @somebody"
    command = await one_event(text="/stop@yips_bot now", **group)
    assert command.is_addressed
    assert command.text == "/stop now"
    assert not (await one_event(text="/stop@other_bot", **group)).is_addressed
    answered = {"message_id": 1, "date": 1, "chat": {"id": -5, "type": "supergroup"}, "from": BOT}
    assert (await one_event(text="yes", reply_to_message=answered, **group)).is_addressed
    topic = answered | {"forum_topic_created": {"name": "x", "icon_color": 1}}
    assert not (await one_event(text="yes", reply_to_message=topic, **group)).is_addressed


async def test_topics_are_places_of_their_own() -> None:
    event = await one_event(text="hi", chat=-5, kind="supergroup", thread=7)
    assert event.place.thread == "7"
    reply = await one_event(text="hi", chat=-5, kind="supergroup", message_thread_id=7)
    assert reply.place.thread == "", "a thread of replies is no topic"


async def test_members_without_a_name_are_nobody_who_was_let_in() -> None:
    hidden = {"id": -5, "type": "supergroup", "title": "Group"}
    event = await one_event(text="hi", chat=-5, kind="supergroup", sender_chat=hidden)
    assert event.person == "anonymous:-5"


async def test_a_group_that_becomes_a_supergroup_says_its_new_id() -> None:
    event = await one_event(text="", chat=-5, kind="group", migrate_to_chat_id=-1005)
    assert (event.place.chat, event.moved_to) == ("-5", "-1005")


async def test_the_messages_of_an_album_say_that_they_are_one() -> None:
    assert (await one_event(text="look", media_group_id="77")).album == "1:77"
    assert (await one_event(text="look")).album == ""


async def test_other_bots_channels_and_service_messages_are_left_alone() -> None:
    bot = {"id": 8, "is_bot": True, "first_name": "Other"}
    assert (await one_event(text="hi", **{"from": bot})).text == "after it"
    assert (await one_event(text="hi", chat=-9, kind="channel")).text == "after it"
    assert (await one_event(text="", new_chat_title="Title")).text == "after it"


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("voice", {"file_id": "v", "file_unique_id": "v", "duration": 2}, "a voice message"),
        ("contact", {"phone_number": "1", "first_name": "x"}, "a contact message"),
        ("location", {"longitude": 1.0, "latitude": 1.0}, "a location message"),
    ],
)
async def test_what_cannot_be_read_is_named(field: str, value: Any, named: str) -> None:
    event = await one_event(text="", **{field: value})
    assert event.unsupported == named
    assert not event.files


async def test_a_button_comes_as_its_token_and_is_answered() -> None:
    async with talking() as (platform, channel, taken):
        await channel.send(HOME, Outgoing(text="?", plain="?", buttons=((Button("Yes", "t1"),),)))
        platform.press("Yes", person=3)
        await platform.until(lambda: platform.answered)
        event = taken.events[0]
        assert (event.button, event.person, event.text) == ("t1", "3", "")
        assert event.place == HOME
        assert event.message == str(platform.sent[0].message)


async def test_a_file_comes_with_its_name_and_is_fetched_within_the_limit() -> None:
    async with talking() as (platform, channel, taken):
        platform.attach(b"content", name="notes.txt", caption="look")
        await platform.until(lambda: taken.events)
        event = taken.events[0]
        assert event.text == "look"
        file = event.files[0]
        assert (file.name, file.size, file.media_type) == ("notes.txt", 7, "text/plain")
        assert await channel.fetch(file, 7) == b"content"
        with pytest.raises(ChannelError, match="larger"):
            await channel.fetch(file, 6)


async def test_no_file_of_this_machine_is_taken_for_one_of_the_platforms(tmp_path: Path) -> None:
    """What answers for the platform names a path that is there: the library would read that."""
    secret = tmp_path / "id_ed25519"
    secret.write_text("mine")
    async with talking() as (platform, channel, taken):
        platform.attach(b"content", name="notes.txt")
        await platform.until(lambda: taken.events)
        (file,) = taken.events[0].files
        platform.paths[file.ref] = str(secret)
        with pytest.raises(ChannelError, match="not at the platform"):
            await channel.fetch(file, 100)


async def test_a_photo_comes_in_its_largest_size() -> None:
    sizes = [
        {"file_id": f"p{n}", "file_unique_id": f"p{n}", "width": n, "height": n, "file_size": n}
        for n in (90, 320)
    ]
    event = await one_event(text="", photo=sizes, caption="see")
    assert [(each.ref, each.media_type) for each in event.files] == [("p320", "image/jpeg")]


# Sending


async def test_messages_are_sent_with_markup_buttons_thread_and_without_previews() -> None:
    async with talking() as (platform, channel, _):
        buttons = ((Button("Yes", "a"), Button("No", "b")),)
        thread = ChatPlace(channel="telegram", account=ACCOUNT, kind="group", chat="-5", thread="7")
        sent_id = await channel.send(thread, Outgoing(text="<b>x</b>", plain="x", buttons=buttons))
        sent = platform.sent[0]
        assert (sent.text, sent.parse_mode, sent.chat, sent.thread) == ("<b>x</b>", "HTML", -5, 7)
        assert [one["text"] for one in sent.buttons[0]] == ["Yes", "No"]
        assert str(sent.message) == sent_id
        assert '"is_disabled": true' in str(platform.calls[-1].arguments["link_preview_options"])
        await channel.send(HOME, Outgoing(text="", plain="a < b"))
        assert (platform.sent[1].text, platform.sent[1].parse_mode) == ("a < b", "")


async def test_edits_replace_text_and_buttons_and_the_same_again_is_no_error() -> None:
    async with talking() as (platform, channel, _):
        sent = await channel.send(
            HOME, Outgoing(text="?", plain="?", buttons=((Button("Y", "a"),),))
        )
        for _ in range(2):
            await channel.edit(HOME, sent, HELLO)
        assert platform.sent[0].texts == ["?", "<b>hello</b>"]
        assert platform.sent[0].buttons == []
        with pytest.raises(MessageGoneError):
            await channel.edit(HOME, "77777", HELLO)


async def test_files_are_sent_with_their_names() -> None:
    async with talking() as (platform, channel, _):
        file = OutgoingFile(name="r\u00e9port.txt", data=b"\x00\xffdata")
        await channel.send(HOME, Outgoing(text="see", plain="see", file=file))
        sent = platform.sent[0]
        assert (sent.file, sent.data, sent.text) == ("r\u00e9port.txt", b"\x00\xffdata", "see")


@pytest.mark.parametrize(
    ("knob", "kind"),
    [
        ({"fault": "wait", "retry_after": 5827}, WaitError),
        (
            {"fault": "error", "code": 403, "description": "Forbidden: bot was blocked"},
            ChatGoneError,
        ),
        ({"fault": "error", "description": "Bad Request: chat not found"}, ChatGoneError),
        ({"fault": "error", "description": "Bad Request: can't parse entities"}, RefusedError),
        ({"fault": "error", "code": 401, "description": "Unauthorized"}, BadSettingsError),
        ({"fault": "error", "code": 404, "description": "Not Found"}, BadSettingsError),
        ({"fault": "error", "code": 409, "description": "Conflict: other"}, RivalError),
        ({"fault": "fail"}, MaybeSentError),
        ({"fault": "drop_before"}, MaybeSentError),
        ({"fault": "drop_after"}, MaybeSentError),
        ({"fault": "half"}, MaybeSentError),
        ({"fault": "odd"}, MaybeSentError),
    ],
)
async def test_each_failure_is_an_error_of_the_gateway_without_the_token(
    knob: dict[str, Any], kind: type[ChannelError]
) -> None:
    async with talking() as (platform, channel, _):
        platform.knob(method="sendMessage", **knob)
        with pytest.raises(kind) as raised:
            await channel.send(HOME, HELLO)
        assert raised.value.__cause__ is None
        assert raised.value.__suppress_context__ or raised.value.__context__ is None
        assert TOKEN not in str(raised.value)
        if isinstance(raised.value, WaitError):
            assert raised.value.seconds == 5827


async def test_an_answer_that_does_not_come_in_time_may_have_been_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ybs.frontends.gateway.telegram._TIMEOUT", 0.2)
    async with talking() as (platform, channel, _):
        platform.knob("hang", "sendMessage")
        with pytest.raises(MaybeSentError, match="in time"):
            await channel.send(HOME, HELLO)


async def test_a_platform_that_is_not_there_is_unreachable() -> None:
    async with ChatPlatform() as platform:
        channel = channel_of(platform)
    with pytest.raises(UnreachableError):
        await channel.run(Taken(), lambda: None)
    await channel.close()


async def test_a_second_poller_on_the_same_token_is_noticed() -> None:
    async with ChatPlatform() as platform:
        first, second = channel_of(platform), channel_of(platform)
        running = asyncio.create_task(first.run(Taken(), lambda: None))
        await platform.until(lambda: platform.polls > 1)
        rival = asyncio.create_task(second.run(Taken(), lambda: None))
        try:
            with pytest.raises(RivalError, match="only one"):
                await asyncio.wait_for(running, 5)
        finally:
            rival.cancel()
            await asyncio.gather(rival, return_exceptions=True)
            await first.close()
            await second.close()


async def test_a_token_that_the_platform_does_not_know_is_a_wrong_setting() -> None:
    async with ChatPlatform() as platform:
        wrong = ":".join(("9", "B" * 35))
        channel = channel_of(platform, token=wrong)
        with pytest.raises(BadSettingsError) as raised:
            await channel.run(Taken(), lambda: None)
        assert wrong not in str(raised.value)
        await channel.close()


@pytest.mark.parametrize(
    "section",
    [{}, {"token": " "}, {"token": 5}, {"token": TOKEN, "webhook_url": 5}],
)
def test_an_entry_that_makes_no_sense_is_refused(section: dict[str, Any]) -> None:
    with pytest.raises(BadSettingsError):
        make_channel("telegram", section)


async def test_the_token_is_in_no_log() -> None:
    records = list[logging.LogRecord]()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    handler, root = Handler(), logging.getLogger()
    level = root.level
    for name in ("httpx", "httpcore", "telegram"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        async with talking() as (platform, channel, _):
            platform.knob("drop_before", "sendMessage")
            with pytest.raises(MaybeSentError):
                await channel.send(HOME, HELLO)
            await channel.send(HOME, HELLO)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    assert not [line for line in (each.getMessage() for each in records) if TOKEN in line]


# The webhook


async def test_a_webhook_takes_updates_with_the_secret_of_its_run_alone() -> None:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    section = {"webhook_url": "https://bot.example/x", "webhook_listen": f"127.0.0.1:{port}"}
    async with ChatPlatform() as platform:
        async with running(channel_of(platform, **section), Taken()):
            last = platform.webhook_secret  # who listened since knows it, as the platform sends it
        channel, taken = channel_of(platform, **section), Taken()
        message = {
            "message_id": 1,
            "date": 1,
            "chat": {"id": 1, "type": "private"},
            "from": {"id": 1, "is_bot": False, "first_name": "Ann"},
            "text": "hi",
        }
        update = {"update_id": 5, "message": message}
        name = "X-Telegram-Bot-Api-Secret-Token"
        async with running(channel, taken), httpx.AsyncClient(trust_env=False) as client:
            url = f"http://127.0.0.1:{port}/x"
            assert platform.webhook == "https://bot.example/x"
            assert (await client.post(url, json=update)).status_code == 403
            for wrong in ("", "s" * 43, last):
                refused = await client.post(url, json=update, headers={name: wrong})
                assert refused.status_code == 403
            assert not taken.events
            headers = {name: platform.webhook_secret}
            assert (await client.post(url, content=b"{", headers=headers)).status_code == 400
            assert (await client.post(url, json=update, headers=headers)).status_code == 200
            assert [each.text for each in taken.events] == ["hi"]
            taken.fails = True
            again = await client.post(url, json=update, headers=headers)
            assert again.status_code == 503, "the platform is to send it again"
