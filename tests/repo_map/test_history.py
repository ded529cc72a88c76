import os
from pathlib import Path

import pytest
from msgspec import msgpack

from hostile_git import needs_git
from hosts import this_host
from made_history import MadeRepository
from ybs.git.client import Git
from ybs.repo_map import history
from ybs.repo_map.history import CommitHistory, read_history

pytestmark = [pytest.mark.integration, needs_git]


def no_program(*_: object, **__: object) -> None:
    """Find no program."""


@pytest.fixture
def made(project: Path) -> MadeRepository:
    return MadeRepository(project)


async def test_where_git_tells_nothing_there_is_no_history(tmp_path, monkeypatch):
    unborn = MadeRepository(tmp_path / "unborn")
    broken = MadeRepository(tmp_path / "broken")
    broken.commit(["a"])
    (broken.top / ".git/HEAD").write_text("nothing of git's\n")
    for folder in (tmp_path, unborn.top, broken.top, tmp_path / "is not there"):
        found = await read_history(Git(this_host().environ, folder))
        assert not found.commits, folder
        assert found.recencies() == {}
        assert found.together({"a": 1.0}) == {}
    made = MadeRepository(tmp_path / "no git here")
    made.commit(["a"])
    monkeypatch.setattr("ybs.git.client.trusted_program", no_program)
    assert not (await read_history(Git(this_host().environ, made.top))).commits


async def test_each_commit_is_read_with_its_files_but_huge_ones_and_merges(made, monkeypatch):
    odd = ["a\nb", "with space", "\1" + "0" * 40, os.fsdecode(b"\xff.c"), '"q" \\x', "é"]
    some = [f"n{number}" for number in range(31)]
    made.commit(["a", "b"], some, map(os.fsencode, odd), sorted(some)[:30], ["a"])
    made.commit(["c"], branch="side", start="main")
    made.commit(["d"])
    made.commit(["m"], merges="side")
    found = await read_history(Git(this_host().environ, made.top))
    assert [sorted(paths) for paths in found.commits] == [
        ["d"],
        ["c"],
        ["a"],
        sorted(some)[:30],
        sorted(odd),
        ["a", "b"],
    ]
    monkeypatch.setattr(history, "MOST_COMMITS", 2)
    assert len((await read_history(Git(this_host().environ, made.top))).commits) == 2


async def test_only_what_is_new_is_asked_for(made, monkeypatch):
    made.commit(["a", "b"], [b"\xff.c"])
    old = (await read_history(Git(this_host().environ, made.top))).encoded()
    asked: list[tuple[str, ...]] = []
    run = Git.run

    async def spying(git: Git, command: str, *arguments: str) -> bytes:
        asked.append((command, *arguments))
        return await run(git, command, *arguments)

    monkeypatch.setattr(Git, "run", spying)
    same = await read_history(Git(this_host().environ, made.top), old)
    assert same.encoded() == old
    assert asked == []
    made.commit(["c"], ["a", "c"])
    newer = await read_history(Git(this_host().environ, made.top), old)
    assert any("..." in word for words in asked for word in words)
    assert newer.commits == [["a", "c"], ["c"], [os.fsdecode(b"\xff.c")], ["a", "b"]]
    monkeypatch.setattr(history, "MOST_COMMITS", 3)
    assert len((await read_history(Git(this_host().environ, made.top), old)).commits) == 3


async def test_another_line_of_commits_or_a_spoilt_memory_is_read_anew(made, tmp_path):
    made.commit(["a"], ["b"], ["sub/c"])
    old = (await read_history(Git(this_host().environ, made.top))).encoded()
    made.git("update-ref", "HEAD", "HEAD~1")
    form, head, *rest = msgpack.decode(old)
    numbers = msgpack.encode([form, head, b"", [], [[7]], [""]])
    older = msgpack.encode([form - 1, made.git("rev-parse", "HEAD"), *rest])
    for kept in (old, b"nonsense", old[:-3], numbers, older, b"\xc1"):
        assert (await read_history(Git(this_host().environ, made.top), kept)).commits == [
            ["b"],
            ["a"],
        ], kept
    made.commit(["w"], ["x"], branch="other")
    made.git("symbolic-ref", "HEAD", "refs/heads/other")
    assert (await read_history(Git(this_host().environ, made.top), old)).commits == [["x"], ["w"]]
    gone = CommitHistory([["never"]], head="1" * 40).encoded()
    assert (await read_history(Git(this_host().environ, made.top), gone)).commits == [["x"], ["w"]]
    for forged in ("other~1", "--output=here"):
        kept = CommitHistory([["never"]], head=forged).encoded()
        assert (await read_history(Git(this_host().environ, made.top), kept)).commits == [
            ["x"],
            ["w"],
        ], forged
    assert not (made.top / "here").exists()


