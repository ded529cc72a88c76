"""Names of memories: when they were kept and what they are about, whatever the words are."""

import re
from datetime import datetime
from pathlib import Path

from rows import every_row
from ybs.context.memory_file import file_name, project_name, read_name, slug

WHEN = datetime(2026, 2, 1, 14, 30, 22)


@every_row(
    "words, wanted",
    [
        ("Project discussion", "project_discussion"),
        ("../../x", "x"),
        ("/etc/passwd", "etc_passwd"),
        ("...", "memory"),
        ("", "memory"),
        ("\U0001f600 party \U0001f389", "party"),
        ("a\0b\nc\x1b[31m", "a_b_c_31m"),
        ("Größe über alles", "größe_über_alles"),
        ("one-two.three__four", "one_two_three_four"),
        ("\udcff", "memory"),
        ("word " * 60, "word_word_word_word_word_word_word_word_word_word"),
        ("x" * 300, "x" * 50),
    ],
)
def test_words_become_letters_and_underscores(words: str, wanted: str):
    assert slug(words) == wanted


def test_a_name_fits_every_file_system_and_leads_nowhere():
    for words in ("\u6f22" * 300, "\U00020000" * 300, "x" * 300, "a/b" * 99, "é" * 300):
        name = file_name(WHEN, words, 1_000)
        assert len(name.encode()) < 160
        assert re.fullmatch(r"2026-02-01_14-30-22_\w+_1000\.md", name), name


def test_a_name_is_that_of_yips_and_tells_its_time():
    name = file_name(WHEN, "Project discussion")
    assert name == "2026-02-01_14-30-22_project_discussion.md"
    assert file_name(WHEN, "Project discussion", 2) == "2026-02-01_14-30-22_project_discussion_2.md"
    assert read_name(name) == ("2026-02-01_14-30-22", "project_discussion")
    assert read_name("notes.md") == ("", "notes")


def test_projects_of_one_name_have_folders_of_their_own():
    one, other = project_name(Path("/a/shop")), project_name(Path("/b/shop"))
    assert one != other
    assert one.startswith("shop-")
    assert one == project_name(Path("/a/shop"))
    assert "/" not in project_name(Path("/"))
    assert project_name(Path("/a/\udcff")).startswith("memory-")
