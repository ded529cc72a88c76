"""The store: each decision is settled once, late labels find it, and several processes share one file."""

from pathlib import Path

import pytest

from ybs.config import private_file
from ybs.core.errors import YbsError
from ybs.router.database import Database
from ybs.router.pools import DAY, Estimate, Pools, Reservation
from ybs.router.store import (
    HALF_LIFE_DAYS,
    SILENCE,
    SILENT_AFTER_SECONDS,
    DecisionStore,
    Signal,
    StoredDecision,
    combined,
)

GOOD = Signal("your word", 1.0, 1.0)
BAD = Signal("kept", 0.0, 0.7)


class Bench:
    """A store in memory, or in a file, with a clock that is moved by hand."""

    def __init__(self, database: Database | None = None, profile: str = "") -> None:
        self.time = 20_000 * DAY
        self.database = database or Database.in_memory()
        self.store = DecisionStore(self.database, profile, lambda: self.time)

    def decide(self, name: str, arm: str = "a") -> None:
        considered = (("a", 0.5), ("b: rests", 0.0))
        made = StoredDecision(id=name, arm=arm, kind="fix", reason="why", considered=considered)
        self.store.add(made)

    @property
    def settled(self) -> list[tuple[str, float, float]]:
        return [(row.id, row.reward, row.weight) for row in self.store.settled_since(0)]


def test_a_decision_goes_by_its_strongest_signals_together():
    weak = Signal("invalid calls", 0.0, 0.4)
    other = Signal("checked", 0.0, 1.0)
    assert combined([weak, GOOD]) == (1.0, 1.0)
    assert combined([GOOD, other, weak]) == (0.5, 1.0)
    assert combined([]) == SILENCE


def test_a_decision_teaches_only_once_it_is_settled_and_then_once():
    bench = Bench()
    bench.decide("one")
    assert bench.store.label("one", BAD)
    assert bench.settled == []
    assert bench.store.settle("one")
    assert not bench.store.settle("one")
    assert bench.settled == [("one", 0.0, 0.7)]
    assert not bench.store.label("unknown", GOOD)


def test_a_late_word_that_weighs_more_takes_the_place_of_what_was_settled():
    bench = Bench()
    bench.decide("one")
    bench.decide("two")
    bench.store.label("one", BAD)
    bench.store.settle("one")
    bench.store.settle("two")
    assert not bench.store.label("one", Signal("silence", 1.0, 0.1))
    assert bench.store.label("one", GOOD)
    assert bench.settled == [("two", *SILENCE), ("one", 1.0, 1.0)]
    assert [row.number for row in bench.store.settled_since(2)] == [3]


def test_who_says_nothing_long_enough_was_probably_content():
    bench = Bench()
    bench.decide("one")
    bench.time += SILENT_AFTER_SECONDS - 1
    assert bench.store.settle_old() == 0
    bench.time += 1
    assert bench.store.settle_old() == 1
    ((name, reward, weight),) = bench.settled
    assert (name, reward) == ("one", SILENCE[0])
    assert weight == pytest.approx(SILENCE[1], rel=0.01)


def test_what_failed_on_the_way_teaches_nothing_and_nobody_can_change_that():
    bench = Bench()
    bench.decide("one")
    bench.store.label("one", GOOD)
    bench.store.void("one", "it failed on the way")
    assert bench.settled == [("one", 0.0, 0.0)]
    assert not bench.store.label("one", GOOD)
    told = bench.store.find("on")
    assert told is not None
    assert [each.name for each in told.signals] == ["it failed on the way"]


def test_what_is_old_counts_less():
    bench = Bench()
    bench.decide("one")
    bench.store.label("one", GOOD)
    bench.store.settle("one")
    bench.time += HALF_LIFE_DAYS * DAY
    assert bench.settled == [("one", 1.0, 0.5)]


