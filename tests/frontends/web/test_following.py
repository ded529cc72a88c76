"""What a page shows after any order of reconnects is the fold of what the session told."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ybs.core.envelope import MAIN
from ybs.core.events import (
    AssistantSaid,
    Event,
    Noticed,
    RequestStarted,
    SessionEnded,
    TextStreamed,
    ThinkingStreamed,
    ToolFinished,
    ToolPrinted,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.core.messages import Text, Thinking
from ybs.frontends.web import following
from ybs.frontends.web.following import LONGEST_WINDOW, MOST_WAITING, WINDOW, Followed, Tab
from ybs.session.hub import Hub, Shared
from ybs.testing import ScriptedModel

pytestmark = pytest.mark.integration
PIECES = {"text", "think", "out", "writing", "partial", "outs"}


class Page:
    """Folds records as the page's script does, to what would be seen."""

    def __init__(self, followed: Followed) -> None:
        self.followed = followed
        self.last: int | None = None
        self.seen: list[Any] = []
        self.live: dict[str, dict[str, str]] = {}
        self.outputs: dict[Any, str] = {}
        self.tab: Tab | None = None

    def connect(self) -> None:
        self.drop()
        self.tab = Tab("page", "login")
        self.followed.connect(self.tab, self.last)

    def drop(self) -> None:
        if self.tab is not None:
            self.followed.tabs.discard(self.tab)
            self.tab = None

    def read(self, most: int = 10**6) -> None:
        """Read so many lines of what was sent; a connection may end anywhere."""
        if self.tab is None:
            return
        lines = [self.tab._waiting.popleft() for _ in range(min(most, len(self.tab._waiting)))]
        for line in lines:
            self.take(json.loads(line))

    def take(self, record: dict[str, Any]) -> None:  # noqa: C901 - a case for each kind
        kind, call = record["t"], (record.get("a", ""), record.get("id"))
        if kind == "begin":
            self.last, self.seen, self.live, self.outputs = 0, [], {}, {}
        elif kind in ("text", "think"):
            live = self.live.setdefault(record.get("a", ""), {"html": "", "rest": "", "think": ""})
            if kind == "think":
                live["think"] += record["text"]
            elif "html" in record:
                live["html"] += record["html"]
                live["rest"] = record["rest"]
            else:
                live["rest"] += record["text"]
        elif kind == "partial":
            self.live[record["a"]] = {key: record[key] for key in ("html", "rest", "think")}
        elif kind == "out":
            self.outputs[call] = self.outputs.get(call, "") + record["text"]
        elif kind == "outs":
            self.outputs[call] = record["text"]
        elif "n" in record:
            assert self.last is not None
            assert record["n"] > self.last, "an event came twice"
            self.last = record["n"]
            if kind in ("said", "request", "end"):
                self.live.pop(record.get("a", ""), None)
            if kind == "done":
                self.outputs.pop(call, None)
            self.seen.append(record)

    @property
    def shown(self) -> Any:
        return self.seen, {k: v for k, v in self.live.items() if any(v.values())}, self.outputs


def events() -> st.SearchStrategy[list[tuple[str, Event]]]:
    agents = st.sampled_from([MAIN, "helper"])
    words = st.sampled_from(["one ", "two\n\n", "```\n", "three", "\n"])
    event: Any = st.one_of(
        words.map(lambda text: TextStreamed(text=text)),
        words.map(lambda text: ThinkingStreamed(text=text)),
        words.map(lambda text: ToolPrinted(id="c1", text=text)),
        words.map(
            lambda text: AssistantSaid(content=text, parts=(Thinking(text="hm"), Text(text=text)))
        ),
        words.map(lambda text: UserSaid(content=text)),
        words.map(lambda text: Noticed(level="info", text=text)),
        st.just(RequestStarted(model="m", step=1)),
        st.just(ToolStarted(id="c1", name="run_shell", arguments=b'{"command":"ls"}')),  # type: ignore[arg-type]
        st.just(ToolFinished(id="c1", name="run_shell", success=True, output="done")),
        st.just(TurnFinished(reason="done")),
    )
    return st.lists(st.tuples(agents, event), max_size=30)