async def test_paths_are_those_of_the_project_folder(made: MadeRepository, tmp_path: Path) -> None:
    made.commit(["top", "sub/a"], ["sub/deep/b"], ["subway/c"])
    (made.top / "sub").mkdir()
    whole = (await read_history(Git(this_host().environ, made.top))).encoded()
    found = await read_history(Git(this_host().environ, made.top / "sub"), whole)
    assert found.commits == [["deep/b"], ["a"]]
    assert (
        await read_history(Git(this_host().environ, made.top / "sub"), found.encoded())
    ).commits == found.commits
    shallow = tmp_path / "shallow"
    made.git("clone", "-q", "--depth", "1", f"file://{made.top}", str(shallow))
    assert (await read_history(Git(this_host().environ, shallow))).commits
    made.git("config", "core.bare", "true")
    assert len((await read_history(Git(this_host().environ, made.top))).commits) == 3


async def test_fewer_commits_are_read_where_they_are_too_large(made: MadeRepository) -> None:
    made.commit(*([f"{number}", "x" * 200] for number in range(150)))
    git = Git(this_host().environ, made.top, most_bytes=30_000)
    assert len((await read_history(git)).commits) == history.MOST_COMMITS // 20


def test_recency_falls_with_the_commits_since_and_adds_up() -> None:
    made = CommitHistory([["a"], *([["b"]] * 3), *([["c"]] * 50), ["old"]])
    ranks = made.recencies()
    assert 0 < ranks["old"] < ranks["a"] < ranks["b"] < ranks["c"] < 1
    assert "never" not in ranks


def test_files_of_the_same_commits_go_together() -> None:
    commits = [["a", "b"], ["a", "b", "c"], ["c", "d"], ["a", "x", *map(str, range(20))], ["alone"]]
    made = CommitHistory(commits)
    found = made.together({"a": 1.0})
    assert max(found, key=found.__getitem__) == "b"
    assert found["c"] > found["x"] > 0
    assert "d" not in found
    assert "a" not in found
    assert all(share <= 1 for share in found.values())
    assert made.together({"a": 0.5})["b"] == pytest.approx(found["b"] / 2)
    later = CommitHistory([["a", "now"], ["a", "then"]]).together({"a": 1.0})
    assert later["now"] > later["then"]
    few = CommitHistory([["p"]] * 400 + [["a", "few"], ["a", "b", "c", "d", "many"]]).together(
        {"a": 1.0}
    )
    assert few["few"] > 1.5 * few["many"]
    both = made.together({"a": 1.0, "d": 1.0})
    assert both["c"] > found["c"]
    assert made.together({"alone": 1.0, "never": 1.0}) == {}


def test_the_titles_of_commits_tell_of_their_files() -> None:
    rows = [("rename the door", ["a"]), ("door hinge", ["b"]), ("hinge", ["c", "d"]), ("x", ["e"])]
    made = CommitHistory([paths for _, paths in rows], titles=[title for title, _ in rows])
    found = made.told({"door": 1.0, "hinge": 1.0})
    assert max(found, key=found.__getitem__) == "b"
    assert found["c"] == found["d"] < made.told({"hinge": 2.0})["c"]
    assert "e" not in found
    assert made.told({}) == made.told({"never": 1.0}) == {}
    assert CommitHistory([["a"]]).told({"door": 1.0}) == {}


async def test_the_stems_of_titles_are_kept_and_nothing_else_of_them(made: MadeRepository) -> None:
    key = b"ghp_" + b"x7Kq9" * 8
    made.commit(["a"], ["b"], titles=[b"Opening doors \xff\x1b[31m", b"key " + key])
    found = await read_history(Git(this_host().environ, made.top))
    assert found.told({"door": 1.0}).keys() == {"a"}
    old = found.encoded()
    assert key not in old
    made.commit(["c"], titles=[b"Close the door"])
    newer = await read_history(Git(this_host().environ, made.top), old)
    assert newer.told({"door": 1.0}).keys() == {"a", "c"}


async def test_no_path_is_kept_that_looks_like_a_key(made: MadeRepository) -> None:
    key = "ghp_" + "x7Kq9" * 8
    made.commit(["a", f"{key}.py"], [f"{key}/b"])
    found = await read_history(Git(this_host().environ, made.top))
    assert found.commits == [["a"]]
    assert key.encode() not in found.encoded()
