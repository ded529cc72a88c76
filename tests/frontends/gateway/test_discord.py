"""What is Discord's own, with its real library against a platform on loopback; what all channels have in common is in test_channels.py."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from channel_contract import Taken, running
from discord_platform import BOT, GUILD, REFUSALS, ROOM, THREAD, DiscordPlatform
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
    UnreachableError,
    WaitError,
)
from ybs.frontends.gateway.discord import Discord, make_channel

pytestmark = [pytest.mark.integration, pytest.mark.timeout(30)]

HOME = ChatPlace(channel="discord", account=BOT["id"], kind="private", chat="11")
HELLO = Outgoing(text="hello", plain="hello", nonce="answer:1")


@pytest.fixture
async def platform() -> AsyncGenerator[DiscordPlatform]:
    """A platform that listens."""
    made = DiscordPlatform()
    await made.start()
    yield made
    await made.stop()


def channel_of(platform: DiscordPlatform, **section: Any) -> Discord:
    return make_channel("discord", platform.settings() | section)


@asynccontextmanager
async def talking(
    platform: DiscordPlatform, **section: Any
) -> AsyncGenerator[tuple[Discord, Taken]]:
    channel, taken = channel_of(platform, **section), Taken()
    async with running(channel, taken):
        yield channel, taken


async def one_event(platform: DiscordPlatform, text: str = "", **said: Any) -> Incoming:
    """Return what the bot makes of one message, or of none where it is followed by another."""
    async with talking(platform) as (_, taken):
        await platform.say(text, **said)
        await platform.say("after it")
        await platform.until(lambda: taken.events and taken.events[-1].text == "after it")
        return taken.events[0]


# Receiving


async def test_no_privileged_intent_is_asked_for(platform):
    async with talking(platform):
        (session,) = platform.sessions.values()
        assert not session.sees_all


async def test_other_bots_webhooks_and_notices_are_left_alone(platform):
    other = {"id": "8", "username": "other", "discriminator": "0", "avatar": None, "bot": True}
    for fields in ({"author": other}, {"webhook_id": "5"}, {"type": 6}):
        assert (await one_event(platform, "hi", **fields)).text == "after it"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"flags": 1 << 13}, "a voice message"),
        ({"sticker_items": [{"id": "1", "name": "x", "format_type": 1}]}, "a sticker"),
        (
            {
                "poll": {
                    "question": {"text": "?"},
                    "answers": [],
                    "expiry": "2026-11-28T12:00:00+00:00",
                    "allow_multiselect": False,
                    "layout_type": 1,
                }
            },
            "a poll",
        ),
    ],
)
async def test_what_cannot_be_read_is_named(platform, fields, named):
    event = await one_event(platform, "", files=[("v.ogg", b"x")], **fields)
    assert (event.unsupported, event.files) == (named, ())


async def test_a_forwarded_message_is_no_command_of_who_passes_it_on(platform):
    snapshot = {"message": {**platform.message("11", BOT), "content": "/approve 1 yes"}}
    event = await one_event(platform, "", message_snapshots=[snapshot])
    assert event.text == "(forwarded)\n/approve 1 yes"


async def test_halves_of_characters_in_names_and_words_are_made_whole(platform):
    platform.name = "A\ud800nn"
    event = await one_event(platform, "hi \udc00 there")
    assert event.name.encode()
    assert event.text.encode()


async def test_a_thread_that_was_opened_later_belongs_to_its_channel(platform):
    async with talking(platform) as (_, taken):
        await platform.say("hi", thread=THREAD, mention=True)
        await platform.until(lambda: taken.events)
        assert taken.events[0].place == ChatPlace(
            channel="discord", account=BOT["id"], kind="group", chat=ROOM, thread=THREAD
        )
        assert GUILD not in str(taken.events[0].place)


async def test_a_press_is_acknowledged_when_it_is_kept(platform):
    async with talking(platform) as (channel, taken):
        buttons = ((Button("Yes", "t1"),),)
        await channel.send(HOME, Outgoing(text="?", plain="?", buttons=buttons))
        taken.fails = 1
        await platform.press("Yes")
        await platform.until(lambda: not taken.fails)
        await platform.until(lambda: platform.identified == 2)
        assert platform.deferred == []
        await platform.press("Yes")
        await platform.until(lambda: platform.deferred)
        assert [each.button for each in taken.events] == ["t1"]


async def test_the_very_first_message_of_a_chat_comes_again_where_it_could_not_be_kept(platform):
    async with talking(platform) as (_, taken):
        taken.fails = 1
        await platform.say("keep me")
        await platform.until(lambda: taken.events)
        assert (taken.fails, taken.events[0].text) == (0, "keep me")


# The connection


async def test_a_connection_that_broke_is_resumed(platform):
    async with talking(platform) as (_, taken):
        await platform.disconnect()
        await platform.say("meanwhile")
        await platform.until(lambda: taken.events)
        assert (platform.identified, platform.resumed) == (1, 1)


async def test_where_discord_resumes_nothing_known_chats_are_read(platform, monkeypatch):
    async def at_once(*_: object, **__: object) -> None:
        """Wait for nothing before a new session, where the library waits for 5 s."""

    monkeypatch.setattr("discord.Client.before_identify_hook", at_once)
    platform.forgets = True
    async with talking(platform) as (_, taken):
        await platform.say("first")
        await platform.until(lambda: taken.events)
        await platform.disconnect()
        for session in platform.sessions.values():
            session.events.clear()
        platform.sessions.clear()
        await platform.say("meanwhile")
        await platform.say("in the room", chat=ROOM, mention=True)
        await platform.until(lambda: len(taken.distinct) > 1)
        assert platform.identified == 2
        assert [each.text for each in taken.distinct] == ["first", "meanwhile"]


async def test_what_was_said_while_nobody_ran_is_read_where_the_bot_was_before(
    platform, tmp_path: Path
):
    folder = str(tmp_path / "discord")
    async with talking(platform, folder=folder) as (channel, taken):
        await platform.say("first")
        await platform.say("hi", thread=THREAD, mention=True)
        await platform.until(lambda: len(taken.events) == 2)
        file = Path(folder) / "read.json"
        read = [f",{each.message}]" for each in taken.events]
        await platform.until(lambda: all(each in file.read_text() for each in read))
        await channel.send(HOME, HELLO)
    await platform.say("in the night")
    await platform.say("in the thread", thread=THREAD, mention=True)
    await platform.say("to others", thread=THREAD)
    async with talking(platform, folder=folder) as (_, taken):
        await platform.until(lambda: len(taken.events) >= 2)
        assert {each.text for each in taken.events if each.is_addressed} == {
            "in the night",
            "in the thread",
        }
        assert {each.place.thread for each in taken.events} == {"", THREAD}


async def test_a_kill_before_a_first_message_was_kept_does_not_lose_it(platform, tmp_path: Path):
    async with talking(platform, folder=str(tmp_path)) as (_, taken):
        taken.fails = 1_000
        await platform.say("first")
        await platform.until(lambda: taken.fails < 1_000)
    async with talking(platform, folder=str(tmp_path)) as (_, taken):
        await platform.until(lambda: taken.events)
        assert taken.events[0].text == "first"


async def test_what_is_older_than_a_day_or_another_bots_is_not_read(platform, tmp_path: Path):
    other = msgspec.structs.replace(HOME, account="9", chat="12")
    known = [(HOME, 1), (other, 1)]
    (tmp_path / "read.json").write_bytes(msgspec.json.encode(known))
    await platform.say("now")
    await platform.say("to another bot", chat="12")
    day = 86_400_000 << 22
    old = {**platform.history[0], "content": "old"}
    old["id"] = str(int(old["id"]) - day - (day >> 4))
    platform.history.insert(0, old)
    async with talking(platform, folder=str(tmp_path)) as (_, taken):
        await platform.say("live")
        await platform.until(lambda: taken.events and taken.events[-1].text == "live")
        assert [each.text for each in taken.distinct] == ["now", "live"]


async def test_a_damaged_file_of_what_was_read_is_begun_anew(platform, tmp_path: Path):
    file = tmp_path / "read.json"
    file.write_bytes(b'[[{"channel": 5}, 1]]')
    async with talking(platform, folder=str(tmp_path)) as (_, taken):
        await platform.say("hi")
        await platform.until(lambda: taken.events)
        last = int(taken.events[0].message)  # what lay before it is noted first
        await platform.until(lambda: f",{last}]" in file.read_text())
        ((place, message),) = json.loads(file.read_text())
        assert (place["chat"], message) == ("11", last)


async def test_a_message_that_the_library_cannot_read_stops_nothing_for_long(
    platform, tmp_path: Path
):
    async with talking(platform, folder=str(tmp_path)) as (_, taken):
        await platform.say("first")
        await platform.until(lambda: taken.events)
        await platform.say("odd", poll={"question": 5})
        await platform.until(lambda: platform.identified == 2)
        await platform.say("next")
        await platform.until(lambda: taken.events[-1].text == "next")


async def test_a_token_that_is_taken_back_is_a_wrong_setting(platform, monkeypatch):
    channel, taken = channel_of(platform), Taken()
    async with running(channel, taken) as states:
        monkeypatch.setattr("discord_platform.TOKEN", "another")
        await platform.disconnect()
        await platform.until(lambda: states[-1].startswith("refused"))
        assert states[-1] == "refused Discord does not know the token."


async def test_a_sign_of_life_needs_the_connection_for_events(platform):
    async with talking(platform) as (channel, _):
        await channel.probe()
        await channel._connected.ws.close()
        with pytest.raises(UnreachableError):
            await channel.probe()
    with pytest.raises(UnreachableError):
        await channel.probe()


# Sending


async def test_messages_name_nobody_embed_nothing_and_have_a_nonce(platform):
    async with talking(platform) as (channel, _):
        sent = await channel.send(HOME, HELLO)
        (call,) = platform.calls
        assert call["allowed_mentions"] == {"parse": []}
        assert call["flags"] == 1 << 2
        assert (len(call["nonce"]), call["enforce_nonce"]) == (25, True)
        assert await channel.send(HOME, HELLO) == sent, "a second time is the first one"
        assert len(platform.sent) == 1
        await channel.edit(HOME, sent, Outgoing(text="*more*", plain="more"))
        assert platform.calls[-1]["allowed_mentions"] == {"parse": []}


async def test_plain_text_is_shown_as_it_is(platform):
    async with talking(platform) as (channel, _):
        await channel.send(HOME, Outgoing(text="", plain="a *b* _c_"))
        assert platform.sent[0].text == r"a \*b\* \_c\_"
        long = "*" * 1990
        await channel.send(HOME, Outgoing(text="", plain=long))
        assert platform.sent[1].text == long


async def test_five_buttons_have_rows_of_their_own_and_more_share_them(platform):
    async with talking(platform) as (channel, _):
        for count, rows in ((5, 5), (6, 2), (25, 5), (40, 5)):
            buttons = tuple((Button(f"b{n}", f"t{n}"),) for n in range(count))
            await channel.send(HOME, Outgoing(text="?", plain="?", buttons=buttons))
            assert len(platform.calls[-1]["components"]) == rows
            assert len(platform.sent[-1].buttons) == min(count, 25)
        assert not channel._connected.persistent_views, "the library is to remember none"


async def test_typing_is_shown(platform):
    async with talking(platform) as (channel, _):
        await channel.show_typing(HOME)
        assert platform.typing == 1


async def test_a_long_pause_is_the_outboxes_and_a_short_one_the_librarys(platform):
    async with talking(platform) as (channel, _):
        platform.fault("wait", seconds=5827)
        with pytest.raises(WaitError) as raised:
            await channel.send(HOME, HELLO)
        assert raised.value.seconds == 5827
        platform.fault("wait", seconds=0.1)
        await channel.send(HOME, HELLO)
        assert len(platform.sent) == 1


async def test_what_hangs_is_tried_again_with_its_nonce_and_then_said_to_be_unsure(
    platform, monkeypatch
):
    monkeypatch.setattr("ybs.frontends.gateway.discord._TIMEOUT", 0.3)
    async with talking(platform) as (channel, _):
        platform.fault("hang")
        await channel.send(HOME, HELLO)
        assert len(platform.sent) == 1
        platform.fault("hang")
        with pytest.raises(MaybeSentError, match="in time"):  # without a nonce nobody could tell
            await channel.send(HOME, Outgoing(text="x", plain="x"))
        assert len(platform.sent) == 1


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        (10003, 404, ChatGoneError),
        (10008, 404, MessageGoneError),
        (50013, 403, ChatGoneError),
        (50083, 400, ChatGoneError),
        (30046, 400, MessageGoneError),
        (0, 401, BadSettingsError),
    ],
)
async def test_what_discord_says_no_to_has_its_kind(platform, monkeypatch, code, status, kind):
    monkeypatch.setitem(REFUSALS, "no", (status, code))
    async with talking(platform) as (channel, _):
        platform.fault("no")
        with pytest.raises(kind) as raised:
            await channel.send(HOME, HELLO)
        assert raised.value.__cause__ is None


async def test_without_a_connection_nothing_is_sent(platform):
    channel = channel_of(platform)
    with pytest.raises(UnreachableError):
        await channel.send(HOME, HELLO)
    async with running(channel, Taken()):
        pass
    with pytest.raises(UnreachableError):
        await channel.edit(HOME, "1", HELLO)


async def test_a_file_that_is_gone_or_says_too_little_is_not_fetched(platform):
    async with talking(platform) as (channel, taken):
        await platform.say("look", files=[("a.txt", b"x" * 5000)])
        await platform.until(lambda: taken.events)
        (file,) = taken.events[0].files
        lying = type(file)(ref=file.ref, name=file.name, size=10)
        with pytest.raises(ChannelError, match="larger"):
            await channel.fetch(lying, 4999)
        platform.files.clear()
        with pytest.raises(ChannelError, match="cannot be fetched"):
            await channel.fetch(file, 5000)


async def test_the_gateway_of_discord_may_be_away_for_a_while(platform):
    async with talking(platform) as (_, taken):
        await platform.stop()
        await asyncio.sleep(0.3)
        await platform.start()
        await platform.say("back")
        await platform.until(lambda: taken.events, 20)
        assert taken.events[0].text == "back"
