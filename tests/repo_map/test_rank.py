from collections.abc import Iterable
from pathlib import Path

import pytest

from ybs.repo_map.history import CommitHistory
from ybs.repo_map.index import Index
from ybs.repo_map.query import read_query
from ybs.repo_map.rank import WEIGHTS, Ranked, rank

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
