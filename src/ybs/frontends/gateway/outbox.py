"""The outbox for chats: a ledger on the disk, delivered for each chat in order and at its own pace.

A message is pending, then attempting, then delivered or failed. One that a kill interrupted while attempting may have arrived: it is sent
again with a mark that says so. Where a platform wants a pause, the messages of that chat wait in the ledger, and nobody waits with them.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Row, func, select, update

from ybs.core.decoding import from_json
from ybs.core.time_limits import time_limit
from ybs.frontends.gateway.channel import (
    BadSettingsError,
    Button,
    Capabilities,
    Channel,
    ChannelError,
    ChatGoneError,
    ChatMovedError,
    ChatPlace,
    MaybeSentError,
    MessageGoneError,
    Outgoing,
    OutgoingFile,
    RefusedError,
    RivalError,
    UnreachableError,
    WaitError,
    chat_of,
)
from ybs.frontends.gateway.formatting import Formatted, formatted, literal
from ybs.frontends.gateway.store import GatewayStore, gates, ledger

T = TypeVar("T")
#: What a message ends with that may have arrived before.
MARK: Final = "\n\n(This may be a second time.)"
#: A platform may be out of order for hours: with the pauses below these are four and a half.
MOST_TRIES: Final = 24
MOST_AGE_SECONDS: Final = 86_400.0
#: Characters of the text that may stand with a file.
_CAPTION: Final = 900
#: So many messages may follow each other at once, before the platform's pace holds.
_BURST: Final = 3
#: The pause before the second try, in seconds, how many times as long the next one is, and the longest.
_PAUSE, _LONGER, _LONGEST = 3.0, 3.0, 900.0
_UNREACHED_SECONDS: Final = 5.0
#: So long at the end what is being sent may take.
_GRACE_SECONDS: Final = 2.0
OUTBOX_SECONDS: Final = 1.0
#: For a message to a channel that this process does not run.
_UNKNOWN: Final = Capabilities(length=1_000)
_log = logging.getLogger("ybs.gateway.outbox")

_OF_LEDGER: Final = "ledger:"
#: Returns the chats in which the owners of a channel's account are reached.
Owners = Callable[[str, str], Awaitable[list[ChatPlace]]]


def of_ledger(id: str) -> str:
    """Return the `edits` of a message that takes the place of the one with this id in the ledger."""
    return f"{_OF_LEDGER}{id}"


class _Pace:
    """How fast one chat may be written to. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._gate = self._due = 0.0
        #: Held while something is sent to the chat, or a message there is edited.
        self.lock = asyncio.Lock()

    def closed_for(self, wait: float, *, spare: int = 0) -> float:
        """Return how many seconds nothing is to be sent; `spare` messages of the burst are left to others."""
        now = self._clock()
        return max(self._gate - now, self._due - (_BURST - 1 - spare) * wait - now, 0.0)

    def used(self, wait: float) -> None:
        self._due = max(self._due, self._clock()) + wait

    def hold(self, seconds: float) -> None:
        self._gate = max(self._gate, self._clock() + seconds)


class _Due(Struct, frozen=True):
    """The next message of a chat."""

    number: int
    chat: str
    place: ChatPlace


