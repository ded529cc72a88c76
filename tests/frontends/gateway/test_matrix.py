"""The channel Matrix, beyond the suite of all channels: rooms that it is asked into, what it was not there for, reactions."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from channel_contract import Taken, running
from matrix_platform import BOB, BOT, TOKEN, MatrixPlatform
from ybs.frontends.gateway.channel import (
    BadSettingsError,
    Button,
    Channel,
    ChannelError,
    ChatGoneError,
    ChatPlace,
    IncomingFile,
    MaybeSentError,
    Outgoing,
)
from ybs.frontends.gateway.matrix import make_channel

pytestmark = pytest.mark.integration
HOME = ChatPlace("matrix", BOT, "private", MatrixPlatform.home)
HELLO = Outgoing(text="hello", plain="hello")
YES_NO = ((Button("Yes", "token-1"),), (Button("No", "token-2"),))


@pytest.fixture
async def platform() -> AsyncGenerator[MatrixPlatform]:
    made = MatrixPlatform()
    await made.start()
    yield made
    await made.stop()


@asynccontextmanager
async def talking(platform: MatrixPlatform, **fields: Any) -> AsyncGenerator[tuple[Channel, Taken]]:
    channel, taken = make_channel("matrix", platform.settings() | fields), Taken()
    async with running(channel, taken):
        yield channel, taken


async def heard(platform: MatrixPlatform, taken: Taken) -> list[str]:
    """Return the texts that came, when one that is said now has come."""
    last = f"the last of {len(platform.events)}"
    await platform.say(last)
    await platform.until(lambda: any(each.text == last for each in taken.events))
    return [each.text for each in taken.distinct if not each.text.startswith("the last of")]


async def test_history_is_not_answered_and_what_was_missed_is(platform: MatrixPlatform):
    async with talking(platform) as (_, taken):
        assert await heard(platform, taken) == []
    missed = [f"missed {number}" for number in range(330)]
    for text in missed:
        await platform.say(text)
    async with talking(platform) as (_, taken):
        assert await heard(platform, taken) == missed
        assert platform.pages == 3


async def test_what_was_taken_is_kept_and_the_rest_comes_again(platform: MatrixPlatform):
    async with talking(platform) as (_, taken):
        taken.fails = 3
        for text in ("one", "two", "three"):
            await platform.say(text)
        assert await heard(platform, taken) == ["one", "two", "three"]
    kept = Path(platform.folder) / "since-%40yips%3Alocalhost"
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    kept.write_text("")
    async with talking(platform) as (_, taken):
        assert await heard(platform, taken) == [], "without its token it begins anew"


@pytest.mark.parametrize(
    ("fields", "is_joined"),
    [
        ({}, False),
        ({"owners": [BOB]}, False),
        ({"owners": [MatrixPlatform.person]}, True),
        ({"allow": ["!new:localhost"]}, True),
        ({"invitations": "open"}, True),
    ],
)
async def test_invitations_are_accepted_where_the_owner_allows_it(
    platform: MatrixPlatform, fields: dict[str, Any], is_joined: bool
):
    async with talking(platform, **fields) as (_, taken):
        platform.invite("!new:localhost", platform.person)
        await platform.say("hello", chat="!new:localhost")
        if is_joined:
            await platform.until(lambda: any(each.text == "hello" for each in taken.events))
        await heard(platform, taken)
        told = await heard(platform, taken)  # in a sync after that of the invitation
        assert platform.joined == (["!new:localhost"] if is_joined else [])
        assert told == (["hello"] if is_joined else [])


async def test_the_bot_is_meant_by_mentions_pills_and_its_name(platform: MatrixPlatform):
    quoted = "> <@ann:localhost> /stop\n> more\n\nyes"
    said = [
        ("yips: do it", {"m.mentions": {"user_ids": [BOT]}}),
        (f"{BOT} do it", {"m.mentions": {"user_ids": [BOT]}}),
        ("yipsilon is a letter", {"m.mentions": {"user_ids": [BOT]}}),
        ("all of you", {"m.mentions": {"room": True}}),
        (quoted, {"m.relates_to": {"m.in_reply_to": {"event_id": "$root"}}}),
    ]
    async with talking(platform) as (_, taken):
        for text, fields in said:
            await platform.say(text, chat=platform.room, **fields)
        texts = await heard(platform, taken)
        assert texts == ["do it", "do it", "yipsilon is a letter", "all of you", "yes"]
        meant = [each.is_addressed for each in taken.distinct if each.place.kind == "group"]
        assert meant == [True] * 3 + [False] * 2


async def test_edits_notices_own_and_odd_events_are_left_alone(platform: MatrixPlatform):
    async with talking(platform) as (_, taken):
        await platform.say(
            "edited", **{"m.relates_to": {"rel_type": "m.replace", "event_id": "$e"}}
        )
        await platform.say("a bot", msgtype="m.notice")
        await platform.say("own", person=BOT)
        await platform.say("odd", **{"m.relates_to": "no relation"})
        await platform.say("odd", **{"m.mentions": [1]})
        await platform.say("file", msgtype="m.file")
        for content in ({}, {"msgtype": 5}, {"body": None, "msgtype": "m.text"}):
            platform.event(platform.home, platform.person, "m.room.message", content)
        platform.event(platform.home, platform.person, "m.unheard", {"body": "x"})
        platform.event(platform.home, platform.person, "m.reaction", {"m.relates_to": 5})
        assert await heard(platform, taken) == []


async def test_what_cannot_be_read_is_named(platform: MatrixPlatform):
    async with talking(platform) as (_, taken):
        voice = {"org.matrix.msc3245.voice": {}, "msgtype": "m.audio", "url": "mxc://x/y"}
        await platform.say("voice", **voice)
        secret = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x", "session_id": "s"}
        secret |= {"sender_key": "k", "device_id": "d"}
        platform.event(platform.home, platform.person, "m.room.encrypted", secret)
        await platform.until(lambda: len(taken.events) == 2)
        assert taken.events[0].unsupported == "a voice message"
        assert taken.events[1].unsupported.startswith("an encrypted message whose key")


async def test_reactions_count_on_the_bots_own_messages_alone(platform: MatrixPlatform):
    async with talking(platform) as (channel, taken):
        asked = await channel.send(HOME, Outgoing(text="?", plain="?", buttons=YES_NO))
        events = {each["event_id"]: each for each in platform.events}
        forged = platform.event(
            platform.home, BOB, "m.room.message", events[asked]["content"] | {"body": "forged"}
        )
        platform.react(forged, "1\ufe0f\u20e3")
        platform.react(events[asked], "\U0001f44d")
        platform.react({**events[asked], "event_id": "$unknown"}, "1\ufe0f\u20e3")
        platform.react(events[asked], "1\u20e3", BOB)
        await platform.until(lambda: any(each.button for each in taken.events))
        (pressed,) = (each for each in taken.distinct if each.button)
        assert (pressed.button, pressed.person) == ("token-1", BOB)
        await channel.edit(HOME, asked, HELLO)
        platform.react(events[asked], "2\ufe0f\u20e3")
        await heard(platform, taken)
        assert len([each for each in taken.distinct if each.button]) == 1


async def test_reactions_that_the_homeserver_refuses_cost_no_message(platform: MatrixPlatform):
    async with talking(platform) as (channel, _):
        platform.refused_kinds.add("m.reaction")
        await channel.send(HOME, Outgoing(text="?", plain="?", buttons=YES_NO))
        assert platform.sent[-1].buttons == (("Yes", "token-1"), ("No", "token-2"))
        assert "Yes" in platform.events[-1]["content"]["body"]


async def test_a_nonce_counts_once_also_after_a_break(platform: MatrixPlatform):
    message = Outgoing(text="hello", plain="hello", nonce="answer:1")
    async with talking(platform) as (channel, _):
        platform.fault("drop_after")
        first = await channel.send(HOME, message)  # the library tries once more by itself
        platform.fault("odd")
        with pytest.raises(MaybeSentError):
            await channel.send(HOME, message)
        again = await channel.send(HOME, Outgoing(text="", plain="hello (2)", nonce="answer:1"))
        assert [each.id for each in platform.sent] == [first] == [again]


async def test_an_answer_that_does_not_come_in_time_may_have_been_sent(platform: MatrixPlatform):
    async with talking(platform) as (channel, _):
        object.__setattr__(channel._client.config, "request_timeout", 0.2)  # type: ignore[attr-defined]
        platform.fault("hang")
        try:
            with pytest.raises(MaybeSentError):
                await channel.send(HOME, HELLO)
        finally:
            object.__setattr__(channel._client.config, "request_timeout", 30)  # type: ignore[attr-defined]


async def test_typing_is_shown_and_a_closed_channel_sends_nothing(platform: MatrixPlatform):
    async with talking(platform) as (channel, _):
        await channel.show_typing(HOME)
        assert platform.typing == 1
    with pytest.raises(ChannelError):
        await channel.send(HOME, HELLO)
    fresh = make_channel("matrix", platform.settings())
    with pytest.raises(ChannelError, match="not connected"):
        await fresh.send(HOME, HELLO)
    await fresh.close()


async def test_a_room_that_the_bot_is_not_in_is_gone(platform: MatrixPlatform):
    async with talking(platform) as (channel, _):
        with pytest.raises(ChatGoneError, match="!elsewhere"):
            await channel.send(ChatPlace("matrix", BOT, "group", "!elsewhere:localhost"), HELLO)


async def test_the_token_is_in_no_error(platform: MatrixPlatform):
    async with talking(platform) as (channel, _):
        for fault in ("refused", "gone", "fail", "odd"):
            platform.fault(fault)
            with pytest.raises(ChannelError) as raised:
                await channel.send(HOME, HELLO)
            assert TOKEN not in str(raised.value)
            assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    "fields",
    [{"token": ""}, {"homeserver": "matrix.org"}, {"homeserver": ""}, {"invitations": "all"}],
)
def test_an_entry_that_makes_no_sense_is_refused(fields: dict[str, Any]):
    entry = {"homeserver": "https://matrix.org", "token": "t" * 10, "folder": "/nowhere"}
    with pytest.raises(BadSettingsError):
        make_channel("matrix", entry | fields)


@pytest.mark.parametrize(
    "url",
    [
        "mxc://../../../v3/sync",
        "mxc://x/../a",
        "mxc://x/..",
        "mxc://x/a?b",
        "mxc://x%2f/a",
        "mxc://x",
    ],
)
async def test_an_address_that_is_not_one_of_a_file_is_not_asked_for(
    platform: MatrixPlatform, url: str
):
    async with talking(platform) as (channel, _):
        file = IncomingFile(ref=json.dumps({"url": url}), name="notes.txt")
        with pytest.raises(ChannelError, match="is invalid"):
            await channel.fetch(file, 1000)


async def test_nothing_is_said_to_a_private_room_that_another_person_is_in(
    platform: MatrixPlatform,
):
    async with talking(platform) as (channel, _):
        await channel.send(replace(HOME, person=platform.person), HELLO)
        with pytest.raises(ChatGoneError):
            await channel.send(replace(HOME, person="@other:localhost"), HELLO)
