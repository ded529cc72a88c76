"""Files of a commit are put in their places without a step through a link."""

import errno
import os
from pathlib import Path

import pytest

from hostile_git import Sandpit, make_repository, needs_git
from hosts import this_host
from rows import every_row
from ybs.git import moves as git_checkout
from ybs.git import moves as git_moves
from ybs.git.client import Git
from ybs.git.hardening import GitError
from ybs.security.paths.opening import OpenEntry

pytestmark = [pytest.mark.integration, needs_git]


@pytest.fixture
def pit(project: Path, tmp_path: Path) -> Sandpit:
    """A repository on `main`; its branch `other` has more files, one of them a program and one a link."""
    pit = Sandpit(tmp_path / "pit")
    pit.top = project
    project.rmdir()
    make_repository(project)
    pit.plain("switch", "-q", "-c", "other")
    (project / "d/e").mkdir(parents=True)
    (project / "d/e/hook").write_text("#!/bin/sh\n")
    (project / "d/e/hook").chmod(0o755)
    (project / "d/link").symlink_to("e/hook")
    (project / "a.txt").unlink()
    pit.plain("add", ".")
    pit.plain("commit", "-q", "-m", "other")
    return pit


async def switch(pit: Sandpit, name: str) -> None:
    git = Git(this_host().environ, pit.top)
    changed = await git_moves.differences(git, "HEAD", f"refs/heads/{name}")
    await git_moves.switch_branch(git, name, changed)


async def test_a_switch_makes_and_removes_files_links_and_folders(pit: Sandpit):
    await switch(pit, "main")
    assert not (pit.top / "d").exists(), "the folders that were left empty are gone too"
    assert (pit.top / "a.txt").read_text() == "one\n"
    assert pit.plain("status", "--porcelain").stdout == ""
    await switch(pit, "other")
    assert os.access(pit.top / "d/e/hook", os.X_OK)
    assert (pit.top / "d/link").readlink() == Path("e/hook")
    assert not (pit.top / "a.txt").exists()
    assert pit.plain("status", "--porcelain").stdout == ""
    assert pit.plain("branch", "--show-current").stdout == "other\n"
    assert not [path for path in (pit.top / ".git").iterdir() if path.name.startswith("ybs-")]


async def test_a_folder_with_other_things_in_it_stays_when_its_files_go(pit: Sandpit):
    (pit.top / "d/mine").write_text("mine\n")
    await switch(pit, "main")
    assert [path.name for path in (pit.top / "d").iterdir()] == ["mine"]


async def test_a_git_folder_on_another_disk_is_copied_from(pit, monkeypatch):
    await switch(pit, "main")
    real = OpenEntry.replace

    def replace(self: OpenEntry, other: OpenEntry) -> None:
        if not self.name.endswith(".tmp"):
            raise OSError(errno.EXDEV, "another disk")
        real(self, other)

    monkeypatch.setattr(OpenEntry, "replace", replace)
    await switch(pit, "other")
    assert os.access(pit.top / "d/e/hook", os.X_OK)
    assert (pit.top / "d/link").readlink() == Path("e/hook")
    assert pit.plain("status", "--porcelain").stdout == ""

    def fail(self: OpenEntry, other: OpenEntry) -> None:
        raise OSError(errno.EXDEV if not self.name.endswith(".tmp") else errno.EIO, "broken")

    monkeypatch.setattr(OpenEntry, "replace", fail)
    (pit.top / "d/e/hook").write_text("changed\n")
    with pytest.raises(GitError, match="broken"):
        await git_moves.restore(Git(this_host().environ, pit.top), ["d/e/hook"])
    assert (pit.top / "d/e/hook").read_text() == "changed\n"
    assert sorted(path.name for path in (pit.top / "d/e").iterdir()) == ["hook"]