class Outbox:
    """The ledger and its delivery. `now` is in seconds since 1970, `clock` counts seconds.

    Every so many seconds (`look_seconds`) the ledger is looked at for what other processes have put there.
    """

    def __init__(
        self,
        store: GatewayStore,
        channels: Mapping[str, Channel],
        owners: Owners | None = None,
        *,
        look_seconds: float = OUTBOX_SECONDS,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self.channels, self._owners = store, channels, owners
        self._now, self._clock, self._look_seconds = now, clock, look_seconds
        self._moved: Callable[[ChatPlace, str], Awaitable[None]] | None = None
        self._paces: dict[str, _Pace] = {}
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self._failure: BaseException | None = None

    def when_moved(self, moved: Callable[[ChatPlace, str], Awaitable[None]]) -> None:
        """Have a chat go on under another id by this, when the platform says so."""
        self._moved = moved

    # Into the ledger

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
        """Put a message of Markdown into the ledger; when this returns, it is on the disk. The same id twice is one message.

        A long one becomes several (`id`, `id:2`, …): buttons stand under the last, a file with the first. `edits` is the platform's
        id of a message whose place the first takes, where it can still be edited; or `of_ledger` of one that was posted here,
        and may be on its way. Raises StoreError.
        """
        channel = self.channels.get(place.channel)
        messages = _messages(channel, text, file)
        if file is not None or (channel is not None and not channel.capabilities.can_edit):
            edits = ""
        rows: list[dict[str, Any]] = []
        for number, message in enumerate(messages):
            row_id = f"{id}:{number + 1}" if number else id
            is_last = number == len(messages) - 1
            body = Outgoing(
                text=message.text,
                plain=message.plain,
                buttons=tuple(map(tuple, buttons)) if is_last else (),
                file=file if not number else None,
                nonce=row_id,
            )
            row = {"id": row_id, "chat": chat_of(place), "state": "pending", "at": self._now()}
            row |= {"place": msgspec.json.encode(place), "body": msgspec.json.encode(body)}
            rows.append({**row, "edits": "" if number else edits})
        new = self._store.insert(ledger).values(rows)
        await self._store.change(new.on_conflict_do_nothing())
        self._wake.set()

    async def forget(self, seconds: float) -> None:
        """Forget messages that were posted so long ago and are done with."""
        is_old = ledger.c.at < self._now() - seconds
        is_done = ledger.c.state.in_(("delivered", "failed"))
        await self._store.change(ledger.delete().where(is_old & is_done))
        await self._store.change(gates.delete().where(gates.c.until < self._now()))

    # What is only shown

    async def progress(self, place: ChatPlace, text: str, *, message: str) -> str:
        """Show how far something is, in a new message or (`message`) in place of an earlier one; return the platform's id of it.

        It is dropped, and `message` returned, where the chat has to wait or an answer is on its way. Raises MaybeSentError where
        nobody can tell whether there is a new message now.
        """
        chat, channel = chat_of(place), self.channels[place.channel]
        pace, wait = self._pace(chat), channel.capabilities.wait
        if chat in self._sending or pace.lock.locked() or pace.closed_for(wait, spare=1):
            return message
        shown = formatted(text, channel.capabilities)[-1]
        outgoing = Outgoing(text=shown.text, plain=shown.plain)
        async with pace.lock:
            pace.used(wait)
            try:
                if not message:
                    return await channel.send(place, outgoing)
                await channel.edit(place, message, outgoing)
            except WaitError as error:
                await self._hold(chat, error.seconds)
            except MaybeSentError:
                if not message:
                    raise
            except ChannelError as error:
                _log.info("progress was not shown: %s", type(error).__name__)
        return message

    async def show_typing(self, place: ChatPlace) -> None:
        """Show that an answer is on its way, where the platform can and the chat need not wait."""
        channel, pace = self.channels[place.channel], self._pace(chat_of(place))
        if not channel.capabilities.shows_typing or pace.closed_for(0.0):
            return
        try:
            await channel.show_typing(place)
        except WaitError as error:
            await self._hold(chat_of(place), error.seconds)
        except ChannelError as error:
            _log.info("typing was not shown: %s", type(error).__name__)

    # Delivery

    async def run(self) -> None:
        """Deliver until cancelled. What an earlier process left in the midst is sent again, with a mark. Raises StoreError."""
        await self._store.do(_take_over)
        for row in await self._store.rows(select(gates).where(gates.c.until > self._now())):
            self._pace(row.chat).hold(row.until - self._now())
        try:
            while True:
                self._wake.clear()
                if self._failure is not None:
                    raise self._failure
                pause = await self._begin_due()
                try:
                    async with time_limit(min(pause, self._look_seconds)):
                        await self._wake.wait()
                except TimeoutError:
                    pass
        finally:
            if tasks := set(self._sending.values()):
                await asyncio.wait(tasks, timeout=_GRACE_SECONDS)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _begin_due(self) -> float:
        """Begin to send the next message of each chat that need not wait; return after how many seconds another one may be due."""
        pause = OUTBOX_SECONDS
        for due in await self._store.do(_heads):
            channel = self.channels.get(due.place.channel)
            if due.chat in self._sending or channel is None or not channel.account:
                continue
            closed = self._pace(due.chat).closed_for(channel.capabilities.wait)
            if closed:
                pause = min(pause, closed)
                continue
            task = asyncio.create_task(self._send(due, channel))
            self._sending[due.chat] = task
            task.add_done_callback(lambda task, chat=due.chat: self._sent(chat, task))
        return pause

    def _sent(self, chat: str, task: "asyncio.Task[None]") -> None:
        del self._sending[chat]
        self._wake.set()
        if not task.cancelled():
            self._failure = task.exception() or self._failure

    async def _hold(self, chat: str, seconds: float) -> None:
        """Send nothing to a chat for a while, also after the next start."""
        self._pace(chat).hold(seconds)
        until = {"until": self._now() + seconds}
        row = self._store.insert(gates).values(chat=chat, **until)
        await self._store.change(row.on_conflict_do_update(index_elements=["chat"], set_=until))

    def _pace(self, chat: str) -> _Pace:
        return self._paces.setdefault(chat, _Pace(self._clock))

    async def _send(self, due: _Due, channel: Channel) -> None:
        pace = self._pace(due.chat)
        async with pace.lock:
            row = await self._store.do(lambda c: _attempt(c, due.number))
            if (why := self._hopeless(row, due.place, channel)) is not None:
                await self._set(row, state="failed", error=why)
                return
            pace.used(channel.capabilities.wait)
            try:
                message = await self._deliver(channel, due.place, row)
            except ChannelError as error:
                await self._not_sent(row, due, error)
                return
            except Exception as error:  # a channel may be anybody's
                _log.exception("the channel %s failed", due.place.channel)
                await self._not_sent(row, due, MaybeSentError(type(error).__name__))
                return
            await self._set(row, state="delivered", message=message, error="", body=_kept(row))

    async def _deliver(self, channel: Channel, place: ChatPlace, row: "Row[Any]") -> str:
        """Send or edit a message, without its markup where the platform does not take that; return its id. Raises ChannelError."""
        if not row.edits:
            return await _tried(lambda body: channel.send(place, body), _body(row))
        try:
            await _tried(lambda body: channel.edit(place, row.edits, body), _body(row))
        except MessageGoneError:
            await self._set(row, edits="")  # from here on it may arrive twice
            return await _tried(lambda body: channel.send(place, body), _body(row))
        return row.edits

    def _hopeless(self, row: "Row[Any]", place: ChatPlace, channel: Channel) -> str | None:
        if row.tries > MOST_TRIES:
            return row.error or "ybs ended each time while it was being sent"
        if row.error and self._now() - row.at > MOST_AGE_SECONDS:  # else the clock was set
            return "it could not be sent for a day"
        if channel.account != place.account:
            return "the channel has another account now"
        return None

    async def _not_sent(self, row: "Row[Any]", due: _Due, error: ChannelError) -> None:
        """Note why a message was not sent, and whether and when it is tried again."""
        _log.warning("a message was not sent: %s", type(error).__name__)
        pace, values = self._pace(due.chat), {"state": "pending", "error": str(error)}
        match error:
            case WaitError():  # it was not sent, so it is no try
                await self._set(row, **values, tries=row.tries - 1)
                await self._hold(due.chat, error.seconds)
            case UnreachableError() | BadSettingsError() | RivalError():
                pace.hold(_UNREACHED_SECONDS)
                await self._set(row, **values, tries=row.tries - 1)
            case ChatMovedError() if self._moved is not None:
                await self._set(row, **values, tries=row.tries - 1)
                await self._moved(due.place, error.chat)
            case ChatGoneError() | ChatMovedError():
                await self._set(row, state="failed", error=str(error))
                await self._gone(due.place, error)
            case RefusedError():
                await self._set(row, state="failed", error=str(error))
            case _ if row.tries >= MOST_TRIES:
                await self._set(row, state="failed", error=str(error))
            case _:
                pace.hold(min(_PAUSE * _LONGER ** (row.tries - 1), _LONGEST))
                is_maybe = isinstance(error, MaybeSentError)
                await self._set(row, **values, body=_marked(row) if is_maybe else row.body)

    async def _gone(self, place: ChatPlace, error: ChannelError) -> None:
        """Tell the owners once that a chat is dead."""
        owners = await self._owners(place.channel, place.account) if self._owners else []
        words = f"A chat ({literal(place.chat)}) can no longer be written to, and what was to be said there is lost. {literal(str(error))}"
        for owner in owners:
            if owner.chat != place.chat:
                await self.post(owner, words, id=f"gone:{chat_of(place)}:{owner.chat}")

    async def _set(self, row: "Row[Any]", **values: Any) -> None:
        await self._store.change(
            update(ledger).where(ledger.c.number == row.number).values(**values)
        )


def _messages(
    channel: Channel | None, text: str, file: OutgoingFile | None
) -> tuple[Formatted, ...]:
    if channel is None:  # the process that runs it sends the plain text
        messages = formatted(text, _UNKNOWN, reserve=len(MARK))
        return tuple(Formatted("", each.plain) for each in messages)
    capabilities = channel.capabilities
    if file is not None:
        capabilities = replace(capabilities, length=min(capabilities.length, _CAPTION))
    return formatted(text, capabilities, reserve=len(MARK))


def _take_over(connection: Connection) -> None:
    rows = connection.execute(select(ledger).where(ledger.c.state == "attempting")).all()
    for row in rows:
        values = {"state": "pending", "body": _marked(row)}
        connection.execute(update(ledger).where(ledger.c.number == row.number).values(**values))


def _heads(connection: Connection) -> list[_Due]:
    first = (
        select(func.min(ledger.c.number)).where(ledger.c.state == "pending").group_by(ledger.c.chat)
    )
    rows = connection.execute(
        select(ledger.c.number, ledger.c.chat, ledger.c.place)
        .where(ledger.c.number.in_(first))
        .order_by(ledger.c.number)
    )
    return [_Due(r.number, r.chat, from_json(r.place, ChatPlace)) for r in rows]


def _attempt(connection: Connection, number: int) -> "Row[Any]":
    """Note that a message is being sent; from now on it may have arrived."""
    is_it = ledger.c.number == number
    values = {"state": "attempting", "tries": ledger.c.tries + 1}
    connection.execute(update(ledger).where(is_it).values(**values))
    row = connection.execute(select(ledger).where(is_it)).one()
    if not row.edits.startswith(_OF_LEDGER):
        return row
    edited = select(ledger.c.message).where(ledger.c.id == row.edits.removeprefix(_OF_LEDGER))
    message = connection.scalar(edited) or ""  # it was sent before this one
    connection.execute(update(ledger).where(is_it).values(edits=message))
    return connection.execute(select(ledger).where(is_it)).one()


def _body(row: "Row[Any]") -> Outgoing:
    return from_json(row.body, Outgoing)


def _marked(row: "Row[Any]") -> bytes:
    """Return a message with the mark that it may be a second one; an edit of a message cannot be one."""
    body = _body(row)
    if row.edits or body.plain.endswith(MARK):
        return row.body
    text = f"{body.text}{MARK}" if body.text else ""
    return msgspec.json.encode(replace(body, text=text, plain=f"{body.plain}{MARK}"))


def _kept(row: "Row[Any]") -> bytes:
    """Return what is kept of a delivered message: files are not."""
    body = _body(row)
    return row.body if body.file is None else msgspec.json.encode(replace(body, file=None))


async def _tried(send: Callable[[Outgoing], Awaitable[T]], body: Outgoing) -> T:
    try:
        return await send(body)
    except RefusedError:
        if not body.text:
            raise
        _log.info("a message goes without its markup")
        return await send(replace(body, text=""))
