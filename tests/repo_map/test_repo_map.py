"""The rooms of the repo map, joined: from files on the disk to a text of a given size."""

from math import ceil
from pathlib import Path

import pytest

from hosts import this_host
from processes import names_in
from ybs.git.client import Git
from ybs.repo_map import repo_map
from ybs.repo_map.history import CommitHistory
from ybs.repo_map.repo_map import RepoMap

SHIP = "class Ship:\n    def sail(self, wind):\n        return wind\n"


def count(text: str) -> int:
    return ceil(len(text) / 4)


def mapped(folder: Path, cache: Path | None = None, git: Git | None = None) -> RepoMap:
    return RepoMap(folder, cache=cache, list_files=lambda: names_in(folder), git=git, count=count)


@pytest.fixture
def harbour(tmp_path: Path) -> Path:
    folder = tmp_path / "harbour"
    folder.mkdir()
    (folder / "ship.py").write_text(SHIP)
    (folder / "notes.txt").write_text("what the wind does to a ship\n")
    for number in range(40):
        (folder / f"pier_{number}.py").write_text(f"def pier_{number}():\n    pass\n")
    return folder


def test_an_empty_folder_has_an_empty_map(tmp_path: Path) -> None:
    empty = mapped(tmp_path)
    empty.prepare()
    assert empty.answer("ship", 100) == repo_map.Map(text="")
    assert empty.sources == 0
    empty.close()


@pytest.mark.integration
def test_what_a_query_is_about_comes_first_with_its_definitions(harbour: Path) -> None:
    (harbour / "Deck.kt").write_text("class Deck\n")
    made = mapped(harbour)
    made.prepare()
    assert made.sources == 42
    found = made.answer("how does a ship sail?", 60)
    assert found.files[0] == "ship.py"
    assert "sail" in found.text
    assert found.tokens == count(found.text) <= 60
    assert len(made.answer("", 60).files) > 2
    made.close()


@pytest.mark.integration
def test_it_goes_on_from_what_it_has_kept_and_sees_what_changed(harbour, tmp_path):
    cache = tmp_path / "cache" / "index"
    first = mapped(harbour, cache)
    first.prepare()
    first.close()
    assert cache.exists()
    (harbour / "ship.py").unlink()
    (harbour / "boat.py").write_text(SHIP.replace("sail", "sail_away"))
    second = mapped(harbour, cache)
    second.prepare()
    found = second.answer("sail away", 200)
    assert found.files[0] == "boat.py"
    assert "ship.py" not in found.files
    (harbour / "boat.py").write_text("def row(): pass\n")
    (harbour / "raft.py").write_text("def sail_away(): pass\n")
    second.prepare()
    assert second.answer("sail away", 200).files[0] == "raft.py"
    second.close()


@pytest.mark.integration
def test_the_history_is_kept_and_handed_on_to_the_next_time(harbour, tmp_path, monkeypatch):
    known: list[bytes | None] = []

    async def read_history(_git: Git, old: bytes | None = None) -> CommitHistory:
        known.append(old)
        return made

    made = CommitHistory(head="a" * 40, commits=[["pier_7.py"]], titles=["storm"])
    monkeypatch.setattr(repo_map, "read_history", read_history)
    for _ in range(2):
        one = mapped(harbour, tmp_path / "index", Git(this_host().environ, harbour))
        one.prepare()
        assert one.answer("storm", 100).files[0] == "pier_7.py"
        one.close()
    assert known == [None, made.encoded()]
