"""Fixtures for the tests of the router."""

import sqlite3
from collections.abc import Iterator

import pytest

from ybs.router.database import Database


@pytest.fixture(autouse=True)
def closed_databases(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close every database that the test has opened."""
    opened: list[Database] = []
    begin = Database.__init__

    def remember(made: Database, connection: sqlite3.Connection, warning: str = "") -> None:
        begin(made, connection, warning)
        opened.append(made)

    monkeypatch.setattr(Database, "__init__", remember)
    yield
    for each in opened:
        each.close()
