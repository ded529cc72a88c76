"""Pools: what arms that share a key or a server may use together; reserved before each request and settled after it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain
from math import inf
from time import time
from typing import Final

from msgspec import Struct

from ybs.config.sections import PoolLimits
from ybs.core.wording import plural
from ybs.router.database import Connection, Database

#: Each answer counts for so much of the estimate, the first ones for more: until then it is their mean.
NEWEST_SHARE: Final = 0.1
#: The row of an arm for all kinds together.
ALL: Final = ""


class ArmAnswer(Struct, frozen=True, kw_only=True):
    """One whole answer of an arm at a kind of task: so many tokens, in so many seconds."""

    arm: str
    kind: str
    tokens: int
    seconds: float


class Typical(Struct, frozen=True, kw_only=True):
    """What an answer is expected to be; 0: not known."""

    tokens: float = 0.0
    seconds: float = 0.0


def note(at: Connection, answer: ArmAnswer) -> None:
    """Move the estimates of an arm towards an answer: that of its kind, and that for all kinds."""
    step = "max(?, 1.0 / (count + 1))"
    for kind in {answer.kind, ALL}:
        at.execute(
            "INSERT INTO answers (arm, kind, count, tokens, seconds) VALUES (?, ?, 1, ?, ?) "  # noqa: S608 - no values in it
            "ON CONFLICT (arm, kind) DO UPDATE SET count = count + 1, "
            f"tokens = tokens + {step} * (excluded.tokens - tokens), "
            f"seconds = seconds + {step} * (excluded.seconds - seconds)",
            (answer.arm, kind, answer.tokens, answer.seconds, NEWEST_SHARE, NEWEST_SHARE),
        )


def typical(at: Connection, arms: Collection[str], kind: str) -> dict[str, Typical]:
    """Return what is expected of each arm at a kind of task.

    Of an arm that has not answered at this kind it is what it does at all others. Of one that has never answered it is as many
    tokens as the others have in the mean, since it must not look cheaper or dearer only because it is new.
    """
    query = "SELECT arm, kind, tokens, seconds FROM answers WHERE kind IN (?, ?)"
    rows = {(row[0], row[1]): row[2:] for row in at.execute(query, (kind, ALL))}
    known = {
        arm: Typical(tokens=found[0], seconds=found[1])
        for arm in arms
        if (found := rows.get((arm, kind)) or rows.get((arm, ALL)))
    }
    mean = sum(each.tokens for each in known.values()) / max(len(known), 1)
    return {arm: known.get(arm, Typical(tokens=mean)) for arm in arms}


MINUTE: Final = 60.0
DAY: Final = 86_400.0
#: A reservation of a process that died holds its place among the running requests for so long, in seconds.
LONGEST_REQUEST: Final = 900.0
#: How long uses are kept, for the picture of the spending.
KEPT_DAYS: Final = 35
NO_LIMITS: Final = PoolLimits()


class Estimate(Struct, frozen=True, kw_only=True):
    """The most that a request is expected to use, or several `requests` at the same time."""

    tokens: int = 0
    usd: float = 0.0
    requests: int = 1

    def __add__(self, other: "Estimate") -> "Estimate":
        return Estimate(
            tokens=self.tokens + other.tokens,
            usd=self.usd + other.usd,
            requests=self.requests + other.requests,
        )


class Shortage(Struct, frozen=True, kw_only=True):
    """Why a pool has no room for a request, and after how many seconds it may have; `inf`: nobody knows."""

    reason: str
    wait_seconds: float


class Reservation(Struct, frozen=True, kw_only=True):
    """A reservation, to be settled once the request is over."""

    id: int
    pool: str


class Pools:
    """The pools of all processes. `limits` are by pool; a pool without any is counted and never empty.

    The methods block, and may be called from any thread. They raise YbsError where the file cannot be used.
    """

    def __init__(
        self, database: Database, limits: Mapping[str, PoolLimits], now: Callable[[], float] = time
    ) -> None:
        self._database, self._limits, self._now = database, limits, now

    def shortages(self, wanted: Iterable[tuple[str, Estimate]]) -> list[Shortage | None]:
        """Return for each pool and estimate why there is no room; None where there is."""
        with self._database.reading() as at:
            return [self._shortage(at, pool, estimate) for pool, estimate in wanted]

    def reserve(self, pool: str, arm: str, estimate: Estimate) -> Reservation | Shortage:
        """Take the room for a request, or say why there is none: looked at and taken in one step, whoever else does."""
        with self._database.writing() as at:
            if (shortage := self._shortage(at, pool, estimate)) is not None:
                return shortage
            now = self._now()
            row = (pool, arm, now, estimate.tokens, estimate.usd, now + LONGEST_REQUEST)
            done = at.execute(
                "INSERT INTO uses (pool, arm, at, tokens, usd, holds_until) VALUES (?, ?, ?, ?, ?, ?)",
                row,
            )
            return Reservation(id=done.lastrowid or 0, pool=pool)

    def settle(
        self, lease: Reservation, *, tokens: int, usd: float, answer: ArmAnswer | None = None
    ) -> None:
        """Put what was really used in place of the estimate, and note the answer, if a whole one came. A second time changes nothing."""
        with self._database.writing() as at:
            done = at.execute(
                "UPDATE uses SET tokens=?, usd=?, holds_until=NULL WHERE id=? AND holds_until IS NOT NULL",
                (tokens, usd, lease.id),
            )
            if done.rowcount and answer is not None:
                note(at, answer)

    def typical(self, arms: Collection[str], kind: str) -> dict[str, Typical]:
        """Return what answers of each arm at a kind of task are expected to be."""
        with self._database.reading() as at:
            return typical(at, arms, kind)

    def pressure(self, pool: str) -> float:
        """Return by how much of the day's budget the spending is ahead of the day; 0 where it is not, or without a budget."""
        budget, now = self._limits.get(pool, NO_LIMITS).usd_per_day, self._now()
        if budget is None:
            return 0.0
        with self._database.reading() as at:
            spent = _spent(at, pool, now)
        elapsed = now % DAY / DAY
        share = spent / budget if budget else 1.0
        return max(0.0, share - elapsed)

    def spent_today(self, pool: str) -> float:
        """Return the US dollars of this day, with what is reserved."""
        with self._database.reading() as at:
            return _spent(at, pool, self._now())

    def _shortage(self, at: Connection, pool: str, estimate: Estimate) -> Shortage | None:
        limits, now = self._limits.get(pool, NO_LIMITS), self._now()
        if limits == NO_LIMITS:
            return None
        found = (
            _too_many(at, pool, limits, estimate, now),
            _too_fast(at, pool, limits, estimate, now),
            _too_dear(at, pool, limits, estimate, now),
        )
        short = [each for each in found if each is not None]
        return max(short, key=lambda each: each.wait_seconds) if short else None


