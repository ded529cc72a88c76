"""The gateway of one person: all of its parts, and what runs as long as it does."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec
from msgspec.structs import replace
from sqlalchemy import Engine as SqlEngine
from sqlalchemy import Executable, select, update

from ybs.commands.figures import age
from ybs.config.host import Host
from ybs.config.installed import installed
from ybs.config.schema import GatewaySettings as Settings
from ybs.core.decoding import from_json
from ybs.core.errors import ConfigError, YbsError
from ybs.core.ports import Tool
from ybs.frontends.gateway.asking import ChatQuestions
from ybs.frontends.gateway.channel import (
    BadSettingsError,
    Channel,
    ChatPlace,
    Incoming,
    MakeChannel,
    OutgoingFile,
)
from ybs.frontends.gateway.chats import Chats, key_of
from ybs.frontends.gateway.files import SendFile
from ybs.frontends.gateway.fleet import LOOK_SECONDS, Fleet
from ybs.frontends.gateway.lease import DatabaseLease
from ybs.frontends.gateway.outbox import OUTBOX_SECONDS, Outbox
from ybs.frontends.gateway.people import WELCOME, ChannelPolicy, ChatPerson, People
from ybs.frontends.gateway.rates import DailyBudget
from ybs.frontends.gateway.reception import Reception
from ybs.frontends.gateway.scheduled import ScheduledRuns
from ybs.frontends.gateway.store import (
    GatewayStore,
    StoreError,
    channel_states,
    inbox,
    ledger,
    shared_engine,
    sqlite_engine,
    states_in,
)
from ybs.frontends.gateway.supervisor import Supervisor
from ybs.frontends.gateway.transcripts import KeptTranscripts
from ybs.frontends.gateway.turns import Turns
from ybs.frontends.serve.sessions import HostedSessions
from ybs.security.unicode import printable
from ybs.session.options import Options

#: The platforms that come with ybs, a module each.
BUILT_IN: Final = ("discord", "matrix", "slack", "telegram", "whatsapp")
#: So long running turns have at the end; the others go on with the next start.
_GRACE_SECONDS: Final = 3.0
_LOOK_SECONDS: Final = 30.0
#: How often the leader looks for workers that are gone.
_REAP_SECONDS: Final = 0.25
#: Events that are done, and messages that were delivered, are forgotten after so long.
_KEPT_SECONDS: Final = 30 * 86_400.0
_log = logging.getLogger("ybs.gateway")


class GatewayFolder:
    """Where the gateway keeps what it has to know: in ybs's own folder, which no command of a model gets at."""

    def __init__(self, host: Host) -> None:
        self.path = host.state_folder / "gateway"
        self.lock, self.log = self.path / "lock", self.path / "log"

    def database(self, settings: Settings) -> SqlEngine:
        """Return the engine of the database: the one of the settings, or a file. Raises ConfigError, Unsafe and OSError."""
        if settings.database:
            return shared_engine(settings.database)
        return sqlite_engine(self.path / "gateway.db")

    def store(self, settings: Settings, lease: DatabaseLease | None = None) -> GatewayStore:
        """Open the database. Raises ConfigError, StoreError, Unsafe and OSError."""
        return GatewayStore(self.database(settings), lease.check if lease else None)


