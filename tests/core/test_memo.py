import pytest

from ybs.core.memo import Memo, alike


class Making:
    """Writes items in capitals and notes which; "bad" it cannot."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def __call__(self, item: str) -> list[str]:
        if item == "bad":
            raise ValueError(item)
        self.made.append(item)
        return [item.upper()]


def test_of_a_list_that_has_grown_only_the_new_items_are_made() -> None:
    memo: Memo[str, list[str]] = Memo()
    make = Making()
    first = memo.each(["a"], make)
    second = memo.each(("a", "b", "c"), make)
    assert second == [["A"], ["B"], ["C"]]
    assert second[0] is first[0]
    assert make.made == ["a", "b", "c"]


def test_what_stands_behind_a_change_is_made_anew() -> None:
    memo: Memo[str, list[str]] = Memo()
    make = Making()
    memo.each(["a", "b", "c"], make)
    assert memo.each(["a", "x", "c"], make) == [["A"], ["X"], ["C"]]
    assert memo.each(["a"], make) == [["A"]]
    assert memo.each(["a", "c"], make) == [["A"], ["C"]]
    assert make.made == ["a", "b", "c", "x", "c", "c"]


def test_an_equal_item_is_another_one() -> None:
    memo: Memo[list[int], int] = Memo()
    assert memo.each([[1]], id) != memo.each([[1]], id)
    assert alike([[1]], [[1]]) == 0


def test_the_caller_may_change_both_lists() -> None:
    memo: Memo[str, list[str]] = Memo()
    make = Making()
    items = ["a", "b"]
    memo.each(items, make).clear()
    items[0] = "x"
    assert memo.each(["a", "b"], make) == [["A"], ["B"]]
    assert make.made == ["a", "b"]


def test_what_cannot_be_made_is_not_remembered() -> None:
    memo: Memo[str, list[str]] = Memo()
    make = Making()
    memo.each(["a"], make)
    with pytest.raises(ValueError, match="bad"):
        memo.each(["a", "b", "bad"], make)
    assert memo.each(["a", "b"], make) == [["A"], ["B"]]
