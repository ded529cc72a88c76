import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from hosts import this_host
from rows import every_row
from trusting import POWERFUL, give_trust, put, trusted, wanting
from ybs.config.review import REPLACED, FileDifference, Review, RunTrust
from ybs.config.schema import Config
from ybs.core.errors import ConfigError
from ybs.trust import decision, place
from ybs.trust import files as trust_files
from ybs.trust.decision import give, is_unchanged, recall, record_file, review_of, revoke
from ybs.trust.place import made_at
from ybs.trust.settings import load
from ybs.trust.wording import lines_of

Write = Callable[[str, str], Path]
# --- whether a project is trusted ------------------------------------------------------------


def test_a_project_without_files_has_nothing_to_review(project: Path):
    assert load(this_host(), folder=project).review is None


def test_harmless_settings_need_no_trust(project: Path, write: Write):
    write("project", '{"llm": {"temperature": 1}, "safety": {"blocked_commands": ["x"]}}')
    assert load(this_host(), folder=project).review is None
    (project / ".ybs").mkdir()
    (project / "tools").mkdir()
    put(project, "tools/README.md", "words")
    put(project, ".ybs/skills/words.md", "words")
    put(project, ".ybs/notes.md", "words")
    assert load(this_host(), folder=project).review is None


def test_powerful_settings_wait_for_trust(project: Path):
    review = wanting(project)
    assert not review.is_trusted
    assert review.needs_question
    assert load(this_host(), folder=project).config.llm.model is None
    give(this_host(), review, review.grantable)
    loaded = load(this_host(), folder=project)
    assert loaded.config.llm.model == "small"
    assert loaded.config.hooks == {"Stop": [{**POWERFUL["hooks"]["Stop"][0], "from": "project"}]}
    theirs = {**POWERFUL["mcpServers"]["files"], "from": "project"}
    assert loaded.config.mcpServers == {"files": theirs}
    assert loaded.warnings == ()
    assert loaded.review is not None
    assert not loaded.review.needs_question


def test_trust_for_one_run_is_not_stored(project: Path):
    wanting(project)
    loaded = load(this_host(), folder=project, run_trust=RunTrust(folder=project))
    assert loaded.review is not None
    assert loaded.review.is_trusted
    assert loaded.review.once
    assert loaded.config.hooks
    assert not load(this_host(), folder=project).config.hooks


def test_trust_can_be_taken_back(project: Path):
    trusted(project)
    assert revoke(this_host(), project)
    assert not revoke(this_host(), project)
    assert load(this_host(), folder=project).config.hooks == {}


def looked_at(project: Path) -> Review:
    return review_of(load(this_host(), folder=project), project)


def test_trust_does_not_outlive_the_files_that_it_was_given_for(project: Path):
    give(this_host(), wanting(project))
    (project / ".ybs.json").unlink()
    review = looked_at(project)
    assert not review.is_trusted
    assert FileDifference(path=".ybs.json", what="was removed") in review.changes


def test_a_project_that_asks_for_nothing_is_trusted_where_it_is_and_no_other_at_its_path(project):
    for begin in (lambda: None, lambda: put(project, ".git/description", "Unnamed repository")):
        begin()
        give(this_host(), looked_at(project))
        put(project, "src/a.py", "x = 1")
        assert looked_at(project).is_trusted
        project.rename(project.with_name("kept"))
        project.mkdir()
        begin()
        assert not looked_at(project).is_trusted
        assert made_at(project) > made_at(project.with_name("kept")) > 0
        shutil.rmtree(project)
        project.with_name("kept").rename(project)
        assert looked_at(project).is_trusted


def quiet(project: Path) -> None:
    """Have the project ask for what each fork of it has, byte for byte."""
    put(project, ".claude/commands/fix.md", "Fix it.")


def repository(project: Path) -> None:
    quiet(project)
    put(project, ".git/description", "Unnamed repository")


def worktree(project: Path) -> None:
    quiet(project)
    put(project, ".git", "gitdir: elsewhere")


