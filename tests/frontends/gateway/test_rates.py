"""How much may be asked: messages a minute, and money a day."""

from pathlib import Path

import pytest

from chat_parts import GUEST, OWNER, Clock, chatting
from ybs.frontends.gateway.channel import ChatPlace, Incoming
from ybs.frontends.gateway.rates import Rates

pytestmark = pytest.mark.integration


def message(who: str, chat: str = "-100", channel: str = "telegram") -> Incoming:
    place = ChatPlace(channel=channel, account="bot", kind="group", chat=chat)
    return Incoming(id="1", place=place, person=who, name=who, at=0.0, is_own=True)


def test_a_minutes_messages_may_come_at_once_and_then_one_after_the_other():
    clock = Clock()
    rates = Rates(12, clock)
    assert [rates.allow(message("a")) for _ in range(12)] == [0] * 12
    assert rates.allow(message("a")) == 5
    clock.now += 4
    assert rates.allow(message("a")) == 1
    clock.now += 1
    assert rates.allow(message("a")) == 0
    clock.now += 3_600
    assert [rates.allow(message("a")) for _ in range(13)] == [0] * 12 + [5]


def test_many_people_in_one_chat_do_not_add_up_and_other_chats_go_on():
    rates = Rates(1, Clock())
    assert [rates.allow(message(f"{who}")) for who in range(3)] == [0, 0, 30]
    assert rates.allow(message("9", "-200")) == 0


def test_many_chats_of_one_channel_do_not_add_up_and_other_channels_go_on():
    rates = Rates(1, Clock())
    waits = [rates.allow(message(f"{who}", f"-{who}")) for who in range(11)]
    assert waits == [0] * 10 + [6]
    assert rates.allow(message("99", "-99", "discord")) == 0


def test_a_message_that_waits_for_one_bucket_takes_nothing_from_the_others():
    clock = Clock()
    rates = Rates(1, clock)
    for who in ("a", "b"):
        rates.allow(message(who))
    assert [rates.allow(message("c")) for _ in range(50)] == [30] * 50
    assert rates.allow(message("c", "-200")) == 0  # nothing of its own was used up


def test_what_others_send_does_not_hold_up_an_owner():
    rates = Rates(1, Clock())
    for who in range(50):
        rates.allow(message(f"{who}"))
    assert rates.allow(message("owner"), is_owner=True) == 0
    assert rates.allow(message("owner"), is_owner=True) == 60


def test_the_buckets_of_many_people_are_bounded(monkeypatch):
    monkeypatch.setattr("ybs.frontends.gateway.rates._MOST_REMEMBERED", 20)
    clock = Clock()
    rates = Rates(1, clock)
    for who in range(100):
        clock.now += 60
        rates.allow(message(f"{who}", f"-{who}"))
        assert len(rates._paid) <= 21
    assert rates.allow(message("99", "-99")) > 0


async def test_a_flood_is_answered_once_and_makes_no_turns(tmp_path: Path):
    async with chatting(tmp_path, per_minute=3) as chat:
        said = [await chat.write("hello", GUEST) for _ in range(10)]
        assert [bool(each) for each in said] == [False] * 3 + [True] + [False] * 6
        assert "Too many messages: this one was not taken" in said[3]
        assert len(chat.turns.queued) == 3


async def test_the_owner_can_stop_a_turn_however_much_they_wrote(tmp_path: Path):
    async with chatting(tmp_path, per_minute=1) as chat:
        await chat.write("hello", OWNER)
        assert "Too many messages" in await chat.write("hello", OWNER)
        assert await chat.write("/stop", OWNER) == "Nothing is running here."
        assert await chat.write("/stop", GUEST) == "Nothing is running here."
        assert "Too many messages" in await chat.write("/stop", GUEST)


async def test_a_days_money_is_spent_once_and_the_next_day_has_its_own(tmp_path: Path):
    async with chatting(tmp_path, usd_per_day=1.0) as chat:
        assert await chat.budget.left() == 1.0
        await chat.budget.add(OWNER, 0.25)
        await chat.budget.add(GUEST, 0.5)
        await chat.budget.add(OWNER, 0.2)
        assert round(await chat.budget.left() or 0, 6) == 0.05
        assert await chat.write("hello", GUEST) == ""
        await chat.budget.add(GUEST, 0.05)
        assert "Today's budget of $1.00 is spent" in await chat.write("hello", OWNER)
        assert "/help" in await chat.write("/help", OWNER)
        assert len(chat.turns.queued) == 1
        chat.clock.now += 86_400
        assert await chat.budget.left() == 1.0


async def test_without_a_limit_as_much_is_spent_as_is_wanted(tmp_path: Path):
    async with chatting(tmp_path) as chat:
        await chat.budget.add(OWNER, 1e6)
        assert await chat.budget.left() is None
        assert await chat.write("hello", OWNER) == ""
        assert len(chat.turns.queued) == 1
