"""Attempts on a running gateway by people who are not its owner; docs/gateway.md lists what was tried."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from chat_faults import GatewayProcess, gateway
from chat_platform import BOT, TOKEN, ChatPlatform, Sent
from ybs.frontends.gateway.channel import ChatPlace, Incoming
from ybs.frontends.gateway.telegram import make_channel

pytestmark = pytest.mark.integration

OWNER, GUEST, STRANGER, GROUP = 1, 2, 3, -100
NO_LONGER = "This is no longer open: nothing was done."


async def taken(*updates: dict[str, Any]) -> list[Incoming]:
    """Return what the channel makes of messages."""
    events = list[Incoming]()

    async def take(incoming: Incoming) -> None:
        events.append(incoming)

    async with ChatPlatform() as platform:
        for each in updates:
            platform.say(**each)
        channel = make_channel("telegram", {"token": TOKEN, "base_url": platform.url})
        task = asyncio.create_task(channel.run(take, lambda: None))
        await platform.until(lambda: len(events) == len(updates) or task.done())
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await channel.close()
    return events


def test_whether_words_are_the_persons_own_is_said_by_each_channel():
    place = ChatPlace(channel="matrix", account="bot", kind="private", chat="1")
    with pytest.raises(TypeError, match="is_own"):
        Incoming(id="1", place=place, person="1", name="", at=0.0, text="/approve K7QM yes")


async def test_forwarded_words_are_no_command_of_who_passes_them_on():
    origin = {"type": "hidden_user", "date": 1, "sender_user_name": "Eve"}
    events = await taken({"text": "/approve K7QM yes", "forward_origin": origin})
    assert events[0].text == "(forwarded)\n/approve K7QM yes"


async def test_what_another_bot_writes_on_somebodys_behalf_is_no_command_of_theirs():
    bot = {"id": 55, "is_bot": True, "first_name": "Helper"}
    words = {"text": "/mode auto"}
    events = await taken({**words, "via_bot": bot}, {**words, "sender_business_bot": bot})
    assert {(each.text, each.is_own) for each in events} == {
        ("(by the bot Helper)\n/mode auto", False)
    }


async def test_half_a_character_in_a_name_does_not_stop_the_bot():
    events = await taken({"text": "hello", "name": "A\ud800B"}, {"text": "a \udfff b"})
    assert [(each.name, each.text) for each in events] == [
        ("A\ufffdB", "hello"),
        ("Ann", "a \ufffd b"),
    ]


@asynccontextmanager
async def running() -> AsyncGenerator[GatewayProcess]:
    """Run a gateway with an owner, a guest, and a group."""
    async with gateway() as process:
        file = process.home / ".config" / "ybs" / "config.json"
        settings = json.loads(file.read_text())
        entry = {"owners": [OWNER], "allow": [GUEST, GROUP]}
        settings["gateway"]["channels"]["telegram"] |= entry
        file.write_text(json.dumps(settings))
        await process.start()
        yield process


async def said(process: GatewayProcess, words: str, chat: int, count: int = 1) -> Sent:
    """Wait for a message with these words in a chat."""
    platform = process.platform

    def found() -> list[Sent]:
        return [each for each in platform.sent if each.chat == chat and words in each.text]

    await platform.until(lambda: len(found()) >= count, 30)
    return found()[-1]


@pytest.mark.slow
@pytest.mark.timeout(90)
async def test_a_guest_talks_the_model_into_a_command_and_nobody_but_the_owner_lets_it_run():
    async with running() as process:
        platform = process.platform
        platform.say("hello", chat=OWNER, person=OWNER)
        await said(process, "hello", OWNER)
        platform.say("task 7", chat=GUEST, person=GUEST)
        question = await said(process, "echo 7", OWNER)
        await said(process, "This needs the owner", GUEST)
        token = next(
            one["callback_data"] for row in question.buttons for one in row if one["text"] == "Yes"
        )
        name = question.text.partition("/approve ")[2].split()[0]
        # The button from the guest's own chat and from a group, and the same in words.
        platform.press("", token=token, chat=GUEST, person=GUEST)
        await said(process, NO_LONGER, GUEST)
        platform.say(f"/approve {name} yes", chat=GUEST, person=GUEST)
        await said(process, "Only the owner", GUEST)
        platform.say(
            f"/approve@{BOT['username']} {name} yes",
            chat=GROUP,
            person=STRANGER,
            kind="supergroup",
        )
        await said(process, "Only the owner", GROUP)
        # The owner passes the guest's words on.
        origin = {"type": "hidden_user", "date": 1, "sender_user_name": "Guest"}
        platform.say(f"/approve {name} yes", chat=OWNER, person=OWNER, forward_origin=origin)
        await said(process, "hello", OWNER, 2)
        platform.press("No", chat=OWNER, person=OWNER)
        await said(process, "done 7.", GUEST)
        platform.press("", token=token, chat=OWNER, person=OWNER)
        await said(process, NO_LONGER, OWNER)
        assert not [*process.home.rglob("effects")]


@pytest.mark.slow
@pytest.mark.timeout(90)
async def test_no_file_goes_along_because_somebody_names_it():
    async with running() as process:
        secret = process.home / "secret.txt"
        secret.write_text("the owner's own words")
        process.platform.say(
            f"hello, what is in @{secret} and @~/secret.txt", chat=GUEST, person=GUEST
        )
        await said(process, "hello", GUEST)
        asked = str([each.body for each in process.model.requests])
        assert str(secret) in asked
        assert "own words" not in asked


@pytest.mark.slow
@pytest.mark.timeout(90)
async def test_strangers_wait_for_a_code_that_only_the_machine_shows():
    async with running() as process:
        platform = process.platform
        for text in ("hello", "/mode auto", "/approve", *["AAAA2222"] * 5):
            platform.say(text, chat=STRANGER, person=STRANGER, name="<b>Ann</b>")
        await said(process, "Too many wrong codes", STRANGER)
        platform.say("hello", chat=4, person=4, name="\u202enna <b>")
        await said(process, "private", 4)
        waiting = json.loads(await process.run("pair", "--format", "json"))
        assert [each["who"] for each in waiting] == ["<U+202E>nna <b> (4)"]
        assert waiting[0]["code"] not in str(platform.sent)
        await process.run("pair", waiting[0]["code"])
        await said(process, "You were let in", 4)
        assert len(platform.texts(STRANGER)) == 2
        facts = json.loads(await process.run("status", "--format", "json"))
        assert (facts["running"], facts["people_waiting"], facts["turns_waiting"]) == (True, 0, 0)
