"""What the person is asked about a sub-agent's changes, in its copy and at the merge: by what a path is in the project, with all of the change, and once."""

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import pytest
from msgspec import json

from conductor.copies import Copies
from conductor.test_isolation import write
from rows import every_row
from ybs.agent.toolbox import make_toolbox
from ybs.conductor.home import Workplace
from ybs.conductor.merging import Merged
from ybs.conductor.overlay import Overlay
from ybs.conductor.workplaces import Isolation
from ybs.core.hooks import CallHook, CallToJudge, CallVerdict
from ybs.core.messages import ToolCall, ToolResult
from ybs.security.paths.home_links import hidden_in
from ybs.testing import call

pytestmark = pytest.mark.integration


async def use(overlay: Overlay, tool: str, **arguments: object) -> ToolResult:
    """Have the sub-agent of a copy use a tool there."""
    tools = make_toolbox(overlay.environment, hooks=[overlay.hook], agent=overlay.agent)
    return await tools.run(call(tool, **arguments), lambda _: None)


def link(place: Path, target: str | Path) -> None:
    place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


def hooks_path(project: Path, home: Path) -> str:
    write(project, ".git/HEAD", "ref: refs/heads/main")
    write(project, ".git/config", "[core]\nhooksPath = ci/hooks\n")
    for name in ("objects", "refs"):
        (project / ".git" / name).mkdir()
    return "ci/hooks/pre-commit"


