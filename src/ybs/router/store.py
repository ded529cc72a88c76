"""The store: a row for each decision, its labels as they come, and what all of them taught; the log itself is what was learned.

Nothing is summed up: a learner reads the settled rows in their order, each weighed by its age. So a late label reaches its decision, two
processes add without undoing each other's, and another policy learns from the same past.
"""

from collections.abc import Callable, Sequence
from time import time
from typing import Final

import msgspec
from msgspec import Struct

from ybs.router.database import Connection, Database
from ybs.router.pools import DAY, KEPT_DAYS

#: What was learned so many days ago counts half.
HALF_LIFE_DAYS: Final = 30.0
#: So long a decision waits for labels; then what is there counts, or that nobody complained.
SILENT_AFTER_SECONDS: Final = 1_800.0
#: What silence says: probably good, and it weighs little.
SILENCE: Final = (0.7, 0.1)
#: A learner reads so many settled decisions, the newest; older ones weigh next to nothing.
MOST_READ: Final = 2_000
#: So many decisions are kept in all.
MOST_KEPT: Final = 20_000


class StoredDecision(Struct, frozen=True, kw_only=True):
    """A decision as it is written down: by whom it is answered, what for, and what else was considered."""

    id: str
    arm: str
    kind: str
    reason: str
    model_version: str = ""
    considered: tuple[tuple[str, float], ...] = ()


class Signal(Struct, frozen=True):
    """What came of a decision, from one source: `reward` from 0, bad, to 1, good; `weight` says how much it counts."""

    name: str
    reward: float
    weight: float


class Settled(Struct, frozen=True, kw_only=True):
    """A decision that has its reward. `number` counts the settled ones; `weight` has its age in it."""

    number: int
    id: str
    arm: str
    kind: str
    model_version: str
    reward: float
    weight: float


class Told(Struct, frozen=True, kw_only=True):
    """A decision and all that is known of it, for who asks why. `at` is seconds since 1970."""

    made: StoredDecision
    at: float
    reward: float | None
    weight: float | None
    signals: tuple[Signal, ...]


class DayUse(Struct, frozen=True, kw_only=True):
    """What one pool spent on one day (UTC, as a number of days since 1970) by one arm."""

    day: int
    pool: str
    arm: str
    requests: int
    tokens: int
    usd: float


