"""What becomes of a message: each is refused, answered or a turn, once, whenever the process is killed."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import select

from chat_parts import GUEST, OWNER, STRANGER, a_file, chatting, session_of
from ybs.frontends.gateway.channel import ChatPlace, Incoming
from ybs.frontends.gateway.chats import key_of, place_of
from ybs.frontends.gateway.store import StoreError, inbox

pytestmark = pytest.mark.integration

GROUP = "-100"


async def test_words_of_those_who_may_speak_are_turns_and_all_else_is_settled(tmp_path: Path):
    async with chatting(tmp_path) as chat:
        words = [chat.incoming("hello", who) for who in (OWNER, GUEST, STRANGER)]
        words += [chat.incoming("hello", STRANGER, GROUP), chat.incoming("/etc/hosts is what?")]
        words += [chat.incoming("", files=(a_file("a.txt"),)), chat.incoming("!rm -rf /", GUEST)]
        for each in words:
            await chat.take(each)
        assert chat.turns.queued == [each.id for each in words if each is not words[2]]
        assert await chat.state(words[2]) == "forgotten"


async def test_an_album_is_one_turn_with_all_of_its_files(tmp_path: Path, monkeypatch: Any):
    monkeypatch.setattr("ybs.frontends.gateway.reception.ALBUM_SECONDS", 0.05)
    async with chatting(tmp_path, per_minute=1) as chat:
        parts = [
            chat.incoming(text, files=(a_file(f"{number}.txt"),), album="a")
            for number, text in enumerate(("", "look", ""))
        ]
        other = chat.incoming("", GUEST, files=(a_file("x.txt"),), album="b")
        for each in (*parts, other):
            await chat.keep(each)
        await asyncio.gather(*(chat.reception.take(each) for each in (*parts, other)))
        assert chat.turns.queued == [parts[0].id, other.id]
        assert [await chat.state(each) for each in parts[1:]] == ["done", "done"]
        query = select(inbox.c.body).where(inbox.c.id == parts[0].id)
        (row,) = await chat.store.rows(query)
        whole = msgspec.json.decode(row.body, type=Incoming)
        assert whole.text == "look"
        assert [each.name for each in whole.files] == ["0.txt", "1.txt", "2.txt"]
        for each in parts:  # after a kill they are taken again
            await chat.reception.take(each)
        assert chat.turns.queued == [parts[0].id, other.id]


@pytest.mark.parametrize("who", [OWNER, GUEST, STRANGER])
async def test_in_a_group_what_is_not_said_to_the_bot_is_nothing_to_it(tmp_path: Path, who: str):
    async with chatting(tmp_path) as chat:
        for text in ("hello", "/stop", "/mode auto"):
            incoming = chat.incoming(text, who, GROUP, is_addressed=False)
            assert await chat.take(incoming) == []
            assert await chat.state(incoming) == "forgotten"
        assert chat.turns.queued == []


@pytest.mark.parametrize("kind", ["a voice message", "a sticker", "[a](b) *location*"])
async def test_what_cannot_be_read_is_refused_in_words(tmp_path: Path, kind: str):
    async with chatting(tmp_path) as chat:
        said = await chat.write("", unsupported=kind)
        assert said.startswith("I cannot read ")
        assert "[a](b)" not in said
        assert chat.turns.queued == []
        assert (
            await chat.write("", STRANGER, unsupported=kind, place=chat.place(STRANGER, "-200"))
            == ""
        )


async def test_a_message_of_a_whole_book_is_refused_in_words(tmp_path: Path):
    async with chatting(tmp_path) as chat:
        assert "too long" in await chat.write("x" * 100_001)
        assert await chat.write("x" * 100_000) == ""
        assert len(chat.turns.queued) == 1


async def test_an_empty_message_is_no_turn(tmp_path: Path):
    async with chatting(tmp_path) as chat:
        assert await chat.write(" \n ") == ""
        assert chat.turns.queued == []


@pytest.mark.parametrize("text", ["hello", "/help", "/stop", "what a stranger says"])
async def test_a_message_that_is_taken_again_after_a_kill_is_answered_once(
    tmp_path: Path, text: str
):
    async with chatting(tmp_path) as chat:
        incoming = chat.incoming(text, STRANGER if "stranger" in text else OWNER)
        await chat.take(incoming)
        posted, queued = [*chat.ledger.posted], [*chat.turns.queued]
        chat.begin()
        await chat.reception.take(incoming)
        assert [*chat.ledger.posted] == posted
        assert chat.turns.queued == queued


async def test_a_command_in_whose_midst_ybs_was_killed_is_not_run_again_and_that_is_said(
    tmp_path: Path,
):
    async with chatting(tmp_path) as chat:
        incoming = chat.incoming("/new")
        await chat.keep(incoming)

        async def killed(key: str) -> None:
            chat.chats.anew.append(key)
            raise KeyboardInterrupt

        chat.chats.begin_anew = killed  # pyright: ignore[reportAttributeAccessIssue]
        with pytest.raises(KeyboardInterrupt):
            await chat.reception.take(incoming)
        assert await chat.state(incoming) == "new"
        chat.begin()
        await chat.reception.take(incoming)
        assert len(chat.chats.anew) == 1
        assert "it may have been done or not" in chat.last().text
        assert await chat.state(incoming) == "done"


async def test_a_press_that_is_taken_again_after_a_kill_does_nothing(tmp_path: Path, project: Path):
    async with session_of(project) as session, chatting(tmp_path, session) as chat:
        await chat.write("/mode")
        press = chat.incoming("", button=chat.last().token("plan"))
        await chat.take(press)
        assert session.mode == "plan"
        session.mode = "ask"
        chat.begin()
        await chat.reception.take(press)
        assert session.mode == "ask"


async def test_while_the_database_cannot_be_read_a_message_stays_new(tmp_path: Path):
    async with chatting(tmp_path) as chat:
        incoming = chat.incoming("hello")
        await chat.keep(incoming)
        await chat.store.do(lambda c: c.exec_driver_sql("alter table people rename to elsewhere"))
        with pytest.raises(StoreError):
            await chat.reception.take(incoming)
        assert chat.turns.queued == []
        await chat.store.do(lambda c: c.exec_driver_sql("alter table elsewhere rename to people"))
        assert await chat.state(incoming) == "new"
        await chat.reception.take(incoming)
        assert chat.turns.queued == [incoming.id]


async def test_two_accounts_two_kinds_and_two_threads_are_told_apart(tmp_path: Path):
    """Chats were merged elsewhere because the account was missing in the key."""
    async with chatting(tmp_path, entry={"private": "open", "groups": "open"}) as chat:
        seen = list[Any]()

        async def enter(place: ChatPlace, person: str) -> str:
            seen.append((place, person))
            return "key"

        chat.chats.enter = enter  # pyright: ignore[reportAttributeAccessIssue]
        places = [
            chat.place(OWNER),
            chat.place(OWNER, account="b"),
            chat.place(OWNER, GROUP),
            chat.place(OWNER, GROUP, thread="7"),
        ]
        for place in places:
            await chat.take(chat.incoming("hello", place=place))
        assert seen == [(place, OWNER) for place in places]


async def test_messages_of_one_person_are_taken_in_their_order_and_others_do_not_wait(
    tmp_path: Path,
):
    async with chatting(tmp_path) as chat:
        first, second, other = (chat.incoming(who=who) for who in (OWNER, OWNER, GUEST))
        messages = [replace(each, text="hello") for each in (first, second, other)]
        held, enter, entered = asyncio.Event(), chat.chats.enter, list[str]()

        async def slow(place: ChatPlace, person: str) -> str:
            entered.append(person)
            if entered.count(OWNER) == 1 and person == OWNER:
                await held.wait()
            return await enter(place, person)

        chat.chats.enter = slow  # pyright: ignore[reportAttributeAccessIssue]
        for each in messages:
            await chat.keep(each)
        taking = [asyncio.create_task(chat.reception.take(each)) for each in messages]
        await taking[2]
        assert chat.turns.queued == [other.id]
        chat.turns.queued.clear()
        held.set()
        await asyncio.gather(*taking)
        assert chat.turns.queued == [first.id, second.id]


@pytest.mark.parametrize("text", ["/mode auto", "/approve X yes", "/stop", "yes"])
async def test_words_that_the_owner_did_not_write_are_never_a_command_or_an_answer(
    tmp_path: Path, text: str
):
    async with chatting(tmp_path) as chat:
        incoming = chat.incoming(text, is_own=False)
        assert await chat.take(incoming) == []
        assert chat.turns.queued == [incoming.id]


def test_a_private_chat_is_that_of_one_person():
    place = ChatPlace("matrix", "@bot", "private", "!room")
    own, others = key_of(place, "@ann:x"), key_of(place, "@bob:x")
    assert own != others
    assert place_of(own) == replace(place, person="@ann:x")