class Gateway:
    """Everything between chats and sessions, which are those of `hosted` as well. `say` tells the person at the terminal."""

    def __init__(
        self,
        options: Options,
        settings: Settings,
        channels: Mapping[str, Channel],
        hosted: HostedSessions,
        say: Callable[[str], None],
        lease: DatabaseLease | None = None,
    ) -> None:
        """Put the parts together. Raises ConfigError, StoreError and OSError."""
        folder = GatewayFolder(options.host)
        self._channels, self._say, self._lease = channels, say, lease
        self._store = store = folder.store(settings, lease)
        self._fleet = fleet = Fleet(store, lease) if lease else None
        self._people = people = People(
            store, {n: ChannelPolicy.of(n, settings.channels[n]) for n in channels}
        )
        self.outbox = outbox = Outbox(
            store,
            channels,
            people.places_of_owners,
            look_seconds=LOOK_SECONDS if fleet else OUTBOX_SECONDS,
        )
        asking = ChatQuestions(outbox, people, fleet)
        budget = DailyBudget(store, settings.usd_per_day)
        kept = KeptTranscripts(store, lease) if lease else None
        self.chats = Chats(
            store,
            hosted,
            options,
            settings,
            tools=self._tools,
            asking=asking,
            kept=kept,
            fleet=fleet,
        )
        outbox.when_moved(self.chats.move)
        most = settings.turns_at_once
        self.turns = Turns(store, self.chats, outbox, budget, at_once=most, fleet=fleet)
        self._reception = Reception(store, settings, asking, budget, self.chats, self.turns)
        self._scheduled = ScheduledRuns(options, self._tell_owner)
        self._doing = set[asyncio.Task[Any]]()
        self._taking = set[str]()

    def leads(self) -> bool:
        """Return whether the channels are this gateway's."""
        return self._lease is None or self._lease.leads

    def _tools(self, key: str, place: ChatPlace) -> tuple[Tool, ...]:
        """Return the tools of a chat besides those of every session."""
        most = self._channels[place.channel].capabilities.file_bytes

        async def send(file: OutgoingFile, digest: str) -> None:
            now = time.time_ns()
            await self.outbox.post(place, file.name, id=f"file:{key}:{digest}:{now}", file=file)

        def roots() -> Any:
            session = self.chats.opened(key)
            if session is None:
                raise YbsError("The chat is closed.")
            return session.environment.roots

        return (SendFile(roots, most, send),) if most else ()

    async def take(self, incoming: Incoming) -> None:
        """Keep an event; when this returns, it is on the disk and the platform may forget it. Raises StoreError."""
        place, person = incoming.place, incoming.person
        if place.kind == "private":  # it is the place of this person alone, on every platform
            incoming = replace(incoming, place=replace(place, person=person))
        key = key_of(place, person)
        body = msgspec.json.encode(incoming)
        values = {"id": incoming.id, "key": key, "body": body, "at": time.time(), "state": "new"}
        values |= {"album": incoming.album}
        row = self._store.insert(inbox).values(**values).on_conflict_do_nothing()
        if await self._store.change(row):
            self._receive(incoming)

    async def _receive_new(self) -> None:
        """Take the events that an earlier process left, or that a database which failed for a while has left."""
        new = select(inbox.c.body).where(inbox.c.state == "new").order_by(inbox.c.at)
        for row in await self._store.rows(new):
            incoming = from_json(row.body, Incoming)
            if incoming.id not in self._taking:
                self._receive(incoming)

    def _receive(self, incoming: Incoming) -> None:
        self._taking.add(incoming.id)
        self._do(self._received(incoming, self._reception.take(incoming)))

    def _do(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)

    async def _received(self, incoming: Incoming, taken: Coroutine[Any, Any, None]) -> None:
        try:
            await taken
        except YbsError as error:  # it stays in the inbox, and is tried again
            _log.warning("an event could not be taken: %s", type(error).__name__)
        finally:
            self._taking.discard(incoming.id)

    async def run(self, stopped: asyncio.Event) -> None:
        """Serve until `stopped` is set. Raises YbsError where a part cannot start."""
        await self._store.change(update(channel_states).values(state="starting"))
        await self.turns.take_up()
        parts = [self._lead(), self._look(), self.chats.keep_all()]
        if self._lease is not None and self._fleet is not None:
            parts += [self._lease.watch(lambda: self.turns.count > 0), self._work(self._fleet)]
        running = [asyncio.create_task(each) for each in parts]
        waiting = asyncio.create_task(stopped.wait())
        try:
            await asyncio.wait((waiting, *running), return_when=asyncio.FIRST_COMPLETED)
            for task in running:
                if task.done() and not task.cancelled() and (error := task.exception()):
                    if self._lease is not None:  # a tidy end would say that turns were stopped
                        self._lease.end(str(error))
                    await task  # a part that cannot go on ends all; nothing is lost by that
            await waiting
        finally:
            waiting.cancel()
            await self._end(running)

    async def _lead(self) -> None:
        """Serve the channels, as soon as no other gateway of the database does."""
        if self._lease is not None:
            await self._lease.lead()
        supervisors = [
            Supervisor(name, channel, self.take, self._said(name, channel))
            for name, channel in self._channels.items()
        ]
        parts = [self.outbox.run(), self._scheduled.run(), *(each.run() for each in supervisors)]
        if self._fleet is not None:
            await self._fleet.reap()
            parts += [self._share(self._fleet), self._fleet.show(self.outbox, self._do)]
        await self._receive_new()
        await asyncio.gather(*parts)

    async def _share(self, fleet: Fleet) -> None:
        """Give what a worker left, and what none could take, to those that are there."""
        while True:
            await asyncio.sleep(_REAP_SECONDS)
            await fleet.reap()
            await self._receive_new()

    async def _work(self, fleet: Fleet) -> None:
        """Take what the leader gives to this gateway."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            rows, taken = await fleet.given(), {*self._taking}
            for row in rows:
                incoming = from_json(row.body, Incoming)
                if row.state == "moved":
                    await self.turns.enqueue(incoming, row.key)
                elif incoming.id not in taken | self._taking:  # one that was may be done by now
                    self._taking.add(incoming.id)
                    self._do(self._received(incoming, self._reception.given(incoming, row.role)))
            if fleet.is_old:
                await self.chats.close_idle(0.0)

    def _said(self, name: str, channel: Channel) -> Callable[[str, str], None]:
        """Return what a channel's supervisor tells its state to: the word and a sentence."""

        def said(state: str, error: str) -> None:
            if error:
                self._say(f"{name}: {error}")
            values = {"account": channel.account, "state": state, "error": error, "at": time.time()}
            row = self._store.insert(channel_states).values(name=name, **values)
            row = row.on_conflict_do_update(index_elements=["name"], set_=values)
            self._do(self._noted(row))

        return said

    async def _noted(self, state: Executable) -> None:
        try:
            await self._store.change(state)
        except StoreError:  # the database was told to be out of order where it matters
            _log.warning("the state of a channel was not noted")

    async def _tell_owner(self, run: str, text: str) -> None:
        """Post what came of a run by the clock in the first owner's private chat, where there is one."""
        for name, channel in self._channels.items():
            for place in (await self._people.places_of_owners(name, channel.account))[:1]:
                await self.outbox.post(place, text, id=f"scheduled:{run}")
                return

    async def health(self) -> list[tuple[str, str, bool]]:
        """Return facts for the page: channels, what waits and what failed."""
        states = await self._store.rows(select(channel_states))
        came, sent = [await self._store.do(lambda c, t=t: states_in(c, t)) for t in (inbox, ledger)]
        facts = [
            (f"chats: {row.name}", printable(row.error) or row.state, row.state == "connected")
            for row in states
        ]
        waits = (
            f"{came.total() - came['done']} turns, {sent['pending'] + sent['attempting']} messages"
        )
        facts += [("chats: waiting", waits, True)]
        facts += [("chats: not delivered", str(sent["failed"]), not sent["failed"])]
        return facts

    async def waiting(self) -> list[dict[str, Any]]:
        """List for the page who waits to be let in."""
        return [
            {"code": each.code, "channel": each.channel, "who": each.who, "age": age(each.at)}
            for each in await self._people.waiting()
        ]

    async def pair(self, code: str, role: Literal["owner", "guest", "refused"]) -> None:
        """Let the person with this code in, or refuse them. Raises YbsError where nobody waits with it."""
        await welcome(await self._people.pair(code, role), self.outbox)

    async def _look(self) -> None:
        """Close what nobody uses, and forget what is long done."""
        while True:
            await self.chats.close_idle()
            await self.outbox.forget(_KEPT_SECONDS)
            await self.turns.forget(_KEPT_SECONDS)
            await asyncio.sleep(_LOOK_SECONDS)
            await self.turns.take_up()
            if self._fleet is None:
                await self._receive_new()

    async def _end(self, running: list["asyncio.Task[None]"]) -> None:
        self.turns.leave()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(self.turns.idle.wait(), _GRACE_SECONDS)
        if self._fleet is None or self._fleet.leads:
            await self._store.change(update(channel_states).values(state="ended"))
        for channel in self._channels.values():
            with suppress(YbsError):
                await channel.close()
        if not self.turns.count:  # else the next start goes on with what this process leaves
            await self.chats.aclose()
            await self.turns.close()
        self._store.close()


