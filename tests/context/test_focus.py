"""Focus: the project's `.ybs/FOCUS.md`."""

import os
from pathlib import Path

import pytest

from hosts import this_host
from ybs.context.documents import read_documents
from ybs.context.focus import LONGEST_FOCUS, clear_focus, read_focus, write_focus
from ybs.core.errors import YbsError


def test_a_focus_is_written_read_replaced_and_cleared(project: Path):
    assert read_focus(project) == ""
    assert clear_focus(project) is False
    assert not (project / ".ybs").exists()
    write_focus(project, "The parser.\n")
    write_focus(project, "The printer: größer \u202e")
    assert sorted(path.name for path in (project / ".ybs").iterdir()) == [".gitignore", "FOCUS.md"]
    assert read_focus(project) == "The printer: größer"
    (section,) = read_documents(this_host(), project)
    assert (section.name, section.source) == ("FOCUS.md", ".ybs/FOCUS.md")
    assert clear_focus(project) is True
    assert read_focus(project) == ""


def test_a_link_is_neither_written_nor_removed(project: Path, home: Path):
    target = home / "target.md"
    target.write_text("mine")
    (project / ".ybs").mkdir()
    (project / ".ybs/FOCUS.md").symlink_to(target)
    for act in (lambda: write_focus(project, "x"), lambda: clear_focus(project)):
        with pytest.raises(YbsError, match="is a link or not a regular file"):
            act()
    assert read_focus(project) == ""
    (project / ".ybs/FOCUS.md").unlink()
    (project / ".ybs").rmdir()
    (project / ".ybs").symlink_to(home)
    for act in (lambda: write_focus(project, "x"), lambda: clear_focus(project)):
        with pytest.raises(YbsError, match="is a link"):
            act()
    assert (target.read_text(), list(home.iterdir())) == ("mine", [target])


def test_what_cannot_be_written_leaves_the_old_focus(project, monkeypatch):
    write_focus(project, "old")
    with pytest.raises(YbsError, match="at most 1,000"):
        write_focus(project, "x" * (LONGEST_FOCUS + 1))

    def fail(*_paths: object, **_folders: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(YbsError, match="No space left"):
        write_focus(project, "new")
    assert read_focus(project) == "old"
    assert sorted(path.name for path in (project / ".ybs").iterdir()) == [".gitignore", "FOCUS.md"]