def test_a_decision_is_found_by_the_beginning_of_its_id_with_what_was_considered():
    bench = Bench()
    assert bench.store.find("") is None
    bench.decide("abc")
    bench.time += 1
    bench.decide("abd")
    found = bench.store.find("")
    assert found is not None
    assert (found.made.id, found.reward) == ("abd", None)
    assert found.made.considered == (("a", 0.5), ("b: rests", 0.0))
    assert bench.store.find("abc") is not None
    assert bench.store.find("x") is None


def test_profiles_learn_apart_and_share_what_their_pools_have_spent():
    bench = Bench()
    other = Bench(bench.database, "work")
    bench.decide("mine")
    other.decide("theirs")
    pools = Pools(bench.database, {}, lambda: bench.time)
    lease = pools.reserve("p", "a", Estimate())
    assert isinstance(lease, Reservation)
    pools.settle(lease, tokens=9, usd=0.25)
    assert other.store.find("mine") is None
    assert other.store.reset() == 1
    assert bench.store.counts() == (1, 0)
    (use,) = other.store.spending(7)
    assert (use.pool, use.arm, use.requests, use.tokens, use.usd) == ("p", "a", 1, 9, 0.25)


def test_two_processes_add_to_one_file_without_undoing_each_others(tmp_path: Path):
    file = tmp_path / "state" / "r.sqlite3"
    first = Bench(Database.open(file, may_write=True))
    second = Bench(Database.open(file, may_write=True))
    first.decide("one")
    second.decide("two")
    first.store.settle("two")
    second.store.settle("one")
    assert first.settled == second.settled == [("two", *SILENCE), ("one", *SILENCE)]
    assert file.stat().st_mode & 0o777 == private_file.FILE_MODE
    for bench in (first, second):
        bench.database.close()


def test_a_copy_for_incognito_knows_what_was_learned_and_leaves_no_trace(tmp_path: Path):
    file = tmp_path / "r.sqlite3"
    bench = Bench(Database.open(file, may_write=True))
    bench.decide("one")
    bench.store.settle("one")
    bench.database.close()
    before = (file.read_bytes(), sorted(tmp_path.iterdir()))
    secret = Bench(Database.open(file, may_write=False))
    assert secret.settled == [("one", *SILENCE)]
    secret.decide("two")
    secret.store.settle("two")
    assert len(secret.settled) == 2
    assert (file.read_bytes(), sorted(tmp_path.iterdir())) == before
    missing = tmp_path / "none" / "r.sqlite3"
    assert Bench(Database.open(missing, may_write=False)).settled == []
    assert not missing.parent.exists()


@pytest.mark.parametrize(
    "content", [b"not a database at all" * 99, b"SQLite format 3\0" + b"\1" * 4_000]
)
def test_a_broken_file_is_set_aside_with_a_word_and_nothing_of_it_is_lost(
    tmp_path: Path, content: bytes
):
    file = tmp_path / "r.sqlite3"
    file.touch(private_file.FILE_MODE)
    file.write_bytes(content)
    assert Bench(Database.open(file, may_write=False)).settled == []
    for number in (1, 2):
        database = Database.open(file, may_write=True)
        kept = tmp_path / f"r.sqlite3.broken-{number}"
        assert kept.name in database.warning
        assert kept.read_bytes() == content
        bench = Bench(database)
        bench.decide("one")
        assert bench.store.counts() == (1, 0)
        database.close()
        again = Database.open(file, may_write=True)
        assert not again.warning
        again.close()
        file.write_bytes(content)


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path):
    file = tmp_path / "r.sqlite3"
    database = Database.open(file, may_write=True)
    with database.writing() as at:
        at.execute("PRAGMA user_version=99")
    database.close()
    before = file.read_bytes()
    newer = Database.open(file, may_write=True)
    assert "newer ybs" in newer.warning
    Bench(newer).decide("one")
    assert file.read_bytes() == before


def test_a_file_that_is_open_to_others_is_not_used(tmp_path: Path):
    file = tmp_path / "r.sqlite3"
    file.touch()
    file.chmod(0o666)
    with pytest.raises(YbsError, match="others"):
        Database.open(file, may_write=True)
