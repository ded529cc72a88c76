"""A session as its pages follow it: every event has a place, is drawn once, and goes to each tab that is there.

A page that connects is sent what it lacks and then what comes, in one step of the loop, so nothing is lost between and nothing comes twice.
What is being written at that moment (half an answer, the output of a running command) is sent whole, and takes the place of what the page had of it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from time import time
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ybs.commands.advice import told
from ybs.commands.models import offer_plan
from ybs.core import events
from ybs.core.envelope import MAIN, Envelope
from ybs.core.errors import YbsError
from ybs.core.messages import Image
from ybs.core.time_limits import time_limit
from ybs.frontends.web import markup
from ybs.frontends.web.drawing import Record, record_of, records_of, reply_of, state_of
from ybs.security.unicode import printable
from ybs.session.feed import PIECES
from ybs.session.hub import Shared
from ybs.session.inbox import InboxLine, Sender, to_type
from ybs.session.injection import as_words
from ybs.session.reply import Outcome, Reply
from ybs.transcripts.replay import Replay

#: So many records may wait for a tab; one that is further behind is dropped, and connects again.
MOST_WAITING: Final = 5_000
#: Pieces that come within this time are sent together.
GATHER_SECONDS: Final = 0.015
#: Records of one look into the past, to the beginning of a turn; and of a turn that is longer.
WINDOW, LONGEST_WINDOW = 240, 900
#: Characters of a running command's output that a page which comes later is sent.
_MOST_OUTPUT: Final = 20_000
_encode: Final = msgspec.json.Encoder().encode


class Tab:
    """One open page: the lines that wait to be sent to it. `login` is whose it is."""

    def __init__(self, name: str, login: str) -> None:
        self.name, self.login = name, login
        self._waiting: deque[bytes] = deque()
        self._has_news = asyncio.Event()
        self.is_over = False

    def put(self, line: bytes) -> None:
        """Take a line; a tab that reads too slowly is over."""
        if self.is_over:
            return
        self._waiting.append(line)
        if len(self._waiting) > MOST_WAITING:
            self.end()
        self._has_news.set()

    def end(self) -> None:
        """Send nothing more."""
        self.is_over = True
        self._waiting.clear()
        self._has_news.set()

    async def take(self, seconds: float) -> bytes:
        """Return what waits, once something does; an empty line after so many seconds without."""
        try:
            async with time_limit(seconds):
                await self._has_news.wait()
        except TimeoutError:
            return b"\n"
        self._has_news.clear()
        data = b"".join(self._waiting)
        self._waiting.clear()
        return data


class PageLine(InboxLine, frozen=True, kw_only=True):
    """A line from a page: from which tab, and by which name that knows it again."""

    tab: str = ""
    ref: str = ""


class _Writing(markup.GrowingMarkup):
    """What an agent is writing: its answer and its thinking."""

    thinking = ""

    def think(self, text: str) -> None:
        """Take a piece of the thinking."""
        self.thinking += text


class Followed(Sender):
    """One session of the hub. `owner` is the login that alone sees it, of an incognito session; `changed` is called when a list of sessions would show it otherwise."""

    def __init__(self, shared: Shared, owner: str, changed: Callable[[], None]) -> None:
        self.shared, self.session, self.owner, self._changed = (
            shared,
            shared.session,
            owner,
            changed,
        )
        self.tabs: set[Tab] = set()
        #: The whole events; the place of each is its number here, from 1 on.
        self._events: list[Envelope] = []
        self._journal, self._replay = self.session.journal, Replay()
        #: How many events the replay has seen: most sessions take nothing back, and need none of it.
        self._replayed = 0
        self._extra: dict[int, Record] = {}
        self._drawn: dict[int, bytes] = {}
        self._writing: dict[str, _Writing] = {}
        self._printed: dict[tuple[str, str], str] = {}
        self._news: list[tuple[Envelope, int]] = []
        self._flushing: asyncio.TimerHandle | None = None
        self._has_moved = False
        #: The tab that sent something last.
        self.last_tab = ""
        self.state = self.session.state
        #: When something happened last, in seconds since 1970.
        self.at = time()
        self._notes: list[str] = []
        for envelope in self._journal.earlier:
            self._keep(envelope)
        for envelope in shared.feed.earlier():
            self._take(envelope)
        self._leave = self.session.subscribe(self._hear, follows=True)
        self._flush()

    def sent_from(self, tab: str) -> None:
        """Note which tab sent something last: what was not read goes back there."""
        self.last_tab = tab

    @property
    def last(self) -> int:
        """The place of the last whole event."""
        return len(self._events)

    @property
    def is_private(self) -> bool:
        """Whether it is incognito now."""
        return self.session.environment.incognito.is_on

    def is_seen_by(self, login: str) -> bool:
        """Return whether a login may see it."""
        return not self.is_private or (bool(self.owner) and self.owner == login)

    def note(self, text: str) -> None:
        """Say something at the head of the page."""
        self._notes.append(text)

    def close(self) -> None:
        """Follow it no longer; its tabs are over."""
        self._leave()
        if self._flushing is not None:
            self._flushing.cancel()
        for tab in tuple(self.tabs):
            tab.end()

    # What a page is sent

    def connect(self, tab: Tab, after: int | None) -> None:
        """Send a tab what it lacks behind a place (None: the end of the session), and from now on all that comes."""
        self._flush()
        if after is None or not self.last - LONGEST_WINDOW <= after <= self.last:
            first, records = self.window(self.last + 1)
            begin: Record = {"t": "begin", "first": first, "last": self.last}
            begin["resumes"] = self.session.is_cut_short and not self.session.is_busy
            notes = [printable(each) for each in (*self.session.warnings, *self._notes)]
            tab.put(_line(begin | {"warnings": self.clean(notes)}))
        else:
            records = self._between(after, self.last)
        for record in records:
            tab.put(record)
        for record in self._passing():
            tab.put(record)
        self.shared.hold(int(not self.tabs))
        self.tabs.add(tab)

    def leave(self, tab: Tab) -> None:
        """Send a tab nothing more."""
        if tab in self.tabs:
            self.tabs.remove(tab)
            self.shared.hold(-int(not self.tabs))

    def window(self, before: int) -> tuple[int, list[bytes]]:
        """Return the records before a place, from the beginning of a turn on, and the place of the first (0: there are none before it)."""
        end = max(0, min(before - 1, self.last))
        start = max(0, end - WINDOW)
        while start > max(0, end - LONGEST_WINDOW) and not self._begins_turn(start):
            start -= 1
        return start + 1 if start else 0, self._between(start, end)

    def _begins_turn(self, index: int) -> bool:
        envelope = self._events[index]
        event = envelope.event
        return envelope.is_main and isinstance(event, events.UserSaid) and event.origin == "person"

    def _between(self, start: int, end: int) -> list[bytes]:
        found = (self._record(place) for place in range(start + 1, end + 1))
        return [each for each in found if each]

    def _record(self, place: int) -> bytes:
        if place not in self._drawn:
            record = self._extra.get(place) or record_of(self._events[place - 1], place)
            self._drawn[place] = _line(record) if record is not None else b""
        return self._drawn[place]

    def _passing(self) -> list[bytes]:
        """Return what is not whole yet, and where the session stands."""
        records: list[Record] = [
            {"t": "partial", "a": "" if agent == MAIN else printable(agent), "html": each.html}
            | {"rest": printable(each.rest), "think": printable(each.thinking)}
            for agent, each in self._writing.items()
        ]
        records += [
            {"t": "outs", "a": "" if agent == MAIN else printable(agent), "id": call, "text": text}
            for (agent, call), text in self._printed.items()
        ]
        return [_line(each) for each in (*records, state_of(self.state), self.status())]

    def clean(self, data: Any) -> Any:
        """Return what is no event of the session with its secrets masked: nothing leaves for a page but by this or the journal."""
        firewall = self.session.environment.secrets.firewall
        with firewall.unreported():
            return firewall.mask_data(data)

    def status(self) -> Record:
        """Return what a status line shows."""
        status = self.session.status()
        shown: Record = {
            "t": "status",
            "folder": printable(self.session.host.short(status.folder)),
            "branch": printable(status.branch),
            "window": status.window,
            "tokens": status.context_tokens,
            "cost": status.usage.cost_usd,
            "incognito": status.incognito,
        }
        return self.clean(shown)

    def picture(self, place: int, number: int) -> Image | None:
        """Return a picture of an event."""
        if not 0 < place <= self.last:
            return None
        event = self._events[place - 1].event
        match event:
            case events.UserSaid():
                found = [part for part in event.message.content if isinstance(part, Image)]
            case events.ToolFinished():
                found = list(event.images)
            case _:
                found = []
        return found[number] if 0 <= number < len(found) else None

    def find(self, words: str, most: int = 100) -> list[Record]:
        """Return where words were said or read, the newest first."""
        wanted = words.lower().split()
        hits: list[Record] = []
        for place in range(self.last if wanted else 0, 0, -1):
            said = _words_of(self._events[place - 1].event)
            low = said.lower()
            if all(each in low for each in wanted):
                at = max(0, low.find(wanted[0]) - 40)
                excerpt = " ".join(printable(said[at : at + 160]).split())
                hits.append({"n": place, "excerpt": excerpt})
                if len(hits) >= most:
                    break
        return hits

    # What happens

    def _hear(self, envelope: Envelope) -> None:
        self._take(envelope)
        if self._flushing is None:
            delay = asyncio.get_running_loop().call_later
            self._flushing = delay(GATHER_SECONDS, self._flush)

    def _take(self, envelope: Envelope) -> None:
        if (
            self.session.journal is not self._journal
        ):  # /new and /resume go on with another conversation
            self._journal, self._replay = self.session.journal, Replay()
            self._replayed = self.last
            for earlier in self._journal.earlier:
                self._keep(earlier)
            self._has_moved = True
        is_whole = not isinstance(envelope.event, (events.StateChanged, *PIECES))
        if is_whole:
            self._keep(envelope)
        self._news.append((envelope, self.last if is_whole else 0))

    def _keep(self, envelope: Envelope) -> None:
        """Keep a whole event; of one that takes something back, or brings it back, work out what that is."""
        event, place = envelope.event, self.last + 1
        self._events.append(envelope)
        if not envelope.is_main or not isinstance(event, events.Rewound | events.Replaced):
            return
        for at in range(self._replayed, place - 1):
            earlier = self._events[at]
            self._replay.add(earlier.event, at + 1, agent=earlier.agent)
        if isinstance(event, events.Rewound):
            same, returned = event.keeps, []
        else:
            before = self._replay.messages
            pairs = enumerate(zip(before, event.messages, strict=False))
            shorter = min(len(before), len(event.messages))
            same = next((at for at, (one, other) in pairs if one != other), shorter)
            returned = records_of(event.messages[same:], place)
        to = self._replay.line_of(same)
        self._extra[place] = {"t": "cut", "n": place, "to": to, "records": returned}
        self._replay.add(event, place)
        self._replayed = place

    def _flush(self) -> None:
        """Send the tabs what has come."""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        self._leave_unseeing()
        news, self._news = self._news, []
        lines: list[bytes] = []
        if self._has_moved:
            self._has_moved = False
            for tab in tuple(self.tabs):  # what they show is another conversation
                tab.put(_line({"t": "again"}))
        has_status = False
        for envelope, place in _joined(news):
            lines += self._told(envelope, place)
            has_status |= isinstance(
                envelope.event,
                events.TurnFinished | events.AssistantSaid | events.Rewound | events.StateChanged,
            )
        if has_status and self.tabs:
            lines.append(_line(self.status()))
        for tab in tuple(self.tabs):
            for line in lines:
                tab.put(line)

    def _leave_unseeing(self) -> None:
        """End the tabs of other logins where the session has become incognito."""
        for tab in [each for each in self.tabs if not self.is_seen_by(each.login)]:
            self.leave(tab)
            tab.end()

    def _told(self, envelope: Envelope, place: int) -> list[bytes]:
        event = envelope.event
        if isinstance(event, events.StateChanged):
            self.state, self.at = event, time()
            self._changed()
            return [_line(state_of(event))]
        if isinstance(event, PIECES):
            record = record_of(envelope, place)
            return [_line(self._passed(envelope.agent, event, record))] if record else []
        self._make_whole(envelope.agent, event)
        line = self._record(place)
        return [line] if line else []

    def _passed(self, agent: str, event: events.Event, record: Record) -> Record:
        """Add a piece to what is being written, and to its record what it makes whole."""
        match event:
            case events.TextStreamed():
                writing = self._writing.setdefault(agent, _Writing())
                if (html := writing.add(event.text)) is not None:
                    record |= {"html": html, "rest": printable(writing.rest)}
                record["text"] = printable(event.text)
            case events.ThinkingStreamed():
                self._writing.setdefault(agent, _Writing()).think(event.text)
                record["text"] = printable(event.text)
            case events.ToolPrinted():
                key = (agent, event.id)
                printed = self._printed.get(key, "") + printable(event.text)
                self._printed[key] = printed[-_MOST_OUTPUT:]
            case _:
                pass
        return record

    def _make_whole(self, agent: str, event: events.Event) -> None:
        match event:
            case events.ToolFinished(id=call):
                self._printed.pop((agent, call), None)
            case (
                events.AssistantSaid()
                | events.RequestStarted()
                | events.RequestRetried()
                | events.TurnFinished()
            ):
                self._writing.pop(agent, None)
            case _:
                pass

    # What the inbox tells, as to any sender

    def say(self, record: Record, tab: str = "") -> None:
        """Send a record that is not an event: to one tab, or to all."""
        self._flush()
        line = _line(record)
        for each in tuple(self.tabs):
            if not tab or each.name == tab:
                each.put(line)

    async def done(self, line: InboxLine, result: Reply | Outcome | YbsError) -> None:
        """Draw what came of a line, in the tab that sent it."""
        tab = line.tab if isinstance(line, PageLine) else ""
        ref = line.ref if isinstance(line, PageLine) else ""
        if isinstance(result, YbsError):
            record = reply_of(Reply.error(told(result)), line.text)
        elif isinstance(result, Reply):
            record = reply_of(result, line.text)
        elif result.plan and result.finished.reason == "done" and not self.session.inbox.has_more:
            record = reply_of(offer_plan(), "")
        else:
            record = {"t": "done_line", "draft": result.unsent}
        self.say(record | {"ref": ref}, tab)

    def give_back(self, lines: list[InboxLine]) -> None:
        """Give the tab that sent last what nobody has read."""
        self.say({"t": "back"} | back_of(lines), self.last_tab)


def back_of(lines: list[InboxLine]) -> Record:
    """Return the prompt text for lines that go back, as `text` alone and as `words` before others; `given` is what of it nobody typed."""
    given = "\n".join(filter(None, (line.brought for line in lines)))
    text = to_type(lines) if lines else ""
    return {"text": text, "words": as_words(text), "given": given}


def _line(record: Record) -> bytes:
    return _encode(record) + b"\n"


def _words_of(event: events.Event) -> str:
    match event:
        case events.UserSaid() | events.AssistantSaid():
            return event.content
        case events.ToolFinished():
            return event.output
        case _:
            return ""


def _joined(news: Sequence[tuple[Envelope, int]]) -> list[tuple[Envelope, int]]:
    """Join pieces of one answer that follow each other."""
    joined: list[tuple[Envelope, int]] = []
    for envelope, place in news:
        event, last = envelope.event, joined[-1][0] if joined else None
        earlier = last.event if last is not None and last.agent == envelope.agent else None
        for kind in (events.TextStreamed, events.ThinkingStreamed):
            if isinstance(event, kind) and isinstance(earlier, kind):
                joined.pop()
                envelope = replace(envelope, event=kind(text=earlier.text + event.text))
        joined.append((envelope, place))
    return joined
