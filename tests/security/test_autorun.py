"""What runs later, or is read by later sessions: the table, and the file tools in every mode."""

from pathlib import Path

import pytest

from hosts import this_host
from rows import every_row
from security.later_files import ORDINARY, READ, RUNS
from tools.conftest import Bench
from ybs.config.schema import Mode
from ybs.core.ports import Answer, Question
from ybs.security.paths.autorun import part_of, reason
from ybs.security.paths.roots import Roots


class Asked:
    """Says yes and remembers the questions."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    async def __call__(self, question: Question) -> Answer:
        self.questions.append(question)
        return Answer(is_allowed=True)


@every_row("path", ORDINARY)
def test_an_ordinary_file_is_none_of_them(project: Path, path: str):
    assert Roots(this_host(), project).autorun_part(project / path) == ""


@pytest.mark.integration
@every_row("path", [*RUNS, *READ])
def test_each_of_them_is_known_whatever_the_case_of_its_letters(project: Path, path: str):
    roots = Roots(this_host(), project)
    assert roots.autorun_part(project / path)
    assert roots.autorun_part(project / path.upper())


def test_the_reason_says_whether_it_runs_or_is_read():
    assert "run by themselves" in reason(part_of([".envrc"]))
    assert "read by every later session" in reason(part_of(["agents.md"]))
    assert "read by every later session" in reason(part_of([".github", "instructions", "a.md"]))


def test_the_folders_above_the_project_do_not_count(tmp_path: Path):
    project = tmp_path / ".claude" / "worktrees" / "one"
    project.mkdir(parents=True)
    roots = Roots(this_host(), project)
    assert roots.autorun_part(project / "main.py", str(project / "main.py")) == ""
    assert roots.autorun_part(project / ".envrc", str(project / ".envrc")) == ".envrc"


def test_what_is_hidden_in_a_home_folder_is_asked_about_where_that_is_the_project(home: Path):
    roots = Roots(this_host(), home)
    for path in (".cargo/env", ".bashrc.d/x", ".local/bin/git", ".new"):
        assert roots.autorun_part(home / path) == path.partition("/")[0]
    assert roots.autorun_part(home / "notes" / ".config" / "x") == ""
    inside = home / ".local/src/here"
    inside.mkdir(parents=True)
    assert Roots(this_host(), inside).autorun_part(inside / ".x") == ""


def test_a_folder_that_was_added_counts_from_its_own_top(project: Path, tmp_path: Path):
    more = tmp_path / ".config" / "mise"
    more.mkdir(parents=True)
    roots = Roots(this_host(), project)
    roots.add(more)
    assert roots.autorun_part(more / "notes.txt") == ""
    assert roots.autorun_part(more / ".envrc") == ".envrc"


def test_what_a_link_of_such_a_name_leads_to_counts(project: Path):
    (project / "env.sh").write_text("x")
    (project / "conf").mkdir()
    (project / ".envrc").symlink_to("env.sh")
    (project / ".vscode").symlink_to("conf")
    (project / "sub").mkdir()
    (project / "sub" / ".envrc").symlink_to("../other.sh")
    roots = Roots(this_host(), project)
    assert roots.autorun_part(project / "env.sh") == ".envrc"
    assert roots.autorun_part(project / "conf" / "tasks.json") == ".vscode"
    for asked in ("sub/.envrc", f"{project}/sub/.envrc", "x/../sub/.envrc"):
        assert roots.autorun_part(project / "other.sh", asked) == "sub/.envrc"
    assert roots.autorun_part(project / "other.sh") == "sub/.envrc"
    assert roots.autorun_part(project / "another.sh") == ""


def test_a_project_that_is_gone_has_no_links(tmp_path: Path):
    assert Roots(this_host(), tmp_path / "gone").autorun_part(tmp_path / "gone" / "a") == ""


@pytest.mark.integration
@pytest.mark.parametrize("mode", ["ask", "accept-edits", "auto"])
async def test_p18_file_tools_ask_about_each_of_them_without_an_always(project: Path, mode: Mode):
    asked = Asked()
    bench = Bench(project, mode=mode, confirm=asked)
    for path in (*RUNS, *READ):
        await bench.ok("write_file", path=path, content="1\n")
    assert [(each.effect, each.grant) for each in asked.questions] == [("write", "")] * (
        len(RUNS) + len(READ)
    )


@pytest.mark.integration
async def test_p18_edits_and_deletes_of_them_are_asked_about_as_well(project: Path):
    asked = Asked()
    bench = Bench(project, mode="auto", confirm=asked)
    for path in (".envrc", "sub/.husky/pre-push", "AGENTS.md", ".circleci/config.yml"):
        await bench.ok("write_file", path=path, content="1\n")
        await bench.ok("edit_file", path=path, old_text="1", new_text="2")
        await bench.ok("delete_file", path=path)
    assert [each.effect for each in asked.questions] == ["write", "edit", "delete"] * 4
    assert {each.grant for each in asked.questions} == {""}


@pytest.mark.integration
@pytest.mark.parametrize("mode", ["plan", "deny"])
async def test_p18_modes_that_ask_nobody_refuse_each_of_them(project: Path, mode: Mode):
    asked = Asked()
    bench = Bench(project, mode=mode, confirm=asked)
    for path in (*RUNS, *READ):
        refused = await bench.call("write_file", path=path, content="1\n")
        assert refused.result.is_refused, path
        assert not (project / path).exists()
    assert asked.questions == []