async def welcome(person: ChatPerson, outbox: Outbox) -> None:
    """Tell somebody that they were let in; who was refused is told nothing."""
    if person.role:
        post_id = f"paired:{person.channel}:{person.account}:{person.person}:{person.role}"
        await outbox.post(person.place, WELCOME[person.role], id=post_id)


def make_channels(settings: Settings, host: Host) -> dict[str, Channel]:
    """Return the channels of the settings. Raises ConfigError for an entry that makes no sense, and for a platform that is not there."""
    kinds: dict[str, MakeChannel] = {}
    made: dict[str, Channel] = {}
    for name, entry in settings.channels.items():
        kind = str(entry.get("type", name))
        if kind not in kinds:
            kinds[kind] = _maker(kind)
        try:
            folder = GatewayFolder(host).path / "channels" / quote(name, safe="")
            given = _with_secrets(name, entry, host) | {"folder": str(folder)}
            made[name] = kinds[kind](name, given)
        except BadSettingsError as error:
            raise ConfigError(f"gateway.channels.{name}: {error}") from error
    return made


def _with_secrets(name: str, entry: Mapping[str, Any], host: Host) -> dict[str, Any]:
    """Return an entry with the values of the variables that it names: `token_env` becomes `token`."""
    given = dict(entry)
    for key in [each for each in entry if each.endswith("_env")]:
        variable = str(given.pop(key))
        given[key.removesuffix("_env")] = host.environ.get(variable, "")
        if not given[key.removesuffix("_env")]:
            raise ConfigError(f"gateway.channels.{name}: the variable {variable} is not set")
    return given


def _maker(kind: str) -> MakeChannel:
    found = {each.name: each for each in installed() if each.group == "ybs.channels"}
    if kind in BUILT_IN:
        try:
            return import_module(f"ybs.frontends.gateway.{kind}").make_channel
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"gateway.channels: {error.name} is not installed, which {kind} needs: pip install 'ybs[{kind}]'"
            ) from error
    if kind not in found:
        known = ", ".join(sorted({*BUILT_IN, *found}))
        raise ConfigError(f"gateway.channels: there is no platform {kind!r}; there are: {known}")
    return found[kind].load()
