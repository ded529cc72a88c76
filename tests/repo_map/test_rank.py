from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from rows import every_row
from ybs.repo_map.history import CommitHistory
from ybs.repo_map.index import Index
from ybs.repo_map.rank import (
    MOST_DEFINING,
    WEIGHTS,
    Ranked,
    bm25,
    edges_among,
    page_rank,
    rank,
    rarity_of,
    read_query,
    weight_of,
)
from ybs.repo_map.tags import Tag, Tags

SHOP = {
    "src/cart.py": "class Cart:\n    def add_item(self, item): ...\n",
    "src/tax.py": "from cart import Cart\ndef rate_of(country):\n    return Cart().total\n",
    "src/mail.py": "def send(address):\n    '''Send the bill to an address.'''\n",
    "src/util.py": "def first(items):\n    return items[0]\n",
    "tests/test_cart.py": "from cart import Cart\ndef test_add():\n    Cart().add_item(1)\n",
    "docs/cart.md": "The cart holds what is bought. Cart, cart, cart.\n",
}


def ranked(
    folder: Path, files: dict[str, str], request: str, commits: Iterable[tuple[str, list[str]]] = ()
) -> list[Ranked]:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    history = CommitHistory(
        [paths for _, paths in commits], titles=[" ".join(read_query(t).terms) for t, _ in commits]
    )
    with Index(folder, None) as index:
        index.refresh(files)
        return rank(index, history, read_query(request))


@pytest.mark.integration
def test_whatever_is_asked_every_file_has_its_place(tmp_path: Path) -> None:
    for request in ("", "of the", "?", "cart", "x" * 100_000, "корзина", "a_b " * 9000, "zzqqxx"):
        found = ranked(tmp_path, SHOP, request)
        assert sorted(each.path for each in found) == sorted(SHOP), request[:20]
        assert found == ranked(tmp_path, SHOP, request), request[:20]


def test_small_projects_are_ranked(tmp_path: Path) -> None:
    assert ranked(tmp_path / "empty", {}, "cart") == []
    for path, text in (("a.py", "x = 1\n"), ("only", "words"), ("b.py", "\0"), ("c.py", "")):
        assert [each.path for each in ranked(tmp_path / path, {path: text}, "words")] == [path]


@pytest.mark.integration
def test_the_words_of_a_request_decide(tmp_path: Path) -> None:
    first = {
        "add an item to the cart": "src/cart.py",
        "the tax rate of a country is wrong": "src/tax.py",
        "send the bill": "src/mail.py",
        "what does `rate_of` return": "src/tax.py",
        "look at src/util.py": "src/util.py",
        "test_cart.py fails": "tests/test_cart.py",
        "add tests of the cart": "tests/test_cart.py",
        "Update the docs of the cart": "docs/cart.md",
    }
    found = {request: ranked(tmp_path, SHOP, request)[0].path for request in first}
    assert found == first


def test_what_commits_said_and_changed_lifts_files(tmp_path: Path) -> None:
    commits = [
        ("Round amounts down", ["src/util.py", "src/mail.py"]),
        *[("Tidy up", ["src/mail.py"])] * 3,
    ]
    assert ranked(tmp_path, SHOP, "round the amounts", commits)[0].path in commits[0][1]
    found = [each.path for each in ranked(tmp_path, SHOP, "", commits)]
    assert found[0] == "src/mail.py"
    assert found[-1] == "docs/cart.md"
    gone = [("Round amounts", ["src/gone.py", "../x", ""])]
    assert len(ranked(tmp_path, SHOP, "round the amounts", gone)) == len(SHOP)


def test_the_test_of_a_good_file_comes_with_it(tmp_path: Path) -> None:
    files = {f"src/part{each}.py": "filler = 1\n" for each in range(20)} | SHOP
    found = [each.path for each in ranked(tmp_path, files, "Cart loses what was bought")]
    assert {"src/cart.py", "tests/test_cart.py"} <= set(found[:4])


def test_without_words_files_that_others_use_come_first(tmp_path: Path) -> None:
    users = {f"src/user{each}.py": "from cart import Cart\nCart()\n" for each in range(5)}
    assert ranked(tmp_path, {**users, **SHOP}, "")[0].path == "src/cart.py"