@pytest.mark.parametrize("begin", [quiet, repository, worktree])
def test_another_folder_at_the_path_is_asked_about_although_its_files_are_the_same(project, begin):
    begin(project)
    give(this_host(), looked_at(project))
    assert looked_at(project).is_trusted
    kept = project.rename(project.with_name("kept"))
    project.mkdir()
    begin(project)
    review = looked_at(project)
    assert (review.is_trusted, review.needs_question, review.changes) == (False, True, (REPLACED,))
    words = "The folder was replaced by another one since you trusted this project"
    assert words in lines_of(review)
    (warning,) = load(this_host(), folder=project).warnings
    assert "not trusted any more: another folder lies there now: .claude/commands" in warning
    give(this_host(), review)
    assert looked_at(project).is_trusted
    shutil.rmtree(project)
    kept.rename(project)
    assert not looked_at(project).is_trusted


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("begin", [repository, worktree])
def test_a_repository_that_is_restored_from_a_backup_is_not_asked_about(project, begin, cut):
    begin(project)
    give(this_host(), looked_at(project))
    kept = project.rename(project.with_name("kept"))
    shutil.copytree(kept, project)
    if cut:  # as many archives do
        for path in project.rglob("*"):
            seconds = int(path.stat().st_mtime)
            os.utime(path, (seconds, seconds))
    assert looked_at(project).is_trusted


def test_a_trusted_folder_that_becomes_a_repository_is_not_asked_about(project: Path):
    quiet(project)
    give(this_host(), looked_at(project))
    put(project, ".git/description", "Unnamed repository")
    assert looked_at(project).is_trusted


def test_another_repository_in_the_same_folder_is_asked_about(project: Path):
    repository(project)
    give(this_host(), looked_at(project))
    (project / ".git/description").unlink()
    assert looked_at(project).is_trusted  # whoever takes it away has no other repository by that
    put(project, ".git/description", "Unnamed repository")
    assert not looked_at(project).is_trusted


@pytest.mark.parametrize("asks", [True, False])
def test_another_folder_at_a_path_below_a_repository_is_asked_about(project: Path, *, asks: bool):
    put(project, ".git/description", "Unnamed repository")
    inner = project / "part"
    begin = (lambda: quiet(inner)) if asks else inner.mkdir
    begin()
    give(this_host(), looked_at(inner))
    put(project, "src/a.py", "x = 1")
    assert looked_at(inner).is_trusted
    kept = inner.rename(inner.with_name("kept"))
    begin()
    assert looked_at(inner).changes == (REPLACED,)
    shutil.rmtree(inner)
    kept.rename(inner)
    assert looked_at(inner).is_trusted


def test_a_folder_below_a_repository_is_not_trusted_below_another_one(project: Path):
    put(project, ".git/description", "Unnamed repository")
    inner = project / "part"
    quiet(inner)
    give(this_host(), looked_at(inner))
    project.rename(project.with_name("kept"))
    put(project, ".git/description", "Unnamed repository")
    project.with_name("kept").joinpath("part").rename(inner)
    assert not looked_at(inner).is_trusted


def test_a_folder_that_was_in_no_repository_is_not_trusted_within_one(project: Path):
    inner = project / "part"
    quiet(inner)
    give(this_host(), looked_at(inner))
    put(project, ".git/description", "Unnamed repository")
    for seconds in (None, 0, 0.5, -1):  # an archive says when its files were written
        if seconds is not None:
            os.utime(project / ".git/description", (seconds, seconds))
        assert looked_at(inner).changes == (REPLACED,), seconds
    shutil.rmtree(project / ".git")
    put(project, ".git", "gitdir: elsewhere")
    assert looked_at(inner).changes == (REPLACED,)
    (project / ".git").unlink()
    put(inner, ".git/description", "Unnamed repository")  # one that begins in the folder itself
    assert looked_at(inner).is_trusted


def test_a_folder_whose_repository_around_is_taken_away_is_the_same(project: Path):
    inner = project / "part"
    put(project, ".git/description", "Unnamed repository")
    quiet(inner)
    give(this_host(), looked_at(inner))
    shutil.rmtree(project / ".git")
    assert looked_at(inner).is_trusted
    put(project, ".git/description", "Unnamed repository")
    assert looked_at(inner).changes == (REPLACED,)


def test_where_the_file_system_does_not_say_when_a_folder_was_made_its_number_tells(project, monkeypatch):  # fmt: skip
    monkeypatch.setattr(place, "made_at", lambda _: 0)
    quiet(project)
    give(this_host(), looked_at(project))
    assert looked_at(project).is_trusted
    kept = project.rename(project.with_name("kept"))
    shutil.copytree(kept, project)
    assert not looked_at(project).is_trusted


