"""Files of memories are data: a person's own edits, and files that are none."""

import os
import re
from datetime import datetime
from pathlib import Path

from hosts import this_host
from rows import every_row
from ybs.context.memory import Memories
from ybs.context.memory_file import (
    Memory,
    Unread,
    file_name,
    names_in,
    project_name,
    read_memories,
    read_name,
    slug,
)

NAME = "2026-01-02_03-04-05_a_name.md"


def read_one(folder: Path, name: str = NAME) -> Memory | Unread:
    (read,) = read_memories(folder.resolve(), [name], "project")
    return read


@every_row(
    "data, heading, body",
    [
        (b"---\nproject: /x\ndate: y\n---\n# Head\n\nBody\nmore\n", "Head", "Body\nmore"),
        (b"---\r\nproject: /x\r\n---\r\n# Head\r\n\r\nBody\r\n", "Head", "Body"),
        (b"\xef\xbb\xbf# Head\n", "Head", ""),
        (b"Just a line\nand one more\n", "", "Just a line\nand one more"),
        (b"---\nno front matter, a rule\n---\nx\n", "", "---\nno front matter, a rule\n---\nx"),
        (b"---\nkey: never ended\n", "", "---\nkey: never ended"),
        (b"", "", ""),
        (b"# \x1b[31mred\x1b[0m\x07\n\nb\xe2\x80\xaec\n", "red", "bc"),
    ],
)
def test_what_a_person_made_of_a_file_is_read(tmp_path: Path, data: bytes, heading: str, body: str):
    (tmp_path / NAME).write_bytes(data)
    memory = read_one(tmp_path)
    assert isinstance(memory, Memory)
    assert (memory.heading, memory.body) == (heading, body)
    assert memory.day == "2026-01-02"


def test_what_is_no_file_of_text_is_left_out_and_named(project: Path, tmp_path: Path):
    memories = Memories(this_host(), project, mask=str, may_write=True)
    good = memories.keep("a good one")
    folder = memories.project
    (folder / "2026-bad.md").write_bytes(b"\xff\xfe\x00")
    with (folder / "big.md").open("wb") as file:
        file.truncate(50_000_000)
    os.mkfifo(folder / "pipe.md")
    (tmp_path / "outside.md").write_text("secret of another place")
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    (folder / "inner.md").symlink_to(good)
    os.link(tmp_path / "outside.md", folder / "hard.md")
    (folder / "folder.md").mkdir()
    (folder / "notes.txt").write_text("no note")
    (folder / ".hidden.md").write_text("no note")
    (folder / "dev.md").symlink_to("/dev/zero")
    assert [each.text for each in memories.all()] == ["a good one"]
    assert [each.text for each in memories.search("good place secret")] == ["a good one"]
    reasons = {each.name: each.reason for each in memories.unread}
    assert set(reasons) == {
        *(
            "2026-bad.md",
            "big.md",
            "pipe.md",
            "link.md",
            "inner.md",
            "folder.md",
            "dev.md",
            "hard.md",
        )
    }
    assert reasons["big.md"] == "it is larger than 64,000 bytes"
    assert reasons["2026-bad.md"] == "it is not UTF-8 text"
    assert reasons["hard.md"] == reasons["pipe.md"] == reasons["folder.md"]
    assert reasons["pipe.md"] == "it is not a regular file, or a hard link"


def test_links_on_the_way_to_what_a_project_brings_are_not_followed(project: Path, tmp_path: Path):
    memories = Memories(this_host(), project, mask=str, may_write=True)
    outside = tmp_path / "outside"
    (outside / "memories").mkdir(parents=True)
    (outside / "memories" / "x.md").write_text("not of this project")
    (project / ".ybs").symlink_to(outside)
    assert memories.all() == []
    (project / ".ybs").unlink()
    (project / ".ybs").mkdir()
    (project / ".ybs" / "memories").symlink_to(outside / "memories")
    assert memories.all() == []
    assert memories.recent() is None


def test_a_file_without_a_time_in_its_name_has_that_of_its_last_change(tmp_path: Path):
    (tmp_path / NAME).write_text("x")
    (tmp_path / "newer.md").write_text("x")
    (tmp_path / "older.md").write_text("x")
    os.utime(tmp_path / "older.md", (0, 0))
    assert [name for _, name in names_in(tmp_path.resolve())] == ["newer.md", NAME, "older.md"]
    memory = read_one(tmp_path, "older.md")
    assert isinstance(memory, Memory)
    assert memory.day[:3] in ("197", "196")


def test_a_folder_of_countless_files_is_not_looked_through(project, monkeypatch):
    monkeypatch.setattr("ybs.context.memory_file.MOST_LISTED", 5)
    monkeypatch.setattr("ybs.context.memory.MOST_MEMORIES", 2)
    brought = project / ".ybs" / "memories"
    brought.mkdir(parents=True)
    for number in range(9):
        (brought / f"{number}.md").write_text("x")
    assert len(names_in(brought.resolve())) == 5
    assert len(Memories(this_host(), project, mask=str, may_write=True).all()) == 4


def test_a_name_that_nobody_can_read_is_written_as_signs(tmp_path: Path):
    name = os.fsdecode(b"2026-01-02_03-04-05_\xff\x1b[2J.md")
    (tmp_path / name).write_text("x")
    memory = read_one(tmp_path, name)
    assert isinstance(memory, Memory)
    assert memory.name == r"2026-01-02_03-04-05_\xff\x1b[2J"
    assert memory.text == "x"


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
