"""What is Slack's own, with its real library against a platform on loopback; what all channels have in common is in test_channels.py."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from channel_contract import Taken, running
from slack_platform import APP_TOKEN, BOT, ROOM, THREAD, TOKEN, SlackPlatform
from ybs.frontends.gateway import slack
from ybs.frontends.gateway.channel import (
    BadSettingsError,
    Button,
    ChannelError,
    ChatGoneError,
    ChatPlace,
    Incoming,
    IncomingFile,
    MaybeSentError,
    MessageGoneError,
    Outgoing,
    OutgoingFile,
    RefusedError,
    UnreachableError,
)
from ybs.frontends.gateway.slack import Slack, make_channel

pytestmark = [pytest.mark.integration, pytest.mark.timeout(30)]

HOME = ChatPlace(channel="slack", account=BOT, kind="private", chat="D11")
HELLO = Outgoing(text="hello", plain="hello")


@pytest.fixture
async def platform() -> AsyncGenerator[SlackPlatform]:
    """A platform that listens."""
    made = SlackPlatform()
    await made.start()
    yield made
    await made.stop()


@asynccontextmanager
async def talking(platform: SlackPlatform) -> AsyncGenerator[tuple[Slack, Taken]]:
    channel, taken = make_channel("slack", platform.settings()), Taken()
    async with running(channel, taken):
        yield channel, taken


async def one_event(platform: SlackPlatform, text: str = "", **said: Any) -> Incoming:
    """Return what the bot makes of one message, or of none where it is followed by another."""
    async with talking(platform) as (_, taken):
        await platform.say(text, **said)
        await platform.say("after it")
        await platform.until(lambda: taken.events and taken.events[-1].text == "after it")
        return taken.events[0]


# Receiving


async def test_an_envelope_is_acknowledged_only_when_its_event_is_kept(platform):
    async with talking(platform) as (_, taken):
        taken.fails = 1
        await platform.say("keep me")
        await platform.until(lambda: not taken.fails)
        assert platform.unread == 1
        await platform.until(lambda: taken.events and not platform.unread)
        assert platform.connections == 2


async def test_what_was_said_while_nobody_listened_is_not_dropped(platform):
    await platform.say("said in the night")
    async with talking(platform) as (_, taken):
        await platform.until(lambda: taken.events and not platform.unread)
        assert taken.events[0].text == "said in the night"


async def test_a_mention_is_one_message_though_slack_tells_it_twice(platform):
    async with talking(platform) as (_, taken):
        await platform.say("hi", chat=ROOM, mention=True)
        await platform.until(lambda: taken.events)
        event = {"channel": ROOM, "user": "U21", "text": f"<@{BOT}> hi"}
        event |= {"type": "message", "channel_type": "channel", "ts": taken.events[0].message}
        await platform.tell("events_api", {"event": event})
        await platform.until(lambda: len(taken.events) == 2)
        assert taken.events[0] == taken.events[1]


async def test_a_mention_in_a_channel_begins_a_thread_which_goes_on_there(platform):
    async with talking(platform) as (channel, taken):
        await platform.say("hi", chat=ROOM, mention=True)
        await platform.until(lambda: taken.events)
        first = taken.events[0]
        assert first.place.thread == first.message
        await channel.send(first.place, HELLO)
        assert platform.sent[0].thread == first.message
        await platform.say("go on", chat=ROOM, mention=True, thread=first.message)
        await platform.until(lambda: len(taken.events) == 2)
        assert taken.events[1].place == first.place


@pytest.mark.parametrize(
    "fields",
    [
        {"bot_id": "B1"},
        {"subtype": "message_changed"},
        {"subtype": "bot_message"},
        {"user": None},
        {"ts": None},
        {"type": "reaction_added"},
    ],
)
async def test_what_no_person_wrote_or_nobody_can_read_is_left_alone(platform, fields):
    assert (await one_event(platform, "hi", **fields)).text == "after it"
    assert platform.unread == 0


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("see <https://x.example/a?b=1&amp;c>", "see https://x.example/a?b=1&c"),
        ("see <https://x.example|the page>", "see the page (https://x.example)"),
        ("see <http://x.example|x.example>", "see x.example"),
        ("<mailto:a@x.example|a@x.example>", "a@x.example"),
        ("in <#C1|general> by <@U7> and <!here>", "in #general by @U7 and @here"),
        ("<!subteam^S1|@team> &lt;@U4242&gt;", "@team <@U4242>"),
        ("a &amp;lt; b", "a &lt; b"),
    ],
)
async def test_words_are_read_as_they_were_typed(platform, raw, shown):
    assert (await one_event(platform, raw=raw)).text == shown


async def test_a_message_that_only_passes_another_on_is_named(platform):
    event = await one_event(platform, "", attachments=[{"is_share": True, "text": "/approve 1"}])
    assert event.unsupported == "a forwarded message"


async def test_the_slash_command_carries_the_commands_of_chats(platform):
    payload = {"command": "/ybs", "user_id": "U21", "user_name": "ann", "channel_id": "D11"}
    async with talking(platform) as (_, taken):
        for number, text in enumerate(("", "new", "/model big one")):
            await platform.tell(
                "slash_commands", payload | {"text": text, "trigger_id": f"t{number}"}
            )
        await platform.until(lambda: len(taken.events) == 3 and not platform.unread)
        assert [each.text for each in taken.events] == ["/help", "/new", "/model big one"]
        assert taken.events[0].place == HOME
        assert len(taken.distinct) == 3


async def test_buttons_in_a_thread_come_back_from_there(platform):
    place = ChatPlace(channel="slack", account=BOT, kind="group", chat=ROOM, thread=THREAD)
    async with talking(platform) as (channel, taken):
        buttons = ((Button("Yes", "t1"),),)
        await channel.send(place, Outgoing(text="?", plain="?", buttons=buttons))
        for _ in range(2):
            await platform.press("Yes")
        await platform.until(lambda: len(taken.distinct) == 2)
        assert {each.place for each in taken.events} == {place}


# The connection


async def test_slack_asks_for_another_connection_and_gets_it_at_once(platform):
    channel, taken = make_channel("slack", platform.settings()), Taken()
    async with running(channel, taken) as states:
        await platform.push({"type": "disconnect", "reason": "refresh_requested"})
        await platform.until(lambda: platform.connections == 2)
        await platform.say("hi")
        await platform.until(lambda: taken.events)
        assert {each.partition(" ")[0] for each in states} == {"starting", "connected"}


async def test_an_app_without_socket_mode_is_a_wrong_setting(platform):
    channel = make_channel("slack", platform.settings())
    async with running(channel, Taken()) as states:
        await platform.push({"type": "disconnect", "reason": "link_disabled"})
        await platform.until(lambda: states[-1].startswith("refused"))
        assert "socket mode" in states[-1]


async def test_a_wrong_app_token_is_a_wrong_setting(platform):
    wrong = f"{APP_TOKEN}-wrong"
    channel = make_channel("slack", platform.settings() | {"app_token": wrong})
    with pytest.raises(BadSettingsError):
        await channel.probe()
    with pytest.raises(BadSettingsError) as raised:
        await channel.run(Taken(), lambda: None)
    await channel.close()
    assert wrong not in str(raised.value)


@pytest.mark.parametrize(
    "section",
    [
        {"token": TOKEN},
        {"token": APP_TOKEN, "app_token": TOKEN},
        {"token": TOKEN, "app_token": APP_TOKEN, "base_url": 5},
    ],
)
def test_the_two_tokens_are_told_apart(section):
    with pytest.raises(BadSettingsError) as raised:
        make_channel("slack", section)
    assert TOKEN not in str(raised.value)


async def test_a_sign_of_life_needs_the_connection_for_events(platform):
    async with talking(platform) as (channel, _):
        await channel.probe()
        await channel._socket.close()
        with pytest.raises(UnreachableError):
            await channel.probe()


async def test_slack_may_be_away_for_a_while(platform):
    async with talking(platform) as (_, taken):
        await platform.stop()
        await asyncio.sleep(0.3)
        await platform.start()
        await platform.say("back")
        await platform.until(lambda: taken.events, 20)
        assert taken.events[0].text == "back"


async def test_a_proxy_of_the_environment_is_used_but_not_for_what_needs_none(
    platform, monkeypatch
):
    for name in ("no_proxy", "NO_PROXY", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    channel = make_channel("slack", platform.settings())
    with pytest.raises(UnreachableError):
        await channel.run(Taken(), lambda: None)
    await channel.close()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    async with talking(platform) as (channel, taken):
        await platform.say("hi")
        await platform.until(lambda: taken.events)
        await channel.send(HOME, HELLO)


async def test_a_connection_that_is_silent_is_given_up(platform, monkeypatch):
    monkeypatch.setattr(slack, "_HEARTBEAT", 0.2)
    async with talking(platform) as (_, taken):
        platform.is_silent = True
        await platform.disconnect()
        await platform.until(lambda: platform.connections == 2)
        platform.is_silent = False
        await platform.until(lambda: platform.connections == 3)
        await platform.say("back")
        await platform.until(lambda: taken.events)


# Sending


async def test_messages_stand_in_blocks_with_a_text_for_notifications(platform):
    async with talking(platform) as (channel, _):
        await channel.send(HOME, Outgoing(text="*a* &lt;b&gt;", plain="a <b>"))
        (call,) = platform.calls
        assert call["text"] == "a &lt;b&gt;"
        assert (call["unfurl_links"], call["unfurl_media"]) in ((False, False), ("0", "0"))
        assert platform.sent[0].text == "*a* &lt;b&gt;"
        await channel.send(HOME, Outgoing(text="", plain="a *b* <!here>"))
        assert '"plain_text"' in str(platform.calls[1]["blocks"]).replace("'", '"')


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("not_in_channel", ChatGoneError),
        ("edit_window_closed", MessageGoneError),
        ("token_revoked", BadSettingsError),
        ("missing_scope", RefusedError),
        ("fatal_error", MaybeSentError),
        ("something_new", RefusedError),
    ],
)
async def test_what_slack_says_no_to_has_its_kind(platform, said, kind):
    async with talking(platform) as (channel, _):
        platform.fault(said)
        with pytest.raises(kind) as raised:
            await channel.send(HOME, HELLO)
        assert raised.value.__cause__ is None
        assert said in str(raised.value)


async def test_nothing_is_sent_twice_by_the_library(platform):
    async with talking(platform) as (channel, _):
        for fault in ("drop_after", "fail", "wait"):
            platform.fault(fault)
            before = len(platform.calls)
            with pytest.raises(ChannelError):
                await channel.send(HOME, HELLO)
            assert len(platform.calls) <= before + 1


async def test_what_hangs_is_said_to_be_unsure(platform, monkeypatch):
    monkeypatch.setattr(slack._asked, "__defaults__", (0.3,))
    async with talking(platform) as (channel, _):
        platform.fault("hang")
        with pytest.raises(MaybeSentError):
            await channel.send(HOME, HELLO)


async def test_a_file_goes_into_its_thread(platform):
    place = ChatPlace(channel="slack", account=BOT, kind="group", chat=ROOM, thread=THREAD)
    async with talking(platform) as (channel, _):
        file = OutgoingFile(name="a.txt", data=b"abc")
        await channel.send(place, Outgoing(text="", plain="<!here> see", file=file))
        (sent,) = platform.sent
        assert (sent.thread, sent.data, sent.text) == (THREAD, b"abc", "&lt;!here&gt; see")


async def test_the_token_goes_to_slack_alone(platform, monkeypatch):
    async with talking(platform) as (channel, taken):
        await platform.say("look", files=[("a.txt", b"abc")])
        await platform.until(lambda: taken.events)
        (file,) = taken.events[0].files
        assert await channel.fetch(file, 3) == b"abc"
        assert platform.fetches == [f"Bearer {TOKEN}"]
        platform.elsewhere = "http://127.0.0.1:9/a.txt"
        with pytest.raises(ChannelError, match="somewhere else"):
            await channel.fetch(file, 3)
        with pytest.raises(ChannelError, match="larger"):
            await channel.fetch(IncomingFile(ref=file.ref, name="a", size=4), 3)
