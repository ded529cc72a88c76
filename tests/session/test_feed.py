"""The feed of a session: the same events in the same order for everybody, and nobody is waited for."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timing import takes_at_most
from ybs.core.envelope import MAIN, Envelope
from ybs.core.events import (
    AssistantSaid,
    Event,
    Noticed,
    StateChanged,
    TextStreamed,
    ThinkingStreamed,
    ToolFinished,
    ToolPrinted,
    TurnFinished,
)
from ybs.session import feed as feeds
from ybs.session.feed import Feed, FellBehind, Listener

AGENTS = (MAIN, "explore-1")
EVENTS: tuple[Event, ...] = (
    TextStreamed(text="a"),
    ThinkingStreamed(text="b"),
    AssistantSaid(content="ab"),
    ToolPrinted(id="1", text="c"),
    ToolPrinted(id="2", text="d"),
    ToolFinished(id="1", success=True, output="c"),
    Noticed(level="info", text="e"),
    StateChanged(mode="plan"),
    TurnFinished(reason="done"),
)
PIECES = (TextStreamed, ThinkingStreamed, ToolPrinted)
told = st.lists(st.tuples(st.sampled_from(AGENTS), st.sampled_from(EVENTS)), max_size=30)


def envelopes(made: Sequence[tuple[str, Event]]) -> list[Envelope]:
    return [Envelope("s", agent, event, "", n) for n, (agent, event) in enumerate(made, 1)]


async def read(listener: Listener) -> list[Envelope]:
    return [envelope async for envelope in listener]


@pytest.mark.integration
@settings(max_examples=60, deadline=None)
@given(told, st.integers(0, 30), st.integers(0, 30))
def test_who_listens_hears_all_in_order_and_who_comes_later_all_that_is_whole(made, joins, after):
    async def run() -> None:
        feed, whole = Feed(), envelopes(made)
        first, second = feed.listen(), feed.listen()
        for envelope in whole[:joins]:
            feed(envelope)
        late = feed.listen(after)
        for envelope in whole[joins:]:
            feed(envelope)
        feed.end()
        assert await read(first) == await read(second) == whole
        heard = await read(late)
        assert [each.number for each in heard] == sorted({each.number for each in heard})
        asked = [each for each in whole if each.number > after or each.number > joins]
        missing = [each for each in asked if each not in heard]
        assert all(isinstance(each.event, (*PIECES, StateChanged)) for each in missing)
        assert all(each.number <= joins for each in missing)
        assert [each for each in heard if each.number > joins] == whole[joins:]
        states = [each for each in heard if isinstance(each.event, StateChanged)]
        assert len([each for each in states if each.number <= joins]) <= 1

    asyncio.run(run())


def test_pieces_of_what_is_not_whole_are_heard_by_who_comes_later():
    feed = Feed()
    made: list[tuple[str, Event]] = [
        (MAIN, TextStreamed(text="gone, it was said whole")),
        (MAIN, AssistantSaid(content="whole")),
        (MAIN, TextStreamed(text="new")),
        (AGENTS[1], TextStreamed(text="of another")),
    ]
    for envelope in envelopes(made):
        feed(envelope)
    feed.end()
    heard = asyncio.run(read(feed.listen()))
    assert [each.number for each in heard] == [2, 3, 4]


async def test_one_that_does_not_read_is_dropped_with_a_word_and_may_go_on_where_it_was(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(feeds, "MOST_WAITING", 3)
    feed = Feed()
    listener = feed.listen()
    whole = envelopes([(MAIN, Noticed(level="info", text=str(n))) for n in range(9)])
    feed(whole[0])
    assert await anext(listener) == whole[0]
    for envelope in whole[1:]:
        feed(envelope)
    with pytest.raises(FellBehind, match="no longer sent") as fell:
        await anext(listener)
    assert fell.value.number == 1
    again = feed.listen(fell.value.number)
    feed.end()
    assert await read(again) == whole[1:]


async def test_one_that_waits_is_woken_and_one_that_is_closed_hears_no_more():
    feed = Feed()
    listener, other = feed.listen(), feed.listen()
    reading = asyncio.ensure_future(anext(listener))
    await asyncio.sleep(0)
    (envelope,) = envelopes([(MAIN, Noticed(level="info", text="x"))])
    other.close()
    feed(envelope)
    assert await reading == envelope
    assert await read(other) == []
    listener.close()
    assert await read(listener) == []


@pytest.mark.integration
async def test_a_thousand_that_do_not_read_cost_those_who_do_little():
    whole = envelopes([(MAIN, TextStreamed(text=str(n))) for n in range(500)])
    feed = Feed()
    listeners = [feed.listen() for _ in range(1_000)]
    with takes_at_most(2, "half a million events handed over"):
        for envelope in whole:
            feed(envelope)
    assert len(listeners) == 1_000
