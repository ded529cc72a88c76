"""Who may speak: nobody, until settings or a pairing say so."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from chat_parts import GUEST, OWNER, STRANGER, Chatting, chatting
from ybs.core.errors import ConfigError, YbsError
from ybs.frontends.gateway.people import ALPHABET, CODE_SECONDS, PRIVATE, ChannelPolicy, People
from ybs.frontends.gateway.store import GatewayStore, StoreError, people, sqlite_engine

pytestmark = pytest.mark.integration

#: Role and first answer by policy: of an owner, of somebody on the list, of a stranger.
PRIVATE_CHATS = {
    "pairing": ("owner", "guest", ""),
    "allow": ("owner", "guest", ""),
    "open": ("owner", "guest", "guest"),
    "off": ("", "", ""),
}


async def role(chat: Chatting, who: str, group: str = "", **rest: Any) -> str:
    return (await chat.people.admit(chat.incoming("hello", who, group, **rest))).role


@pytest.mark.parametrize("private", PRIVATE_CHATS)
async def test_private_chats_are_as_open_as_the_settings_say(tmp_path: Path, private: str):
    entry = {"owners": [OWNER], "allow": [GUEST], "private": private}
    async with chatting(tmp_path, entry=entry) as chat:
        found = [await role(chat, who) for who in (OWNER, GUEST, STRANGER)]
        assert found == [*PRIVATE_CHATS[private]]


async def test_without_any_word_in_the_settings_nobody_may_speak(tmp_path: Path):
    async with chatting(tmp_path, entry={}) as chat:
        assert await role(chat, OWNER) == ""
        assert await role(chat, OWNER, "-100") == ""
        other = chat.place(OWNER, channel="not in the settings")
        assert await role(chat, OWNER, place=other) == ""
        assert not await chat.people.is_owner(chat.incoming(who=OWNER))


async def test_a_group_has_to_be_on_the_list_whoever_speaks_in_it(tmp_path: Path):
    async with chatting(tmp_path) as chat:
        assert await role(chat, OWNER, "-100") == "owner"
        assert await role(chat, STRANGER, "-100") == "guest"
        assert [await role(chat, who, "-200") for who in (OWNER, GUEST)] == ["", ""]


async def test_the_owner_is_told_how_a_group_is_allowed(tmp_path: Path):
    async with chatting(tmp_path) as chat:
        assert "`-200`" in await chat.write("hello", OWNER, "-200")
        assert await chat.write("hello", STRANGER, "-200") == ""


async def test_who_speaks_for_a_channel_and_not_as_a_person_is_nobody(tmp_path: Path):
    async with chatting(
        tmp_path, entry={"private": "open", "groups": "open", "owners": [""]}
    ) as chat:
        assert await role(chat, "") == ""
        assert not await chat.people.is_owner(chat.incoming(who=""))


@pytest.mark.parametrize(
    "entry",
    [
        {"private": "opne"},
        {"groups": True},
        {"private": None},
        {"owners": "123"},
        {"allow": {"-100": True}},
        {"owners": [True]},
        {"allow": [None]},
    ],
)
def test_a_word_that_is_not_known_opens_nothing_and_is_named(entry: dict[str, Any]):
    with pytest.raises(
        ConfigError, match=r"gateway\.channels\.telegram\.(private|groups|owners|allow): "
    ):
        ChannelPolicy.of("telegram", entry)


def test_ids_may_be_written_as_numbers():
    assert ChannelPolicy.of("telegram", {"owners": [123], "allow": [-100, "7"]}) == ChannelPolicy(
        allow=frozenset(("-100", "7")), owners=frozenset(("123",))
    )


# Pairing


async def code_of(chat: Chatting) -> str:
    return (await chat.people.waiting())[-1].code


async def test_a_stranger_is_told_once_and_the_code_is_not_said_in_the_chat(tmp_path: Path):
    async with chatting(tmp_path, entry={}) as chat:
        assert await chat.write("hello", STRANGER) == PRIVATE
        assert await chat.write("hello?", STRANGER) == ""
        code = await code_of(chat)
        assert len(code) == 8
        assert set(code) <= set(ALPHABET)
        assert not any(code in each.text for each in chat.ledger.posted.values())
        assert chat.turns.queued == []


async def test_the_first_who_is_let_in_is_the_owner_and_the_next_a_guest(tmp_path: Path):
    async with chatting(tmp_path, entry={}) as chat:
        for who, expected in ((OWNER, "owner"), (GUEST, "guest")):
            await chat.write("hello", who)
            code = await code_of(chat)
            person = await chat.people.pair(f" {code[:4].lower()}-{code[4:]} ")
            assert (person.person, person.role, person.place) == (who, expected, chat.place(who))
            assert await role(chat, who) == expected
        assert await chat.people.is_owner(chat.incoming(who=OWNER))
        assert not await chat.people.is_owner(chat.incoming(who=GUEST))
        assert not await chat.people.is_owner(
            chat.incoming(place=chat.place(OWNER, account="other bot"))
        )
        assert await chat.people.waiting() == []


async def test_where_the_settings_name_an_owner_nobody_becomes_one_by_a_code(tmp_path: Path):
    async with chatting(tmp_path) as chat:
        await chat.write("hello", STRANGER)
        assert (await chat.people.pair(await code_of(chat))).role == "guest"


async def test_who_is_refused_hears_nothing_and_cannot_ask_again(tmp_path: Path):
    async with chatting(tmp_path) as chat:
        await chat.write("hello", STRANGER)
        await chat.people.pair(await code_of(chat), "refused")
        chat.clock.now += 10 * CODE_SECONDS
        assert await chat.write("hello", STRANGER) == ""
        assert await chat.people.waiting() == []
        assert await role(chat, STRANGER, "-100") == ""


async def test_the_person_may_type_the_code_themselves(tmp_path: Path):
    async with chatting(tmp_path, entry={}) as chat:
        await chat.write("hello", OWNER)
        assert "owner" in await chat.write(await code_of(chat), OWNER)
        assert await role(chat, OWNER) == "owner"
        assert chat.turns.queued == []  # the code is no prompt


async def test_nobody_gets_in_by_the_code_of_another(tmp_path: Path):
    async with chatting(tmp_path, entry={}) as chat:
        await chat.write("hello", OWNER)
        code = await code_of(chat)
        await chat.write("hello", STRANGER)
        assert await chat.write(code, STRANGER) == ""
        assert await role(chat, STRANGER) == ""


async def test_after_five_wrong_codes_the_right_one_does_not_help_for_an_hour(tmp_path: Path):
    async with chatting(tmp_path, entry={}) as chat:
        await chat.write("hello", STRANGER)
        code = await code_of(chat)
        wrong = "A" * 8 if code != "A" * 8 else "B" * 8
        await chat.write("not a code at all", STRANGER)
        said = [await chat.write(wrong, STRANGER) for _ in range(5)]
        assert said[:4] == [""] * 4
        assert "Too many wrong codes" in said[4]
        assert await chat.write(code, STRANGER) == ""
        with pytest.raises(YbsError, match="Nobody waits"):
            await chat.people.pair(code)
        chat.clock.now += CODE_SECONDS + 1
        assert await chat.write("hello", STRANGER) == PRIVATE


async def test_a_code_holds_for_an_hour(tmp_path: Path):
    async with chatting(tmp_path, entry={}) as chat:
        await chat.write("hello", STRANGER)
        code = await code_of(chat)
        chat.clock.now += CODE_SECONDS + 1
        assert await chat.people.waiting() == []
        with pytest.raises(YbsError, match="Nobody waits"):
            await chat.people.pair(code)
        assert await chat.write(code, STRANGER) == PRIVATE


async def test_three_wait_at_once_and_the_next_are_told_nothing(tmp_path: Path):
    async with chatting(tmp_path, entry={}) as chat:
        said = [await chat.write("hello", f"{number}") for number in range(10, 15)]
        assert said == [PRIVATE] * 3 + [""] * 2
        assert len(await chat.people.waiting()) == 3


async def test_in_a_group_nobody_asks_to_be_let_in(tmp_path: Path):
    async with chatting(tmp_path, entry={"groups": "pairing"}) as chat:
        assert await chat.write("hello", STRANGER, "-100") == ""
        assert await chat.people.waiting() == []
        await chat.write("hello", STRANGER)
        await chat.people.pair(await code_of(chat), "guest")
        assert await role(chat, STRANGER, "-100") == "guest"


async def test_a_name_shows_in_a_terminal_what_it_is(tmp_path: Path):
    async with chatting(tmp_path, entry={}) as chat:
        await chat.take(chat.incoming("hello", STRANGER, name="Ada\x1b[2J\u202eadA\n" + "x" * 500))
        who = (await chat.people.waiting())[0].who
        assert who.isprintable()
        assert who.startswith("Ada␛[2J<U+202E>adA xxx")
        assert len(who) < 100


# What other gateways lost


async def test_a_pairing_is_not_lost_by_a_restart(tmp_path: Path):
    async with chatting(tmp_path, entry={}) as chat:
        await chat.write("hello", OWNER)
        await chat.people.pair(await code_of(chat))
    async with chatting(tmp_path, entry={}) as chat:
        assert await role(chat, OWNER) == "owner"


async def test_a_pairing_holds_for_one_bot_and_not_for_another_in_the_same_chat(tmp_path: Path):
    async with chatting(tmp_path, entry={}) as chat:
        await chat.write("hello", OWNER)
        await chat.people.pair(await code_of(chat))
        assert await role(chat, OWNER, place=chat.place(OWNER, account="other bot")) == ""


async def test_a_damaged_database_is_kept_and_lets_nobody_in(tmp_path: Path):
    file = tmp_path / "state" / "gateway.db"
    file.parent.mkdir(mode=0o700)
    file.write_bytes(b"this was a database once" * 100)
    with pytest.raises(
        StoreError,
        match=r"gateway\.db cannot be used: file is not a database\. It was left as it is",
    ):
        GatewayStore(sqlite_engine(file))
    assert file.read_bytes() == b"this was a database once" * 100


async def test_a_database_that_is_damaged_later_lets_nobody_in(tmp_path: Path):
    async with chatting(tmp_path) as chat:
        await chat.store.do(lambda c: c.exec_driver_sql("drop table people"))
        with pytest.raises(StoreError, match="no such table: people"):
            await chat.people.admit(chat.incoming("hello", OWNER))


async def test_a_role_that_is_not_known_is_none(tmp_path: Path):
    async with chatting(tmp_path, entry={}) as chat:
        await chat.write("hello", OWNER)
        await chat.people.pair(await code_of(chat))
        await chat.store.do(lambda c: c.execute(update(people).values(role="root")))
        assert await role(chat, OWNER) == ""
        assert not await chat.people.is_owner(chat.incoming(who=OWNER))


async def test_who_is_struck_off_the_settings_is_no_owner_any_more(tmp_path: Path):
    async with chatting(tmp_path) as chat:
        assert await role(chat, OWNER) == "owner"
        assert await chat.people.places_of_owners("telegram", "bot") == [
            chat.place(OWNER, person=OWNER)
        ]
    async with chatting(tmp_path, entry={"allow": [OWNER]}) as chat:
        assert await role(chat, OWNER) == "guest"
        assert await chat.people.places_of_owners("telegram", "bot") == []


async def test_two_processes_see_one_pairing(tmp_path: Path):
    async with chatting(tmp_path, entry={}) as chat:
        await chat.write("hello", OWNER)
        other = GatewayStore(sqlite_engine(tmp_path / "state" / "gateway.db"))
        beside = People(other, {"telegram": ChannelPolicy()}, chat.clock)
        await beside.pair((await beside.waiting())[0].code)
        other.close()
        assert await role(chat, OWNER) == "owner"
        assert await chat.people.waiting() == []