def test_neither_a_folder_that_is_gone_nor_one_whose_record_has_no_place_is_trusted(project: Path):
    quiet(project)
    review = looked_at(project)
    give(this_host(), review)
    file, folder = record_file(this_host(), project), project.resolve()
    assert decision.judge(this_host(), folder, review.files, ()).is_trusted
    kept = file.read_bytes()
    file.write_bytes(json.dumps({**json.loads(kept), "place": ""}).encode())
    assert not decision.judge(this_host(), folder, review.files, ()).is_trusted
    file.write_bytes(kept)
    shutil.rmtree(project)
    assert not decision.judge(this_host(), folder, review.files, ()).is_trusted


@pytest.mark.integration
def test_trust_for_one_run_is_in_what_was_there_first_and_in_no_other_folder(project: Path):
    once, other = RunTrust(folder=project), project.with_name("other")
    wanting(project)
    other.mkdir()
    wanting(other)
    assert not load(this_host(), folder=other, run_trust=once).config.hooks
    assert load(this_host(), folder=project, run_trust=once).config.hooks
    put(project, ".mcp.json", '{"mcpServers": {"s": {"command": "./srv"}}}')
    loaded = load(this_host(), folder=project, run_trust=once)
    assert not loaded.config.hooks
    assert not loaded.config.mcpServers
    assert not loaded.trusts_project
    (project / ".mcp.json").unlink()
    assert load(this_host(), folder=project, run_trust=once).config.hooks
    (project / ".ybs.json").unlink()
    assert not review_of(load(this_host(), folder=project, run_trust=once), project).is_trusted


def test_trust_for_one_run_in_a_project_that_wants_nothing_ends_when_it_wants_something(project):
    once = RunTrust(folder=project)
    assert review_of(load(this_host(), folder=project, run_trust=once), project).is_trusted
    wanting(project)
    loaded = load(this_host(), folder=project, run_trust=once)
    assert not loaded.trusts_project
    assert not loaded.config.hooks


def test_the_store_is_private_and_names_the_folder(project: Path, home: Path):
    trusted(project)
    file = record_file(this_host(), project)
    assert file.is_relative_to(home / ".config/ybs/trust")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    record = recall(this_host(), project)
    assert record is not None
    assert record.folder == str(project)
    assert repr(record) == f"Record(folder={str(project)!r})"
    assert list(record.files) == [".ybs.json"]


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"folder": 5}', "\udce9", '{"folder": "", "files": {}, "place": "x"}']
)
def test_a_broken_record_is_no_trust(project: Path, text: str):
    trusted(project)
    record_file(this_host(), project).write_bytes(os.fsencode(text))
    assert load(this_host(), folder=project).config.hooks == {}


def test_a_record_under_the_name_of_another_folder_is_no_trust(project: Path, tmp_path: Path):
    trusted(project)
    other = tmp_path / "other"
    other.mkdir()
    (other / ".ybs.json").write_bytes((project / ".ybs.json").read_bytes())
    record_file(this_host(), other).write_bytes(record_file(this_host(), project).read_bytes())
    assert load(this_host(), folder=other).config.hooks == {}


def test_a_store_that_others_can_write_is_not_believed(project: Path):
    trusted(project)
    record_file(this_host(), project).chmod(0o666)
    assert load(this_host(), folder=project).config.hooks == {}


# --- the other files -------------------------------------------------------------------------

FILES = {
    ".ybs/commands/fix.md": ("!ls", 0o644),
    ".ybs/hooks/start": ("#!/bin/sh\n", 0o755),
    ".ybs/skills/s/SKILL.md": ("words", 0o644),
    ".ybs/skills/s/run.py": ("print()", 0o644),
    ".ybs/skills/plain/SKILL.md": ("words", 0o644),
    ".agents/skills/s/SKILL.md": ("words", 0o644),
    ".claude/skills/t/SKILL.md": ("words", 0o644),
    ".ybs/tools/t": ("#!/bin/sh\n", 0o755),
    "tools/t.tool.json": ("{}", 0o644),
    "tools/t": ("#!/bin/sh\n", 0o755),
    ".mcp.json": ('{"mcpServers": {"m": {"command": "sh", "args": ["srv/run.sh"]}}}', 0o644),
    "srv/run.sh": ("true\n", 0o644),
}


