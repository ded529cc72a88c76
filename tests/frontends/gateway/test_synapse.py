"""The channel Matrix on a real homeserver (Synapse), with people who have a real client of their own."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nio
import pytest

from channel_contract import Taken, running
from synapse import PYTHON, Person, Synapse, until
from ybs.frontends.gateway.channel import (
    Button,
    Channel,
    ChatGoneError,
    MessageGoneError,
    Outgoing,
    OutgoingFile,
    RefusedError,
)
from ybs.frontends.gateway.formatting import formatted
from ybs.frontends.gateway.matrix import _FILTER, make_channel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]
HELLO = Outgoing(text="<b>hello</b>", plain="hello")
YES_NO = ((Button("Yes", "token-1"),), (Button("No", "token-2"),))
_names = count()


@pytest.fixture(scope="session")
def server() -> Generator[Synapse]:
    if not PYTHON.exists():
        pytest.skip("NOT TESTED: Synapse is not installed; scripts/setup.sh synapse")
    with TemporaryDirectory(prefix="ybs-") as folder:
        made = Synapse(Path(folder)).start()
        yield made
        made.stop()


class Talk:
    """A person with a client, a bot's account with its settings, and what its channel took."""

    def __init__(self, ann: Person, bot: str, section: dict[str, Any]) -> None:
        self.ann, self.bot, self.section = ann, bot, section
        self.taken = Taken()

    def channel(self) -> Channel:
        return make_channel("matrix", self.section)

    async def room(self, **given: Any) -> str:
        """Make a room for the two, which the bot has joined."""
        room = await self.ann.room(self.bot, **given)
        await until(lambda: self.bot in self.ann.client.rooms[room].users)
        members = self.ann.client.rooms[room].users
        await until(lambda: not members[self.bot].invited)
        return room

    async def read(self, text: str) -> None:
        """Wait until the person has read a text of the bot's."""
        await until(lambda: any(each["body"] == text for each in self.ann.said(self.bot)))


@pytest.fixture
async def talk(server: Synapse, tmp_path: Path) -> AsyncGenerator[Talk]:
    number = next(_names)
    bot = await server.client(f"yips{number}", tmp_path)
    section = {"homeserver": server.url, "token": bot.access_token}
    section |= {"folder": str(tmp_path / "bot"), "owners": [f"@ann{number}:localhost"]}
    await bot.close()
    bot.store.database.close()  # type: ignore[union-attr]
    async with Person(await server.client(f"ann{number}", tmp_path)) as ann:
        yield Talk(ann, bot.user_id, section)


@asynccontextmanager
async def talking(talk: Talk) -> AsyncGenerator[Channel]:
    channel = talk.channel()
    async with running(channel, talk.taken):
        yield channel


async def test_a_person_invites_asks_presses_and_reads(talk: Talk):
    ann, taken = talk.ann, talk.taken
    async with talking(talk) as channel:
        room = await ann.room(talk.bot, is_direct=True)
        await ann.say(room, "said before the bot came in")
        await until(lambda: taken.events)
        event = taken.events[0]
        assert (event.text, event.person) == ("said before the bot came in", ann.client.user_id)
        assert (event.place.kind, event.place.chat) == ("private", room)
        await channel.show_typing(event.place)
        await until(lambda: talk.bot in ann.typing)
        message = Outgoing(text="may I?", plain="may I?", buttons=YES_NO, nonce="ask:1")
        asked = await channel.send(event.place, message)
        assert await channel.send(event.place, message) == asked, "a nonce counts once"
        await until(lambda: len([e for e in ann.events if isinstance(e, nio.ReactionEvent)]) >= 2)
        offered = [each for each in ann.events if isinstance(each, nio.ReactionEvent)]
        reaction = {"rel_type": "m.annotation", "event_id": asked, "key": offered[1].key}
        await ann.send(room, "m.reaction", {"m.relates_to": reaction})
        await until(lambda: taken.distinct[-1].button)
        assert (taken.distinct[-1].button, taken.distinct[-1].message) == ("token-2", asked)
        await channel.edit(event.place, asked, HELLO)
        await channel.edit(event.place, asked, HELLO)
        await talk.read("* hello")
        with pytest.raises(MessageGoneError):
            await channel.edit(event.place, "$" + "7" * 43, HELLO)
        assert len([each for each in ann.said(talk.bot) if "m.new_content" not in each]) == 1


async def test_threads_and_mentions_in_a_group(talk: Talk, server: Synapse, tmp_path: Path):
    ann, taken = talk.ann, talk.taken
    bob = Person(await server.client(f"bob{next(_names)}", tmp_path))
    async with talking(talk) as channel, bob:
        room = await talk.room()
        await ann.client.room_invite(room, bob.client.user_id)
        await bob.client.join(room)
        await until(lambda: room in bob.client.rooms)
        await bob.say(room, "not for the bot")
        root = await ann.say(room, "a thread")
        relation = {"rel_type": "m.thread", "event_id": root}
        name = talk.bot[1:].partition(":")[0]
        mention = {"m.mentions": {"user_ids": [talk.bot]}, "m.relates_to": relation}
        await bob.say(room, f"{name}: do it", **mention)
        await until(lambda: len(taken.events) == 3)
        assert [each.is_addressed for each in taken.events] == [False, False, True]
        event = taken.events[2]
        assert (event.text, event.place.kind, event.place.thread) == ("do it", "group", root)
        assert event.person == bob.client.user_id
        await channel.send(event.place, HELLO)
        await talk.read("hello")
        answer = ann.said(talk.bot)[0]
        assert answer["m.relates_to"]["event_id"] == root
        assert answer["m.mentions"] == {}
        await ann.client.room_kick(room, talk.bot)
        await until(lambda: talk.bot not in ann.client.rooms[room].users)
        with pytest.raises(ChatGoneError):
            await channel.send(event.place, HELLO)


