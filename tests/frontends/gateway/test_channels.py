"""What holds for every channel, each with its real library against a platform on loopback."""

import sys
import tomllib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from channel_contract import FakePlatform, Taken, TelegramPlatform, running
from discord_platform import DiscordPlatform
from matrix_platform import MatrixPlatform
from rows import every_row
from scripted import OpenAIServer
from slack_platform import SlackPlatform
from whatsapp_platform import WhatsAppPlatform
from ybs.config.host import Host
from ybs.config.installed import EntryPoint
from ybs.config.schema import GatewaySettings as Settings
from ybs.core.errors import ConfigError
from ybs.frontends.gateway.channel import (
    BadSettingsError,
    Button,
    Channel,
    ChannelError,
    ChatGoneError,
    MaybeSentError,
    MessageGoneError,
    Outgoing,
    OutgoingFile,
    RefusedError,
    UnreachableError,
    WaitError,
)
from ybs.frontends.gateway.discord import Discord
from ybs.frontends.gateway.formatting import formatted
from ybs.frontends.gateway.gateway import BUILT_IN, _maker, make_channels
from ybs.frontends.gateway.received import fetched, is_at
from ybs.providers.http import plain_http

pytestmark = [pytest.mark.integration, pytest.mark.timeout(30)]

PLATFORMS: tuple[type[FakePlatform], ...] = (
    TelegramPlatform,
    DiscordPlatform,
    MatrixPlatform,
    SlackPlatform,
    WhatsAppPlatform,
)
HELLO = Outgoing(text="hello", plain="hello")
YES_NO = ((Button("Yes", "token-1"),), (Button("No", "token-2"),))


@pytest.fixture(params=PLATFORMS, ids=lambda kind: kind.kind)
async def platform(request: pytest.FixtureRequest) -> AsyncGenerator[FakePlatform]:
    """A platform that listens."""
    made = request.param()
    await made.start()
    yield made
    await made.stop()


@asynccontextmanager
async def talking(platform: FakePlatform) -> AsyncGenerator[tuple[Channel, Taken]]:
    """Run a channel on the platform."""
    channel, taken = channel_of(platform), Taken()
    async with running(channel, taken):
        yield channel, taken


def channel_of(platform: FakePlatform, *, wrong: bool = False) -> Channel:
    return platform.make(platform.kind, platform.settings(wrong=wrong))


async def test_a_private_message_comes_in_whole_and_is_answered_in_its_place(platform):
    async with talking(platform) as (channel, taken):
        words = 'five < six & "seven" \U0001f600 *stars* `a <b> c`\nnext line'
        await platform.say(words)
        await platform.until(lambda: taken.events)
        event = taken.events[0]
        assert (event.text, event.person) == (words, platform.person)
        assert (event.place.kind, event.place.chat) == ("private", platform.home)
        assert (event.place.channel, event.place.account) == (platform.kind, channel.account)
        assert event.is_addressed
        assert event.message
        assert event.name
        message = await channel.send(event.place, HELLO)
        sent = platform.sent[-1]
        assert (sent.id, sent.chat, sent.text) == (message, platform.home, "hello")


async def test_in_a_group_the_bot_is_addressed_by_its_name_alone(platform):
    if not platform.room:
        pytest.skip("the platform has no groups with bots")
    async with talking(platform) as (_, taken):
        await platform.say("hello all", chat=platform.room)
        await platform.say("hello you", chat=platform.room, mention=True)
        await platform.until(lambda: any(each.is_addressed for each in taken.events))
        (event,) = (each for each in taken.distinct if each.is_addressed)
        assert event.text == "hello you"
        assert (event.place.kind, event.place.chat) == ("group", platform.room)


async def test_a_thread_is_a_place_of_its_own_and_is_answered_there(platform):
    if not platform.room:
        pytest.skip("the platform has no groups with bots")
    async with talking(platform) as (channel, taken):
        await platform.say("hi", chat=platform.room, thread=platform.thread, mention=True)
        await platform.until(lambda: taken.events)
        place = taken.events[0].place
        assert (place.chat, place.thread) == (platform.room, platform.thread)
        await channel.send(place, HELLO)
        assert (platform.sent[-1].chat, platform.sent[-1].thread) == (place.chat, place.thread)


