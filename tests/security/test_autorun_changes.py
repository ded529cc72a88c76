"""What two looks tell apart: content, mode, links, and the settings of repositories."""

import os
from pathlib import Path

import pytest

from hosts import this_host
from ybs.security.paths import autorun_changes
from ybs.security.paths.autorun_changes import AutorunFiles


def looked(files: AutorunFiles, project: Path) -> list[tuple[str, str]]:
    index = autorun_changes.index_of(str(project))
    index._took = 0.0  # pyright: ignore[reportPrivateUsage] - however slow the machine is
    return [
        (os.path.relpath(each.path, project), "new" if each.is_new else "changed")
        for each in files.look([str(project)])
    ]


@pytest.fixture
def files(project: Path) -> AutorunFiles:
    (project / ".envrc").write_text("a")
    (project / "AGENTS.md").symlink_to("rules.md")
    (project / "rules.md").write_text("r")
    (project / "sub/.git/hooks").mkdir(parents=True)
    (project / "sub/.git/config").write_text("c")
    (project / "tree").mkdir()
    (project / "tree/.git").write_text("gitdir: x")
    made = AutorunFiles(this_host())
    made.begin([str(project)])
    return made


def test_the_same_content_is_no_change(files: AutorunFiles, project: Path):
    (project / ".envrc").write_text("a")
    assert looked(files, project) == []
    (project / ".envrc").write_text("b")
    assert looked(files, project) == [(".envrc", "changed")]
    assert looked(files, project) == []


def test_a_file_that_can_be_run_from_now_on_is_another_one(files: AutorunFiles, project: Path):
    (project / ".envrc").chmod(0o755)
    assert looked(files, project) == [(".envrc", "changed")]


def test_a_link_counts_with_what_it_leads_to(files: AutorunFiles, project: Path):
    (project / "rules.md").write_text("evil")
    assert looked(files, project) == [("AGENTS.md", "changed")]
    (project / "rules.md").unlink()
    assert looked(files, project) == [("AGENTS.md", "changed")]
    (project / "AGENTS.md").unlink()
    assert looked(files, project) == []


@pytest.mark.parametrize(
    "name", ["sub/.git/config", "sub/.git/hooks/pre-commit", "sub/.git/commondir", "tree/.git"]
)
def test_settings_and_hooks_of_a_repository_count(files: AutorunFiles, project: Path, name: str):
    (project / name).write_text("evil")
    top = name.partition(".git")[0] + ".git"
    assert looked(files, project) == [(top, "changed")]
    assert looked(files, project) == []


def test_a_commit_in_a_repository_is_no_change_of_its_settings(files: AutorunFiles, project: Path):
    (project / "sub/.git/index").write_text("x")
    assert looked(files, project) == []


def test_the_top_that_becomes_a_repository_itself_is_told_with_its_settings(
    files: AutorunFiles, project: Path
):
    for name in ("objects", "refs"):
        (project / name).mkdir()
    (project / "config").write_text("evil")
    assert looked(files, project) == []
    (project / "HEAD").write_text("ref: refs/heads/main")
    assert looked(files, project) == [(name, "new") for name in ("HEAD", "config", "objects", "refs")]  # fmt: skip
    (project / "config").write_text("more")
    (project / "hooks").mkdir()
    assert looked(files, project) == [("config", "changed"), ("hooks", "new")]


def test_a_repository_is_told_from_a_file(files: AutorunFiles, project: Path):
    (project / "sub/.git/config").write_text("evil")
    (project / ".envrc").write_text("evil")
    autorun_changes.index_of(str(project))._took = 0.0  # pyright: ignore[reportPrivateUsage]
    found = {
        os.path.relpath(each.path, project): each.is_repository
        for each in files.look([str(project)])
    }
    assert found == {"sub/.git": True, ".envrc": False}


