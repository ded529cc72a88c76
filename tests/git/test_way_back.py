"""The way back of ybs's own commits: the branch moves where nobody else can have them, else a commit is added."""

import shutil
from pathlib import Path

import pytest

from hostile_git import Sandpit, needs_git, template_in
from hosts import this_host
from ybs.git.client import Git, StatusLine
from ybs.git.moves import bring_back, take_back

pytestmark = [pytest.mark.integration, needs_git]


@pytest.fixture
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return template_in(tmp_path_factory.getbasetemp())


@pytest.fixture
def pit(template: Path, tmp_path: Path) -> Sandpit:
    pit = Sandpit(tmp_path / "pit")
    shutil.copytree(template, pit.top)
    return pit


async def commit(pit: Sandpit, **files: str) -> str:
    """Make a commit of ybs's own."""
    for name, text in files.items():
        (pit.top / f"{name}.txt").write_text(text)
    return await Git(this_host().environ, pit.top).commit(
        "Do it", *(f"{name}.txt" for name in files)
    )


def publish(pit: Sandpit, name: str) -> None:
    """Have a branch of a remote be at a commit."""
    pit.plain("update-ref", "refs/remotes/origin/main", name)


def titles(pit: Sandpit) -> list[str]:
    return pit.plain("log", "--format=%s").stdout.splitlines()


def status(pit: Sandpit) -> list[str]:
    return pit.plain("status", "--porcelain", "-uall").stdout.splitlines()


async def test_the_branch_moves_back_and_forth_and_leaves_no_litter(pit: Sandpit):
    git = Git(this_host().environ, pit.top)
    before, head = titles(pit), await git.head()
    commits = [await commit(pit, a="2\n", c="new\n"), await commit(pit, c="newer\n")]
    publish(pit, head)
    (pit.top / "staged.txt").write_text("mine\n")
    pit.plain("add", "staged.txt")
    assert await take_back(git, commits[0]) == "stays"  # a later one stands above it
    (pit.top / "c.txt").write_text("new\n")  # as the checkpoints have it
    assert await take_back(git, commits[1]) == "moved"
    assert status(pit) == ["A  staged.txt"]  # what is staged besides is nobody's to take
    assert await take_back(git, commits[0]) == "moved"
    assert (await git.head(), titles(pit)) == (head, before)
    assert status(pit) == [" M a.txt", "A  staged.txt", "?? c.txt"]
    kept = pit.plain("reflog", "--format=%H %gs").stdout
    assert f"{commits[1]} " in kept
    assert "ybs: undo" in kept
    for name in commits:
        assert await bring_back(git, name) == "moved"
    assert await git.head() == commits[1]
    assert titles(pit) == ["Do it", "Do it", *before]


async def test_what_a_remote_has_is_reverted_by_a_commit_and_the_revert_goes_again(pit: Sandpit):
    git = Git(this_host().environ, pit.top)
    before = titles(pit)
    made = await commit(pit, a="2\n")
    publish(pit, made)
    assert await take_back(git, made) == "added"
    assert titles(pit) == ['Revert "Do it"', "Do it", *before]
    assert await bring_back(git, made) == "moved"
    assert await git.head() == made
    assert await take_back(git, made) == "added"
    publish(pit, await git.head())
    assert await bring_back(git, made) == "added"
    assert titles(pit) == ['Reapply "Do it"', 'Revert "Do it"', "Do it", *before]
    assert await take_back(git, made) == "added"  # its content stands last again
    pit.plain("commit", "-q", "--allow-empty", "-m", "theirs")
    assert await bring_back(git, made) == "added"


async def test_nothing_moves_where_others_went_on_or_something_is_under_way(pit: Sandpit):
    git = Git(this_host().environ, pit.top)
    made = await commit(pit, a="2\n")
    (pit.top / ".git/MERGE_HEAD").write_text("x")
    assert await take_back(git, made) == "stays"
    (pit.top / ".git/MERGE_HEAD").unlink()
    for name in ("HEAD", "--all", "main"):
        assert await take_back(git, name) == await bring_back(git, name) == "stays"
    assert await bring_back(git, made) == "stays"  # it was not taken back
    assert await take_back(git, made) == "moved"
    assert (pit.top / "a.txt").read_text() == "2\n"
    assert await git.look() == ("main", [StatusLine(" M", "a.txt")])
    pit.plain("commit", "-q", "-am", "theirs")
    assert await bring_back(git, made) == "stays"
    (pit.top / ".git/HEAD").write_text(await git.head())
    assert await take_back(git, await git.head()) == "stays"
