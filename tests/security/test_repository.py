import os
import shutil
from pathlib import Path

import pytest

from hostile_git import Sandpit, make_repository, needs_git
from ybs.security.git import Git
from ybs.security.git_walls import GitError

pytestmark = needs_git


@pytest.fixture
def pit(tmp_path: Path) -> Sandpit:
    pit = Sandpit(tmp_path / "pit")
    make_repository(pit.top)
    return pit


async def test_a_repository_put_together_oddly_is_refused(pit: Sandpit, tmp_path: Path):
    assert await Git(pit.top).is_repository()
    (pit.top / ".git/refs").rename(pit.top / "refs")
    (pit.top / ".git/refs").write_text("")
    with pytest.raises(GitError, match="refs is no folder"):
        await Git(pit.top).status()
    (pit.top / ".git/HEAD").unlink()
    (pit.top / ".git/HEAD").symlink_to("/etc/hostname")
    with pytest.raises(GitError, match="HEAD is a link"):
        await Git(pit.top).status()


async def test_a_file_that_leads_to_no_git_folder_is_refused(pit: Sandpit):
    shutil.rmtree(pit.top / ".git")
    (pit.top / ".git").write_text("somewhere")
    with pytest.raises(GitError, match="names no git folder"):
        await Git(pit.top).status()
    (pit.top / ".git").write_text("gitdir: x/worktrees/y")
    (pit.top / "x/worktrees/y").mkdir(parents=True)
    os.mkfifo(pit.top / "x/worktrees/y/gitdir")
    with pytest.raises(GitError, match="gitdir is no regular file"):
        await Git(pit.top).status()
    (pit.top / ".git").unlink()
    os.mkfifo(pit.top / ".git")
    with pytest.raises(GitError, match="no file"):
        await Git(pit.top).status()


async def test_a_worktree_is_followed_to_its_repository(pit: Sandpit, tmp_path: Path):
    pit.plain("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    assert await Git(tmp_path / "side").branch() == "side"
    git_folder = pit.top / ".git/worktrees/side"
    (git_folder / "gitdir").write_text(f"{pit.top}/.git\n")
    with pytest.raises(GitError, match="does not belong"):
        await Git(tmp_path / "side").branch()


async def test_a_submodule_is_followed_to_its_repository(pit: Sandpit):
    (pit.top / "sub").mkdir()
    shutil.copytree(pit.top / ".git", pit.top / ".git/modules/sub", ignore=lambda *_: ["modules"])
    (pit.top / "sub/.git").write_text("gitdir: ../.git/modules/sub\n")
    assert await Git(pit.top / "sub").branch() == "main"
