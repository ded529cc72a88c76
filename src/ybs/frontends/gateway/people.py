"""The people who may speak in a chat, and their roles. Nobody may until the settings or a pairing say so.

A person who is not known asks to be let in by writing to the bot. The code of that is shown where only the owner of this machine looks: by
`ybs gateway pair` and on the page. It is never sent to the chat and never logged.
"""

import hmac
import time
from collections.abc import Callable, Iterator, Mapping
from secrets import choice
from typing import Any, Final, Literal, TypeAlias, cast, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, delete, select, update

from ybs.config.tree import is_list
from ybs.core.decoding import from_json
from ybs.core.errors import ConfigError, YbsError
from ybs.frontends.gateway.channel import ChatPlace, Incoming
from ybs.frontends.gateway.store import GatewayStore, insert_into, moves, people
from ybs.security.unicode import printable

#: Letters and digits that are not taken for one another.
ALPHABET: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_LENGTH: Final = 8
#: A code holds for so long; so many may wait at once for one bot; and so many wrong codes may a person type.
CODE_SECONDS: Final = 3_600.0
MOST_WAITING: Final = 3
MOST_TRIES: Final = 5
#: What somebody reads who was let in.
WELCOME: Final = {
    "owner": "You are the owner of this assistant: you alone approve what it asks for. /help lists the commands.",
    "guest": "You were let in. /help lists the commands.",
}
PRIVATE: Final = "This assistant is private; its owner can let you in."
_LONGEST_NAME: Final = 80
#: The role of somebody who asked to be let in.
_WAITS: Final = "waiting"

Openness: TypeAlias = Literal["pairing", "allow", "open", "off"]
#: "": not let in.
Role: TypeAlias = Literal["owner", "guest", ""]


class ChannelPolicy(Struct, frozen=True):
    """Who may speak on a channel: in private chats and in groups."""

    private: Openness = "pairing"
    groups: Openness = "allow"
    allow: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()

    @classmethod
    def of(cls, name: str, section: Mapping[str, Any]) -> "ChannelPolicy":
        """Read the entry of a channel in the settings. Raises ConfigError for what is not known, so that a misspelt word opens nothing."""
        where = f"gateway.channels.{name}"
        kinds: dict[str, Any] = {}
        for key in ("private", "groups"):
            if key in section:
                if section[key] not in get_args(Openness):
                    words = ", ".join(get_args(Openness))
                    raise ConfigError(f"{where}.{key}: {section[key]!r} is not one of {words}")
                kinds[key] = section[key]
        for key in ("allow", "owners"):
            ids = section.get(key, [])
            if not is_list(ids) or any(type(each) not in (str, int) for each in ids):
                raise ConfigError(f"{where}.{key}: a list of ids is needed, not {ids!r}")
            kinds[key] = frozenset(map(str, ids))
        return cls(**kinds)


class ChatPerson(Struct, frozen=True, kw_only=True):
    """Somebody who was let in, and the chat in which they asked for it."""

    channel: str
    account: str
    person: str
    name: str
    role: Role
    place: ChatPlace


class Waiting(Struct, frozen=True, kw_only=True):
    """Somebody who waits to be let in: `who` is their name and id. `at` is in seconds since 1970."""

    code: str
    channel: str
    who: str
    at: float


class AccessDecision(Struct, frozen=True):
    """Whether somebody may speak. `say` is the answer to what they sent, which then goes no further."""

    role: Role
    say: str = ""


def _at(of: Any) -> ColumnElement[bool]:
    """Return the condition that a row is of the same bot as a place or a row."""
    return (people.c.channel == of.channel) & (people.c.account == of.account)


def _of(incoming: Incoming) -> ColumnElement[bool]:
    """Return the condition that a row is the sender's."""
    return _at(incoming.place) & (people.c.person == incoming.person)


