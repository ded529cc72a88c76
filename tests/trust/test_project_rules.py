"""What is kept for a project: private, bound to its folder, and ignored where it cannot be relied on."""

import json
import shutil
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
    assert rules.missing == rules.warning
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
    rules = ProjectRules(this_host(), project)
    assert rules.record.allow == ()
    assert "is about another folder" in rules.missing


def test_an_incognito_session_keeps_nothing(project: Path):
    with pytest.raises(ConfigError, match="incognito"):
        ProjectRules(this_host(), project, may_write=False).add("allow", "a")
    assert not this_host().state_folder.exists()


def test_a_folder_whose_name_is_not_unicode_has_rules_too(project: Path):
    folder = project / "a\udcff"
    folder.mkdir()
    ProjectRules(this_host(), folder).add("allow", "a")
    assert ProjectRules(this_host(), folder).record.allow == ("a",)


def begin(project: Path, *, is_repository: bool) -> None:
    (project / ".git").mkdir(exist_ok=True)
    if is_repository:
        (project / ".git" / "description").write_text("Unnamed repository")


def keep_some(project: Path) -> None:
    for kind in ("grants", "allow", "deny"):
        ProjectRules(this_host(), project).add(kind, kind)


def test_in_another_folder_at_a_path_below_a_repository_they_only_deny(project: Path):
    begin(project, is_repository=True)
    inner = project / "part"
    inner.mkdir()
    keep_some(inner)
    assert ProjectRules(this_host(), inner).record.allow == ("allow",)
    inner.rename(inner.with_name("kept"))
    inner.mkdir()
    rules = ProjectRules(this_host(), inner)
    assert (rules.record.grants, rules.record.allow, rules.record.deny) == ((), (), ("deny",))
    assert "another folder lies at its path now" in rules.warning


@pytest.mark.parametrize("is_repository", [True, False])
def test_in_another_folder_at_the_path_they_only_deny_until_one_is_kept_there(
    project: Path, *, is_repository: bool
) -> None:
    begin(project, is_repository=is_repository)
    keep_some(project)
    kept = project.rename(project.with_name("kept"))
    project.mkdir()
    begin(project, is_repository=is_repository)
    rules = ProjectRules(this_host(), project)
    assert (rules.record.grants, rules.record.allow, rules.record.deny) == ((), (), ("deny",))
    assert "another folder lies at its path now" in rules.warning
    shutil.rmtree(project)
    kept.rename(project)
    assert ProjectRules(this_host(), project).record.grants == ("grants",)
    shutil.copytree(project, kept)
    shutil.rmtree(project)
    kept.rename(project)  # from a backup: a repository is known again
    assert bool(ProjectRules(this_host(), project).record.grants) == is_repository
    ProjectRules(this_host(), project).add("grants", "new")
    again = ProjectRules(this_host(), project)
    assert again.record.grants == (*["grants"] * is_repository, "new")
    assert (again.record.deny, again.warning) == (("deny",), "")


def test_those_without_a_place_only_deny(project: Path) -> None:
    keep_some(project)
    file = only_file()
    file.write_text(json.dumps({**json.loads(file.read_text()), "place": ""}))
    rules = ProjectRules(this_host(), project)
    assert (rules.record.allow, rules.record.deny) == ((), ("deny",))
    assert "another folder" in rules.warning


def test_of_a_folder_that_is_gone_they_only_deny(project: Path):
    keep_some(project)
    file = only_file()
    project.rmdir()
    for data in (file.read_text(), json.dumps({**json.loads(file.read_text()), "place": ""})):
        file.write_text(data)
        record = ProjectRules(this_host(), project).record
        assert (record.allow, record.deny) == ((), ("deny",))
    with pytest.raises(OSError, match="project"):
        ProjectRules(this_host(), project).add("grants", "new")