def test_of_a_file_that_is_read_whole_the_last_byte_counts(
    files: AutorunFiles, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(autorun_changes, "_MOST_BYTES", 4)
    (project / ".envrc").write_text("abcd")
    looked(files, project)
    (project / ".envrc").write_text("abce")
    assert looked(files, project) == [(".envrc", "changed")]
    (project / ".envrc").write_text("abce")
    assert looked(files, project) == []


def test_large_files_are_told_by_their_times(
    files: AutorunFiles, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(autorun_changes, "_MOST_BYTES", 0)
    os.utime(project / ".envrc")
    assert looked(files, project) == [(".envrc", "changed")]


def test_a_file_that_cannot_be_read_is_told_by_its_times(
    files: AutorunFiles, project: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> bytes:
        raise PermissionError

    monkeypatch.setattr(autorun_changes, "read_whole", refuse)
    (project / ".envrc").write_text("b")
    assert looked(files, project) == [(".envrc", "changed")]
    (project / ".npmrc").write_text("x")
    assert looked(files, project) == [(".npmrc", "new")]


def test_what_was_not_seen_before_is_not_called_new(files: AutorunFiles, project: Path):
    (project / "deep").mkdir()
    (project / "deep/.envrc").write_text("old")
    (project / "near.code-workspace").write_text("new")
    files.unseen = (f"{project}/deep",)
    assert looked(files, project) == [("near.code-workspace", "new")]


def test_what_the_persons_git_settings_name_counts_before_it_is_there_too(
    files: AutorunFiles, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    shared = project / "shared"
    (home / ".gitconfig").write_text(f"[core]\nhooksPath = tools/hooks\n[include]\npath = {shared}\n")  # fmt: skip
    assert looked(files, project) == []
    shared.write_text("[core]\npager = evil\n")
    assert looked(files, project) == [("shared", "new")]
    (project / "tools/hooks/deep").mkdir(parents=True)
    (project / "tools/hooks/deep/pre-commit").write_text("evil")
    assert looked(files, project) == [("tools/hooks/deep/pre-commit", "new")]
    (project / "tools/hooks/deep/pre-commit").write_text("more")
    assert looked(files, project) == [("tools/hooks/deep/pre-commit", "changed")]
    monkeypatch.setattr(autorun_changes, "_MOST_FOLDERS", 1)
    (project / "tools/hooks/deep/post-commit").write_text("evil")
    assert looked(files, project) == []


def test_what_a_quick_command_leaves_in_a_project_that_is_slow_to_look_through_is_seen(
    files: AutorunFiles, project: Path
):
    index = autorun_changes.index_of(str(project))
    index._took = 1_000.0  # pyright: ignore[reportPrivateUsage]
    (project / "deep").mkdir()
    (project / "deep" / ".envrc").write_text("x")
    assert [each.path for each in files.look([str(project)])] == [f"{project}/deep/.envrc"]


def test_a_folder_that_is_added_later_is_looked_at_from_then_on(
    files: AutorunFiles, project: Path, tmp_path: Path
):
    folders = [str(project), str(tmp_path / "more")]
    for name in ("more/old/.envrc", "more/AGENTS.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (project / ".envrc").write_text("b")
    assert [each.path for each in files.look(folders)] == [f"{project}/.envrc"]
    (tmp_path / "more/.envrc").write_text("evil")
    (tmp_path / "more/AGENTS.md").write_text("evil")
    found = {each.path.rpartition("/")[2]: each.is_new for each in files.look(folders)}
    assert found == {".envrc": True, "AGENTS.md": False}
    files.begin([str(project)])
    assert files.look(folders) == []


def test_what_was_judged_is_known_as_it_is_then(files: AutorunFiles, project: Path):
    (project / ".envrc").write_text("b")
    (project / "CLAUDE.md").write_text("b")
    files.accept([f"{project}/.envrc", f"{project}/CLAUDE.md", f"{project}/gone"])
    assert looked(files, project) == []
    (project / "CLAUDE.md").write_text("evil")
    assert looked(files, project) == [("CLAUDE.md", "changed")]
    other = AutorunFiles(this_host())
    other.accept([f"{project}/.envrc"])
    other.begin([str(project)])
    assert looked(other, project) == []