class People:
    """Who was let in, by the policies of the channels. `now` is the time in seconds since 1970."""

    def __init__(
        self,
        store: GatewayStore,
        policies: Mapping[str, ChannelPolicy],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._policies, self._now = store, policies, now

    async def admit(self, incoming: Incoming) -> AccessDecision:
        """Return as whom the sender may speak, and what to answer where they may not. Raises YbsError where the database fails."""
        policy = self._policies.get(incoming.place.channel)
        if policy is None or not incoming.person:  # somebody who speaks as a channel or unseen
            return AccessDecision("")
        kind = policy.private if incoming.place.kind == "private" else policy.groups
        if kind == "off":
            return AccessDecision("")
        return await self._store.do(
            lambda connection: self._admitted(connection, policy, kind, incoming)
        )

    def _admitted(
        self, connection: Connection, policy: ChannelPolicy, kind: Openness, incoming: Incoming
    ) -> AccessDecision:
        row = connection.execute(select(people).where(_of(incoming))).one_or_none()
        role = self._role(policy, incoming.person, row)
        is_private = incoming.place.kind == "private"
        if role == "refused":
            return AccessDecision("")
        is_known = role != "" and (kind == "pairing" or (role == "owner" and is_private))
        if not (is_known or kind == "open" or self._is_allowed(connection, policy, incoming)):
            if kind == "pairing" and is_private and not incoming.button:
                return self._asked(connection, policy, incoming)
            return AccessDecision("", _strange_group(incoming.place) if role == "owner" else "")
        if role == "owner" and is_private:
            self._note_place(connection, incoming, row)
        return AccessDecision("owner" if role == "owner" else "guest")

    def _is_allowed(
        self, connection: Connection, policy: ChannelPolicy, incoming: Incoming
    ) -> bool:
        """Return whether the settings name the sender, or the group, perhaps by the id that it had before."""
        place = incoming.place
        if place.kind == "private":
            return incoming.person in policy.allow
        is_it = (moves.c.channel == place.channel) & (moves.c.account == place.account)
        before = select(moves.c.before).where(is_it & (moves.c.chat == place.chat))
        return not policy.allow.isdisjoint({place.chat, *connection.scalars(before)})

    def _role(self, policy: ChannelPolicy, person: str, row: Any) -> str:
        if person in policy.owners:
            return "owner"
        return row.role if row is not None and row.role in ("owner", "guest", "refused") else ""

    # Pairing

    def _asked(
        self, connection: Connection, policy: ChannelPolicy, incoming: Incoming
    ) -> AccessDecision:
        """Keep that somebody wants to be let in, or look at the code that they typed."""
        old = (people.c.role == _WAITS) & (people.c.at < self._now() - CODE_SECONDS)
        connection.execute(delete(people).where(old))
        waits = _at(incoming.place) & (people.c.role == _WAITS)
        rows = connection.execute(select(people).where(waits)).all()
        for row in rows:
            if row.person == incoming.person:
                return self._tried(connection, policy, incoming, row)
        if sum(row.tries < MOST_TRIES for row in rows) >= MOST_WAITING:
            return AccessDecision("")
        code = "".join(choice(ALPHABET) for _ in range(CODE_LENGTH))
        self._keep(connection, incoming, role=_WAITS, code=code)
        return AccessDecision("", PRIVATE)

    def _tried(
        self, connection: Connection, policy: ChannelPolicy, incoming: Incoming, row: Any
    ) -> AccessDecision:
        code = normal(incoming.text)
        if row.tries >= MOST_TRIES or len(code) != CODE_LENGTH or set(code) - set(ALPHABET):
            return AccessDecision("")
        if hmac.compare_digest(code.encode(), row.code.encode()):
            person = self._let_in(connection, policy, row, None)
            return AccessDecision(person.role, WELCOME[person.role])
        connection.execute(update(people).where(_of(incoming)).values(tries=row.tries + 1))
        last = row.tries + 1 == MOST_TRIES
        return AccessDecision("", "Too many wrong codes. Try again in an hour." if last else "")

    async def waiting(self) -> list[Waiting]:
        """Return who waits to be let in, the oldest first."""
        return await self._store.do(
            lambda connection: [
                Waiting(
                    code=row.code,
                    channel=row.channel,
                    who=f"{row.name} ({printable(row.person)})",
                    at=row.at,
                )
                for row in self._open(connection)
            ]
        )

    def _open(self, connection: Connection) -> Iterator[Any]:
        since = self._now() - CODE_SECONDS
        is_open = (people.c.role == _WAITS) & (people.c.at >= since) & (people.c.tries < MOST_TRIES)
        yield from connection.execute(select(people).where(is_open).order_by(people.c.at)).all()

    async def pair(
        self, code: str, role: Literal["owner", "guest", "refused"] | None = None
    ) -> ChatPerson:
        """Let the person with this code in, by default as the owner of a channel that has none, and else as a guest.

        Raises YbsError where nobody waits with this code. `refused`: they are told nothing and may not ask again.
        """
        return await self._store.do(lambda connection: self._paired(connection, normal(code), role))

    def _paired(self, connection: Connection, code: str, role: str | None) -> ChatPerson:
        waiting = self._open(connection)
        found = [row for row in waiting if hmac.compare_digest(row.code.encode(), code.encode())]
        if len(found) != 1:
            raise YbsError(
                "Nobody waits with this code. `ybs gateway pair` lists who does; a code holds for an hour."
            )
        policy = self._policies.get(found[0].channel, ChannelPolicy())
        return self._let_in(connection, policy, found[0], role)

    def _let_in(
        self, connection: Connection, policy: ChannelPolicy, row: Any, role: str | None
    ) -> ChatPerson:
        owners = select(people.c.person).where(_at(row) & (people.c.role == "owner"))
        has_owner = bool(policy.owners) or connection.execute(owners).first() is not None
        role = role or ("guest" if has_owner else "owner")
        values = {"role": role, "at": self._now(), "code": ""}
        is_row = _at(row) & (people.c.person == row.person)
        connection.execute(update(people).where(is_row).values(**values))
        named = {key: getattr(row, key) for key in ("channel", "account", "person", "name")}
        let_in = cast(Role, role if role in get_args(Role) else "")
        return ChatPerson(**named, role=let_in, place=from_json(row.place, ChatPlace))

    # Owners

    async def is_owner(self, incoming: Incoming) -> bool:
        """Return whether the sender approves: paired as the owner, or named in the settings."""
        policy = self._policies.get(incoming.place.channel)
        if policy is None or not incoming.person:
            return False
        found = await self._store.rows(select(people).where(_of(incoming)))
        return self._role(policy, incoming.person, next(iter(found), None)) == "owner"

    async def places_of_owners(self, channel: str, account: str) -> list[ChatPlace]:
        """Return the private chats of the owners, as far as they have written there."""
        policy = self._policies.get(channel)
        if policy is None:
            return []
        is_row = (people.c.channel == channel) & (people.c.account == account)
        return [
            replace(from_json(row.place, ChatPlace), person=row.person)
            for row in await self._store.rows(select(people).where(is_row))
            if row.place and self._role(policy, row.person, row) == "owner"
        ]

    async def is_owners(self, place: ChatPlace) -> bool:
        """Return whether a chat is the private one of an owner."""
        return place in await self.places_of_owners(place.channel, place.account)

    def _note_place(self, connection: Connection, incoming: Incoming, row: Any) -> None:
        """Remember where an owner is reached; a row without a role is one whose role stands in the settings."""
        if row is None or row.role == _WAITS:
            self._keep(connection, incoming, role="")
        elif row.place != (place := msgspec.json.encode(incoming.place)):
            connection.execute(update(people).where(_of(incoming)).values(place=place))

    def _keep(
        self, connection: Connection, incoming: Incoming, *, role: str, code: str = ""
    ) -> None:
        place = incoming.place
        values = {"name": _name(incoming), "role": role, "code": code, "at": self._now()}
        values |= {"place": msgspec.json.encode(place), "tries": 0}
        keys = {"channel": place.channel, "account": place.account, "person": incoming.person}
        kept = insert_into(connection, people).values(**keys, **values)
        connection.execute(kept.on_conflict_do_update(index_elements=[*keys], set_=values))


def _name(incoming: Incoming) -> str:
    """Return the name that somebody gave themselves, so that it can be shown in a terminal."""
    return " ".join(printable(incoming.name).split())[:_LONGEST_NAME]


def _strange_group(place: ChatPlace) -> str:
    """Return what an owner reads in a group that is not allowed: its id is hard to find out."""
    where = f"gateway.channels.{place.channel}.allow"
    return f"I may not speak in this group. Its id is `{place.chat}`: add it to `{where}` in the settings."


def normal(code: str) -> str:
    """Return a code as it is kept, however it was typed."""
    return code[:40].upper().replace("-", "").replace(" ", "").strip()
