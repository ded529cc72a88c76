"""Handle a message from the inbox: refuse it, answer it here, or start a turn."""

import asyncio
import math
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, Delete, Update, delete, select, update

from ybs.config.schema import GatewaySettings
from ybs.core.decoding import from_json
from ybs.frontends.gateway.asking import NO_LONGER, ChatQuestions, plain
from ybs.frontends.gateway.channel import ChatPlace, Incoming
from ybs.frontends.gateway.chat_commands import ChatCommands, command_in
from ybs.frontends.gateway.chats import key_of
from ybs.frontends.gateway.people import AccessDecision
from ybs.frontends.gateway.rates import DailyBudget, Rates
from ybs.frontends.gateway.store import GatewayStore, inbox

if TYPE_CHECKING:
    from ybs.frontends.gateway.chats import Chats
    from ybs.frontends.gateway.fleet import Fleet
    from ybs.frontends.gateway.turns import Turns

#: Longer messages are refused: no platform has them from one person at once.
LONGEST_TEXT: Final = 100_000
#: In the column `session` of a command's row: it was begun.
_BEGUN: Final = "command"
#: So long after the first message of an album the others are waited for.
ALBUM_SECONDS: Final = 1.0
#: So many people are remembered who were told to wait.
_MOST_WAITING: Final = 10_000


