"""Tables in one test: every row is run, and every wrong one is named."""

import os
from typing import Any

import pytest

from rows import every_row

SMALL = [(1, "one"), (2, "two"), (3, "three")]


def test_every_wrong_row_is_named_with_its_reason():
    seen: list[int] = []

    @every_row(("number", "word"), SMALL)
    def check(number: int, word: str) -> None:
        seen.append(number)
        assert number == 2, f"{word} is odd"

    with pytest.raises(AssertionError) as caught:
        check()
    first, *rest = str(caught.value).splitlines()
    assert seen == [1, 2, 3]
    assert first == "2 of 3 rows are wrong:"
    assert [line for line in rest if line.startswith("[")] == [
        "[1-'one'] AssertionError: one is odd",
        "[3-'three'] AssertionError: three is odd",
    ]
    assert caught.value.__cause__ is not None


async def test_so_it_is_with_coroutines_and_with_tables_in_tables():
    @every_row("number", [1, 2], ids=["one", "two"])
    @every_row("word", ["a", pytest.param("b", id="bee")], ids=str.upper)
    async def check(number: int, word: str, limit: int) -> None:
        assert number < limit or word == "a"

    await check(limit=3)
    with pytest.raises(
        AssertionError, match=r"1 of 2 rows are wrong:\n\[two\] .*1 of 2.*\n\[bee\]"
    ):
        await check(limit=2)


@every_row("leave", [pytest.skip, pytest.fail])
def test_a_row_that_skips_or_fails_hides_no_other(leave: Any):
    @every_row("number", [1, 2])
    def check(number: int) -> None:
        leave("enough")

    with pytest.raises(AssertionError, match="2 of 2 rows are wrong"):
        check()


def test_time_that_is_over_ends_the_table():
    seen: list[int] = []

    @every_row("number", [1, 2])
    def check(number: int) -> None:
        seen.append(number)
        pytest.fail("Timeout (>10.0s) from pytest-timeout.")

    with pytest.raises(pytest.fail.Exception, match=r"^\[1\] Timeout"):
        check()
    assert seen == [1]


def test_each_row_has_its_own_monkeypatch(monkeypatch: pytest.MonkeyPatch):
    @every_row("name", ["ROW_ONE", "ROW_TWO"])
    def check(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        assert "ROW_ONE" not in os.environ
        monkeypatch.setenv(name, "x")

    check(monkeypatch=monkeypatch)
    assert "ROW_TWO" not in os.environ


def test_a_table_that_tests_nothing_is_refused():
    with pytest.raises(AssertionError, match="without rows"):
        every_row("number", [])
    with pytest.raises(AssertionError, match="does not take"):
        every_row("number", [1])(lambda: None)
    with pytest.raises(AssertionError, match="marks"):
        every_row("number", [pytest.param(1, marks=pytest.mark.slow)])
