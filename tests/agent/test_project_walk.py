"""What the looks of undo see: every folder that tools may work in, links as links, and what was passed over."""

import os
from pathlib import Path

import pytest

from hosts import this_host
from session.test_undoing import Play
from session.trees import tree
from ybs.agent.project_walk import listings
from ybs.checkpoints.states import BULK
from ybs.security.paths.roots import Roots
from ybs.session.undoing import Checkpoints
from ybs.tools.searching.walk import Deadline


def _folders(roots: Roots) -> list[str]:
    return [str(listing.folder) for listing in listings(roots, Deadline(5))]


def test_each_folder_is_looked_through_once_and_none_for_a_project_within_it(project, tmp_path):
    other = tmp_path / "other"
    (other / "below").mkdir(parents=True)
    (project / "below").mkdir()
    assert _folders(Roots(this_host(), project)) == [str(project)]
    roots = Roots(this_host(), project, ("./", "./below", other, other / "below", tmp_path))
    assert _folders(roots) == [str(other), str(project)]
    assert _folders(Roots(this_host(), project, (other, "./below"))) == [
        str(other),
        str(project / "below"),
    ]


def test_links_are_seen_wherever_they_lead_and_what_is_left_out_is_told(project: Path):
    (project / ".gitignore").write_text("*.log\nout/\n")
    for name in ("out", ".git", ".hg", ".jj", ".sl", ".Hg", "d", "secret", "closed"):
        (project / name).mkdir()
        (project / name / "x.log").write_text("")
    (project / "d" / "away").symlink_to("/")
    (project / "lost").symlink_to("nowhere")
    os.mkfifo(project / "pipe")
    (listing,) = listings(Roots(this_host(), project, blocked=("secret",)), Deadline(5))
    logs = {"d/x.log", "closed/x.log"}
    assert {*listing.files} == {".gitignore", "d/away", "lost", *logs}
    assert sorted(listing.folders) == ["closed", "d"]
    assert listing.left_out == {"out", ".git", ".hg", ".jj", ".sl", ".Hg", "secret"}
    assert (listing.ignored, listing.bulk) == (logs, {"out": BULK})


def test_folders_that_git_ignores_are_entered_but_for_bulk_blocked_and_repositories(project: Path):
    (project / ".gitignore").write_text("/local\n")
    for path in (
        "local/a",
        "local/dist/b",
        "local/cache/CACHEDIR.TAG",
        "local/repo/.git/c",
        "local/.hg/c",
    ):
        (project / path).parent.mkdir(parents=True)
        (project / path).write_text("")
    for path in ("local/repo/.gitignore", "local/secret", "dist"):
        (project / path).write_text("a\n")
    (listing,) = listings(Roots(this_host(), project, blocked=("local/secret",)), Deadline(5))
    kept = {"local", "local/a", "local/cache", "local/repo", "local/repo/.gitignore"}
    assert listing.ignored == kept
    assert {*listing.files, *listing.folders} == {".gitignore", "dist", *kept}
    assert listing.bulk == dict.fromkeys(("local/dist", "local/cache"), BULK)
    assert listing.left_out == {"local/secret", "local/repo/.git", "local/.hg", *listing.bulk}


@pytest.mark.integration
async def test_an_added_folder_is_undone_too_and_a_removed_one_never(project: Path, tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    play = Play(project)
    play.roots.add(other)
    name = await play.name(lambda: (other / "a").write_text("1"))
    kept = tree(other)
    apart = Checkpoints(Roots(this_host(), project), "session-2", may_write=True)
    undone = await apart.undo([name], force=True)
    assert undone.conflicts == (str(other / "a"),)
    assert tree(other) == kept
    assert (await play.checkpoints.undo([name])).paths == (str(other / "a"),)
    assert tree(other) == {}