def test_every_kind_of_file_waits_for_trust(project: Path):
    for path, (text, mode) in FILES.items():
        put(project, path, text, mode)
    loaded = load(this_host(), folder=project)
    review = loaded.review
    assert review is not None
    assert {*review.files} == {*FILES}
    assert {item.place for item in review.items} == {*FILES} - {"srv/run.sh", "tools/t.tool.json"}
    assert "; tools/t.tool.json describes it" in str(review.items)
    assert loaded.config.mcpServers == {}
    assert review.data(".ybs/commands/fix.md") is None
    assert review.paths(".ybs/commands") == []
    assert not is_unchanged(review, "tools/t")
    assert len(loaded.warnings) == 1
    assert "not trusted: .mcp.json" in loaded.warnings[0]
    give(this_host(), review)
    loaded = load(this_host(), folder=project)
    review = loaded.review
    assert review is not None
    assert loaded.warnings == ()
    theirs = {"command": "sh", "args": ["srv/run.sh"], "from": "project"}
    assert loaded.config.mcpServers == {"m": theirs}
    assert review.data(".ybs/commands/fix.md") == b"!ls"
    assert review.paths(".ybs/commands") == [".ybs/commands/fix.md"]
    assert is_unchanged(review, "tools/t")
    assert not is_unchanged(review, "tools/other")


@pytest.mark.integration
@every_row("path", FILES)
def test_one_changed_file_makes_it_all_untrusted(project: Path, path: str):
    for name, (text, mode) in FILES.items():
        put(project, name, text, mode)
    first = load(this_host(), folder=project).review
    assert first is not None
    give(this_host(), first)
    before = load(this_host(), folder=project).review
    assert before is not None
    assert before.is_trusted
    with (project / path).open("a") as file:
        file.write(" ")
    assert not is_unchanged(before, path)
    after = load(this_host(), folder=project).review
    assert after is not None
    assert not after.is_trusted
    assert [change.path for change in after.changes] == [path]


def test_a_new_file_a_lost_one_and_a_new_right_are_changes(project: Path):
    put(project, ".ybs/commands/a.md", "a")
    put(project, ".ybs/commands/b.md", "b")
    review = load(this_host(), folder=project).review
    assert review is not None
    give(this_host(), review)
    (project / ".ybs/commands/a.md").unlink()
    (project / ".ybs/commands/b.md").chmod(0o755)
    put(project, ".ybs/commands/c.md", "c")
    review = load(this_host(), folder=project).review
    assert review is not None
    assert review.changes == (
        FileDifference(path=".ybs/commands/a.md", what="was removed"),
        FileDifference(path=".ybs/commands/b.md", what="may be run now"),
        FileDifference(path=".ybs/commands/c.md", what="is new"),
    )
    give(this_host(), review)
    (project / ".ybs/commands/b.md").chmod(0o644)
    review = load(this_host(), folder=project).review
    assert review is not None
    assert review.changes[0].what == "may not be run any more"


def test_a_program_in_a_folder_named_tools_asks_no_question_by_itself(project: Path):
    put(project, "tools/build.sh", "make", 0o755)
    loaded = load(this_host(), folder=project)
    assert loaded.review is not None
    assert not loaded.review.needs_question
    assert not loaded.review.is_trusted
    assert loaded.warnings == ()


def test_a_program_that_settings_name_is_bound_to_its_content(project: Path):
    script = put(project, "hook.sh", "true\n")
    trusted(project)
    script.write_text("evil\n")
    review = load(this_host(), folder=project).review
    assert review is not None
    assert not review.is_trusted
    assert review.changes[0].difference == "@@ -1 +1 @@\n-true\n+evil"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: (p / ".ybs/commands/x").symlink_to("/etc/passwd"), "x is a link"),
        (lambda p: (p / ".ybs/commands/x").symlink_to("/etc"), "x is a link"),
        (lambda p: (p / ".ybs/hooks").symlink_to("/etc"), "hooks is a link"),
        (lambda p: os.mkfifo(p / ".ybs/commands/x"), "not a regular file"),
        (lambda p: os.mkfifo(p / ".mcp.json"), ".mcp.json is not a regular file"),
        (lambda p: (p / ".mcp.json").symlink_to("/dev/zero"), "is a link"),
        (lambda p: os.truncate(put(p, ".ybs/tools/big", ""), 1 << 30), "too large"),
        (lambda p: [put(p, f".ybs/tools/{n}", "") for n in range(9)], "more than 8"),
        (lambda p: put(p, ".ybs/tools/a/b/c/d/e/f/g/h/i", ""), "nested too deep"),
    ],
)
def test_what_cannot_be_bound_to_its_content_cannot_be_trusted(project, make, words, monkeypatch):
    monkeypatch.setattr(trust_files, "MOST_FILES", 8)
    put(project, ".ybs/commands/a.md", "a")
    make(project)
    for once in (None, RunTrust(folder=project)):
        loaded = load(this_host(), folder=project, run_trust=once)
        assert loaded.review is not None
        assert words in loaded.review.problem
        assert not loaded.review.is_trusted
        assert not loaded.review.needs_question
        assert "cannot be trusted" in loaded.warnings[0]
    with pytest.raises(ConfigError, match="cannot be trusted"):
        give(this_host(), loaded.review)
    assert lines_of(loaded.review)[-1].startswith("This project cannot be trusted: ")