async def test_a_message_is_edited_and_the_same_again_is_no_error(platform):
    async with talking(platform) as (channel, taken):
        if not channel.capabilities.can_edit:
            pytest.skip("the platform edits nothing")
        await platform.say("hi")
        await platform.until(lambda: taken.events)
        place = taken.events[0].place
        message = await channel.send(place, Outgoing(text="?", plain="?", buttons=YES_NO))
        for _ in range(2):
            await channel.edit(place, message, HELLO)
        (sent,) = platform.sent
        assert (sent.text, sent.buttons) == ("hello", ())
        assert sent.edits[0] == "?"
        with pytest.raises(MessageGoneError):
            await channel.edit(place, "7" * len(message), HELLO)


async def test_buttons_come_back_as_their_tokens_also_after_a_restart(platform):
    async with talking(platform) as (channel, taken):
        await platform.say("hi")
        await platform.until(lambda: taken.events)
        place = taken.events[0].place
        message = await channel.send(place, Outgoing(text="?", plain="?", buttons=YES_NO))
        assert [label for label, _ in platform.sent[-1].buttons] == ["Yes", "No"]
        await platform.press("No")
        await platform.until(lambda: len(taken.distinct) == 2)
        pressed = taken.distinct[-1]
        assert (pressed.button, pressed.message, pressed.place) == ("token-2", message, place)
        assert pressed.person == platform.person
    async with talking(platform) as (channel, taken):
        await platform.press("Yes")
        await platform.until(lambda: [each for each in taken.events if each.button == "token-1"])
        assert taken.events[-1].id != pressed.id


async def test_many_buttons_are_shown_as_far_as_there_is_room(platform):
    async with talking(platform) as (channel, taken):
        await platform.say("hi")
        await platform.until(lambda: taken.events)
        buttons = tuple((Button(f"choice {n}", f"token-{n}"),) for n in range(12))
        await channel.send(taken.events[0].place, Outgoing(text="?", plain="?", buttons=buttons))
        assert platform.sent


async def test_files_go_both_ways_and_no_further_than_the_limit(platform):
    data = bytes(range(256)) * 8
    async with talking(platform) as (channel, taken):
        await platform.say("look", files=[("n\u00f6tes.bin", data)])
        await platform.until(lambda: taken.events)
        event = taken.events[0]
        assert event.text == "look"
        (file,) = event.files
        assert file.name == "n\u00f6tes.bin"
        assert file.size in (0, len(data))
        assert await channel.fetch(file, len(data)) == data
        with pytest.raises(ChannelError, match="larger"):
            await channel.fetch(file, len(data) - 1)
        sent = OutgoingFile(name="r\u00e9port.txt", data=data)
        await channel.send(event.place, Outgoing(text="see", plain="see", file=sent))
        assert (platform.sent[-1].file, platform.sent[-1].data) == ("r\u00e9port.txt", data)
        assert platform.sent[-1].chat == event.place.chat


async def test_a_long_text_is_taken_by_the_platform_in_pieces(platform):
    code = "```python\n" + "print('<&> \U0001f600')\n" * 400 + "```\n"
    text = f"# Title\n\n{'word *bold* `code` ' * 600}\n\n{code}\n> quoted"
    async with talking(platform) as (channel, taken):
        await platform.say("hi")
        await platform.until(lambda: taken.events)
        pieces = formatted(text, channel.capabilities)
        for piece in pieces:
            await channel.send(taken.events[0].place, Outgoing(text=piece.text, plain=piece.plain))
        await channel.send(taken.events[0].place, Outgoing(text="", plain=pieces[-1].plain))
        assert len(platform.sent) == len(pieces) + 1


async def test_nothing_that_a_model_says_notifies_anybody(platform):
    words = "@everyone @here @room @channel <!channel> <!here> <@1> <@U1> <@&1> @Ann"
    async with talking(platform) as (channel, taken):
        await platform.say("hi")
        await platform.until(lambda: taken.events)
        for text in (words, f"`{words}`", f"```\n{words}\n```", f"[{words}](https://x.example)"):
            (piece,) = formatted(text, channel.capabilities)
            message = Outgoing(text=piece.text, plain=piece.plain)
            await channel.send(taken.events[0].place, message)
            await channel.send(taken.events[0].place, Outgoing(text="", plain=piece.plain))
        assert platform.sent
        assert platform.pings == []


