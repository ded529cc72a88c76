"""Search in memories: the best first, by stems, names and headings, in any writing."""

import random
from pathlib import Path

import pytest

from rows import every_row
from timing import takes_at_most
from ybs.context.memory import best
from ybs.context.memory_file import Memory

NOTES = {
    "use_tabs": ("Use tabs in Makefiles", ""),
    "database": ("The tests need a database", "Start it with `make db`; the port is 5433."),
    "deploying": ("How we deploy", "Push to main. The pipeline deploys by itself, tests included."),
    "config": ("readSettings", "It parses config_file.toml; see load_configuration."),
    "german": ("Die Größe der Puffer", "Nie über 64 kB."),
    "chinese": ("数据库连接", "生产环境的数据库使用只读账号"),
}


def memory(name: str, heading: str, body: str) -> Memory:
    return Memory(
        path=Path(f"/x/{name}.md"),
        name=f"2026-01-01_00-00-00_{name}",
        stamp="2026-01-01_00-00-00",
        heading=heading,
        body=body,
        place="project",
    )


MEMORIES = [memory(name, *said) for name, said in NOTES.items()]


def found(query: str, most: int = 10) -> list[str]:
    return [each.path.stem for each in best(MEMORIES, query, most)]


@every_row(
    "query, wanted",
    [
        ("makefile", ["use_tabs"]),
        ("databases", ["database"]),
        ("testing", ["database", "deploying"]),
        ("deployed", ["deploying"]),
        ("5433", ["database"]),
        ("settings", ["config"]),
        ("CONFIG", ["config"]),
        ("pipel", ["deploying"]),
        ("größe", ["german"]),
        ("数据库", ["chinese"]),
        ("zebra", []),
        ("", []),
        ("the", ["database", "deploying"]),
        ("[ybs](*)+?\\", []),
    ],
)
def test_the_words_find_what_has_to_do_with_them(query: str, wanted: list[str]):
    assert found(query) == wanted


def test_a_rare_word_counts_more_than_common_ones_and_a_heading_more_than_a_text():
    assert found("tests for the port")[0] == "database"
    others = [memory(f"m{n}", f"note {n}", "common words here") for n in range(20)]
    rare = memory("rare", "note", "words about zebras")
    assert best([*others, rare], "common zebra", 1) == [rare]
    text, heading = memory("t", "note", "about parsing"), memory("h", "parsing", "a note")
    assert best([text, heading], "parser", 2) == [heading, text]


def test_no_more_come_back_than_wanted_and_equals_stay_in_order():
    same = [memory(f"m{n}", "the same note", "") for n in range(9)]
    for query in ("note", "the"):
        assert best(same, query, 3) == same[:3]
    assert best([], "note", 3) == []


@pytest.mark.integration
def test_a_thousand_memories_are_searched_in_a_blink():
    words = [f"w{number}x{chr(97 + number % 26)}" for number in range(500)]
    pick = random.Random(1).choices
    texts = [(" ".join(pick(words, k=5)), " ".join(pick(words, k=50))) for _ in range(50)]
    many = [memory(f"m{number}", *texts[number % 50]) for number in range(1_000)]
    with takes_at_most(1):  # about 0.04
        assert len(best(many, words[7], 10)) == 10