@pytest.mark.integration
def test_a_folder_with_very_many_files_cannot_be_trusted(project, monkeypatch):
    put(project, ".ybs/tools/a", "")
    monkeypatch.setattr(os, "listdir", lambda _: ["a"] * 2000)
    review = load(this_host(), folder=project).review
    assert review is not None
    assert "too many files" in review.problem


@pytest.mark.parametrize("text", ["", "[]", '{"mcpServers": 5}', "{", "\udce9"])
def test_a_broken_list_of_servers_is_a_warning_or_nothing(project: Path, text: str):
    (project / ".mcp.json").write_bytes(os.fsencode(text))
    loaded = load(this_host(), folder=project, run_trust=RunTrust(folder=project))
    assert loaded.config == Config()
    assert all(".mcp.json" in warning for warning in loaded.warnings)


def test_a_file_that_has_become_a_link_is_not_unchanged(project: Path):
    hook = put(project, ".ybs/hooks/start", "true", 0o755)
    review = load(this_host(), folder=project, run_trust=RunTrust(folder=project)).review
    assert review is not None
    assert is_unchanged(review, ".ybs/hooks/start")
    hook.rename(project / "elsewhere")
    assert not is_unchanged(review, ".ybs/hooks/start")
    hook.symlink_to(project / "elsewhere")
    assert not is_unchanged(review, ".ybs/hooks/start")


def test_words_that_are_folders_or_no_names_at_all_are_passed_over(project: Path):
    put(project, "src/run", "x", 0o755)
    (project / "away").symlink_to(project / "src")
    put(project, "run", "x", 0o755)
    words = [
        "src",
        "away/run",
        "src/x/y",
        "run/x",
        "x" * 300,
        "/etc/passwd",
        "../up",
        "a\0b",
        "",
        "run",
    ]
    review = wanting(project, {"hooks": {"x": words}})
    assert sorted(review.files) == [".ybs.json", "away", "run", "src/run"]


def test_hooks_for_another_agent_count_once_the_project_is_trusted(project: Path):
    put(project, ".claude/settings.json", '{"permissions": {"allow": ["Bash"]}}')
    assert load(this_host(), folder=project).review is None
    group = {"hooks": [{"type": "command", "command": '"$CLAUDE_PROJECT_DIR"/.claude/check.sh'}]}
    put(project, ".claude/settings.json", json.dumps({"hooks": {"Stop": [group]}}))
    put(project, ".claude/check.sh", "exit 2", 0o755)
    loaded = load(this_host(), folder=project)
    assert loaded.config.hooks == {}
    assert loaded.review is not None
    assert not loaded.review.needs_question
    assert ".claude/check.sh" in loaded.review.files
    assert ".claude/settings.json" in loaded.review.files
    assert any("runs programs at Stop" in line for line in lines_of(loaded.review))
    assert give_trust(project).config.hooks == {"Stop": [{**group, "from": "project"}]}
    put(project, ".claude/check.sh", "curl evil.example", 0o755)
    assert load(this_host(), folder=project).config.hooks == {}
    for odd in ("[", "[]", '{"hooks": []}'):
        put(project, ".claude/settings.json", odd)
        assert load(this_host(), folder=project).config.hooks == {}


def test_a_file_that_is_named_twice_counts_once(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(trust_files, "MOST_FILES", 1)
    put(project, ".ybs/hooks/start", "true", 0o755)
    review = wanting(project, {"hooks": {"x": [".ybs/hooks/start"]}})
    assert (review.problem, [*review.files]) == ("", [".ybs/hooks/start", ".ybs.json"])


def test_of_many_files_that_wait_for_trust_a_few_are_named_and_the_others_counted(project: Path):
    for number in range(12):
        put(project, f".ybs/hooks/{number:02}", "true", 0o755)
    (warning,) = load(this_host(), folder=project).warnings
    named = warning.count(".ybs/hooks/")
    assert 0 < named < 12
    assert warning.endswith(f" and {12 - named} more")