def test_without_words_examples_and_tests_and_what_is_built_stand_behind(tmp_path: Path) -> None:
    sources = {"src/a.py": "def a(): ...\n", "src/b.py": "def b(): ...\n"}
    aside = {"examples/one/main.py": "import cart\n", "dist/all.py": "def all_of(): ...\n"}
    aside["tests/test_a.py"] = "from a import a\na()\n"
    commits = [("Touch", list(aside))] * 3
    sources["src/c_test.go"] = "package c\n"
    found = [each.path for each in ranked(tmp_path, {**aside, **sources}, "", commits)]
    assert found[:2] == ["src/a.py", "src/b.py"]
    found = [each.path for each in ranked(tmp_path, {**aside, **sources}, "all_of", commits)]
    assert found[0] == "dist/all.py"


def test_sources_that_no_grammar_reads_are_no_documents(tmp_path: Path) -> None:
    files = {"Cart.kt": "class Cart { fun add() {} }\n", "notes.txt": "cart, cart\n"}
    files |= {f"part{each}.py": "def part(): ...\n" for each in range(5)}
    found = [each.path for each in ranked(tmp_path, files, "add to the cart")]
    assert found[0] == "Cart.kt"
    assert found[-1] == "notes.txt"


def test_the_first_files_are_parsed_and_say_which_names_others_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ybs.repo_map.rank.MOST_PARSED", 3)
    found = ranked(tmp_path, SHOP, "the cart and its tax")
    assert [each.tags is not None for each in found] == [True] * 3 + [False] * 3
    cart = next(each for each in found if each.path == "src/cart.py")
    assert "Cart" in cart.linked


@pytest.mark.parametrize(
    ("sign", "request_", "lifted"),
    [
        ("named", "rate of the tax", {"src/tax.py"}),
        ("folder", "cart in the docs", {"docs/cart.md"}),
        ("defines", "`rate_of`", {"src/tax.py"}),
        ("mentioned", "look at src/util.py", {"src/util.py"}),
        ("mentioned", "util.py is wrong", {"src/util.py"}),
        ("tests wanted", "add tests of the cart", {"tests/test_cart.py"}),
        ("other wanted", "update the docs of the cart", {"docs/cart.md"}),
    ],
)
def test_each_sign_lifts_the_files_that_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sign: str, request_: str, lifted: set[str]
) -> None:
    worth: list[dict[str, float]] = []
    for weight in (0.0, 1.0):
        weights = {**dict.fromkeys(WEIGHTS, 0.0), sign: weight}
        monkeypatch.setattr("ybs.repo_map.rank.WEIGHTS", weights)
        worth.append({each.path: each.worth for each in ranked(tmp_path, SHOP, request_)})
    without, with_it = worth
    assert {path for path in SHOP if with_it[path] > without[path]} == lifted


def test_a_good_file_lifts_what_its_name_belongs_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ybs.repo_map.rank.MOST_LEADING", 1)
    weights = {**dict.fromkeys(WEIGHTS, 0.0), "defines": 1.0, "companion": 0.5}
    monkeypatch.setattr("ybs.repo_map.rank.WEIGHTS", weights)
    found = {each.path: each.worth for each in ranked(tmp_path, SHOP, "`add_item`")}
    lifted = {path: worth for path, worth in found.items() if worth}
    assert lifted == {"src/cart.py": 1.5, "tests/test_cart.py": 0.5, "docs/cart.md": 0.5}


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


@every_row(
    "edges, personal",
    [
        ({}, {}),
        ({}, {1: 2.0}),
        ({1: {}}, {}),
        ({1: {2: 0.0}}, {}),
        ({1: {1: 5.0}}, {1: 1.0}),
        ({1: {2: 3.0}, 2: {1: 1.0}}, {7: 1.0}),
        ({1: {2: 1.0}, 3: {2: 1.0}}, {1: 0.0, 3: -2.0}),
        ({1: {2: 1e-300}, 2: {3: 1e300}}, {1: 1e-300}),
    ],
)
def test_the_ranks_of_any_graph_add_up_to_one(
    edges: Mapping[int, Mapping[int, float]], personal: Mapping[int, float]
) -> None:
    ranks = page_rank(edges, personal)
    above = {each for each, weight in personal.items() if weight > 0}
    assert set(ranks) >= above
    assert sum(ranks.values()) == pytest.approx(1.0 if ranks else 0.0)
    assert all(rank >= 0 for rank in ranks.values())


