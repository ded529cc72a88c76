"""What is kept for a project: private, bound to its folder, and ignored where it cannot be relied on."""

import stat
from pathlib import Path

import pytest

from hosts import this_host
from ybs.core.errors import ConfigError
from ybs.trust.project_rules import ProjectRules, RulesRecord


def only_file() -> Path:
    (file,) = (this_host().state_folder / "permissions").iterdir()
    return file


def test_nothing_is_kept_at_first_and_no_file_is_made(project: Path):
    assert ProjectRules(this_host(), project).record == RulesRecord(folder=str(project))
    assert not this_host().state_folder.exists()


def test_what_is_kept_counts_in_the_next_session_of_the_same_folder_alone(project: Path):
    ProjectRules(this_host(), project).add("grants", "run_shell(pytest *)")
    ProjectRules(this_host(), project).add("deny", "run_shell(curl *)")
    again = ProjectRules(this_host(), project).record
    assert (again.grants, again.deny) == (("run_shell(pytest *)",), ("run_shell(curl *)",))
    other = project / "inner"
    other.mkdir()
    assert ProjectRules(this_host(), other).record.grants == ()


def test_a_file_is_the_owners_alone_and_lies_outside_of_the_project(project: Path):
    ProjectRules(this_host(), project).add("allow", "read_file")
    assert stat.S_IMODE(only_file().stat().st_mode) == 0o600
    assert stat.S_IMODE(only_file().parent.stat().st_mode) == 0o700
    assert list(project.iterdir()) == []


def test_a_rule_is_kept_once_and_can_be_removed(project: Path):
    rules = ProjectRules(this_host(), project)
    rules.add("allow", "a")
    rules.add("allow", "b")
    rules.add("allow", "a")
    assert ProjectRules(this_host(), project).record.allow == ("b", "a")
    rules.remove("allow", "b")
    assert ProjectRules(this_host(), project).record.allow == ("a",)


def test_two_sessions_do_not_lose_each_others_rules(project: Path):
    one, two = ProjectRules(this_host(), project), ProjectRules(this_host(), project)
    assert one.record == two.record
    one.add("allow", "a")
    two.add("allow", "b")
    assert ProjectRules(this_host(), project).record.allow == ("a", "b")
    assert one.record.allow == ("a",)  # what another session keeps counts from the next one on


@pytest.mark.parametrize("text", ["{", '{"folder": 1}', "\xff"])
def test_a_damaged_file_is_ignored_with_a_warning_and_not_written_over(project: Path, text: str):
    ProjectRules(this_host(), project).add("allow", "a")
    only_file().write_bytes(text.encode("latin-1"))
    rules = ProjectRules(this_host(), project)
    assert rules.record.allow == ()
    assert "is damaged" in rules.warning
    with pytest.raises(ConfigError, match="Delete it"):
        rules.add("allow", "b")
    assert only_file().read_bytes() == text.encode("latin-1")


@pytest.mark.parametrize("mode", [0o620, 0o606])
def test_a_file_that_others_can_write_is_ignored_with_a_warning(project: Path, mode: int):
    ProjectRules(this_host(), project).add("allow", "a")
    only_file().chmod(mode)
    rules = ProjectRules(this_host(), project)
    assert rules.record.allow == ()
    assert "can be written by others" in rules.warning


def test_a_link_in_its_place_is_ignored(project: Path, tmp_path: Path):
    ProjectRules(this_host(), project).add("allow", "a")
    file = only_file()
    elsewhere = tmp_path / "planted.json"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    rules = ProjectRules(this_host(), project)
    assert rules.record.allow == ()
    assert "is a symbolic link" in rules.warning


def test_a_file_of_another_folder_in_its_place_counts_for_nothing(project: Path):
    ProjectRules(this_host(), project).add("allow", "a")
    file = only_file()
    file.write_bytes(file.read_bytes().replace(str(project).encode(), b"/elsewhere"))
    assert ProjectRules(this_host(), project).record.allow == ()


def test_an_incognito_session_keeps_nothing(project: Path):
    with pytest.raises(ConfigError, match="incognito"):
        ProjectRules(this_host(), project, may_write=False).add("allow", "a")
    assert not this_host().state_folder.exists()


def test_a_folder_whose_name_is_not_unicode_has_rules_too(project: Path):
    folder = project / "a\udcff"
    folder.mkdir()
    ProjectRules(this_host(), folder).add("allow", "a")
    assert ProjectRules(this_host(), folder).record.allow == ("a",)