@pytest.mark.parametrize("encrypted", [False, True])
async def test_words_and_files_go_both_ways_encrypted_or_not(talk: Talk, encrypted: bool):
    ann, taken, data = talk.ann, talk.taken, bytes(range(256)) * 40
    async with talking(talk) as channel:
        room = await talk.room(encrypted=encrypted)
        await ann.say(room, "w\u00f6rds")
        await until(lambda: taken.events)
        place = taken.events[0].place
        assert taken.events[0].text == "w\u00f6rds"
        assert not taken.events[0].unsupported
        answer, key = await ann.client.upload(
            lambda *_: data, "text/plain", "a.txt", encrypt=encrypted, filesize=len(data)
        )
        assert isinstance(answer, nio.UploadResponse)
        where: dict[str, Any] = {"url": answer.content_uri}
        where = {"file": {**key, **where}} if key else where
        content = {"msgtype": "m.file", "filename": "a.txt", "body": "look"}
        await ann.send(room, "m.room.message", content | where)
        await until(lambda: len(taken.distinct) == 2)
        assert taken.distinct[1].text == "look"
        (file,) = taken.distinct[1].files
        assert file.name == "a.txt"
        assert await channel.fetch(file, len(data)) == data
        sent = OutgoingFile(name="r\u00e9port.bin", data=data)
        await channel.send(place, Outgoing(text="see", plain="see", file=sent))
        await talk.read("see")
        shown = ann.said(talk.bot)[0]
        assert (shown["filename"], "file" in shown) == ("r\u00e9port.bin", encrypted)
        uri = shown["file"]["url"] if encrypted else shown["url"]
        got = await ann.client.download(uri)
        assert isinstance(got, nio.MemoryDownloadResponse)
        assert (got.body == data) is not encrypted
        is_secret = any(getattr(e, "decrypted", False) for e in ann.events if e.sender == talk.bot)
        assert is_secret is encrypted
    async with talking(talk) as channel:  # with the keys of the first run
        await ann.say(room, "again")
        await until(lambda: taken.distinct[-1].text == "again")
        await channel.send(place, HELLO)
        await talk.read("hello")


async def test_what_was_said_while_the_bot_was_away_comes_once_and_history_does_not(
    talk: Talk, server: Synapse, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(_FILTER["room"], "timeline", {"limit": 5})
    ann, taken = talk.ann, talk.taken
    early = await ann.room(talk.bot)
    await ann.say(early, "before the first start")
    async with talking(talk):
        await until(lambda: not ann.client.rooms[early].users[talk.bot].invited)
        await ann.say(early, "one")
        await until(lambda: any(each.text == "one" for each in taken.events))
    for number in range(14):
        await ann.say(early, f"away {number}")
    taken.fails = 1
    async with talking(talk):
        await until(lambda: taken.distinct[-1].text == "away 13")
        server.stop()
        await asyncio.to_thread(server.start)
        await ann.say(early, "after the crash")
        await until(lambda: taken.distinct[-1].text == "after the crash", 30)
    said = [each.text for each in taken.distinct]
    assert said[said.index("one") + 1 :] == [f"away {n}" for n in range(14)] + ["after the crash"]
    assert said[0] in ("before the first start", "one")


async def test_invitations_of_others_are_left_alone(talk: Talk, server: Synapse, tmp_path: Path):
    eve = Person(await server.client(f"eve{next(_names)}", tmp_path))
    async with talking(talk), eve:
        theirs = await eve.room(talk.bot)
        await eve.say(theirs, "hello")
        await talk.room()
        await talk.ann.say(await talk.room(), "from the owner")
        await until(lambda: talk.taken.events)
        assert [each.text for each in talk.taken.distinct] == ["from the owner"]
        assert eve.client.rooms[theirs].users[talk.bot].invited
    talk.section["invitations"] = "open"
    (
        Path(talk.section["folder"]) / f"since-{talk.bot.replace('@', '%40').replace(':', '%3A')}"
    ).unlink()
    async with talking(talk), eve:
        await until(lambda: not eve.client.rooms[theirs].users[talk.bot].invited)


async def test_long_texts_and_limits_of_the_server(talk: Talk):
    text = (
        "```\n" + "\u6f22\u5b57 <&> " * 800 + "\n```\n" + "**bold** [x](https://x.example) " * 100
    )
    async with talking(talk) as channel:
        room = await talk.room(encrypted=True)
        await talk.ann.say(room, "hi")
        await until(lambda: talk.taken.events)
        place = talk.taken.events[0].place
        for piece in formatted(text, channel.capabilities):
            sent = await channel.send(place, Outgoing(text=piece.text, plain=piece.plain))
            await channel.edit(place, sent, Outgoing(text=piece.text, plain=piece.plain))
        with pytest.raises(RefusedError, match="too large"):
            await channel.send(place, Outgoing(text="x" * 70_000, plain="x"))
