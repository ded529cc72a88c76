"""Blocked files under another name."""

import os
from pathlib import Path

import pytest

from hosts import this_host
from ybs.security.paths import second_names as links
from ybs.security.paths.roots import Roots
from ybs.security.paths.second_names import BlockedFiles


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    folder = tmp_path / "secrets"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "key").write_text("k")
    return folder


def test_another_name_of_a_blocked_file_is_known(secrets: Path, project: Path) -> None:
    os.link(secrets / "deep" / "key", project / "innocent.txt")
    assert BlockedFiles([str(secrets)]).hold((project / "innocent.txt").stat())


def test_what_is_no_file_there_is_passed_over(secrets: Path, project: Path) -> None:
    (project / "key").write_text("")
    os.link(project / "key", project / "other")
    (secrets / "link").symlink_to(project / "key")
    (secrets / "folder").symlink_to(project)
    os.mkfifo(secrets / "pipe")
    assert not BlockedFiles([str(secrets)]).hold((project / "key").stat())


def test_a_blocked_path_may_be_a_file(secrets: Path, project: Path) -> None:
    os.link(secrets / "deep" / "key", project / "a")
    assert BlockedFiles([str(secrets / "deep" / "key")]).hold((project / "a").stat())


def test_other_files_with_several_names_are_free(secrets: Path, project: Path) -> None:
    (project / "a").write_text("")
    os.link(project / "a", project / "b")
    assert not BlockedFiles([str(secrets)]).hold((project / "a").stat())


def test_a_file_with_one_name_costs_no_search(project, monkeypatch):
    (project / "a").write_text("")
    monkeypatch.setattr(links.os, "scandir", None)
    assert not BlockedFiles(["/"]).hold((project / "a").stat())


def test_a_link_made_later_is_known_too(secrets: Path, project: Path) -> None:
    blocked = BlockedFiles([str(secrets)])
    (project / "a").write_text("")
    os.link(project / "a", project / "b")
    assert not blocked.hold((project / "a").stat())
    os.link(secrets / "deep" / "key", project / "c")
    assert blocked.hold((project / "c").stat())


def test_old_links_are_not_looked_for_twice(secrets, project, monkeypatch):
    os.link(secrets / "deep" / "key", project / "a")
    status = (project / "a").stat()
    monkeypatch.setattr(links, "time_ns", lambda: status.st_ctime_ns + 10**9)
    blocked = BlockedFiles([str(secrets)])
    assert blocked.hold(status)
    monkeypatch.setattr(links.os, "scandir", None)
    assert blocked.hold(status)


def test_what_is_missing_or_vanishes_is_passed_over(secrets, project, monkeypatch):
    os.link(secrets / "deep" / "key", project / "a")
    status = (project / "a").stat()

    def gone(_: str) -> os.stat_result:
        raise FileNotFoundError

    assert not BlockedFiles([str(secrets / "none")]).hold(status)
    monkeypatch.setattr(links.os, "lstat", gone)
    assert not BlockedFiles([str(secrets)]).hold(status)


def test_a_giant_blocked_folder_ends_the_search(secrets, project, monkeypatch):
    os.link(secrets / "deep" / "key", project / "a")
    monkeypatch.setattr(links, "_MOST_FILES", 1)
    assert not BlockedFiles([str(secrets)]).hold((project / "a").stat())


def test_a_path_leads_out_by_a_link_of_the_project_alone(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").touch()
    (project / "out").symlink_to(outside)
    (project / "mine").symlink_to(project)
    (tmp_path / "to").symlink_to(outside)
    roots = Roots(this_host(), project.resolve())
    (project / "docs").mkdir()
    (project / "docs/down").symlink_to(outside / "down")
    (outside / "down").mkdir()
    up = ("docs/down/../a", f"/{project}/docs/down/../a", "mine/../project/docs/down/../a")
    for path in ("out", "out/a", "out/none", f"{project}/out/a", "mine/out/a", "a\0b", *up):
        assert roots.leads_out(path), path
    for path in (
        "a",
        "mine/a",
        str(outside / "a"),
        tmp_path / "to/a",
        "../outside/a",
        "docs/down/../../project/a",
    ):
        assert not roots.leads_out(path), path
