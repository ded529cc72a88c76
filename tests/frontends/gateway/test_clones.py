"""Clones of projects: made without a program that the repository names, whatever the person's git settings say."""

import subprocess
from pathlib import Path

import pytest

from hostile_git import needs_git
from hosts import this_host
from trusting import put
from ybs.core.errors import YbsError
from ybs.frontends.gateway.clones import clone_of, cloned

pytestmark = [pytest.mark.integration, needs_git]


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    subprocess.run(["git", *who, *words], cwd=folder, check=True)


@pytest.fixture
def upstream(tmp_path: Path) -> str:
    """Return the address of a repository that names programs."""
    top = tmp_path / "upstream"
    put(top, "a.txt", "what is in it")
    put(top, ".gitattributes", "* filter=evil")
    put(top, ".githooks/post-checkout", f"#!/bin/sh\ntouch {tmp_path}/owned", 0o755)
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "All"]):
        git(top, *words)
    return f"file://{top}"


def test_a_clone_runs_nothing_that_the_repository_names(tmp_path: Path, home: Path, upstream: str):
    settings = f"""
        [core]
            hooksPath = .githooks
        [filter "evil"]
            smudge = touch {tmp_path}/owned
    """
    put(home, ".gitconfig", settings)
    git(tmp_path, "clone", "-q", upstream, "bare")
    assert (tmp_path / "owned").exists(), "as it is where the settings count"
    (tmp_path / "owned").unlink()
    folder = cloned(upstream, "shop", this_host())
    assert folder == clone_of("shop", this_host())
    assert (folder / "a.txt").read_text() == "what is in it"
    assert not (tmp_path / "owned").exists()
    assert cloned("file:///gone", "shop", this_host()) == folder  # it is there


@pytest.mark.parametrize("address", ["file:///nowhere", "ext::sh -c touch% owned"])
def test_what_cannot_be_cloned_is_said_and_leaves_nothing(home: Path, address: str):
    with pytest.raises(YbsError, match="shop"):
        cloned(address, "shop", this_host())
    assert [*clone_of("shop", this_host()).parent.iterdir()] == []
