"""What every Sink keeps: the frontends, the outputs of `--print`, the session's own, and the fake.

A sink takes every kind of event of every agent, in any order and with any text in it: it returns nothing, raises nothing,
and lets nothing through that acts on a terminal.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from paper import Page
from stage import FakeClock

from fake_session import FakeSession
from some_events import KINDS, one_of_each
from ybs.config.schema import FirewallSettings
from ybs.core.envelope import MAIN, Envelope, Sink
from ybs.core.events import Event
from ybs.frontends.headless.output import Format, Pipe, make_output
from ybs.frontends.terminal.plain.plain import SubAgentSentences
from ybs.frontends.terminal.plain.sentences import Sentences, Stopwatch
from ybs.security.firewall.masking import Firewall
from ybs.session.journal import Journal
from ybs.session.tally import Changes, Tally
from ybs.testing import RecordedEvents
from ybs.transcripts.replay import Replay
from ybs.transcripts.store import SessionStore

FEW = settings(
    max_examples=6,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
#: What a terminal would act on: everything that begins with ESC but colours, and the C1 codes.
ACTS = re.compile("\x1b(?!\\[[0-9;]*m)|[\x80-\x9f\x07\x08]")


def page() -> Sink:
    """Return the interactive terminal's, drawing on paper."""
    return Page(width=60, is_verbose=True).renderer


def plain() -> Sink:
    """Return what the plain terminal tells."""
    session, clock = FakeSession().as_session, FakeClock()
    session.view.is_verbose = True
    watch = Stopwatch(clock)
    mine = Sentences(session, watch)
    theirs = SubAgentSentences(clock, lambda name: Sentences(session, watch, name=name))

    def sink(envelope: Envelope) -> None:
        told = (
            mine.of(envelope.event)
            if envelope.is_main
            else theirs.of(envelope.agent, envelope.event)
        )
        assert isinstance(told, str)

    return sink


def output(kind: Format) -> Callable[[], Sink]:
    return lambda: make_output(kind, Pipe(), is_verbose=True).event


def summed() -> Sink:
    """Return what the session itself makes of events: what a turn used, the files that changed, the conversation."""
    tally, changes, replay = Tally(), Changes(), Replay()

    def sink(envelope: Envelope) -> None:
        tally.add(envelope.event, agent=envelope.agent)
        changes.add(envelope.event, is_main=envelope.is_main)
        replay.add(envelope.event, agent=envelope.agent)

    return sink


def journal() -> Sink:
    folder, firewall = Path.cwd() / "sessions", Firewall(FirewallSettings(), [])
    made = Journal(
        lambda: SessionStore(folder), lambda: firewall, lambda _event: None, may_write=True
    )
    made.begin()

    def sink(envelope: Envelope) -> None:
        made.add(envelope.event, agent=envelope.agent)

    return sink


SINKS: dict[str, Callable[[], Sink]] = {
    "journal": journal,
    "json": output("json"),
    "page": page,
    "plain": plain,
    "recorded": RecordedEvents,
    "stream-json": output("stream-json"),
    "summed": summed,
    "text": output("text"),
}


@pytest.mark.integration
@FEW
@given(one_of_each)
def test_a_sink_takes_every_event_of_every_agent(project: Path, events: tuple[Event, ...]):
    for name, make in SINKS.items():
        sink = make()
        for one, other in zip(events, reversed(events), strict=True):
            assert sink(Envelope("session-1", MAIN, one)) is None, name
            assert sink(Envelope("session-1", "explore-1", other)) is None, name


def test_every_kind_of_event_is_among_them():
    assert len(KINDS) == len(set(KINDS)) > 20


@pytest.mark.integration
@FEW
@given(one_of_each)
def test_what_is_drawn_acts_on_no_terminal(events: tuple[Event, ...]):
    drawn = Page(width=60, is_verbose=True)
    for event in events:
        drawn.draw(event)
        drawn.draw(event, agent="explore-1")
    assert not ACTS.findall("".join([*drawn.pieces, *drawn.live.lines(60, 20)]))


async def test_a_sink_that_leaves_while_an_event_is_told_keeps_no_other_from_it(project: Path):
    from ybs import Session
    from ybs.core.events import Noticed
    from ybs.testing import ScriptedModel

    session = Session.open(project, model=ScriptedModel([]), sandbox=False)
    first, last = RecordedEvents(), RecordedEvents()

    def leaves(envelope: Envelope) -> None:
        leave()

    session.subscribe(first)
    leave = session.subscribe(leaves)
    session.subscribe(last)
    for text in ("one", "two"):
        session.emit(Noticed(level="info", text=text))
    await session.close()
    assert first.events == last.events == [Noticed(level="info", text=t) for t in ("one", "two")]
