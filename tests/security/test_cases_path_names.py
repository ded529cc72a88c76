"""P16 to P22: names that must not be written, or only after a question, through the real tools."""

import os
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from rows import every_row
from tools.conftest import Bench
from ybs.core.ports import Answer, Question
from ybs.security.paths.roots import Roots

WRITING: dict[str, dict[str, Any]] = {
    "write_file": {"content": "EVIL"},
    "edit_file": {"old_text": "mine", "new_text": "EVIL"},
    "delete_file": {},
}


class Person:
    """Says yes to everything and remembers what was asked."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    async def __call__(self, question: Question) -> Answer:
        self.questions.append(question)
        return Answer(is_allowed=True)


async def denied(bench: Bench, tool: str, path: str, words: str = "read-only") -> None:
    answered = await bench.call(tool, path=path, **WRITING[tool])
    assert answered.result.is_error, answered.output
    assert words in answered.output


def make(path: Path, text: str = "mine\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def repository(folder: Path) -> None:
    """Make what git takes for one, whatever the folder's name is."""
    for name in ("objects", "refs"):
        (folder / name).mkdir(parents=True)
    make(folder / "HEAD", "ref: refs/heads/main\n")
    make(folder / "config", "mine\n")


def swap_for_link(folder: Path, away: Path, target: str) -> None:
    folder.rename(away)
    folder.symlink_to(target)


@pytest.mark.parametrize("tool", WRITING)
@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".git/config", ".git/commondir", ".git"])
async def test_p16_git_s_own_files_are_read_only_though_all_is_allowed(bench, project, tool, path):
    if path != ".git":
        make(project / path)
    await denied(bench, tool, path)
    if path != ".git":
        assert (project / path).read_text() == "mine\n"


@pytest.mark.parametrize("tool", WRITING)
@pytest.mark.parametrize(
    "path",
    [
        ".hg/hgrc",
        "sub/.hg/hgrc",
        ".HG/hgrc",
        "hg~1/hgrc",
        ".jj/repo/config.toml",
        ".sl/config",
        ".sl",
    ],
)
async def test_p16_what_other_version_control_runs_is_read_only(bench, project, tool, path):
    if path != ".sl":
        make(project / path)
    await denied(bench, tool, path)
    if path != ".sl":
        assert (project / path).read_text() == "mine\n"


@pytest.mark.parametrize("tool", WRITING)
async def test_p16_the_git_file_of_a_worktree_is_read_only(bench: Bench, project: Path, tool: str):
    make(project / ".git", "gitdir: ../main/.git/worktrees/x\nmine\n")
    await denied(bench, tool, ".git")


@pytest.mark.parametrize("tool", WRITING)
@pytest.mark.parametrize("path", ["config", "hooks/pre-commit", "HEAD"])
async def test_p16_a_repository_under_another_name_is_read_only(bench, project, tool, path):
    repository(project / "gitdata")
    (project / ".git").write_text("gitdir: gitdata\n")
    make(project / "gitdata" / path)
    await denied(bench, tool, f"gitdata/{path}")
    assert (project / "gitdata" / path).read_text() == "mine\n"


@pytest.mark.parametrize("last", ["HEAD", "objects/x", "refs/heads/main", "Refs/x"])
async def test_p16_no_folder_is_made_a_repository(bench: Bench, project: Path, last: str):
    repository(project / "sub")
    name = next(
        name for name in ("HEAD", "objects", "refs") if last.lower().startswith(name.lower())
    )
    (project / "sub" / name).rename(project / "away")
    await bench.ok("write_file", path="sub/free", content="x")
    await denied(bench, "write_file", f"sub/{last}")
    make(project / "two" / "commondir", "../sub")
    await denied(bench, "write_file", "two/HEAD")


@pytest.mark.integration
@every_row("tool", WRITING)
@every_row(
    "path",
    [
        ".GIT/config",
        ".git /config",
        ".git./config",
        ".git/../.git/config",
        "git~1/config",
        ".g\u200cit/config",
        ".git::$INDEX_ALLOCATION/config",
        "./.git/config",
        "sub/../.git/config",
    ],
)
async def test_p17_other_spellings_of_git_are_read_only_too(bench, project, tool, path):
    make(project / ".git" / "config")
    await denied(bench, tool, path)
    assert os.listdir(project) == [".git"]  # noqa: PTH208 - names