def own_hook(project: Path, home: Path) -> str:
    hook = {"type": "command", "command": str(project / "own/after.sh")}
    settings = {"hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}
    write(home, ".config/ybs/config.json", json.encode(settings))
    return "own/after.sh"


def dotfile(project: Path, home: Path) -> str:
    link(home / ".bashrc", project / "bashrc")
    hidden_in.cache_clear()  # the row before had the same home folder
    return "bashrc"


def program(project: Path, home: Path) -> str:
    os.environ["PATH"] = f"{project}/bin:{os.environ['PATH']}"
    return "bin/ls"


_ACTED_ON = [hooks_path, own_hook, dotfile, program]
Arranged = Callable[[Path, Path], str]


@every_row("arrange", _ACTED_ON)
async def test_a_tool_in_a_copy_is_asked_by_what_its_file_is_in_the_project_and_once(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, arrange: Arranged
) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"])
    project = Path(mkdtemp(dir=tmp_path))
    path = arrange(project, home)
    write(project, path, "#!/bin/sh\n")
    copies = Copies(project)
    overlay = await copies.open()
    result = await use(overlay, "write_file", path=path, content="#!/bin/sh\nid\n")
    assert result.is_refused
    assert "by themselves later on" in copies.questions[0].warnings[0]
    assert await copies.merge(overlay) == Merged()
    copies.answer = True
    await use(overlay, "write_file", path=path, content="#!/bin/sh\nid\n")
    await use(overlay, "edit_file", path=path, old_text="id", new_text="ls")
    assert (await copies.merge(overlay)).paths == (path,)
    assert (project / path).read_text() == "#!/bin/sh\nls\n"
    assert len(copies.questions) == 3, "nothing is asked at the merge"
    await use(overlay, "delete_file", path=path)
    assert (await copies.merge(overlay)).paths == (path,)
    assert len(copies.questions) == 4
    await copies.aclose()


async def test_what_was_written_unasked_is_judged_anew_where_something_acts_on_it_by_then(
    copies: Copies,
) -> None:
    overlay = await copies.open()
    result = await use(overlay, "write_file", path="tools/ed/tasks.json", content="{}\n")
    assert not result.is_error
    link(overlay.folder / ".vscode", "tools/ed")
    assert (await copies.merge(overlay)).paths == ("tools", "tools/ed")
    titles = [each.preview.title for each in copies.questions]
    assert [each.split()[1] for each in titles] == [".vscode", "tools/ed/tasks.json"]


async def test_a_yes_counts_for_what_was_shown_and_nothing_beside_it(copies: Copies) -> None:
    copies.answer = True
    overlay = await copies.open()
    write(overlay.folder, ".envrc", "evil\n")  # by a command
    await use(overlay, "read_file", path=".envrc")
    await use(overlay, "write_file", path=".envrc", content="evil\nfine\n")
    assert "+evil" not in copies.questions[0].preview.body
    await copies.merge(overlay)
    assert len(copies.questions) == 2
    assert "+evil\n+fine" in copies.questions[1].preview.body.replace(" ", "")
    assert copies.questions[1].preview.is_diff
    await use(overlay, "write_file", path=".envrc", content="other\n")
    (overlay.folder / ".envrc").chmod(0o755)
    await copies.merge(overlay)
    assert len(copies.questions) == 4
    assert "its mode becomes 755, and was 644: it can be executed" in (
        copies.questions[3].preview.body
    )


async def test_a_yes_with_fewer_warnings_than_there_are_now_does_not_count(
    copies: Copies, home: Path
) -> None:
    copies.answer = True
    overlay = await copies.open()
    copies.environment.policy.mode = "ask"
    await use(overlay, "write_file", path="ci/hooks/pre-commit", content="one\n")
    hooks_path(copies.project, home)
    await copies.merge(overlay)
    asked = [each for each in copies.questions if each.preview.paths[0].endswith("pre-commit")]
    assert [len(each.warnings) for each in asked] == [0, 1]


def make_link(folder: Path) -> None:
    link(folder / ".envrc", "tools/x")


def make_file_of_link(folder: Path) -> None:
    (folder / "CLAUDE.md").unlink()
    write(folder, "CLAUDE.md", "new\n")


def make_link_of_file(folder: Path) -> None:
    link(folder / "AGENTS.md", "tools/x")


def make_large(folder: Path) -> None:
    write(folder, "AGENTS.md", "x" * 1_500_000)


def make_long(folder: Path) -> None:
    write(folder, "AGENTS.md", "new\n" + "# filler\n" * 40_000)


def make_program(folder: Path) -> None:
    write(folder, ".envrc", "new\n")
    (folder / ".envrc").chmod(0o755)


def make_empty(folder: Path) -> None:
    write(folder, ".envrc", "")


def make_nothing(folder: Path) -> None:
    (folder / "AGENTS.md").unlink()


def make_nothing_of_link(folder: Path) -> None:
    (folder / "CLAUDE.md").unlink()


@every_row(
    "change, title, body",
    [
        (make_link, ".envrc", "a link to tools/x"),
        (make_file_of_link, "CLAUDE.md", "a file, in the place of a link to AGENTS.md\n--- /dev/null\n+++ CLAUDE.md\n@@ -0,0 +1 @@\n+new"),
        (make_link_of_file, "AGENTS.md", "a link to tools/x, in the place of a file\n--- AGENTS.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-old"),
        (make_large, "AGENTS.md", "a file of 1,500,000 bytes, too large to be shown, in the place of a file"),
        (make_long, "AGENTS.md", "--- AGENTS.md\n+++ AGENTS.md\n@@ -1 +1,40001 @@\n-old\n+new\n" + "\n".join(["+# filler"] * 40_000)),
        (make_program, ".envrc", "--- /dev/null\n+++ .envrc\n@@ -0,0 +1 @@\n+new\nits mode is 755: it can be executed"),
        (make_empty, ".envrc", "an empty file"),
        (make_nothing, "the deletion of AGENTS.md", "--- AGENTS.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-old"),
        (make_nothing_of_link, "the deletion of CLAUDE.md", "a link to AGENTS.md"),
    ],
)  # fmt: skip
async def test_a_question_about_a_merge_shows_all_of_the_change(
    tmp_path: Path, change: Callable[[Path], None], title: str, body: str
) -> None:
    project = Path(mkdtemp(dir=tmp_path))
    write(project, "AGENTS.md", "old\n")
    link(project / "CLAUDE.md", "AGENTS.md")
    copies = Copies(project)
    overlay = await copies.open()
    change(overlay.folder)
    await copies.merge(overlay)
    (question,) = copies.questions
    assert question.preview.title == f"Merge {title} from sub-agent general-1"
    assert question.preview.body == body
    await copies.aclose()


@pytest.mark.parametrize(
    ("links", "file", "names"),
    [
        ({".vscode": "tools/ed"}, "tools/ed/tasks.json", {".vscode", "tools/ed/tasks.json"}),
        ({".vscode": "a", "a": "tools/ed"}, "tools/ed/x", {".vscode", "a", "tools/ed/x"}),
        ({".vscode": "there"}, "ed/tasks.json", {".vscode", "ed/tasks.json"}),
        ({"own": "tools"}, "tools/after.sh", {"own", "tools/after.sh"}),
        ({"bin": "tools"}, "tools/ls", {"bin", "tools/ls"}),
        ({".github": "gh"}, "gh/workflows/x.yml", {".github", "gh/workflows/x.yml"}),
        ({".github": "old"}, "plain", {".github"}),
        ({".idea": "."}, "workspace.xml", {".idea", "workspace.xml"}),
        ({"ci/hooks": "../tools"}, "tools/pre-commit", {"ci/hooks", "tools/pre-commit"}),
        ({"ci/hooks": None}, "ci/hooks", {"ci/hooks"}),
        ({"docs/one": "two", "docs/two": "../docs"}, "docs/x", set()),
    ],
)
async def test_changes_are_judged_by_what_links_of_the_same_merge_lead_to(
    project: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    links: dict[str, str | None],
    file: str,
    names: set[str],
) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"])
    for arrange in (hooks_path, own_hook, program):
        arrange(project, home)
    for path in ("old/workflows/a.yml", "ed/a", "real/hooks/pre-commit"):
        write(project, path)
    link(project / "there", "ed")
    link(project / "ci/hooks", "../real/hooks")
    copies = Copies(project)
    overlay = await copies.open()
    for path, target in links.items():
        link(overlay.folder / path, target) if target else (overlay.folder / path).unlink()
    write(overlay.folder, file, "new\n")
    merged = await copies.merge(overlay)
    asked = {
        path.removeprefix(f"{project}/") for each in copies.questions for path in each.preview.paths
    }
    assert asked == names
    assert names <= {each.path for each in merged.conflicts}
    await copies.aclose()


async def test_two_links_that_lead_out_of_the_project_together_do_not(copies: Copies) -> None:
    write(copies.project, "a")
    overlay = await copies.open()
    link(overlay.folder / "here", ".")
    link(overlay.folder / "out", "here/../outside")
    link(overlay.folder / "in", "here/a")
    merged = await copies.merge(overlay)
    assert merged.paths == ("here", "in")
    assert "leads out of the project" in merged.conflicts[0].why


async def test_a_path_with_a_name_by_each_of_too_many_links_is_refused(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ybs.conductor.admission._MOST_NAMES", 3)
    overlay = await copies.open()
    write(overlay.folder, "shared/file", "x")
    for number in range(3):
        link(overlay.folder / f"link{number}", "shared")
    merged = await copies.merge(overlay)
    assert {each.path for each in merged.conflicts} == {"shared/file", "shared"}
    assert "more than 3 names" in merged.text


async def test_no_content_of_a_closed_file_is_in_what_is_told_of_a_copy(
    tmp_path: Path, home: Path
) -> None:
    project, more = tmp_path / "dotfiles", tmp_path / "more"
    write(project, "ssh/config", "HostName TOPSECRET\n")
    write(more, "key", "TOPSECRET\n")
    link(home / ".ssh/config", project / "ssh/config")
    link(home / ".ssh/key", more / "key")
    copies = Copies(project, {"safety.sandbox_allowed_paths": ["./", str(more)]})
    overlay = await copies.open()
    for tool, path in (
        ("write_file", "ssh/config"),
        ("read_file", f"{project}/ssh/config"),
        ("read_file", f"{more}/key"),
    ):
        given = {"content": "y"} if tool == "write_file" else {}
        result = await use(overlay, tool, path=path, **given)
        assert result.is_error, path
        assert "TOPSECRET" not in result.output
    write(overlay.folder, "ssh/config", "y")
    merged = await copies.merge(overlay)
    assert "TOPSECRET" not in merged.text
    assert merged.paths in ((), ("ssh",))
    assert "TOPSECRET" in (project / "ssh/config").read_text()
    await copies.aclose()


async def test_a_file_that_is_closed_by_the_time_of_the_merge_is_not_read_for_it(
    copies: Copies, home: Path
) -> None:
    write(copies.project, "netrc", "old\n")
    overlay = await copies.open()
    write(overlay.folder, "netrc", "its\n")
    write(copies.project, "netrc", "TOPSECRET\n")
    link(home / ".netrc", copies.project / "netrc")
    copies.environment.roots.__dict__.pop("_never", None)
    copies.environment.roots.__dict__.pop("_always", None)
    merged = await copies.merge(overlay)
    assert "blocked" in merged.text
    assert "TOPSECRET" not in merged.text
    assert "what may not be read" in merged.text


class Reader(CallHook):
    """A hook of the person's that reads what is merged."""

    def __init__(self) -> None:
        self.read: list[dict[str, str]] = []

    async def judge(self, case: CallToJudge) -> CallVerdict:
        self.read.append(json.decode(case.call.arguments, type=dict[str, str]))
        return CallVerdict()

    async def look_at(self, call: ToolCall, result: ToolResult) -> ToolResult:
        return result


async def test_a_hook_reads_where_a_link_that_is_merged_leads(copies: Copies) -> None:
    hook = Reader()
    isolation = Isolation(Workplace(copies.environment, (hook,)))
    overlay = await isolation.open("general-1")
    link(overlay.folder / "made", "a/b")
    await copies.merge(overlay)
    assert hook.read == [{"path": str(copies.project / "made"), "content": "a/b"}]
    await isolation.aclose()


async def test_a_hook_hears_of_the_deletion_of_a_file_that_becomes_a_folder(copies: Copies) -> None:
    write(copies.project, "a")
    hook = Reader()
    isolation = Isolation(Workplace(copies.environment, (hook,)))
    overlay = await isolation.open("general-1")
    (overlay.folder / "a").unlink()
    (overlay.folder / "a/b").mkdir(parents=True)
    await copies.merge(overlay)
    assert hook.read == [{"path": str(copies.project / "a")}]
    assert (copies.project / "a/b").is_dir()
    await isolation.aclose()


async def test_of_a_file_that_grew_too_large_the_lines_are_not_taken_for_gone(
    copies: Copies,
) -> None:
    write(copies.project, "a", "one\n")
    overlay = await copies.open()
    write(overlay.folder, "a", "x\n" * 150_000)
    seen = await overlay.look()
    assert overlay.lines_in(seen) > 1000
    write(copies.project, "a", "mine\n")
    merged = await copies.merge(overlay)
    assert "a file of 300,000 bytes, too large to be shown" in merged.text
    assert "-mine" not in merged.text