async def test_events_that_come_twice_keep_their_ids(platform):
    platform.double()
    async with talking(platform) as (_, taken):
        for text in ("one", "two", "three"):
            await platform.say(text)
        await platform.until(lambda: len(taken.events) == 6 or not platform.unread, 5)
        await platform.until(lambda: len(taken.distinct) == 3)
        assert [each.text for each in taken.distinct] == ["one", "two", "three"]


async def test_an_event_that_could_not_be_kept_comes_again(platform):
    channel, taken = channel_of(platform), Taken()
    async with running(channel, taken):
        await platform.say("first")
        await platform.until(lambda: taken.events)
        taken.fails = 1
        await platform.say("keep me")
        await platform.until(lambda: any(each.text == "keep me" for each in taken.events), 15)
        assert not taken.fails


async def test_a_connection_that_breaks_is_made_again_and_nothing_is_missed(platform):
    async with talking(platform) as (channel, taken):
        await platform.say("before")
        await platform.until(lambda: taken.events)
        await platform.disconnect()
        await platform.say("meanwhile")
        await platform.until(lambda: any(each.text == "meanwhile" for each in taken.events), 15)
        await channel.send(taken.events[0].place, HELLO)
        assert [each.text for each in taken.distinct] == ["before", "meanwhile"]


async def test_a_token_that_the_platform_does_not_know_is_a_wrong_setting(platform):
    channel = channel_of(platform, wrong=True)
    with pytest.raises(BadSettingsError) as raised:
        await channel.run(Taken(), lambda: None)
    await channel.close()
    secrets = [v for v in platform.settings(wrong=True).values() if v and v != platform.url]
    assert not [each for each in secrets if len(str(each)) > 8 and str(each) in str(raised.value)]


async def test_a_channel_that_nobody_runs_says_whether_the_platform_knows_it(platform):
    for is_wrong in (False, True):
        channel = channel_of(platform, wrong=is_wrong)
        try:
            await channel.probe()
            assert not is_wrong
        except BadSettingsError:
            assert is_wrong
        finally:
            await channel.close()


@pytest.mark.parametrize("section", [{}, {"token": " "}, {"token": 5}, {"token": None}])
def test_an_entry_without_what_is_needed_is_refused(section):
    for kind in PLATFORMS:
        with pytest.raises(BadSettingsError):
            kind.make(kind.kind, section)


async def test_a_platform_that_is_not_there_is_unreachable(platform):
    channel = channel_of(platform)
    await platform.stop()
    try:
        with pytest.raises(UnreachableError):
            await channel.run(Taken(), lambda: None)
    finally:
        await channel.close()
        await platform.start()


@pytest.mark.parametrize(
    ("fault", "kind"),
    [("wait", WaitError), ("gone", ChatGoneError), ("refused", RefusedError)],
)
async def test_what_the_platform_says_no_to_is_an_error_of_its_kind(platform, fault, kind):
    async with talking(platform) as (channel, taken):
        await platform.say("hi")
        await platform.until(lambda: taken.events)
        platform.fault(fault, seconds=321)
        with pytest.raises(kind) as raised:
            await channel.send(taken.events[0].place, HELLO)
        if isinstance(raised.value, WaitError):
            assert raised.value.seconds == 321
        assert not platform.sent
        await channel.send(taken.events[0].place, HELLO)
        assert len(platform.sent) == 1


@pytest.mark.parametrize("fault", ["drop_before", "drop_after", "fail", "odd"])
async def test_what_breaks_while_it_is_sent_is_sent_once_or_said_to_be_unsure(platform, fault):
    message = Outgoing(text="hello", plain="hello", nonce="answer:1")
    async with talking(platform) as (channel, taken):
        await platform.say("hi")
        await platform.until(lambda: taken.events)
        platform.fault(fault)
        try:
            sent = await channel.send(taken.events[0].place, message)
        except MaybeSentError:
            assert len(platform.sent) <= 1
        else:
            assert [each.id for each in platform.sent] == [sent]


