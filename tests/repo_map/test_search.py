from collections.abc import Mapping, Sequence

from ybs.repo_map.search import bm25, rarity_of


class Few:
    """An index of a few files that are given by their words."""

    def __init__(self, *files: Mapping[str, float]) -> None:
        self.files = files

    @property
    def lengths(self) -> Sequence[float]:
        return [sum(one.values()) for one in self.files]

    def postings(self, term: str) -> tuple[list[int], list[float]]:
        having = [number for number, one in enumerate(self.files) if term in one]
        return having, [self.files[number][term] for number in having]


def best(index: Few, **terms: float) -> int:
    worth = bm25(index, terms)
    return max(worth, key=lambda file: worth[file])


def test_nothing_is_found_where_there_is_nothing() -> None:
    assert bm25(Few(), {"a": 1.0}) == {}
    assert bm25(Few({}, {}), {"a": 1.0}) == {}
    assert bm25(Few({"a": 1.0}), {}) == {}
    assert bm25(Few({"a": 1.0}), {"b": 1.0}) == {}


def test_a_rare_word_is_worth_more_than_a_frequent_one() -> None:
    files = [{"often": 1.0, "rest": 5.0} for _ in range(20)]
    assert best(Few(*files, {"rare": 1.0, "rest": 5.0}), often=1.0, rare=1.0) == 20
    assert rarity_of(1, 100) > rarity_of(50, 100) > rarity_of(100, 100) > 0


def test_a_word_says_less_in_a_long_file() -> None:
    assert best(Few({"a": 1.0, "rest": 500.0}, {"a": 1.0, "rest": 5.0}), a=1.0) == 1


def test_a_file_that_was_not_read_is_taken_for_one_of_usual_length() -> None:
    class Unread(Few):
        lengths = (0.0, 10.0, 100.0)

    worth = bm25(Unread(*[{"a": 1.0}] * 3), {"a": 1.0})
    assert worth[1] > worth[0] > worth[2]


def test_more_of_a_word_is_worth_more_but_ever_less_so() -> None:
    index = Few({"a": 1.0, "x": 99.0}, {"a": 2.0, "x": 98.0}, {"a": 50.0, "x": 50.0})
    one, two, fifty = (bm25(index, {"a": 1.0})[number] for number in range(3))
    assert one < two < fifty < one * 5


def test_the_weight_of_a_word_in_the_question_counts() -> None:
    index = Few({"a": 1.0}, {"b": 1.0})
    assert best(index, a=1.0, b=2.0) == 1
    assert best(index, a=2.0, b=1.0) == 0
