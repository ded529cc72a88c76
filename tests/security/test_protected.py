"""What a sandboxed program may not change although it lies in the project."""

import os
from pathlib import Path

import pytest

from hosts import this_host
from ybs.security.paths.folder_index import FolderIndex
from ybs.security.sandbox import protected as protected_module
from ybs.security.sandbox.protected import NAMES, git_folders, host_secrets, linked, protected


def make_worktree(main: Path, work: Path, back: str | None = None) -> Path:
    """Lay out a worktree as git does: a pointer in it, and the way back in the repository."""
    folder = main / ".git" / "worktrees" / "w"
    folder.mkdir(parents=True)
    (main / ".git" / "objects").mkdir()
    (main / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "gitdir").write_text((str(work / ".git") if back is None else back) + "\n")
    work.mkdir(exist_ok=True)
    (work / ".git").write_text(f"gitdir: {folder}\n")
    return folder


def test_names_that_exist_are_protected_and_missing_ones_are_left_alone(project: Path) -> None:
    (project / ".git").mkdir()
    (project / ".ybs.json").write_text("{}")
    (project / ".envrc").symlink_to("gone")
    before = sorted(project.iterdir())
    assert protected(this_host(), str(project)) == [
        f"{project}/{n}" for n in (".envrc", ".ybs.json", ".git")
    ]
    assert sorted(project.iterdir()) == before


def test_nested_repositories_are_found_wherever_they_are(project: Path) -> None:
    places = ("a", "b/c", "node_modules/x", ".venv/y", "target/z", "vendor/v", "1/2/3/4/5/6")
    for place in places:
        (project / place / ".git").mkdir(parents=True)
    (project / "way").symlink_to(project / "a")
    assert protected(this_host(), str(project)) == sorted(
        f"{project}/{place}/.git" for place in places
    )


def test_names_with_a_slash_are_held_at_the_top_alone(project: Path) -> None:
    for place in (".cargo/config.toml", "sub/.cargo/config.toml", "sub/.envrc", ".config/mise/a"):
        (project / place).parent.mkdir(parents=True, exist_ok=True)
        (project / place).write_text("x")
    assert protected(this_host(), str(project)) == [
        f"{project}/.cargo/config.toml",
        f"{project}/.config/mise",
    ]


def test_what_programs_rewrite_in_ordinary_work_and_documents_are_not_held(project: Path) -> None:
    for place in (".github/workflows/ci.yml", "AGENTS.md", ".prettierrc", ".circleci/config.yml"):
        (project / place).parent.mkdir(parents=True, exist_ok=True)
        (project / place).write_text("x")
    assert protected(this_host(), str(project)) == []


def test_for_very_many_the_folder_around_them_stands(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protected_module, "MOST_HELD", 3)
    for place in ("few/a", "few/b", "many/a", "many/b", "many/c", "many/in/d"):
        (project / place / ".git").mkdir(parents=True)
    found = protected(this_host(), str(project))
    assert found == [f"{project}/few/a/.git", f"{project}/few/b/.git", f"{project}/many"]


def test_of_a_project_that_is_too_large_what_was_not_looked_at_is_held(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "src").mkdir()
    index = FolderIndex(str(project), look_seconds=0)
    monkeypatch.setattr(protected_module, "index_of", lambda _: index)
    assert protected(this_host(), str(project)) == [str(project)]


def test_the_deepest_folder_that_suffices_stands_for_what_is_in_it() -> None:
    paths = [f"/r/{path}" for path in ("a/b/1", "a/b/2", "a/b/3", "a/c", "x")]
    assert protected_module._folded(paths, "/r", 3) == ["/r/a/b", "/r/a/c", "/r/x"]
    assert protected_module._folded(paths, "/r", 1) == ["/r"]


def test_folders_whose_git_is_a_link_are_named(project: Path) -> None:
    for place in (".", "sub"):
        (project / place).mkdir(exist_ok=True)
        (project / place / ".git").symlink_to("gone")
    assert linked(str(project)) == [str(project), f"{project}/sub"]


def test_a_folder_that_cannot_be_listed_is_passed_over(tmp_path: Path) -> None:
    assert protected(this_host(), str(tmp_path / "gone")) == []


def test_a_worktree_shows_its_repository(tmp_path: Path) -> None:
    make_worktree(tmp_path / "main", tmp_path / "work")
    assert git_folders(str(tmp_path / "work")) == [str(tmp_path / "main" / ".git")]


def test_a_pointer_that_nothing_answers_shows_nothing(tmp_path: Path) -> None:
    make_worktree(tmp_path / "main", tmp_path / "work", back="/somewhere/else/.git")
    assert git_folders(str(tmp_path / "work")) == []


@pytest.mark.parametrize("pointer", ["", "gitdir:", "gitdir: ../home/.ssh", "gitdir: /", "nonsense", "gitdir: inside"])  # fmt: skip
def test_a_pointer_to_any_folder_shows_nothing(tmp_path: Path, pointer: str) -> None:
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    work = tmp_path / "work"
    (work / "inside").mkdir(parents=True)
    (work / ".git").write_text(pointer)
    assert git_folders(str(work)) == []


@pytest.mark.parametrize("missing", ["HEAD", "objects"])
def test_what_answers_has_to_be_a_repository(tmp_path: Path, missing: str) -> None:
    make_worktree(tmp_path / "main", tmp_path / "work")
    path = tmp_path / "main" / ".git" / missing
    path.rmdir() if path.is_dir() else path.unlink()
    assert git_folders(str(tmp_path / "work")) == []


def test_what_answers_has_to_lie_where_git_puts_worktrees(tmp_path: Path) -> None:
    folder = make_worktree(tmp_path / "main", tmp_path / "work")
    elsewhere = folder.parent.parent / "trees"
    folder.parent.rename(elsewhere)
    (tmp_path / "work" / ".git").write_text(f"gitdir: {elsewhere / 'w'}\n")
    assert git_folders(str(tmp_path / "work")) == []


def test_a_pointer_that_is_a_link_or_a_folder_shows_nothing(tmp_path: Path) -> None:
    make_worktree(tmp_path / "main", tmp_path / "work")
    (tmp_path / "work" / ".git").rename(tmp_path / "pointer")
    (tmp_path / "work" / ".git").symlink_to(tmp_path / "pointer")
    assert git_folders(str(tmp_path / "work")) == []
    assert git_folders(str(tmp_path / "main")) == []


def test_secrets_of_the_system_are_those_this_person_could_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "listdir", lambda _: ["ssh_host_rsa_key", "ssh_host_rsa_key.pub", "x"])
    monkeypatch.setattr(os, "access", lambda path, _: "ssh" in path or path == "/etc/shadow")
    assert host_secrets() == ["/etc/shadow", "/etc/ssh/ssh_host_rsa_key"]


def test_a_system_without_ssh_has_no_keys_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> list[str]:
        raise PermissionError

    monkeypatch.setattr(os, "listdir", refuse)
    monkeypatch.setattr(os, "access", lambda *_: True)
    assert not any("ssh_host" in path for path in host_secrets())


def test_the_names_are_those_of_the_table() -> None:
    assert {".git", ".hg", ".envrc", ".cargo/config.toml", ".husky"} <= {*NAMES}
    assert not {".github/workflows", "agents.md", ".prettierrc"} & {*NAMES}
