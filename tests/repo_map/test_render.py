import os
import re
from collections.abc import Callable
from itertools import pairwise

import pytest

from ybs.repo_map.render import (
    RankedFile,
    RenderedMap,
    by_worth,
    render,
    signature_lines,
    word_line,
    worded,
)
from ybs.repo_map.tags import Tag, Tags
from ybs.security.paths.names import real_name
from ybs.security.unicode import has_suspects


def words(text: str) -> int:
    """Count somewhat as a tokenizer does: a word of letters by sixes, a sign as one."""
    return sum(-(-len(each) // 6) for each in re.findall(r"\w+|[^\w ]", text))


def a_file(number: int, symbols: int = 12) -> RankedFile:
    made = [Tag(f"Class{number}", "class", 1, 99, f"class Class{number}(Base)")]
    for each in range(symbols):
        name = f"do_{each}_of_{number}"
        parent = f"Class{number}" * (each % 2)
        kind = "method" if parent else "function"
        made.append(Tag(name, kind, each + 2, each + 3, f"def {name}(a, b) -> None", parent))
    return RankedFile(path=f"src/part{number % 7}/file{number}.py", tags=Tags(tuple(made)))


MANY = [
    *map(a_file, range(60)),
    *(RankedFile(path=f"docs/{n % 9}/page{n}.md") for n in range(2000)),
]


def paths_in(text: str) -> set[str]:
    """Read the paths back, as a person would."""
    found: set[str] = set()
    for line in text.splitlines():
        if line.startswith("  "):
            continue
        head, _, rest = line.partition(": ")
        if head.endswith("/"):
            folder = "" if head == "./" else head
            found |= {folder + name for name in rest.split(" ")}
        else:
            found.add(head)
    return {real_name(each) for each in found}


@pytest.mark.integration
def test_the_budget_is_never_passed_and_well_used() -> None:
    counters: tuple[Callable[[str], int], ...] = (
        words,
        len,
        lambda text: 3 + len(text) // 9,
        lambda text: len(text.encode()) // 3 + 1,
    )
    for count in counters:
        for budget in (-1, 0, 1, 5, 20, 60, 300, 1024, 4096):
            calls: list[str] = []
            made = render(MANY, budget, lambda text: calls.append(text) or count(text))  # noqa: B023
            where = (count("some words"), budget)
            assert made.tokens == (count(made.text) if made.text else 0), where
            assert made.tokens <= max(budget, 0), where
            assert budget < 300 or made.tokens > 0.9 * budget, where
            assert len(calls) <= 6, where
            assert paths_in(made.text) == set(made.files), where
            assert len(made.files) == len(set(made.files)), where
    assert render(MANY, 20, words).files[0] == "src/part0/file0.py"
    assert render([RankedFile(path="a")], 1, words).files == ["a"]
    assert render([], 1000, words) == RenderedMap(text="", files=[], tokens=0)
    assert render(MANY, 1000, lambda _: 1001).text == ""


@pytest.mark.integration
def test_more_budget_shows_more_and_the_first_files_always() -> None:
    shown = [render(MANY, budget, words) for budget in (200, 400, 800, 1600, 3200)]
    for less, more in pairwise(shown):
        assert set(less.files[:20]) <= set(more.files)
        assert less.named <= more.named
        assert len(less.files) < len(more.files)
    for each in shown:
        assert each.files[: each.named] == [one.path for one in MANY[: each.named]]
    assert render(MANY, 800, words) == render(list(MANY), 800, words)


def test_the_first_files_stand_with_signatures_then_names_then_paths() -> None:
    lines = render(MANY, 800, words).text.splitlines()
    kinds = "".join(
        "s" if line.startswith("  ") else "n" if re.match(r"\S+\.py: ", line) else "p"
        for line in lines
    )
    assert re.fullmatch(r"(ns+)+n+p+", kinds), kinds


SHOP = Tags(
    (
        Tag("LIMIT", "constant", 0, 0, "LIMIT = 3"),
        Tag("Cart", "class", 1, 20, "class Cart(Base)"),
        Tag("__init__", "method", 2, 3, "def __init__(self)", "Cart"),
        Tag("add_item", "method", 5, 9, "def add_item(self, item: Item) -> None", "Cart"),
        Tag("_tidy", "function", 22, 23, "def _tidy()"),
        Tag("open_door", "function", 25, 26, "def open_door(door)"),
        Tag("_tidy", "function", 40, 40, "def _tidy()  # once more"),
    )
)


def test_names_of_the_request_come_first_then_what_others_use() -> None:
    def order(wanted: dict[str, float], linked: dict[str, float], names: tuple[str, ...] = ()):
        tags = Tags(tuple(Tag(name, "", 0, 0, "") for name in names)) if names else SHOP
        return [each.tag.name for each in by_worth(tags, wanted, linked)]

    assert order({}, {})[-1] == "LIMIT"
    assert order({"limit": 1.0, "door": 0.1}, {})[0] == "LIMIT"
    assert order({"door": 1.0, "open": 1.0}, {})[0] == "open_door"
    assert order({}, {"LIMIT": 0.5, "_tidy": 9.0})[0] == "_tidy"
    assert order({"limit": 1.0}, {"_tidy": 9.0})[:2] == ["LIMIT", "_tidy"]
    assert order({"door": 1.0}, {}, ("apple", "open_door", "pear"))[0] == "open_door"
    assert order({"door": 1.0}, {}, ("door_of_many_other_words", "door"))[0] == "door"
    assert order({"limit": 0.01}, {"_tidy": 9.0})[0] == "LIMIT"
    assert order({}, {}).index("add_item") < order({}, {}).index("__init__")
    assert len(by_worth(SHOP, {}, {})) == len(SHOP.definitions) - 1
    assert by_worth(None, {"door": 1.0}, {}) == []
    few = Tags((Tag("apple", "", 0, 0, ""), Tag("open_door", "", 0, 0, "")))
    asked = RankedFile(path="a.swift", tags=few, wanted={"door": 1.0})
    more = [RankedFile(path=f"lib/number{n}.py") for n in range(100)]
    assert "a.swift: open_door apple\n" in render([asked, *more], 90, words).text


def test_a_small_project_is_shown_whole() -> None:
    asked = RankedFile(path="shop/cart.py", tags=SHOP)
    calls: list[str] = []
    files = [asked, RankedFile(path="README"), RankedFile(path="LICENSE")]
    made = render(files, 2000, lambda text: calls.append(text) or words(text))
    assert len(calls) == 1
    assert made.text.splitlines() == [
        "shop/cart.py",
        "  LIMIT = 3",
        "  class Cart(Base)",
        "    def __init__(self)",
        "    def add_item(self, item: Item) -> None",
        "  def _tidy()",
        "  def open_door(door)",
        "./: README LICENSE",
    ]
    assert made.files == ["shop/cart.py", "README", "LICENSE"]


def test_names_stand_in_the_order_of_the_text_under_their_classes() -> None:
    named = by_worth(
        Tags(
            (
                Tag("Shop", "module", 1, 99, "module Shop"),
                Tag("Cart", "class", 2, 40, "class Cart", "Shop"),
                Tag("add", "method", 3, 4, "def add", "Cart"),
                Tag("tidy", "function", 50, 90, "def tidy"),
                Tag("an_endless_name" + "_goes_on" * 4, "function", 91, 99, "def an_endless_name"),
                Tag("sum", "method", 5, 39, "def sum", "Cart"),
            )
        ),
        {"endless": 1.0},
        {},
    )
    taken, spent = worded(named, 12)
    assert word_line("a b.rb", taken) == "a b.rb: Shop Cart{add sum} tidy"
    assert spent <= 12
    lines = ["  class Cart", "    def add", "    def sum", "  def tidy"]
    assert list(signature_lines(named[::-1], named)) == [
        "  module Shop",
        *lines,
        "  def an_endless_name",
    ]


def test_odd_names_are_legible_and_the_real_path_is_kept() -> None:
    odd = [
        "a\nb.c",
        "with space",
        "x: y",
        "\x1b[31m.c",
        os.fsdecode(b"\xff.c"),
        "\u202e.c",
        "l" * 300,
        "é",
    ]
    odd += ["src/mod.rs", "lib/mod.rs", "lib/two.rs", "lib/one.rs"]
    evil = Tag("a\nb\x1b[2J", "function", 1, 1, "def \u202e" + "x" * 5000)
    named = RankedFile(path="n\r", tags=Tags((evil, evil)))
    made = render([named, *(RankedFile(path=path) for path in odd)], 2000, words)
    assert made.files == ["n\r", *odd]
    assert not has_suspects(made.text)
    assert paths_in(made.text.replace("x: y", "x:y")) == {"x:y", "n\r", *odd} - {"x: y"}
    assert "\nsrc/mod.rs\nlib/mod.rs\nlib/: two.rs one.rs" in made.text
    assert all(len(line) < 130 for line in made.text.splitlines() if "xxx" in line)


@pytest.mark.integration
def test_a_file_of_thousands_of_names_leaves_room_for_the_others() -> None:
    made = render([a_file(0, 5000), *MANY[1:]], 1024, words)
    assert len(made.files) > 40
    assert made.named > 5
    alone = render([a_file(0, 5000)], 1024, words)
    assert 900 < alone.tokens <= 1024
