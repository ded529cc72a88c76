"""What stands in the way of a commit: looked at in real repositories."""

import os
import subprocess
from pathlib import Path

import pytest

from hostile_git import GIT, make_repository, needs_git
from hosts import this_host
from rows import every_row
from ybs.git.client import Git
from ybs.git.committable import look, names_within

pytestmark = needs_git


def git_of(top: Path) -> Git:
    make_repository(top)
    return Git(this_host().environ, top)


def git(top: Path, *words: str) -> None:
    named = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run([GIT, *named, *words], cwd=top, check=True, capture_output=True)


@pytest.mark.integration
async def test_an_ordinary_repository_has_a_branch_and_no_trouble(tmp_path: Path):
    client = git_of(tmp_path / "top")
    (client.folder / "a.txt").write_text("changed\n")
    seen = await look(client)
    assert (seen.branch, seen.trouble, list(seen.changes)) == ("main", "", ["a.txt"])


@pytest.mark.integration
async def test_a_detached_head_is_a_trouble(tmp_path: Path):
    client = git_of(tmp_path / "top")
    git(client.folder, "checkout", "-q", "--detach")
    assert (await look(client)).trouble == "HEAD is on no branch"


@pytest.mark.integration
@every_row(
    ("mark", "trouble"),
    [("MERGE_HEAD", "a merge is under way"), ("CHERRY_PICK_HEAD", "a cherry-pick is under way")],
)
async def test_what_is_under_way_is_a_trouble(tmp_path: Path, mark: str, trouble: str):
    client = git_of(tmp_path / mark)
    (client.folder / ".git" / mark).write_text("0" * 40 + "\n")
    assert (await look(client)).trouble == trouble


@pytest.mark.integration
async def test_conflicts_are_a_trouble(tmp_path: Path):
    client = git_of(tmp_path / "top")
    git(client.folder, "checkout", "-q", "-b", "other")
    (client.folder / "a.txt").write_text("theirs\n")
    git(client.folder, "commit", "-qam", "theirs")
    git(client.folder, "checkout", "-q", "main")
    (client.folder / "a.txt").write_text("ours\n")
    git(client.folder, "commit", "-qam", "ours")
    with pytest.raises(subprocess.CalledProcessError):
        git(client.folder, "merge", "-q", "other")
    (client.folder / ".git" / "MERGE_HEAD").unlink()  # the conflict is still in the index
    assert (await look(client)).trouble == "there are conflicts"


@pytest.mark.integration
async def test_a_repository_that_git_cannot_read_is_a_trouble_with_its_reason(tmp_path: Path):
    client = git_of(tmp_path / "top")
    (client.folder / ".git" / "HEAD").write_text("nonsense\n")
    seen = await look(client)
    assert seen.trouble
    assert not seen.changes


@pytest.mark.integration
async def test_a_bare_repository_has_nothing_to_commit(tmp_path: Path):
    client = git_of(tmp_path / "top")
    git(client.folder, "config", "core.bare", "true")
    seen = await look(client)
    assert (seen.changes, seen.branch) == ({}, "")


@pytest.mark.integration
def test_a_path_that_is_a_circle_of_links_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    client = git_of(tmp_path / "top")
    real = os.path.realpath

    def turning(path: str, **how: bool) -> str:
        if str(path).endswith("turned"):
            raise OSError("it is a link no longer")
        return real(path, **how)

    monkeypatch.setattr(os.path, "realpath", turning)
    named = names_within(client, client.folder, ["turned/a.txt", "a.txt"])
    assert dict(named) == {"a.txt": "a.txt"}
