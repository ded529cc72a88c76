"""/effort: how hard the model thinks, from the next request on."""

from collections.abc import Callable

import pytest

from replies import shown
from rows import every_row
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.testing import RecordedEvents

Open = Callable[..., tuple[Session, RecordedEvents]]


async def said(session: Session, line: str) -> Reply:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    return reply


@pytest.mark.integration
async def test_the_next_request_asks_for_it_and_another_model_keeps_it(playing):
    async with playing(["one", "two", "three", "four"]) as (session, _, server):
        await session.send("hello")
        assert shown(await said(session, "/effort HIGH")).startswith("Effort: high")
        await session.send("hello")
        await said(session, "/model another")
        await session.send("hello")
        await said(session, "/effort auto")
        await session.send("hello")
    asked = [request.body.get("reasoning_effort") for request in server.requests]
    assert asked == [None, "high", "high", None]


async def test_a_bare_effort_offers_all_with_the_one_in_force(playing):
    async with playing([]) as (session, _, _):
        await said(session, "/effort low")
        menu = (await said(session, "/effort")).menu
    assert menu is not None
    assert [item.line for item in menu.items][:2] == ["/effort auto", "/effort none"]
    assert [item.label for item in menu.items if item.is_current] == ["low"]


@pytest.mark.integration
@every_row("word", ["hi", "-1", "9999999", "high low"])
async def test_an_unknown_effort_changes_nothing(playing, word: str):
    async with playing([]) as (session, _, _):
        assert (await said(session, f"/effort {word}")).is_error
        assert session.config.llm.effort is None


async def test_what_cannot_be_switched_changes_nothing(playing, monkeypatch):
    async with playing([]) as (session, _, _):
        monkeypatch.setitem(session.running.__dict__, "check", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await session.handle("/effort high")
        assert session.config.llm.effort is None
