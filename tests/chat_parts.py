"""What decides about the messages of chats, with stand-ins for what delivers and what runs turns."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from sqlalchemy import insert, select

from ybs.commands.open import open_session
from ybs.config.schema import GatewaySettings
from ybs.core.errors import YbsError
from ybs.frontends.gateway.asking import ChatQuestions
from ybs.frontends.gateway.channel import Button, ChatPlace, Incoming, IncomingFile, OutgoingFile
from ybs.frontends.gateway.people import ChannelPolicy, People
from ybs.frontends.gateway.rates import DailyBudget
from ybs.frontends.gateway.reception import Reception
from ybs.frontends.gateway.store import GatewayStore, inbox, sqlite_engine
from ybs.session.options import Options
from ybs.session.questions import by_id
from ybs.session.session import Session
from ybs.testing import ScriptedModel

OWNER, GUEST, STRANGER = "1", "2", "3"


class Posted(Struct, frozen=True, kw_only=True):
    """A message in the ledger."""

    id: str
    place: ChatPlace
    text: str
    buttons: tuple[Button, ...] = ()
    file: OutgoingFile | None = None
    edits: str = ""

    def token(self, label: str) -> str:
        """Return the token of the button whose label begins so."""
        return next(each.token for each in self.buttons if each.label.startswith(label))


class Ledger:
    """Stands in for the outbox: what is posted is delivered at once."""

    def __init__(self) -> None:
        self.posted = dict[str, Posted]()

    async def post(
        self,
        place: ChatPlace,
        text: str,
        *,
        id: str,
        buttons: Sequence[Sequence[Button]] = (),
        file: OutgoingFile | None = None,
        edits: str = "",
    ) -> None:
        """Keep a message."""
        flat = tuple(each for row in buttons for each in row)
        post = Posted(id=id, place=place, text=text, buttons=flat, file=file, edits=edits)
        self.posted.setdefault(id, post)


class RunningChats:
    """Stands in for the sessions of chats: all keys have the one that is given."""

    def __init__(self, session: Session | None) -> None:
        self.the_session = session
        self.anew, self.bound = list[str](), dict[str, str]()
        self.kept = dict[str, dict[str, str]]()

    async def projects(self) -> list[str]:
        """Return the names of the projects."""
        return ["shop"]

    async def enter(self, place: ChatPlace, person: str) -> str:
        """Return a key."""
        return ":".join((place.channel, place.kind, place.chat, person))

    async def session(self, key: str) -> Session:
        """Return the session."""
        if self.the_session is None:
            raise YbsError("The project's folder is not there.")
        return self.the_session

    async def noted(self, key: str, **values: str) -> None:
        """Keep what a chat goes on with."""
        self.kept.setdefault(key, {}).update(values)

    async def begin_anew(self, key: str) -> None:
        """Keep that a chat begins anew."""
        self.anew.append(key)

    async def bind(self, key: str, project: str) -> None:
        """Keep what a chat is bound to."""
        if project not in ("", "shop"):
            raise YbsError(f"There is no project {project!r} here.")
        self.bound[key] = project


class QueuedTurns:
    """Stands in for the turns: they wait for ever."""

    def __init__(self) -> None:
        self.queued, self.busy = list[str](), set[str]()

    async def enqueue(self, incoming: Incoming, key: str) -> None:
        """Keep a turn."""
        if incoming.id not in self.queued:
            self.queued.append(incoming.id)

    async def stop(self, key: str) -> bool:
        """Stop a chat."""
        was_busy = key in self.busy
        self.busy.discard(key)
        return was_busy

    def running(self, key: str) -> bool:
        """Return whether a chat is at work."""
        return key in self.busy


class Clock:
    """A time in seconds that tests set."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Chatting:
    """People who write to a bot, and what becomes of it."""

    def __init__(
        self, store: GatewayStore, settings: GatewaySettings, session: Session | None = None
    ) -> None:
        self.store, self.clock = store, Clock()
        self.ledger, self.chats, self.turns = Ledger(), RunningChats(session), QueuedTurns()
        policies = {
            name: ChannelPolicy.of(name, entry) for name, entry in settings.channels.items()
        }
        self.people = People(store, policies, self.clock)
        self.asking = ChatQuestions(self.ledger, self.people)
        self.budget = DailyBudget(store, settings.usd_per_day, self.clock)
        self.settings, self._count = settings, count(1)
        self.begin()

    def begin(self) -> None:
        """Begin as a new process does: what only the old one's memory held is gone."""
        self.asking = ChatQuestions(self.ledger, self.people)
        parts = (self.asking, self.budget, self.chats, self.turns)
        self.reception = Reception(self.store, self.settings, *parts)

    def place(self, who: str, group: str = "", **rest: Any) -> ChatPlace:
        """Return where somebody writes."""
        kind: Literal["group", "private"] = "group" if group else "private"
        return ChatPlace(
            **{"channel": "telegram", "account": "bot", "kind": kind, "chat": group or who, **rest}
        )

    def incoming(self, text: str = "", who: str = OWNER, group: str = "", **rest: Any) -> Incoming:
        """Return an event with an id of its own."""
        number = next(self._count)
        values = {"id": f"telegram:bot:{number}", "place": self.place(who, group), "person": who}
        values |= {
            "name": f"name{who}",
            "at": self.clock.now,
            "message": f"{number}",
            "is_own": True,
        }
        return Incoming(**{**values, "text": text, **rest})

    async def keep(self, incoming: Incoming) -> None:
        """Put an event into the inbox, as the gateway does before it is looked at."""
        body = msgspec.json.encode(incoming)
        values = {"id": incoming.id, "key": "k", "body": body, "at": incoming.at, "state": "new"}
        values |= {"album": incoming.album}
        await self.store.do(lambda c: c.execute(insert(inbox).values(**values)))

    async def take(self, incoming: Incoming) -> list[Posted]:
        """Have an event taken, and return what is posted."""
        before = {*self.ledger.posted}
        await self.keep(incoming)
        await self.reception.take(incoming)
        await self.asking.settled()
        return [each for name, each in self.ledger.posted.items() if name not in before]

    async def write(self, text: str, who: str = OWNER, group: str = "", **rest: Any) -> str:
        """Have somebody write, and return the answer."""
        incoming = self.incoming(text, who, group, **rest)
        await self.take(incoming)
        answer = self.ledger.posted.get(f"{incoming.id}:reply")
        return answer.text if answer else ""

    async def press(self, token: str, who: str = OWNER, group: str = "", **rest: Any) -> str:
        """Have somebody press a button, and return what is said about it."""
        return await self.write("", who, group, button=token, **rest)

    async def state(self, incoming: Incoming) -> str:
        """Return what the inbox says of an event."""
        query = select(inbox.c.state).where(inbox.c.id == incoming.id)
        return await self.store.do(lambda c: c.execute(query).scalar_one_or_none()) or "forgotten"

    def last(self) -> Posted:
        """Return what was posted last."""
        return [*self.ledger.posted.values()][-1]


@asynccontextmanager
async def chatting(
    folder: Path,
    session: Session | None = None,
    entry: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncGenerator[Chatting]:
    """Begin with an owner; guests are on the list. `entry` is that of the channel in the settings."""
    entry = {"owners": [OWNER], "allow": [GUEST, "-100"]} if entry is None else entry
    store = GatewayStore(sqlite_engine(folder / "state" / "gateway.db"))
    try:
        yield Chatting(
            store, GatewaySettings(channels={"telegram": dict(entry)}, **settings), session
        )
    finally:
        store.close()


def session_of(project: Path, *script: Any, **options: Any) -> Session:
    """Open a session as chats have it, with a scripted model."""
    given = {"model": ScriptedModel(script), "sandbox": False, "mode": "ask", "confirm": by_id}
    return open_session(Options.of(project, {**given, **options}))


async def until_posted(chat: Chatting, words: str) -> Posted:
    """Wait until something with these words is posted."""
    async with asyncio.timeout(10):
        while True:
            for each in chat.ledger.posted.values():
                if words in each.text:
                    return each
            await asyncio.sleep(0.002)


def a_file(name: str, size: int = 0) -> IncomingFile:
    """Return a file whose reference is its name."""
    return IncomingFile(ref=name, name=name, size=size)