# From the settings


def made_of(entry: dict[str, Any], tmp_path: Path, **variables: str) -> Channel:
    """Return the channel `mine/one` of an entry."""
    settings = Settings(channels={"mine/one": entry})
    host = Host.of({"HOME": str(tmp_path), **variables})
    return make_channels(settings, host)["mine/one"]


def test_the_platforms_that_come_with_ybs_are_its_entry_points():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert set(project["entry-points"]["ybs.channels"]) == set(BUILT_IN)
    for kind, value in project["entry-points"]["ybs.channels"].items():
        assert EntryPoint(package="ybs", group="", name=kind, value=value).load() is _maker(kind)


def test_what_an_entry_names_by_variables_is_taken_from_them(tmp_path: Path):
    platform = SlackPlatform()
    given = platform.settings() | {"type": "slack", "base_url": "http://127.0.0.1:1/"}
    tokens = {key.upper(): given.pop(key) for key in ("token", "app_token")}
    entry = given | {"token_env": "TOKEN", "app_token_env": "APP_TOKEN"}
    assert made_of(entry, tmp_path, **tokens).capabilities.dialect == "slack"
    with pytest.raises(ConfigError, match="mine/one: the variable APP_TOKEN is not set"):
        made_of(entry, tmp_path, TOKEN="x")


def test_a_channel_keeps_what_it_knows_in_a_folder_of_its_own(tmp_path: Path):
    channel = made_of({"type": "discord", "token": "x"}, tmp_path)
    assert isinstance(channel, Discord)
    assert channel._file == tmp_path / ".local/state/ybs/gateway/channels/mine%2Fone/read.json"


def test_a_platform_whose_packages_are_missing_names_the_command_that_adds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "discord", None)
    monkeypatch.delitem(sys.modules, "ybs.frontends.gateway.discord")
    with pytest.raises(ConfigError, match=r"discord needs: pip install 'ybs\[discord\]'"):
        made_of({"type": "discord", "token": "x"}, tmp_path)
    with pytest.raises(ConfigError, match=r"no platform 'icq'; there are: discord, .*telegram"):
        made_of({"type": "icq"}, tmp_path)


@every_row(
    "url, is_asked",
    [
        ("https://lookaside.fbsbx.com/a", True),
        ("https://fbsbx.com/a", True),
        ("http://fbsbx.com/a", False),
        ("https://evilfbsbx.com/a", False),
        ("https://evil.example/fbsbx.com", False),
        ("https://fbsbx.com@evil.example/a", False),
        ("https://evil.example\\.fbsbx.com/a", False),
        ("http://127.0.0.1:1/a", True),
        ("http://127.0.0.1:12/a", False),
        ("http://[::1/a", False),
    ],
)
def test_files_are_asked_for_at_the_platforms_own_hosts_alone(url: str, is_asked: bool):
    hosts = ("fbsbx.com", "http://127.0.0.1:1/v1", "")
    assert any(is_at(url, each) for each in hosts) is is_asked


async def test_a_file_is_fetched_from_the_persons_own_server_and_by_no_proxy(monkeypatch):
    """Another user may listen at the other address that `localhost` means, and would get the token."""
    async with OpenAIServer([]) as server, OpenAIServer([]) as other:
        monkeypatch.setenv("HTTP_PROXY", other.url)
        monkeypatch.setattr(plain_http, "loopback_hosts", lambda _port: ["127.0.0.1"])
        place = server.url.replace("127.0.0.1", "localhost")
        url, token = f"{place}/models", {"Authorization": "Bearer of-matrix"}
        assert b"scripted" in await fetched(url, 10_000, token, hosts=[place])
        monkeypatch.setattr(plain_http, "loopback_hosts", lambda _port: ["::1"])
        with pytest.raises(UnreachableError):
            await fetched(url, 10_000, token, hosts=[place])
    (sent,) = server.other_requests
    assert sent.headers["authorization"] == "Bearer of-matrix"
    assert other.other_requests == []