STEPS = st.lists(
    st.sampled_from(["tell", "tell", "tell", "read", "read some", "drop", "connect", "flush"]),
    max_size=60,
)


def opened(project: Path) -> tuple[Hub, Shared]:
    hub = Hub()
    return hub, hub.open(project, model=ScriptedModel(()), sandbox=False, incognito=True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(story=events(), steps=STEPS)
def test_any_order_of_reconnects_shows_what_one_connection_shows(  # noqa: C901 - a case for each step
    project: Path, story: list[tuple[str, Event]], steps: list[str]
):
    async def run() -> None:
        hub, shared = opened(project)
        async with hub:
            followed = Followed(shared, "login", lambda: None)
            steady, moving = Page(followed), Page(followed)
            steady.connect()
            left = list(story)
            for step in (*steps, *["tell"] * len(left)):
                match step:
                    case "tell" if left:
                        agent, event = left.pop(0)
                        shared.session.emit(
                            event, agent=agent, started_by="c0" if agent != MAIN else ""
                        )
                    case "read":
                        moving.read()
                    case "read some":
                        moving.read(2)
                    case "drop":
                        moving.drop()
                    case "connect":
                        moving.connect()
                    case "flush":
                        followed._flush()
                    case _:
                        pass
            moving.connect()
            steady.read()
            moving.read()
            fresh = Page(followed)
            fresh.connect()
            fresh.read()
            assert moving.shown == steady.shown == fresh.shown
            late = Followed(shared, "login", lambda: None)  # by what the hub has kept alone
            other = Page(late)
            other.connect()
            other.read()
            assert other.seen == fresh.seen
            late.close()
            followed.close()

    asyncio.run(run())


async def test_ten_thousand_events_open_at_the_end_and_the_rest_is_there_to_be_read(project: Path):
    hub, shared = opened(project)
    async with hub:
        for number in range(1_250):
            for event in turn_of(number):
                shared.session.emit(event)
        followed = Followed(shared, "login", lambda: None)
        assert followed.last >= 7_500
        page = Page(followed)
        page.connect()
        assert page.tab is not None
        assert len(page.tab._waiting) < WINDOW + 20
        first, places = 0, set[int]()
        for line in page.tab._waiting:
            record = json.loads(line)
            first = record["first"] if record["t"] == "begin" else first
            places.add(record.get("n", 0))
        while first:
            first, records = followed.window(first)
            new = {json.loads(each)["n"] for each in records}
            assert not new & places
            places |= new
        # All that is drawn, once: requests and the like draw nothing that stays.
        drawn = {place for place in range(1, followed.last + 1) if followed._record(place)}
        assert places - {0} == drawn
        followed.close()


def turn_of(number: int) -> list[Event]:
    name = f"c{number}"
    return [
        UserSaid(content=f"question {number}"),
        RequestStarted(model="m", step=1),
        AssistantSaid(content=f"**answer** {number}"),
        ToolStarted(id=name, name="run_shell", arguments=b'{"command":"ls"}'),  # type: ignore[arg-type]
        ToolFinished(id=name, name="run_shell", success=True, output="out"),
        TurnFinished(reason="done"),
    ]


async def test_a_turn_longer_than_any_window_is_cut(project: Path):
    hub, shared = opened(project)
    async with hub:
        for number in range(3_000):
            shared.session.emit(Noticed(level="info", text=str(number)))
        followed = Followed(shared, "login", lambda: None)
        _, records = followed.window(followed.last + 1)
        assert WINDOW <= len(records) <= LONGEST_WINDOW
        followed.close()


async def test_a_tab_that_does_not_read_is_over_and_nobody_waits_for_it(project: Path):
    hub, shared = opened(project)
    async with hub:
        followed = Followed(shared, "login", lambda: None)
        slow = Tab("slow", "login")
        followed.connect(slow, None)
        for number in range(MOST_WAITING + 10):
            shared.session.emit(Noticed(level="info", text=str(number)))
        followed._flush()
        assert slow.is_over
        assert not slow._waiting
        followed.close()


async def test_pieces_that_come_at_once_are_sent_as_one(project: Path, monkeypatch: Any):
    monkeypatch.setattr(following, "GATHER_SECONDS", 0)
    hub, shared = opened(project)
    async with hub:
        followed = Followed(shared, "login", lambda: None)
        tab = Tab("t", "login")
        followed.connect(tab, None)
        tab._waiting.clear()
        for _ in range(500):
            shared.session.emit(TextStreamed(text="x"))
        followed._flush()
        assert [json.loads(each)["text"] for each in tab._waiting] == ["x" * 500]
        followed.close()


async def test_what_was_taken_back_is_cut_and_what_came_back_is_drawn_again(project: Path):
    model = ScriptedModel(("first answer", "second answer"))
    async with Hub() as hub:
        from ybs.commands.open import SlashCommands

        shared = hub.open(
            project, model=model, sandbox=False, incognito=True, commands=SlashCommands()
        )
        followed = Followed(shared, "login", lambda: None)
        page = Page(followed)
        page.connect()
        await shared.session.handle("one")
        await shared.session.handle("two")
        second = next(
            i
            for i, each in enumerate(followed._events, 1)
            if getattr(each.event, "content", "") == "two"
        )
        await shared.session.handle("/undo")
        followed._flush()
        page.read()
        cut = next(each for each in page.seen if each["t"] == "cut")
        assert cut["to"] == second - 1
        await shared.session.handle("/redo")
        followed._flush()
        page.read()
        back = [each for each in page.seen if each["t"] == "cut"][-1]
        assert [each["t"] for each in back["records"]] == ["user", "said"]
        assert back["records"][0]["text"] == "two"
        followed.close()


async def test_a_session_that_becomes_incognito_is_shown_to_no_other_login_any_more(project: Path):
    async with Hub() as hub:
        shared = hub.open(project, model=ScriptedModel(("first", "second")), sandbox=False)
        followed = Followed(shared, "login", lambda: None)
        own, other = Tab("a", "login"), Tab("b", "another")
        for tab in (own, other):
            followed.connect(tab, None)
        await shared.session.send("one")
        followed._flush()
        assert followed.tabs == {own, other}
        await shared.session.start_anew(is_incognito=True)
        await shared.session.send("two")
        followed._flush()
        assert followed.tabs == {own}
        assert other.is_over
        assert b"two" not in b"".join(other._waiting)
        assert b"two" in b"".join(own._waiting)
        followed.close()


async def test_another_conversation_in_the_same_session_is_shown_anew(project: Path):
    model = ScriptedModel(("first answer", "second answer"))
    async with Hub() as hub:
        from ybs.commands.open import SlashCommands

        shared = hub.open(project, model=model, sandbox=False, commands=SlashCommands())
        followed = Followed(shared, "login", lambda: None)
        await shared.session.handle("one")
        name = shared.session.journal.name
        tab = Tab("t", "login")
        followed.connect(tab, None)
        await shared.session.handle("/new")
        await shared.session.handle("two")
        followed._flush()
        assert any(json.loads(each)["t"] == "again" for each in tab._waiting)
        assert any(isinstance(each.event, SessionEnded) for each in followed._events)
        await shared.session.handle(f"/resume {name}")
        followed._flush()
        page = Page(followed)
        page.connect()
        page.read()
        users = [each["text"] for each in page.seen if each["t"] == "user"]
        assert users == ["one", "two", "one"]
        followed.close()


def test_the_page_knows_every_kind_of_record(project: Path):
    """Each record that the server draws has its method in the script."""
    del project
    source = Path(following.__file__).parent
    script = (source / "static/view.js").read_text() + (source / "static/app.js").read_text()
    import re

    kinds = set(
        re.findall(
            r'"t": "(\w+)"',
            "".join(
                (source / f"{name}.py").read_text() for name in ("drawing", "following", "pages")
            ),
        )
    )
    assert len(kinds) > 20
    unknown = {
        kind for kind in kinds if f"on_{kind}(" not in script and f"case '{kind}'" not in script
    }
    assert unknown == set()
