"""How much may be asked: messages by token buckets for each person, chat and channel, and money by the day."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import Connection, func, insert, select, update

from ybs.frontends.gateway.channel import Incoming
from ybs.frontends.gateway.store import Store, spending

#: A chat takes so many times the messages of a person, and a channel.
_OF_CHAT, _OF_CHANNEL = 2, 10
#: So many buckets are kept; full ones are dropped then, which changes nothing.
_MOST_BUCKETS: Final = 10_000


class _Bucket:
    """Holds one token for each message that may be taken now; `rate` is in tokens a second."""

    def __init__(self, size: float, rate: float, now: float) -> None:
        self.size, self.rate, self.tokens, self.at = size, rate, size, now

    def wait(self, now: float) -> float:
        """Return how many seconds it takes until there is a token."""
        self.tokens = min(self.size, self.tokens + (now - self.at) * self.rate)
        self.at = now
        return round(max(0.0, (1 - self.tokens) / self.rate), 3)


class Rates:
    """`per_minute` is how many messages of a person are taken in a minute; all of them may come at once. `now` never goes back."""

    def __init__(self, per_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._now = per_minute, now
        self._buckets = dict[tuple[str, ...], _Bucket]()

    def allow(self, incoming: Incoming, *, is_owner: bool = False) -> float:
        """Return 0 where a message may be taken, else how many seconds its sender has to wait. What others send never holds up an owner."""
        now, place = self._now(), incoming.place
        account = (place.channel, place.account)
        wanted = [(("person", *account, incoming.person), 1)]
        if not is_owner:
            wanted += [
                (("chat", *account, place.chat), _OF_CHAT),
                (("channel", *account), _OF_CHANNEL),
            ]
        buckets = [self._bucket(key, times, now) for key, times in wanted]
        wait = max(bucket.wait(now) for bucket in buckets)
        if wait == 0:
            for bucket in buckets:
                bucket.tokens -= 1
        return wait

    def _bucket(self, key: tuple[str, ...], times: int, now: float) -> _Bucket:
        if key not in self._buckets:
            if len(self._buckets) >= _MOST_BUCKETS:
                used = {
                    k: each
                    for k, each in self._buckets.items()
                    if each.wait(now) > 0 or each.tokens < each.size
                }
                self._buckets = used if len(used) < _MOST_BUCKETS else {}
            size = float(self._per_minute * times)
            self._buckets[key] = _Bucket(size, size / 60, now)
        return self._buckets[key]


class Budget:
    """What all chats together may spend in a day (UTC), in US dollars; `usd_per_day` None: as much as they want."""

    def __init__(
        self, store: Store, usd_per_day: float | None, now: Callable[[], float] = time.time
    ) -> None:
        self._store, self.usd_per_day, self._now = store, usd_per_day, now

    @property
    def _day(self) -> str:
        return datetime.fromtimestamp(self._now(), UTC).date().isoformat()

    async def add(self, who: str, usd: float) -> None:
        """Note what a turn of somebody has cost."""
        day = self._day
        is_row = (spending.c.day == day) & (spending.c.who == who)

        def noted(connection: Connection) -> None:
            found = connection.execute(
                update(spending).where(is_row).values(usd=spending.c.usd + usd)
            )
            if not found.rowcount:
                connection.execute(insert(spending).values(day=day, who=who, usd=usd))

        await self._store.do(noted)

    async def left(self) -> float | None:
        """Return what may be spent today yet; None: there is no limit."""
        if self.usd_per_day is None:
            return None
        total = select(func.sum(spending.c.usd)).where(spending.c.day == self._day)
        spent = await self._store.do(lambda connection: connection.execute(total).scalar())
        return self.usd_per_day - (spent or 0.0)