@pytest.mark.integration
@every_row(
    ("path", "part"),
    [
        (".vscode/tasks.json", ".vscode"),
        (".envrc", ".envrc"),
        (".github/workflows/x.yml", ".github/workflows"),
        ("sub/.husky/pre-commit", ".husky"),
        (".ybs.json", ".ybs.json"),
        (".VSCode/tasks.json", ".vscode"),
    ],
)
@every_row("mode", ["ask", "accept-edits", "auto"])
async def test_p18_files_that_run_later_are_always_asked_about_and_named(
    make_bench: Any, path: str, part: str, mode: str, project: Path
):
    person = Person()
    for name in WRITING:
        make(project / path)
        await make_bench(mode=mode, confirm=person).ok(name, path=path, **WRITING[name])
    assert [question.grant for question in person.questions] == [""] * 3
    assert all(part in question.warnings[-1] for question in person.questions)


async def test_p18_a_makefile_is_no_more_than_any_file(make_bench: Any):
    person = Person()
    await make_bench(mode="auto", confirm=person).ok("write_file", path="Makefile", content="x")
    assert person.questions == []


@pytest.mark.integration
@every_row("tool", [*WRITING, "read_file"])
@every_row(
    "path",
    [
        ".config/ybs/config.json",
        ".config/ybs/sessions/session-20260101-000000.jsonl",
        ".config/ybs/trust.json",
        ".local/state/ybs/checkpoints/x",
        ".ybs.json",
    ],
)
async def test_p19_the_own_stores_are_denied(home: Path, tool: str, path: str):
    make(home / path)
    bench = Bench(home)
    answered = await bench.call(tool, path=str(home / path), **WRITING.get(tool, {}))
    assert answered.result.is_error
    assert "blocked" in answered.output
    assert (home / path).read_text() == "mine\n"


async def test_p19_they_are_denied_wherever_the_environment_puts_them(home, monkeypatch):
    monkeypatch.setenv("YBS_HOME", str(home / "mine"))
    make(home / "mine" / "trust.json")
    await denied(Bench(home), "write_file", str(home / "mine/trust.json"), "blocked")


@pytest.mark.parametrize("tool", WRITING)
async def test_p20_git_in_a_nested_repository_is_read_only(bench: Bench, project: Path, tool: str):
    make(project / "sub" / ".git" / "config")
    await denied(bench, tool, "sub/.git/config")


@every_row("spelling", ["cle\u0301s", "clés", "CLÉS", "CLE\u0301S"])
def test_p21_a_blocked_name_in_another_composition_is_denied(home: Path, spelling: str):
    from ybs.core.errors import Refused

    for named in ("~/clés", "~/cle\u0301s"):
        with pytest.raises(Refused, match="blocked"):
            Roots(this_host(), home, ("./",), (named,)).resolve(f"{spelling}/x")


async def test_p22_a_root_that_is_a_link_is_resolved_once(tmp_path: Path):
    for name in ("one", "two"):
        make(tmp_path / name / "x", name)
    (tmp_path / "link").symlink_to("one")
    bench = Bench(tmp_path / "link")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("two")
    assert (await bench.ok("read_file", path="x")).output == "1\tone"
    await bench.ok("write_file", path="x", content="new")
    assert (tmp_path / "two" / "x").read_text() == "two"
    await denied(
        bench,
        "write_file",
        str(tmp_path / "link" / "x"),
        "outside the folders that ybs may work in",
    )


async def test_p22_a_root_that_becomes_a_link_is_left(bench: Bench, project: Path, tmp_path: Path):
    make(tmp_path / "other" / "x", "other")
    swap_for_link(project, tmp_path / "moved", "other")
    for tool in WRITING:
        answered = await bench.call(tool, path="x", **WRITING[tool])
        assert answered.result.is_error
    assert (await bench.call("read_file", path="x")).result.is_error
    assert (tmp_path / "other" / "x").read_text() == "other"