class DecisionStore:
    """The decisions of one profile. The methods block, and may be called from any thread. They raise YbsError."""

    def __init__(self, database: Database, profile: str, now: Callable[[], float] = time) -> None:
        self._database, self._profile, self._now = database, profile, now

    def add(self, made: StoredDecision) -> None:
        """Write a decision down, and forget the oldest beyond those that are kept."""
        considered = msgspec.json.encode(made.considered).decode()
        row = (made.id, self._profile, self._now(), made.arm, made.model_version, made.kind)
        with self._database.writing() as at:
            at.execute(
                "INSERT INTO decisions (id, profile, at, arm, model_version, kind, reason, considered) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, made.reason, considered),
            )

    def label(self, decision: str, signal: Signal) -> bool:
        """Note what came of a decision; a signal of the same name is replaced. Return whether it counts.

        To one that is settled already it counts where it weighs as much as what that went by: then the decision has another
        reward, in its new place among the settled ones. One that is void stays so.
        """
        with self._database.writing() as at:
            query = "SELECT number, weight FROM decisions WHERE id=? AND profile=?"
            found = at.execute(query, (decision, self._profile)).fetchone()
            if found is None or (found[0] is not None and not 0 < found[1] <= signal.weight):
                return False
            at.execute(
                "INSERT OR REPLACE INTO signals (decision, name, at, reward, weight) VALUES (?, ?, ?, ?, ?)",
                (decision, signal.name, self._now(), signal.reward, signal.weight),
            )
            if found[0] is not None:
                self._settle(at, decision)
        return True

    def settle(self, decision: str) -> bool:
        """Give a decision its reward, from the labels that it has. Return whether it had none yet."""
        with self._database.writing() as at:
            query = "SELECT 1 FROM decisions WHERE id=? AND profile=? AND number IS NULL"
            if at.execute(query, (decision, self._profile)).fetchone() is None:
                return False
            self._settle(at, decision)
        return True

    def void(self, decision: str, why: str) -> None:
        """Settle a decision so that it teaches nothing; `why` is kept as its only signal."""
        with self._database.writing() as at:
            at.execute("DELETE FROM signals WHERE decision=?", (decision,))
            row = (decision, why, self._now())
            at.execute(
                "INSERT INTO signals (decision, name, at, reward, weight) VALUES (?, ?, ?, 0, 0)",
                row,
            )
            self._settle(at, decision)

    def settle_old(self) -> int:
        """Settle the decisions that have waited long enough for labels, in the order in which they were made; return how many."""
        query = (
            "SELECT id FROM decisions WHERE profile=? AND number IS NULL AND at <= ? ORDER BY at"
        )
        values = (self._profile, self._now() - SILENT_AFTER_SECONDS)
        with self._database.reading() as at:
            if at.execute(query, values).fetchone() is None:
                return 0
        with self._database.writing() as at:
            rows = at.execute(query, values).fetchall()
            for (decision,) in rows:
                self._settle(at, decision)
            return len(rows)

    def _settle(self, at: Connection, decision: str) -> None:
        reward, weight = combined(_signals(at, decision))
        at.execute(
            "UPDATE decisions SET reward=?, weight=?, number=(SELECT coalesce(max(number), 0) + 1 FROM decisions) "
            "WHERE id=? AND profile=?",
            (reward, weight, decision, self._profile),
        )

    def settled_since(self, number: int) -> list[Settled]:
        """Return what was settled after the one with this number, by any process, oldest first."""
        query = (
            "SELECT number, id, arm, kind, model_version, reward, weight, at FROM decisions "
            "WHERE profile=? AND number > ? ORDER BY number DESC LIMIT ?"
        )
        now = self._now()
        with self._database.reading() as at:
            rows = at.execute(query, (self._profile, number, MOST_READ)).fetchall()
        return [
            Settled(
                number=row[0],
                id=row[1],
                arm=row[2],
                kind=row[3],
                model_version=row[4],
                reward=row[5],
                weight=row[6] * aged((now - row[7]) / DAY),
            )
            for row in reversed(rows)
        ]

    def find(self, decision: str) -> Told | None:
        """Return a decision by its id or the beginning of that; the newest for an empty one, None where there is none."""
        columns = "id, arm, kind, reason, model_version, considered, at, reward, weight"
        query = f"SELECT {columns} FROM decisions WHERE profile=? AND substr(id, 1, ?)=? ORDER BY at DESC"  # noqa: S608 - no values in it
        with self._database.reading() as at:
            row = at.execute(query, (self._profile, len(decision), decision)).fetchone()
            signals = _signals(at, row[0]) if row else ()
        if row is None:
            return None
        considered = msgspec.json.decode(row[5], type=tuple[tuple[str, float], ...])
        made = StoredDecision(
            id=row[0],
            arm=row[1],
            kind=row[2],
            reason=row[3],
            model_version=row[4],
            considered=considered,
        )
        return Told(made=made, at=row[6], reward=row[7], weight=row[8], signals=signals)

    def counts(self) -> tuple[int, int]:
        """Return how many decisions there are, and how many of them are settled."""
        with self._database.reading() as at:
            query = "SELECT count(*), count(number) FROM decisions WHERE profile=?"
            made, settled = at.execute(query, (self._profile,)).fetchone()
        return made, settled

    def spending(self, days: int) -> list[DayUse]:
        """Return what was used on each of the last days, oldest first; of all profiles, which share the pools."""
        first = self._now() // DAY - days + 1
        query = (
            "SELECT CAST(at / ? AS INTEGER) AS day, pool, arm, count(*), sum(tokens), total(usd) FROM uses "
            "WHERE at >= ? GROUP BY day, pool, arm ORDER BY day, pool, arm"
        )
        with self._database.reading() as at:
            rows = at.execute(query, (DAY, first * DAY)).fetchall()
        return [
            DayUse(day=row[0], pool=row[1], arm=row[2], requests=row[3], tokens=row[4], usd=row[5])
            for row in rows
        ]

    def tidy(self) -> None:
        """Forget what is older than anybody asks for."""
        with self._database.writing() as at:
            at.execute(
                "DELETE FROM decisions WHERE profile=? AND id NOT IN "
                "(SELECT id FROM decisions WHERE profile=? ORDER BY at DESC LIMIT ?)",
                (self._profile, self._profile, MOST_KEPT),
            )
            at.execute("DELETE FROM signals WHERE decision NOT IN (SELECT id FROM decisions)")
            at.execute("DELETE FROM uses WHERE at < ?", (self._now() - KEPT_DAYS * DAY,))

    def reset(self) -> int:
        """Forget all decisions of the profile, and return how many there were. What pools have spent stays."""
        with self._database.writing() as at:
            count = at.execute("DELETE FROM decisions WHERE profile=?", (self._profile,)).rowcount
            at.execute("DELETE FROM signals WHERE decision NOT IN (SELECT id FROM decisions)")
        return count


def combined(signals: Sequence[Signal]) -> tuple[float, float]:
    """Return reward and weight of a decision with these signals: only those of the strongest weight count, and together once."""
    if not signals:
        return SILENCE
    weight = max(each.weight for each in signals)
    rewards = [each.reward for each in signals if each.weight == weight]
    return sum(rewards) / len(rewards), weight


def aged(days: float) -> float:
    """Return how much something so old counts."""
    return 0.5 ** (max(0.0, days) / HALF_LIFE_DAYS)


def _signals(at: Connection, decision: str) -> tuple[Signal, ...]:
    query = "SELECT name, reward, weight FROM signals WHERE decision=? ORDER BY at, name"
    rows = at.execute(query, (decision,))
    return tuple(Signal(row[0], row[1], row[2]) for row in rows)