class Reception:
    """Decides about messages."""

    def __init__(
        self,
        store: GatewayStore,
        settings: GatewaySettings,
        asking: ChatQuestions,
        budget: DailyBudget,
        chats: "Chats",
        turns: "Turns",
    ) -> None:
        self._store, self._asking, self._budget = store, asking, budget
        self._chats, self._turns, self._fleet = chats, turns, asking.fleet
        self._rates = Rates(settings.per_minute)
        self._commands = ChatCommands(asking, budget, chats, turns)
        self._waiting = set[tuple[ChatPlace, str]]()
        self._held = set[str]()
        self._locks = WeakValueDictionary[tuple[ChatPlace, str], asyncio.Lock]()

    async def take(self, incoming: Incoming) -> None:
        """Decide about a message whose row in the inbox is new. A second time, after a kill, nothing is done twice. Raises StoreError.

        The messages of a person in a chat are taken one after the other, in the order in which they came.
        """
        lock = self._locks.setdefault((incoming.place, incoming.person), asyncio.Lock())
        async with lock:
            whole = await self._album(incoming) if incoming.album else incoming
            if whole is not None:
                await self._take(whole)

    async def _album(self, incoming: Incoming) -> Incoming | None:
        """Return a message with all that its album has, a moment later; None where another message of the album has it."""
        is_part = (inbox.c.album == incoming.album) & (inbox.c.state == "new")
        is_own = inbox.c.id == incoming.id
        if not await self._store.rows(select(inbox.c.id).where(is_part & is_own)):
            return None
        await asyncio.sleep(ALBUM_SECONDS)

        def gather(connection: Connection) -> Incoming:
            rows = connection.execute(select(inbox.c.body).where(is_part).order_by(inbox.c.at))
            parts = [from_json(row.body, Incoming) for row in rows]
            parts = [each for each in parts if each.person == incoming.person]
            others = inbox.c.id.in_([each.id for each in parts if each.id != incoming.id])
            connection.execute(update(inbox).where(others).values(state="done"))
            whole = replace(
                incoming,
                text="\n".join(each.text for each in parts if each.text),
                files=tuple(file for each in parts for file in each.files),
                is_addressed=any(each.is_addressed for each in parts),
                is_own=all(each.is_own for each in parts),
            )
            body = msgspec.json.encode(whole)
            connection.execute(update(inbox).where(is_own).values(body=body))
            return whole

        return await self._store.do(gather)

    async def _take(self, incoming: Incoming) -> None:
        if incoming.moved_to:
            await self._chats.move(incoming.place, incoming.moved_to)
            await self._settle(incoming, update(inbox).values(state="done"))
            return
        is_said_here = incoming.is_addressed or bool(incoming.button)
        admission = (
            await self._asking.people.admit(incoming) if is_said_here else AccessDecision("")
        )
        if admission.say or not admission.role:
            await self._commands.say(incoming, admission.say)
            await self._settle(incoming, delete(inbox))  # what others write is not kept
            return
        is_owner = admission.role == "owner"
        if incoming.id in self._held or await self._may_come(incoming, is_owner=is_owner):
            if self._fleet is None or await self._is_ours(self._fleet, incoming, admission.role):
                await self._decided(incoming, is_owner=is_owner)
            return
        await self._settle(incoming, update(inbox).values(state="done"))

    async def _is_ours(self, fleet: "Fleet", incoming: Incoming, role: str) -> bool:
        """Give a message to a worker; return whether that is this gateway. Where none can take it yet, it stays new."""
        name, words = command_in(incoming.own_words)
        wanted = await self._asking.worker_of(incoming, words if name == "approve" else "")
        key, waits = key_of(incoming.place, incoming.person), not (name or incoming.button)
        worker = await fleet.hand(incoming, key, role=role, wanted=wanted, waits=waits)
        if worker:
            self._held.discard(incoming.id)
        elif incoming.id not in self._held:
            self._held.add(incoming.id)
            text = "No gateway that has this project is there. This is answered when one is."
            await self._asking.outbox.post(incoming.place, text, id=f"{incoming.id}:waits")
        return worker == fleet.number

    async def given(self, incoming: Incoming, role: str) -> None:
        """Decide about a message that the leader gave to this gateway. Raises StoreError."""
        lock = self._locks.setdefault((incoming.place, incoming.person), asyncio.Lock())
        async with lock:
            await self._decided(incoming, is_owner=role == "owner")

    async def _decided(self, incoming: Incoming, *, is_owner: bool) -> None:
        await self._decide(incoming, is_owner=is_owner)
        await self._settle(incoming, update(inbox).values(state="done"))
        if self._fleet is not None:
            await self._chats.let_go(key_of(incoming.place, incoming.person))

    async def _may_come(self, incoming: Incoming, *, is_owner: bool) -> bool:
        """Return whether a message is not one too many; the first one that is, is answered."""
        who = (incoming.place, incoming.person)
        if is_owner and command_in(incoming.own_words)[0] == "stop":
            return True
        wait = self._rates.allow(incoming, is_owner=is_owner)
        if wait == 0:
            self._waiting.discard(who)
            return True
        if who not in self._waiting:
            if len(self._waiting) >= _MOST_WAITING:
                self._waiting.clear()
            self._waiting.add(who)
            text = (
                f"Too many messages: this one was not taken. Send it again in {math.ceil(wait)} s."
            )
            await self._commands.say(incoming, text)
        return False

    async def _decide(self, incoming: Incoming, *, is_owner: bool) -> None:
        """Answer a message, or make it a turn."""
        text, own = incoming.text.strip(), incoming.own_words.strip()
        name, argument = command_in(own)
        if incoming.button:
            await self._press(incoming, is_owner=is_owner)
            return
        key = key_of(incoming.place, incoming.person)
        if name != "approve":  # which may be of another chat
            key = await self._chats.enter(incoming.place, incoming.person)
        if incoming.unsupported:
            kind = plain(incoming.unsupported)
            await self._commands.say(incoming, f"I cannot read {kind}. Please write it as text.")
        elif len(text) > LONGEST_TEXT:
            most = f"{LONGEST_TEXT:,} characters"
            await self._commands.say(
                incoming, f"This message is too long: {most} at most. Send it as a file."
            )
        elif name:
            await self._carry_out(incoming, key, name, argument, is_owner=is_owner)
        elif own and not incoming.files and await self._asking.say(incoming, own):
            pass
        elif text or incoming.files:
            await self._enqueue(incoming, key)

    async def _press(self, incoming: Incoming, *, is_owner: bool) -> None:
        found = self._asking.buttons.pressed(incoming)
        if found is None:
            await self._commands.say(incoming, NO_LONGER)
        elif self._asking.is_question(found[0]):
            await self._commands.say(incoming, await self._asking.choose(*found, incoming))
        else:
            await self._commands.chosen(*found, incoming, is_owner=is_owner)

    async def _carry_out(
        self, incoming: Incoming, key: str, name: str, argument: str, *, is_owner: bool
    ) -> None:
        """Carry a command out, unless ybs ended in the midst of that: it may have been done."""
        is_new = (inbox.c.id == incoming.id) & (inbox.c.session == "")
        if await self._store.change(update(inbox).where(is_new).values(session=_BEGUN)):
            await self._commands.run(incoming, key, name, argument, is_owner=is_owner)
            return
        text = f"ybs ended while it carried out /{plain(name)}; it may have been done or not. /status shows where things stand."
        await self._commands.say(incoming, text)

    async def _enqueue(self, incoming: Incoming, key: str) -> None:
        left = await self._budget.left()
        if left is not None and left <= 0:
            text = f"Today's budget of ${self._budget.usd_per_day:.2f} is spent. It begins anew at 00:00 UTC."
            await self._commands.say(incoming, text)
        else:
            await self._turns.enqueue(incoming, key)

    async def _settle(self, incoming: Incoming, statement: Update | Delete) -> None:
        """Do something with the row of a message, unless that has become a turn."""
        is_open = (inbox.c.id == incoming.id) & inbox.c.state.in_(("new", "given"))
        await self._store.change(statement.where(is_open))
