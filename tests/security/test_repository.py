import os
import shutil
from pathlib import Path

import pytest

from hostile_git import Sandpit, make_repository, needs_git
from hosts import this_host
from ybs.git.client import Git
from ybs.git.hardening import GitError
from ybs.git.moves import make_branch
from ybs.security.paths.repository import (
    commit_at_head,
    find_repository,
    has_attributes,
    is_in_repository,
)
from ybs.security.sandbox.places import see

pytestmark = needs_git


@pytest.fixture
def pit(tmp_path: Path) -> Sandpit:
    pit = Sandpit(tmp_path / "pit")
    make_repository(pit.top)
    return pit


@pytest.mark.integration
async def test_a_repository_put_together_oddly_is_refused(pit: Sandpit, tmp_path: Path):
    assert await Git(this_host().environ, pit.top).look() == ("main", [])
    (pit.top / ".git/refs").rename(pit.top / "refs")
    (pit.top / ".git/refs").write_text("")
    with pytest.raises(GitError, match="refs is not a folder"):
        await Git(this_host().environ, pit.top).look()
    (pit.top / ".git/HEAD").unlink()
    (pit.top / ".git/HEAD").symlink_to("/etc/hostname")
    with pytest.raises(GitError, match="HEAD is a link"):
        await Git(this_host().environ, pit.top).look()


@pytest.mark.integration
async def test_a_branch_that_is_a_link_or_a_pipe_tells_nothing_of_another_repository(pit, tmp_path):
    other = tmp_path / "other"
    make_repository(other)
    heads = pit.top / ".git/refs/heads"
    (pit.top / ".git/objects/info").mkdir(exist_ok=True)
    (pit.top / ".git/objects/info/alternates").write_text(f"{other / '.git/objects'}\n")
    (heads / "main").unlink()
    (heads / "main").symlink_to(other / ".git/refs/heads/main")
    with pytest.raises(GitError, match="main is a link"):
        await Git(this_host().environ, pit.top).run("log")
    (heads / "main").unlink()
    (heads / "side").symlink_to(other / ".git/refs/heads")
    (heads / "main").write_text("ref: refs/heads/side/main\n")
    with pytest.raises(GitError, match="side is a link"):
        await Git(this_host().environ, pit.top).run("log")
    (heads / "main").unlink()
    os.mkfifo(heads / "main")
    with pytest.raises(GitError, match="main is a link or not a regular file"):
        await Git(this_host().environ, pit.top).run("log")


@pytest.mark.integration
async def test_a_file_that_leads_to_no_git_folder_is_refused(pit: Sandpit):
    shutil.rmtree(pit.top / ".git")
    (pit.top / ".git").write_text("somewhere")
    with pytest.raises(GitError, match="names no git folder"):
        await Git(this_host().environ, pit.top).look()
    (pit.top / ".git").write_text("gitdir: x/worktrees/y")
    (pit.top / "x/worktrees/y").mkdir(parents=True)
    os.mkfifo(pit.top / "x/worktrees/y/gitdir")
    with pytest.raises(GitError, match="gitdir is not a regular file"):
        await Git(this_host().environ, pit.top).look()
    (pit.top / ".git").unlink()
    os.mkfifo(pit.top / ".git")
    with pytest.raises(GitError, match="not a regular file"):
        await Git(this_host().environ, pit.top).look()


