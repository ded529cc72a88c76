"""Rate limits: messages by token buckets for each person, chat and channel, and money by the day."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import func, select

from ybs.frontends.gateway.channel import Incoming
from ybs.frontends.gateway.store import GatewayStore, spending

#: A chat takes so many times the messages of a person, and a channel.
_OF_CHAT, _OF_CHANNEL = 2, 10
#: So many of them are remembered; those that are full again are forgotten then.
_MOST_REMEMBERED: Final = 10_000
_MINUTE: Final = 60.0


class Rates:
    """`per_minute` is how many messages of a person are taken in a minute; all of them may come at once. `now` never goes back.

    Each person, chat and channel has a time up to which its messages are paid for: a message moves it on by its share of a minute, and
    it may be at most a minute ahead.
    """

    def __init__(self, per_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._now = per_minute, now
        self._paid = dict[tuple[str, ...], float]()

    def allow(self, incoming: Incoming, *, is_owner: bool = False) -> float:
        """Return 0 where a message may be taken, else how many seconds its sender has to wait. What others send never holds up an owner."""
        now, place = self._now(), incoming.place
        account = (place.channel, place.account)
        times = {("person", *account, incoming.person): 1}
        if not is_owner:
            times |= {("chat", *account, place.chat): _OF_CHAT, ("channel", *account): _OF_CHANNEL}
        if len(self._paid) >= _MOST_REMEMBERED:
            self._paid = {key: paid for key, paid in self._paid.items() if paid > now}
        paid = {
            key: max(self._paid.get(key, now), now) + _MINUTE / (self._per_minute * many)
            for key, many in times.items()
        }
        wait = round(max(paid.values()) - now - _MINUTE, 3)
        if wait <= 0:
            self._paid |= paid
        return max(wait, 0.0)


class DailyBudget:
    """What all chats together may spend in a day (UTC), in US dollars; `usd_per_day` None: as much as they want."""

    def __init__(
        self, store: GatewayStore, usd_per_day: float | None, now: Callable[[], float] = time.time
    ) -> None:
        self._store, self.usd_per_day, self._now = store, usd_per_day, now

    @property
    def _day(self) -> str:
        return datetime.fromtimestamp(self._now(), UTC).date().isoformat()

    async def add(self, who: str, usd: float) -> None:
        """Note what a turn of somebody has cost."""
        noted = self._store.insert(spending).values(day=self._day, who=who, usd=usd)
        keys, more = ["day", "who"], {"usd": spending.c.usd + usd}
        await self._store.change(noted.on_conflict_do_update(index_elements=keys, set_=more))

    async def left(self) -> float | None:
        """Return what may be spent today yet; None: there is no limit."""
        if self.usd_per_day is None:
            return None
        total = select(func.sum(spending.c.usd)).where(spending.c.day == self._day)
        ((spent,),) = await self._store.rows(total)
        return self.usd_per_day - (spent or 0.0)