def _too_many(
    at: Connection, pool: str, limits: PoolLimits, estimate: Estimate, now: float
) -> Shortage | None:
    if limits.concurrency is None:
        return None
    query = "SELECT count(*) FROM uses WHERE pool=? AND holds_until > ?"
    running = at.execute(query, (pool, now)).fetchone()[0]
    if running + estimate.requests <= limits.concurrency:
        return None
    running = plural(limits.concurrency, "request")
    return Shortage(reason=f"{running} at once is the limit", wait_seconds=inf)


def _too_fast(
    at: Connection, pool: str, limits: PoolLimits, estimate: Estimate, now: float
) -> Shortage | None:
    """Look at the last 60 seconds. A request that is larger than the limit may have a minute for itself."""
    requests, tokens = limits.requests_per_minute or inf, limits.tokens_per_minute or inf
    if requests is inf and tokens is inf:
        return None
    query = "SELECT at, tokens FROM uses WHERE pool=? AND at > ? ORDER BY at DESC"
    count, used = estimate.requests - 1, 0.0
    own = (now, min(estimate.tokens, tokens))
    for when, each in chain([own], at.execute(query, (pool, now - MINUTE))):
        count, used = count + 1, used + each
        if count > requests or used > tokens:
            what, limit = ("request", requests) if count > requests else ("token", tokens)
            reason = f"{plural(int(limit), what)} in a minute is the limit"
            return Shortage(reason=reason, wait_seconds=max(0.0, when + MINUTE - now))
    return None


def _too_dear(
    at: Connection, pool: str, limits: PoolLimits, estimate: Estimate, now: float
) -> Shortage | None:
    budget = limits.usd_per_day
    if budget is None or _spent(at, pool, now) + estimate.usd <= budget:
        return None
    reason = f"a request may cost {estimate.usd:.4f} USD, and of {budget:g} USD for this day not so much is left"
    return Shortage(reason=reason, wait_seconds=DAY - now % DAY)


def _spent(at: Connection, pool: str, now: float) -> float:
    query = "SELECT total(usd) FROM uses WHERE pool=? AND at >= ?"
    return float(at.execute(query, (pool, now - now % DAY)).fetchone()[0])