@pytest.mark.integration
async def test_a_worktree_is_followed_to_its_repository(pit: Sandpit, tmp_path: Path):
    pit.plain("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    assert await Git(this_host().environ, tmp_path / "side").branch() == "side"
    git_folder = pit.top / ".git/worktrees/side"
    (git_folder / "gitdir").write_text(f"{pit.top}/.git\n")
    with pytest.raises(GitError, match="does not belong"):
        await Git(this_host().environ, tmp_path / "side").branch()


def add_submodule(top: Path, settings: str) -> Path:
    """Lay out a submodule as git does, but for where its settings say that its work tree is."""
    git = top / ".git/modules/sub"
    shutil.copytree(top / ".git", git, ignore=lambda *_: ["modules"], dirs_exist_ok=True)
    with (git / "config").open("a") as file:
        file.write(settings)
    (top / "sub").mkdir(exist_ok=True)
    (top / "sub/.git").write_text("gitdir: ../.git/modules/sub\n")
    return top / "sub"


@pytest.mark.integration
@pytest.mark.parametrize("where", ["../../../sub", '"@/sub"'])
async def test_a_submodule_is_followed_to_its_repository(pit: Sandpit, where: str):
    sub = add_submodule(pit.top, f"[core]\n\tworktree = {where.replace('@', str(pit.top))}\n[x]\n")
    assert await Git(this_host().environ, sub).branch() == "main"
    own = find_repository(sub).git_folder
    (own / "config").rename(own / "config.worktree")  # where git writes it for a sparse checkout
    shutil.copy(pit.top / ".git/config", own / "config")
    assert await Git(this_host().environ, sub).branch() == "main"


@pytest.mark.integration
async def test_a_submodule_of_another_repository_is_refused(pit: Sandpit, tmp_path: Path):
    add_submodule(pit.top, "[core]\nworktree = ../../../sub\n")
    for folder in (tmp_path / "elsewhere", tmp_path / "modules/sub", pit.top / "other"):
        folder.mkdir(parents=True)
        (folder / ".git").write_text(f"gitdir: {pit.top}/.git/modules/sub\n")
        with pytest.raises(GitError, match="does not belong"):
            await Git(this_host().environ, folder).look()
    for settings in ("", "[odd]\nworktree = ../../../sub\n", "[core]\nworktree =\n"):
        shutil.rmtree(pit.top / ".git/modules")
        sub = add_submodule(pit.top, settings)
        with pytest.raises(GitError, match="does not belong"):
            await Git(this_host().environ, sub).look()


@pytest.mark.integration
async def test_a_project_takes_no_repository_that_only_its_own_file_names(pit: Sandpit):
    around = pit.top / ".git"
    add_submodule(pit.top, "[core]\nworktree = ../../../sub\n")
    pit.plain("worktree", "add", "-q", "-b", "side", str(pit.top / "side"))
    project = pit.top / "project"
    project.mkdir()
    (project / "link").symlink_to(around)
    named = ("../.git", around, "link", f"{around}/worktrees/side", f"{around}/modules/sub")
    for pointer in named:
        (project / ".git").write_text(f"gitdir: {pointer}\n")
        with pytest.raises(GitError, match=r"belongs neither|does not belong"):
            await Git(this_host().environ, project).run("diff")
        assert not is_in_repository(project), pointer
        assert see(this_host(), project).readable == (), pointer


@pytest.mark.integration
async def test_the_settings_of_a_git_folder_move_no_work_tree(pit: Sandpit):
    """As an archive may bring it: git itself would take the folder around the project for the work tree."""
    project, settings = pit.top / "project", "[core]\nworktree = ../..\n"
    make_repository(project)
    (pit.top / "private.txt").write_text("secret")
    with (project / ".git/config").open("a") as file:
        file.write(f"{settings}[extensions]\nworktreeConfig = true\n")
    assert "private.txt" in pit.plain("status", "--porcelain", folder=project).stdout
    (project / ".git/config.worktree").write_text(settings)
    git = Git(this_host().environ, project)
    assert (await git.look(), git.repository().work_tree) == (("main", []), project)


async def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(pit: Sandpit):
    for name in ("HEAD", "config", "index", "packed-refs"):
        path = pit.top / ".git" / name
        data = path.read_bytes() if path.exists() else None
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        with pytest.raises(GitError, match=f"{name} is not a regular file"):
            await Git(this_host().environ, pit.top).look()
        path.unlink()
        if data is not None:
            path.write_bytes(data)


LED_AWAY = [
    *("index", "logs", "logs/HEAD", "logs/refs/heads", "logs/refs/heads/main"),
    *("refs/heads", "refs/heads/main", "objects/ab", "COMMIT_EDITMSG", "rr-cache"),
]


@pytest.mark.integration
@pytest.mark.parametrize("name", LED_AWAY)
async def test_git_writes_through_no_link_in_its_own_folder(pit, tmp_path, name):
    outside, place = tmp_path / "outside", pit.top / ".git" / name
    pit.plain("reflog")
    if place.exists():
        place.rename(outside)
    elif name.startswith("objects"):
        outside.mkdir()
    place.symlink_to(outside)
    before = outside.read_bytes() if outside.is_file() else sorted(outside.rglob("*"))
    (pit.top / "a.txt").write_text("changed\n")
    with pytest.raises(GitError, match=r"is a link|not a regular file"):
        await Git(this_host().environ, pit.top).commit("led away", "a.txt")
    with pytest.raises(GitError, match=r"is a link|not a regular file"):
        await make_branch(Git(this_host().environ, pit.top), "new")
    assert before == (outside.read_bytes() if outside.is_file() else sorted(outside.rglob("*")))


@pytest.mark.integration
async def test_links_to_hooks_are_no_obstacle_and_a_repository_may_have_no_logs(pit, tmp_path):
    shutil.rmtree(pit.top / ".git/hooks", ignore_errors=True)
    (pit.top / ".git/hooks").symlink_to(tmp_path)
    shutil.rmtree(pit.top / ".git/logs")
    (pit.top / "a.txt").write_text("changed\n")
    assert await Git(this_host().environ, pit.top).commit("as ever", "a.txt")


def test_branches_that_name_each_other_in_a_circle_end_somewhere(tmp_path: Path):
    make_repository(tmp_path / "repo")
    heads = tmp_path / "repo/.git/refs/heads"
    (heads / "main").write_text("ref: refs/heads/other\n")
    (heads / "other").write_text("ref: refs/heads/main\n")
    assert find_repository(tmp_path / "repo").work_tree == (tmp_path / "repo").resolve()


def test_only_a_work_tree_may_say_that_its_repository_is_elsewhere(tmp_path: Path):
    for name in ("repo", "other"):
        make_repository(tmp_path / name)
    (tmp_path / "repo/.git/commondir").write_text(f"{tmp_path / 'other/.git'}\n")
    with pytest.raises(ValueError, match="commondir"):
        find_repository(tmp_path / "repo")


@pytest.mark.integration
def test_the_commit_at_head_is_read_where_plain_files_say_it(pit: Sandpit) -> None:
    top, repository = pit.top, find_repository(pit.top)
    commit = pit.plain("rev-parse", "HEAD").stdout.strip()
    assert commit_at_head(repository) == commit
    pit.plain("pack-refs", "--all")
    assert commit_at_head(repository) == ""
    (top / ".git/HEAD").write_text(f"{commit}\n")
    assert commit_at_head(repository) == commit
    for number in range(8):
        (top / f".git/refs/heads/b{number}").write_text(f"ref: refs/heads/b{number + 1}\n")
    (top / ".git/HEAD").write_text("ref: refs/heads/b0\n")
    assert commit_at_head(repository) == ""


def test_attributes_may_stand_in_any_folder_above_a_path(pit: Sandpit) -> None:
    top, repository = pit.top, find_repository(pit.top)
    (top / "a/b").mkdir(parents=True)
    assert not has_attributes(repository, ["a/b/c.txt", "d.txt"])
    for place in (".gitattributes", "a/.gitattributes", "a/b/.gitattributes"):
        (top / place).touch()
        assert has_attributes(repository, ["a/b/c.txt"])
        assert has_attributes(repository, ["d.txt"]) == (place == ".gitattributes")
        (top / place).unlink()
    (top / ".git/info").mkdir(exist_ok=True)
    (top / ".git/info/attributes").touch()
    assert has_attributes(repository, ["d.txt"])
