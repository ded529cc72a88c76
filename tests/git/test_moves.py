"""What moves HEAD, the index or files, in repositories that are not what they seem."""

import shutil
from pathlib import Path

import pytest

from hostile_git import TRAPS, Sandpit, hook, needs_git, template_in
from hosts import this_host
from ybs.git import moves as git_moves
from ybs.git.client import Git
from ybs.git.hardening import GitError, plain_message

pytestmark = [pytest.mark.integration, needs_git]


@pytest.fixture
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return template_in(tmp_path_factory.getbasetemp())


@pytest.fixture
def pit(template: Path, tmp_path: Path) -> Sandpit:
    pit = Sandpit(tmp_path / "pit")
    shutil.copytree(template, pit.top)
    return pit


async def switch(git: Git, name: str) -> None:
    changed = await git_moves.differences(git, "HEAD", f"refs/heads/{name}")
    await git_moves.switch_branch(git, name, changed)


async def test_no_planted_program_runs_when_files_are_put_back_or_branches_switched(pit: Sandpit):
    pit.plain("branch", "old", "HEAD~1")
    for name, trap in TRAPS.items():
        if not trap.prepare and " of an odd " not in name:
            pit.configure(trap.settings)
    (pit.top / ".git/info").mkdir()
    (pit.top / ".git/info/attributes").write_text("*.txt diff=evil merge=evil\n")
    hook(pit)
    shutil.copy(pit.program, pit.top / ".git/hooks/post-checkout")
    pit.forget()
    git = Git(this_host().environ, pit.top)
    (pit.top / "a.txt").write_text("changed\n")
    (pit.top / "b.txt").unlink()
    await git_moves.restore(git, ["a.txt", "b.txt"])
    assert (pit.top / "b.txt").read_text() == "two\n"
    await switch(git, "old")
    assert (pit.top / "b.txt").read_text() == "one\n"
    await git_moves.make_branch(git, "new")
    assert await git_moves.branches(git) == ["main", "new", "old"]
    await git.commit("third", "a.txt")
    assert not pit.has_run
    (pit.top / ".git/info/attributes").write_text("a.txt filter=evil\n")
    (pit.top / "a.txt").write_text("changed\n")
    with pytest.raises(GitError, match="goes through the filter"):
        await git_moves.restore(git, ["a.txt"])
    assert not pit.has_run
    pit.plain("checkout", "--", "a.txt")
    assert pit.has_run  # the trap was set


async def test_a_branch_whose_own_attributes_name_a_filter_is_not_switched_to(pit: Sandpit):
    git = Git(this_host().environ, pit.top)
    await git_moves.make_branch(git, "filtered")
    (pit.top / ".gitattributes").write_text("*.bin filter=evil\n")
    (pit.top / "x.bin").write_text("x")
    pit.plain("add", ".")
    pit.plain("commit", "-qm", "filtered")
    pit.plain("checkout", "-q", "main")
    pit.configure('[filter "evil"]\nsmudge = @')
    with pytest.raises(GitError, match="goes through the filter 'evil'"):
        await switch(git, "filtered")
    assert sorted(path.name for path in pit.top.iterdir()) == [".git", "a.txt", "b.txt"]
    assert not pit.has_run
    assert await git.branch() == "main"


async def test_nothing_is_overwritten_by_a_switch(pit: Sandpit):
    pit.plain("branch", "old", "HEAD~1")
    git = Git(this_host().environ, pit.top)
    (pit.top / "b.txt").write_text("mine\n")
    with pytest.raises(GitError, match=r"b\.txt"):
        await switch(git, "old")
    assert (pit.top / "b.txt").read_text() == "mine\n"
    changed = {"mine": (git_moves.TreeSide("000000", "0"), git_moves.TreeSide("100644", "1"))}
    (pit.top / "mine").write_text("ignored or not")
    with pytest.raises(GitError, match="'mine' is not in this branch's last commit"):
        await git_moves.switch_branch(git, "old", changed)
    (pit.top / ".git/rebase-merge").mkdir()
    with pytest.raises(GitError, match="a rebase is under way"):
        await switch(git, "old")
    assert await git.branch() == "main"
    (pit.top / ".git/refs/heads/main").unlink()
    await git_moves.make_branch(git, "before-the-first-commit")
    assert await git.branch() == "before-the-first-commit"


async def test_only_files_of_the_last_commit_are_put_back(pit: Sandpit, tmp_path: Path):
    git = Git(this_host().environ, pit.top)
    (pit.top / "folder").mkdir()
    (pit.top / "new.txt").write_text("x")
    (pit.top / "sub/.git").mkdir(parents=True)
    for path in ("new.txt", "folder", "none", "../x", "sub/a.txt", ".git/config"):
        with pytest.raises(
            GitError, match=r"not a file of|not a path within|no path within|repository of its own"
        ):
            await git_moves.restore(git, [path])
    outside = tmp_path / "outside"
    outside.mkdir()
    (pit.top / "a.txt").unlink()
    (pit.top / "a.txt").symlink_to(outside / "target")
    await git_moves.restore(git, ["a.txt"])
    assert not (pit.top / "a.txt").is_symlink()
    assert list(outside.iterdir()) == []


async def test_the_persons_own_list_of_ignored_files_counts_and_no_other(pit: Sandpit, home: Path):
    (pit.top / "x.own").write_text("x")
    (pit.top / "x.named").write_text("x")
    (pit.top / "evil").write_text("*\n")
    pit.configure(f"[core]\nexcludesFile = {pit.top}/evil")
    (home / ".config/git").mkdir(parents=True)
    (home / ".config/git/ignore").write_text("*.own\n")
    (home / "list").write_text("*.named\n")

    async def seen() -> list[str]:
        return [change.path for change in (await Git(this_host().environ, pit.top).look())[1]]

    assert await seen() == ["evil", "x.named"]
    (home / ".gitconfig").write_text("[core]\nexcludesFile = ~/list\n")
    assert await seen() == ["evil", "x.own"]
    (home / ".gitconfig").write_text("[core]\nexcludesFile = list\n")
    assert await seen() == ["evil", "x.named", "x.own"]


async def test_a_look_tells_the_branch_and_a_bare_repository_is_known(pit: Sandpit):
    git = Git(this_host().environ, pit.top)
    assert await git.look() == ("main", [])
    assert not await git.is_bare()
    pit.configure("[core]\nbare = true")
    assert await git.is_bare()


def test_a_message_has_nothing_in_it_that_acts_or_hides():
    assert plain_message(" a\tb\r\nc\rd\x00\x1b[2J\u202e\ud800\x9b ") == "a    b\nc\nd[2J"
