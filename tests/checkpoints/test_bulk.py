"""In which folders of dependencies and build outputs something changed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hosts import this_host
from ybs.checkpoints import states
from ybs.checkpoints.scan import FolderListing, changed_bulk
from ybs.security.paths.roots import Roots


def changed(
    project: Path, since_ns: int, *bulk: str, is_over: Callable[[], bool] = lambda: False
) -> list[str]:
    listing = FolderListing(
        folder=project, files=[], folders=[], left_out=set(), bulk=dict.fromkeys(bulk, states.BULK)
    )
    found = changed_bulk(Roots(this_host(), project), [listing], since_ns, is_over)
    return [str(Path(path).relative_to(project)) for path in found]


def let_pass(project: Path, since_ns: int) -> None:
    """Return once the file system's clock, which is coarse, is behind a moment."""
    clock = project / "now"
    clock.write_text("")
    while clock.lstat().st_ctime_ns <= since_ns:
        os.utime(clock)


@pytest.fixture
def before(project: Path) -> int:
    """Make folders with files and return the time of the last change in them."""
    for name in ("node_modules/a/index.js", "build/out.o", "sub/__pycache__/x.pyc", "dist/x"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x")
    made_ns = max(
        status.st_ctime_ns
        for top, _, names in os.walk(project)
        for status in (os.lstat(os.path.join(top, name)) for name in (".", *names))  # noqa: PTH118
    )
    let_pass(project, made_ns)
    return made_ns


BULK = ("node_modules", "build", "sub/__pycache__", "dist", "gone")


def test_where_nothing_changed_nothing_is_named(project: Path, before: int):
    assert changed(project, before, *BULK) == []


def test_what_changed_at_any_depth_is_named_and_caches_are_not(project: Path, before: int):
    assert changed(project, before - 10**12, *BULK) == ["build", "dist", "node_modules"]
    (project / "node_modules/a/index.js").write_text("y")
    os.utime(project / "node_modules/a/index.js", (0, 0))  # no program can set this time back
    (project / "sub/__pycache__/x.pyc").write_text("y")
    (project / "build/out.o").unlink()
    assert changed(project, before, *BULK) == ["build", "node_modules"]


def test_a_link_counts_itself_and_not_what_it_leads_to(project: Path, before: int):
    (project / "dist/link").symlink_to(project / "other")
    linked = max(each.lstat().st_ctime_ns for each in (project / "dist", project / "dist/link"))
    let_pass(project, linked)
    (project / "other").write_text("new")
    assert changed(project, linked, *BULK) == []
    assert changed(project, before, *BULK) == ["dist"]


def test_what_there_is_no_time_for_counts_as_changed(project: Path, before: int):
    assert changed(project, before, "build", "gone", is_over=lambda: True) == ["build"]