@every_row("target", ["../outside", ".git/hooks"])
async def test_a_folder_that_becomes_a_link_at_the_worst_moment_leads_nowhere(
    pit: Sandpit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
):
    (pit.top / "d/e/hook").write_text("changed\n")
    there = pit.top / target
    there.mkdir(exist_ok=True)
    before = sorted(os.listdir(there))  # noqa: PTH208 - names
    change = git_checkout._change

    def swapped(*given: object) -> None:
        (pit.top / "d/e").rename(pit.top / "d/before")
        (pit.top / "d/e").symlink_to(there)
        change(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(git_checkout, "_change", swapped)
    try:
        with pytest.raises(GitError, match="became a link"):
            await git_moves.restore(Git(this_host().environ, pit.top), ["d/e/hook"])
    finally:
        (pit.top / "d/e").unlink()
        (pit.top / "d/before").rename(pit.top / "d/e")
    assert sorted(os.listdir(there)) == before  # noqa: PTH208 - names


async def test_a_link_on_the_way_is_no_obstacle_to_removing_and_is_not_followed(
    pit: Sandpit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    outside = tmp_path / "outside"
    (outside / "e").mkdir(parents=True)
    (outside / "e/hook").write_text("mine\n")
    change = git_checkout._change

    def swapped(*given: object) -> None:
        (pit.top / "d").rename(pit.top / "before")
        (pit.top / "d").symlink_to(outside)
        change(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(git_checkout, "_change", swapped)
    with pytest.raises(GitError, match="became a link"):
        await switch(pit, "main")
    assert (outside / "e/hook").read_text() == "mine\n"
    assert pit.plain("branch", "--show-current").stdout == "other\n"


async def test_a_folder_with_files_in_the_place_of_a_file_stays(pit: Sandpit):
    (pit.top / "d/e/hook").unlink()
    (pit.top / "d/e/hook").mkdir()
    await git_moves.restore(Git(this_host().environ, pit.top), ["d/e/hook"])
    assert (pit.top / "d/e/hook").is_file(), "an empty one goes"
    (pit.top / "d/e/hook").unlink()
    (pit.top / "d/e/hook").mkdir()
    (pit.top / "d/e/hook/mine").write_text("mine\n")
    with pytest.raises(GitError, match="not all files"):
        await git_moves.restore(Git(this_host().environ, pit.top), ["d/e/hook"])
    assert (pit.top / "d/e/hook/mine").read_text() == "mine\n"


async def test_a_repository_within_is_an_empty_folder_and_stays_when_it_goes(pit: Sandpit):
    head = pit.plain("rev-parse", "HEAD").stdout.strip()
    (pit.top / ".gitmodules").write_text("")
    pit.plain("add", ".gitmodules")
    pit.plain("commit", "-q", "-m", "names")
    pit.plain("switch", "-q", "-c", "third")
    pit.plain("update-index", "--add", "--cacheinfo", f"160000,{head},within/it")
    pit.plain("commit", "-q", "-m", "a repository within")
    await switch(pit, "other")
    await switch(pit, "third")
    assert (pit.top / "within/it").is_dir()
    assert pit.plain("status", "--porcelain").stdout == ""
    (pit.top / "within/it/file").write_text("mine\n")
    await switch(pit, "other")
    (pit.top / "within").rename(pit.top / "moved")
    (pit.top / "within").symlink_to("moved")
    with pytest.raises(GitError, match="folder could not be made"):
        await switch(pit, "third")
    (pit.top / "within").unlink()
    (pit.top / "moved").rename(pit.top / "within")
    assert (pit.top / "within/it/file").read_text() == "mine\n"


async def test_no_folder_of_a_repository_within_makes_the_one_around_it_a_repository(pit):
    head = pit.plain("rev-parse", "HEAD").stdout.strip()
    pit.plain("switch", "-q", "-c", "third")
    for name in (".gitmodules", "x/HEAD"):
        (pit.top / name).parent.mkdir(exist_ok=True)
        (pit.top / name).write_text("")
    pit.plain("add", ".gitmodules", "x")
    for name in ("objects", "refs"):
        pit.plain("update-index", "--add", "--cacheinfo", f"160000,{head},x/{name}")
    pit.plain("commit", "-q", "-m", "repositories within")
    await switch(pit, "other")
    with pytest.raises(GitError, match="git would take the folder around 'x/refs'"):
        await switch(pit, "third")
    assert sorted(each.name for each in (pit.top / "x").iterdir()) == ["HEAD", "objects"]


async def test_a_git_folder_that_cannot_be_written_is_an_error(pit, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(git_checkout.os, "mkdir", fail)
    with pytest.raises(GitError, match="cannot write in its folder"):
        await git_checkout.put_files(Git(this_host().environ, pit.top), {"b.txt": "100644"})
