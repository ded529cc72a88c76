"""How a gateway finds that others took it for dead."""

from pathlib import Path
from typing import Any

import pytest

from ybs.frontends.gateway.lease import DatabaseLease
from ybs.frontends.gateway.store import sqlite_engine


class Looking:
    """A connection whose answer is the leader's number; meanwhile this gateway may come to lead."""

    def __init__(self, lease: DatabaseLease, leader: int | None, *, leads: bool) -> None:
        self._lease, self._leader, self._leads = lease, leader, leads

    def scalar(self, *_: object) -> int | None:
        self._lease.leads = self._leads
        return self._leader


@pytest.mark.parametrize(
    ("did_lead", "leader", "leads", "is_dead"),
    [
        (False, 0, True, False),  # it comes to lead in this moment, and the answer is of before
        (False, 3, False, False),
        (True, 3, True, True),
        (False, None, False, True),
    ],
)
def test_only_who_was_struck_out_or_followed_as_the_leader_takes_itself_for_dead(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    did_lead: bool,
    leader: int | None,
    leads: bool,
    is_dead: bool,
) -> None:
    lease, ended = DatabaseLease(sqlite_engine(tmp_path / "db"), lambda _: None), list[str]()
    lease.number, lease.leads = 2, did_lead
    monkeypatch.setattr(lease, "end", ended.append)
    connection: Any = Looking(lease, leader, leads=leads)
    lease.check(connection)
    assert bool(ended) is is_dead
