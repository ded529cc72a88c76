"""The index of a project's folders: complete, quick the second time, and honest about what it has not seen."""

import os
import subprocess
from collections.abc import Callable
from errno import EACCES, EIO
from pathlib import Path
from typing import Any

import pytest

from ybs.security.paths import folder_index
from ybs.security.paths.folder_index import FolderIndex, IndexedPaths, index_of


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock be a second ahead, so that every folder counts as settled."""
    real = folder_index.time_ns
    monkeypatch.setattr(folder_index, "time_ns", lambda: real() + 1_000_000_000)


def plant(folder: Path, *paths: str) -> None:
    for path in paths:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")


def names(project: Path, paths: list[str]) -> list[str]:
    return sorted(os.path.relpath(path, project) for path in paths)


def look(index: FolderIndex) -> IndexedPaths:
    index._took = 0.0  # pyright: ignore[reportPrivateUsage] - however slow the machine is
    return index.look()


def test_repositories_are_found_as_folders_files_and_bare_ones(project: Path):
    plant(project, "a/.git/HEAD", "b/.git", ".hg/hgrc", "c/d/.jj/x")
    plant(project, "bare/HEAD", "bare/objects/x", "bare/refs/x", "tree/HEAD", "tree/commondir")
    plant(project, "none/HEAD", "none/objects/x")
    found = FolderIndex(str(project)).look()
    assert names(project, found.repositories) == [
        ".hg", "a/.git", "b/.git", "bare", "c/d/.jj", "tree",
    ]  # fmt: skip


def test_a_project_that_is_a_bare_repository_itself_is_looked_through(project: Path):
    plant(project, "HEAD", "objects/x/y", "refs/x", "hooks/x", "sub/.git/HEAD", "sub/config")
    found = FolderIndex(str(project)).look()
    assert names(project, found.repositories) == ["HEAD", "hooks", "objects", "refs", "sub/.git"]


def test_at_the_top_the_parts_of_a_repository_are_ordinary_names_where_one_is_missing(
    project: Path,
):
    plant(project, "HEAD", "objects/x", "config", "hooks/x", "sub/.git/HEAD")
    assert names(project, FolderIndex(str(project)).look().repositories) == ["sub/.git"]


def test_what_runs_later_is_found_at_any_depth_but_not_among_dependencies(project: Path):
    plant(
        project, ".envrc", "a/b/.vscode/deep/tasks.json", "a/.github/workflows/ci.yml", "a/main.py"
    )
    plant(project, "node_modules/x/.npmrc", "vendor/y/AGENTS.md", "AGENTS.md", ".git/AGENTS.md")
    (project / "GEMINI.md").symlink_to("AGENTS.md")
    found = FolderIndex(str(project)).look()
    assert names(project, found.autorun) == [
        ".envrc", "AGENTS.md", "GEMINI.md", "a/.github/workflows/ci.yml", "a/b/.vscode/deep/tasks.json",
    ]  # fmt: skip
    assert names(project, found.held) == [".envrc"]


def test_what_python_looks_for_is_found_in_the_folder_of_an_editable_install_among_dependencies(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "way").symlink_to(project)
    monkeypatch.setattr(folder_index, "left_out", [f"{tmp_path}/way/layer/site-packages"])
    files = [f"{each}/sitecustomize.py" for each in ("layer/site-packages", "vendor/site-packages")]
    plant(project, *files, "layer/site-packages/vendor/x/msvcrt.py")
    assert names(project, FolderIndex(str(project)).look().autorun) == files[:1]


@pytest.mark.usefixtures("settled")
def test_a_link_of_the_name_of_a_module_that_python_looks_for_may_be_that_package(project: Path):
    (project / "src").mkdir()
    for name, target in (("nt", "../other"), ("x", "../other"), ("usercustomize", "gone")):
        (project / "src" / name).symlink_to(target)
    found = set(FolderIndex(str(project)).look().autorun)
    assert found == {f"{project}/src/nt", f"{project}/src/usercustomize"}


@pytest.mark.usefixtures("settled")
def test_a_second_look_lists_only_what_has_changed(project: Path, monkeypatch: pytest.MonkeyPatch):
    plant(project, "a/b/x", "c/d/x")
    index = FolderIndex(str(project))
    index.look()
    listed: list[str] = []
    real = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (listed.append(path), real(path))[1])
    assert look(index).repositories == []
    assert listed == []
    (project / "c" / "d" / ".git").mkdir()
    assert names(project, look(index).repositories) == ["c/d/.git"]
    assert names(project, listed) == ["c/d"]


@pytest.mark.usefixtures("settled")
def test_a_folder_that_was_swapped_moved_or_removed_is_seen_as_it_is(project: Path):
    plant(project, "a/in/.git/HEAD", "b/in/x", "gone/.git/HEAD")
    index = FolderIndex(str(project))
    assert names(project, index.look().repositories) == ["a/in/.git", "gone/.git"]
    (project / "a").rename(project / "x")
    (project / "b").rename(project / "a")
    (project / "gone" / ".git" / "HEAD").unlink()
    (project / "gone" / ".git").rmdir()
    assert names(project, look(index).repositories) == ["x/in/.git"]


def test_a_folder_that_may_change_again_within_a_tick_is_listed_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(folder_index, "time_ns", lambda: 0)  # the clock never comes to be ahead
    index = FolderIndex(str(project))
    index.look()
    (project / ".git").mkdir()
    assert names(project, look(index).repositories) == [".git"]


def test_what_is_no_folder_is_passed_over(tmp_path: Path):
    plant(tmp_path, "file")
    assert FolderIndex(str(tmp_path / "gone")).look() == IndexedPaths()
    assert FolderIndex(str(tmp_path / "file")).look() == IndexedPaths()


def refusing(name: str, real: Callable[[str], Any], error: int = EACCES) -> Callable[[str], Any]:
    """Return a call of the system that lets nobody at one name: root, who may run this, is let in everywhere."""

    def refuse(path: str) -> Any:
        if path.endswith(f"/{name}"):
            raise OSError(error, "")
        return real(path)

    return refuse


@pytest.mark.parametrize(
    ("call", "name", "unseen"),
    [("scandir", "shut", "p/shut"), ("scandir", "p", "p"), ("lstat", "in", "p/shut")],
)
def test_what_may_not_be_listed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, name: str, unseen: str
):
    plant(tmp_path, "p/shut/in/.git/HEAD")
    monkeypatch.setattr(os, call, refusing(name, getattr(os, call)))
    assert FolderIndex(str(tmp_path / "p")).look().unseen == [str(tmp_path / unseen)]


def test_where_paths_become_too_long_a_folder_is_named_and_stands_for_all_below(project: Path):
    handle = os.open(project, os.O_RDONLY)
    for _ in range(20):  # a program walks there step by step
        os.mkdir("d" * 250, dir_fd=handle)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.mkdir(".git", dir_fd=handle)
    os.close(handle)
    found = index_of(str(project)).look()
    assert found.repositories == []
    (unseen,) = found.unseen
    assert Path(unseen).is_dir()
    assert len(unseen) < 4_096 - 255
    subprocess.run(["rm", "-rf", project / ("d" * 250)], check=True)  # pytest cannot


def test_what_is_lost_or_nobody_can_get_at_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plant(tmp_path, "shut/in/.git/HEAD")
    real = os.scandir
    monkeypatch.setattr(os, "scandir", refusing("shut", real, EIO))
    assert FolderIndex(str(tmp_path)).look() == IndexedPaths()
    monkeypatch.setattr(os, "scandir", refusing("shut", real))
    monkeypatch.setattr(os, "geteuid", lambda: 2**30)  # somebody else's
    assert FolderIndex(str(tmp_path)).look().unseen == [str(tmp_path / "shut")]
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.X_OK)
    assert FolderIndex(str(tmp_path)).look() == IndexedPaths()


@pytest.mark.usefixtures("settled")
def test_a_look_that_takes_too_long_names_what_it_has_not_seen_and_goes_on_later(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    plant(project, "src/x", "node_modules/a/.git/HEAD", "zone/deep/.git/HEAD")
    now = [0.0]
    monkeypatch.setattr(folder_index, "monotonic", lambda: now[0])
    real = os.scandir

    def slow(path: str) -> object:
        now[0] += 1
        return real(path)

    monkeypatch.setattr(os, "scandir", slow)
    index = FolderIndex(str(project), look_seconds=2.5)
    first = look(index)
    assert f"{project}/node_modules" in first.unseen, "dependencies come last"
    found = look(index)  # what was listed before takes no time any more
    assert found.unseen == []
    assert names(project, found.repositories) == ["node_modules/a/.git", "zone/deep/.git"]


def test_a_look_that_took_long_stands_for_as_long(project: Path, monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr(folder_index, "monotonic", lambda: now[0])
    index = FolderIndex(str(project))
    index.look()
    index._took = 2.0  # pyright: ignore[reportPrivateUsage]
    (project / ".git").mkdir()
    now[0] += 1.0
    assert index.look().repositories == []
    assert names(project, index.look(is_fresh=True).repositories) == [".git"]
    (project / ".hg").mkdir()
    index._took = 2.0  # pyright: ignore[reportPrivateUsage]
    assert names(project, index.look().repositories) == [".git"]
    now[0] += 2.0
    assert names(project, index.look().repositories) == [".git", ".hg"]


def test_a_look_is_as_old_as_it_took(project: Path, monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr(folder_index, "monotonic", lambda: now[0])
    index = FolderIndex(str(project))
    index.look()
    (project / ".git").mkdir()
    now[0] += 0.001  # the first one took no time at all
    assert names(project, index.look().repositories) == [".git"]


def test_a_listing_from_within_a_tick_is_not_relied_on(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "sub").mkdir()
    known = {path: os.lstat(path) for path in (str(project), f"{project}/sub")}
    monkeypatch.setattr(os, "lstat", known.__getitem__)  # times as coarse as a clock can be
    monkeypatch.setattr(folder_index, "time_ns", lambda: known[f"{project}/sub"].st_ctime_ns)
    index = FolderIndex(str(project))
    index.look()
    (project / "sub" / ".git").mkdir()
    assert names(project, look(index).repositories) == ["sub/.git"]


def test_there_is_one_index_for_a_folder(project: Path):
    assert index_of(str(project)) is index_of(str(project))