def test_rank_flows_along_the_edges_by_their_weights() -> None:
    edges = {1: {2: 3.0, 3: 1.0}, 4: {5: 1.0}}
    ranks = page_rank(edges, {1: 1.0})
    assert ranks[1] > ranks[2] > ranks[3] > ranks[4] == ranks[5] == 0
    assert ranks[2] == pytest.approx(3 * ranks[3])
    # By hand: x = 1 - 0.85 x, for all that flows away comes back at the end of the walk.
    assert ranks[1] == pytest.approx(1 / 1.85, abs=1e-5)
    alike = page_rank({1: {2: 1.0}, 3: {2: 1.0}}, {})
    assert alike[2] > alike[1] == alike[3] > 0


@pytest.mark.integration
def test_the_walk_ends_when_nothing_changes_and_is_the_same_each_time() -> None:
    edges = {n: {(n * 7 + k) % 500: 1.0 + k for k in range(5)} for n in range(500)}
    few, many = (page_rank(edges, {3: 1.0}, rounds=rounds) for rounds in (200, 10_000))
    assert few == many
    assert list(few.items()) == list(page_rank(edges, {3: 1.0}, rounds=200).items())
    assert page_rank(edges, {3: 1.0}, rounds=1) != few


def tags(defined: str, used: str) -> Tags:
    definitions = tuple(Tag(name, "function", 1, 2, name) for name in defined.split())
    return Tags(definitions, dict.fromkeys(used.split(), 4))


def test_files_are_linked_to_those_that_define_what_they_use() -> None:
    known = {
        1: tags("own", "own open_the_door x everywhere nowhere"),
        2: tags("y", "open_the_door"),
    }
    defining = {"own": [1, 9], "open_the_door": [2, 3], "x": [3], "everywhere": range(100, 200)}
    links = edges_among([1, 2, 8], known, lambda name: defining.get(name, ()))
    assert set(links.edges) == {1}
    assert links.edges[1] == {2: 20.0, 3: 22.0}
    asked = edges_among([1], known, lambda name: defining.get(name, ()), mentioned={"x"})
    assert asked.edges[1] == {2: 20.0, 3: 40.0}


def test_the_rank_that_comes_to_a_file_is_shared_among_its_names() -> None:
    known = {1: tags("", "open_the_door x"), 4: tags("", "x")}
    defining = {"open_the_door": [3], "x": [3, 5]}
    links = edges_among([1, 4], known, lambda name: defining[name])
    worth = links.worth_of_names({1: 0.5, 4: 0.2})
    assert worth[3]["open_the_door"] > worth[3]["x"] > worth[5]["x"] * 0.99 > 0
    flown = sum(sum(names.values()) for names in worth.values())
    assert flown == pytest.approx(0.7)
    assert links.worth_of_names({})[3]["x"] == 0


def test_a_name_counts_by_what_it_says() -> None:
    plain = weight_of("x", 1, is_mentioned=False)
    for name in ("snake_case", "camelCase", "kebab-case", "MixedCase", "HTTP_port"):
        assert weight_of(name, 1, is_mentioned=False) == 10 * plain, name
    for name in ("lowercase", "a_b", "UPPERCASE", "__init__"):
        assert weight_of(name, 1, is_mentioned=False) <= plain, name
    assert weight_of("_x", 1, is_mentioned=False) < plain < weight_of("x", 1, is_mentioned=True)
    assert weight_of("x", 6, is_mentioned=False) < weight_of("x", 5, is_mentioned=False)
    assert weight_of("x", MOST_DEFINING + 1, is_mentioned=True) == 0
    assert weight_of("x", 0, is_mentioned=True) == 0
