"""The index of files: what is in it, what is found first, and that it never waits."""

import asyncio
import os
from pathlib import Path
from random import Random

import pytest

from hosts import this_host
from ybs.frontends.terminal.prompt import file_index
from ybs.frontends.terminal.prompt.file_index import FRESH_SECONDS, FileIndex, FileListing, score
from ybs.security.paths.names import shown_name
from ybs.security.paths.roots import Roots


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


async def loaded(project: Path, **options: object) -> FileIndex:
    index = FileIndex(Roots(this_host(), project, **options))  # pyright: ignore[reportArgumentType]
    index.refresh()
    await index.settle()
    return index


def best(query: str, *paths: str) -> list[str]:
    return FileListing(paths).best(query, {}, 20)


async def test_it_holds_what_may_be_read_and_is_not_ignored(project: Path):
    outside = project.parent / "outside"
    make(outside, "other.txt")
    make(
        project, "a.py", ".env", ".git/config", "build/x.o", "src/b.py", "blocked/key", "more/c.py"
    )
    (project / ".gitignore").write_text("build/\n")
    (project / "way-out").symlink_to(outside / "other.txt")
    (project / "folder-out").symlink_to(outside)
    (project / "inward").symlink_to("src/b.py")
    (project / "loop").symlink_to("loop")
    os.mkfifo(project / "pipe")
    index = await loaded(project, blocked=(project / "blocked",))
    every = {"a.py", ".env", ".gitignore", "src/", "src/b.py", "more/", "more/c.py", "inward"}
    letters = {path for name in every for path in index.find(name[0], 100)}
    assert letters - {"blocked/"} == every
    assert index.find("key") == []


async def test_other_folders_are_found_by_whole_paths(project: Path):
    other = project.parent / "other"
    make(other, "deep/lib.py")
    make(project, "src/lib.py")
    index = await loaded(project, allowed=("./", "src", other))
    assert sorted(index.find("lib.py")) == sorted(["src/lib.py", f"{other}/deep/lib.py"])


async def test_names_that_break_lines_are_found_as_they_are(project: Path):
    names = ["new\nline.txt", "\x1b[2Jesc.txt", "\u202etxt.exe", os.fsdecode(b"\xff.txt"), "İ.txt"]
    make(project, *names, "after.txt")
    index = await loaded(project)
    assert sorted(index.find(".txt", 50) + index.find(".exe")) == sorted([*names, "after.txt"])
    assert index.find("line") == ["new\nline.txt"]
    assert [index.find(shown_name(name), 1) for name in names] == [[name] for name in names]
    assert index.find("af") == ["after.txt"]


def test_what_is_meant_comes_first():
    paths = (
        *("src/", "src/cart.py", "src/cart/", "src/cart/coupon.py", "tests/test_cart.py"),
        *("src/session/file_index.py", "docs/profile_indexes.md", "README.md", "src/parser.py"),
        *("lib/fooBarBaz.ts", "lib/football.ts", "a/b/c/readme.md", "scart.py", "src/x_cart_y.py"),
    )
    cases = {
        "cart": "src/cart/",
        "cart.py": "src/cart.py",
        "fidx": "src/session/file_index.py",
        "sfi": "src/session/file_index.py",
        "fbb": "lib/fooBarBaz.ts",
        "readme": "README.md",
        "tcart": "tests/test_cart.py",
        "src/ca": "src/cart/",
        "s/cart/": "src/cart/",
        "coup": "src/cart/coupon.py",
    }
    wrong = {
        query: found
        for query, wanted in cases.items()
        if (found := best(query, *paths))[:1] != [wanted]
    }
    assert wrong == {}
    assert best("src/", *paths)[:4] == [
        "src/cart.py",
        "src/cart/",
        "src/parser.py",
        "src/x_cart_y.py",
    ]
    assert best("zq", *paths) == []
    assert best("trac", *paths) == []


def test_among_equals_the_short_and_the_recent_come_first():
    listing = FileListing(("b/cart.py", "a/cart.py", "abc/cart.py"))
    assert listing.best("cart", {}, 3) == ["a/cart.py", "b/cart.py", "abc/cart.py"]
    assert listing.best("cart", {"abc/cart.py": 0, "gone.py": 1}, 2) == ["abc/cart.py", "a/cart.py"]
    assert listing.first({"b/cart.py": 0, "gone.py": 1}, 5) == ["b/cart.py"]


async def test_before_anything_is_typed_the_top_is_offered(project: Path):
    make(project, "b.py", ".hidden", "src/x.py", "A.md")
    index = await loaded(project)
    assert index.find("") == ["src/", "A.md", "b.py", ".hidden"]
    assert index.find("./") == index.find("")


@pytest.mark.integration
def test_a_growing_query_finds_what_a_fresh_one_finds():
    random = Random(3)
    names = ["".join(random.choices("abcde_/.", k=12)).strip("/") or "x" for _ in range(500)]
    growing = FileListing(names)
    wrong: list[str] = []
    for _ in range(8):
        query = "".join(random.choices("abcde", k=6))
        for end in range(1, 7):
            typed = query[:end]
            if growing.best(typed, {}, 20) != FileListing(names).best(typed, {}, 20):
                wrong.append(typed)
    assert wrong == []


def test_a_score_asks_for_the_letters_in_their_order():
    assert score("abc", "cba", "cba") == -1
    assert score("abc", "a-b-c", "a-b-c") > score("abc", "axbxc", "axbxc") > 0


async def test_it_looks_again_after_a_while_and_answers_meanwhile(project: Path):
    make(project, "old.py")
    clock = Clock()
    index = FileIndex(Roots(this_host(), project), clock=clock)
    assert index.find("old") == []
    index.refresh()
    assert index.find("old") == []  # it does not wait
    await index.settle()
    make(project, "new.py")
    index.refresh()
    await index.settle()
    assert index.find("new") == []
    clock.now += FRESH_SECONDS
    index.refresh()
    assert index.find("old") == ["old.py"]
    await index.settle()
    assert index.find("new") == ["new.py"]


async def test_of_a_large_folder_the_first_files_are_there_before_the_rest(project, monkeypatch):
    make(project, *(f"file-{number}" for number in range(30)))
    monkeypatch.setattr(file_index, "FIRST_FILES", 10)
    monkeypatch.setattr(file_index, "MOST_FILES", 20)
    seen: list[int] = []
    make_listing = FileListing

    def listing(paths: list[str]) -> FileListing:
        seen.append(len(paths))
        return make_listing(paths)

    monkeypatch.setattr(file_index, "FileListing", listing)
    index = await loaded(project)
    assert seen == [0, 10, 20]
    assert len(index.find("file", 100)) == 20


async def test_a_look_that_is_given_up_ends(project: Path):
    make(project, "a.py")
    index = FileIndex(Roots(this_host(), project))
    index.refresh()
    look = next(task for task in asyncio.all_tasks() if task is not asyncio.current_task())
    look.cancel()
    await asyncio.wait((look,))
    index.refresh()
    await index.settle()
    assert index.find("a") == ["a.py"]
