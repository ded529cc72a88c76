"""git, on real repositories."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from hostile_git import Sandpit, needs_git, template_in
from rows import every_row
from ybs.config.schema import Config
from ybs.core.ports import Answer, Question
from ybs.testing import RecordedHook

pytestmark = [pytest.mark.integration, needs_git]
MOST_BYTES = 300


@pytest.fixture
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return template_in(tmp_path_factory.getbasetemp())


@pytest.fixture
def pit(template: Path, project: Path) -> Sandpit:
    shutil.copytree(template, project, dirs_exist_ok=True)
    pit = Sandpit(project.parent / "pit")
    pit.top = project
    return pit


YES = Answer(is_allowed=True)


class Person:
    """Answers, and remembers the questions."""

    def __init__(self, answer: Answer = YES) -> None:
        self.questions: list[Question] = []
        self.answer = answer

    async def __call__(self, question: Question) -> Answer:
        self.questions.append(question)
        return self.answer

    @property
    def asked(self) -> list[str]:
        return [each.preview.title for each in self.questions]


def lines_of(pit: Sandpit, *words: str) -> list[str]:
    return pit.plain(*words).stdout.splitlines()


async def test_looking_needs_no_question(pit: Sandpit, make_bench: Any):
    (pit.top / "a.txt").write_text("changed\n")
    (pit.top / "new.txt").write_text("x")
    bench = make_bench(mode="plan")
    answered = await bench.ok("git")
    assert answered.output == "## main\n M a.txt\n?? new.txt"
    assert answered.result.summary == "main: 2 changes"
    diff = (await bench.ok("git", action="diff")).output
    assert "-one\n+changed\n" in diff
    assert diff.endswith("New, and not shown: new.txt")
    assert (await bench.ok("git", action="diff", paths=["b.txt"])).output == "No changes."
    answered = await bench.ok("git", action="log", path="b.txt")
    log = answered.output
    assert answered.result.summary == "log: 2 lines"
    assert [line.split(": ")[1] for line in log.splitlines()[:2]] == ["second", "first"]
    assert (await bench.ok("git", action="branch")).output == "* main"
    for action in ("add", "commit", "restore"):
        answered = await bench.call("git", action=action, paths=["a.txt"], text="rm -rf / is gone")
        assert "plan" in answered.output
        assert answered.result.is_refused
    assert (await bench.call("git", action="branch", text="x")).result.is_refused
    bench.gate.policy.mode = "deny"
    answered = await bench.call("git", action="add")
    assert answered.result.is_refused
    assert lines_of(pit, "status", "--porcelain") == [" M a.txt", "?? new.txt"]


async def test_a_commit_is_shown_whole_and_takes_the_paths_or_the_index(pit, make_bench):
    person = Person()
    bench = make_bench(mode="ask", confirm=person)
    assert "Nothing is staged" in await bench.fails("git", action="commit", text="x")
    assert "Nothing has changed in a.txt" in await bench.fails("git", action="add", paths="a.txt")
    assert "what the commit does" in await bench.fails("git", action="commit", paths=["a.txt"])
    (pit.top / "a.txt").write_text("one\ntwo\n")
    (pit.top / "b.txt").unlink()
    (pit.top / "c.txt").write_text("x\n")
    assert (await bench.ok("git", action="add", paths=["c.txt", "b.txt"])).output == (
        "Staged b.txt, c.txt."
    )
    answered = await bench.ok("git", action="commit", paths=["a.txt"], message="Remove rm -rf /")
    assert answered.output.startswith("Committed a.txt as ")
    assert lines_of(pit, "status", "--porcelain") == ["D  b.txt", "A  c.txt"]
    await bench.ok("git", action="commit", text="The rest\x1b[2J\n\nbody")
    assert lines_of(pit, "log", "-2", "--format=%an %B") == [
        *("ybs The rest[2J", "", "body", "ybs Remove rm -rf /")
    ]
    assert lines_of(pit, "status", "--porcelain") == []
    assert [each.preview.body for each in person.questions] == [
        "b.txt  gone\nc.txt  new",
        "    Remove rm -rf /\n\na.txt  +1 -0",
        "    The rest[2J\n\n    body\n\nb.txt  gone\nc.txt  new +1 -0",
    ]
    assert not any(each.warnings for each in person.questions)
    answered = await bench.ok("git")
    assert answered.output == "## main\nno changes"
    assert answered.result.summary == "main: 0 changes"


def plant_hook(folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\nexit 1\n")
    (folder / name).chmod(0o755)


async def test_a_commit_says_once_that_it_is_not_signed_and_that_no_hook_ran(pit, make_bench):
    person = Person()
    bench = make_bench(mode="ask", confirm=person)

    async def commit(text: str) -> str:
        (pit.top / "a.txt").write_text(text)
        return (await bench.ok("git", action="commit", paths=["a.txt"], text=text)).output

    assert (await commit("one")).startswith("Committed a.txt as ")
    pit.configure("[commit]\n\tgpgSign")  # a name alone means true
    plant_hook(pit.top / ".git/hooks", "pre-commit")
    plant_hook(pit.top / ".git/hooks", "post-commit")
    undone = (
        "The commit is not signed, although commit.gpgSign is set. "
        "Without pre-commit, post-commit: ybs's own git starts no hook."
    )
    assert (await commit("two")).endswith(f". {undone}")
    assert undone not in await commit("three")
    assert [undone in each.preview.body for each in person.questions] == [False, True, True]


async def test_a_commit_says_so_too_for_the_persons_own_settings_and_hooks_kept_elsewhere(
    pit: Sandpit, make_bench: Any, home: Path
):
    (home / ".gitconfig").write_text("[commit]\n\tgpgsign = true\n")
    pit.configure("[core]\n\thooksPath = .husky/_")
    plant_hook(pit.top / ".husky/_", "commit-msg")
    (pit.top / "a.txt").write_text("x\n")
    bench = make_bench(mode="bypass", confirm=Person())
    said = (await bench.ok("git", action="commit", paths=["a.txt"], text="x")).output
    assert "is not signed" in said
    assert "Without commit-msg:" in said
    pit.configure("[commit]\n\tgpgSign = false")  # the repository's own word counts more
    (pit.top / "a.txt").write_text("y\n")
    other = make_bench(mode="bypass", confirm=Person())
    said = (await other.ok("git", action="commit", paths=["a.txt"], text="y")).output
    assert "signed" not in said


async def test_a_switch_of_branches_says_that_the_hook_after_it_did_not_run(pit, make_bench):
    plant_hook(pit.top / ".git/hooks", "post-checkout")
    plant_hook(pit.top / ".git/hooks", "pre-commit")
    bench = make_bench(mode="bypass", confirm=Person())
    said = (await bench.ok("git", action="branch", text="other")).output
    assert said == (
        "Made other and switched to it. Without post-checkout: ybs's own git starts no hook."
    )
    assert (await bench.ok("git", action="branch", text="main")).output == "Switched to main."


async def test_always_stands_for_the_action_and_is_no_json(pit: Sandpit, make_bench: Any):
    person = Person(Answer(is_allowed=True, is_for_session=True))
    bench = make_bench(mode="ask", confirm=person)
    for name in ("a.txt", "b.txt"):
        (pit.top / name).write_text("changed\n")
        await bench.ok("git", action="add", paths=[name])
    await bench.ok("git", action="commit", text="one")
    (pit.top / "a.txt").write_text("again\n")
    await bench.ok("git", action="commit", paths=["a.txt"], text="two")
    await bench.ok("git", action="branch", text="other")
    grants = [each.grant for each in person.questions]
    assert grants == ["git(*) add", "git(*) commit", "git(*) branch"]
    (pit.top / "a.txt").write_text("lost\n")
    person.answer = Answer(is_allowed=False)
    refused = await bench.call("git", action="restore", paths=["a.txt"])
    assert refused.result.is_refused, "what destroys is asked about each time"


async def test_restoring_names_the_files_and_is_asked_about_in_every_mode(pit, make_bench):
    for name in ("a.txt", "b.txt", "new.txt"):
        (pit.top / name).write_text("changed\n")
    pit.plain("add", "b.txt")
    config = Config()
    safety = replace(config.safety, allow=("git", "git(a.txt)", "git(**)"))
    hook = RecordedHook()
    bench = make_bench(config=replace(config, safety=safety), hooks=[hook])
    for mode in ("ask", "accept-edits", "auto"):
        bench.gate.policy.mode = mode
        assert (await bench.call("git", action="restore", paths=["a.txt"])).result.is_refused
    bench.gate.confirm = person = Person()
    answered = await bench.ok("git", action="restore", paths=["."])
    assert answered.output == "Restored a.txt, b.txt to the last commit."
    (question,) = person.questions
    assert question.warnings == ("throws away changes that are not committed, in a.txt, b.txt",)
    assert question.grant == ""
    assert question.preview.body == "a.txt  +1 -1\nb.txt  +1 -1"
    assert hook.before == [("delete", (f"{pit.top}/a.txt", f"{pit.top}/b.txt"))]
    assert lines_of(pit, "status", "--porcelain") == ["?? new.txt"]
    assert "delete_file" in await bench.fails("git", action="restore", paths=["new.txt"])
    assert "what to restore" in await bench.fails("git", action="restore")


@pytest.mark.slow
async def test_branches_are_made_and_switched_to_where_nothing_is_lost(pit, make_bench):
    person = Person()
    bench = make_bench(mode="ask", confirm=person)
    (pit.top / "a.txt").write_text("changed\n")
    answered = await bench.ok("git", action="branch", branch="topic")
    assert answered.output.startswith("Made topic and switched to it.")
    await bench.ok("git", action="commit", paths=["a.txt"], text="topic")
    (pit.top / "b.txt").write_text("goes along\n")
    (pit.top / ".envrc").write_text("x")
    await bench.ok("git", action="commit", paths=[".envrc"], text="more")
    await bench.ok("git", action="branch", text="main")
    assert (pit.top / "a.txt").read_text() == "one\n"
    assert lines_of(pit, "status", "--porcelain") == [" M b.txt"]
    assert person.questions[-1].preview.body == ".envrc  gone\na.txt  changed"
    assert person.questions[-1].warnings[0].startswith(".envrc is used by programs")
    assert (await bench.ok("git", action="branch")).output == "* main\n  topic"
    (pit.top / "a.txt").write_text("mine\n")
    assert "would overwrite changes in a.txt" in await bench.fails(
        "git", action="branch", text="topic"
    )
    pit.plain("checkout", "a.txt")
    (pit.top / ".envrc").write_text("mine")
    assert "would overwrite changes in .envrc" in await bench.fails(
        "git", action="branch", text="topic"
    )
    (pit.top / ".git/info").mkdir()
    (pit.top / ".git/info/exclude").write_text(".envrc\n")
    assert "would be overwritten" in await bench.fails("git", action="branch", text="topic")
    assert "the branch already" in await bench.fails("git", action="branch", text="main")
    questions = len(person.asked)
    for name in ("-x", "a..b", "a b", "@", "HEAD", "a.lock", "a/.b", "a/", "/a", "a//b", "x@{1}"):
        told = await bench.fails("git", action="branch", text=name)
        assert "is not a valid name for a branch" in told, name
    assert len(person.asked) == questions, "nobody is asked about what cannot be"
    assert (pit.top / ".envrc").read_text() == "mine"
    assert lines_of(pit, "branch", "--show-current") == ["main"]


def commit_on(pit: Sandpit, branch: str, *names: str, **links: str) -> None:
    """Commit files and links on a branch that is made for them, and go back."""
    pit.plain("switch", "-qc", branch)
    for name in names:
        (pit.top / name).parent.mkdir(parents=True, exist_ok=True)
        (pit.top / name).write_text("new")
    for name, target in links.items():
        (pit.top / name).unlink(missing_ok=True)
        (pit.top / name).symlink_to(target)
    pit.plain("add", "-f", *names, *links)
    pit.plain("commit", "-qm", branch)
    pit.plain("switch", "-q", "main")


async def test_a_link_is_neither_brought_nor_changed_nor_removed(pit, make_bench):
    pit.plain("checkout", "-q", ".")
    commit_on(pit, "brings", "c/config.toml", **{".cargo": "c"})
    commit_on(pit, "gives", "plain.txt")
    pit.plain("switch", "-q", "brings")
    commit_on(pit, "changes", **{".cargo": "d"})
    pit.plain("switch", "-q", "main")
    bench = make_bench(mode="bypass")
    said = await bench.fails("git", action="branch", text="brings")
    assert "would change .cargo: " in said
    assert "The person can switch, or allow run_shell with outside: true" in said
    assert not (pit.top / ".cargo").is_symlink()
    assert not (pit.top / "c").exists(), "nothing of it came"
    await bench.ok("git", action="branch", text="gives")
    pit.plain("switch", "-q", "brings")
    for name in ("changes", "main"):
        assert "would change .cargo: " in await bench.fails("git", action="branch", text=name)
    (pit.top / ".cargo").unlink()
    assert "can restore" in await bench.fails("git", action="restore", paths=[".cargo"])
    assert not (pit.top / ".cargo").is_symlink()
    (pit.top / "c/config.toml").unlink()
    (pit.top / "c/config.toml").symlink_to("../a.txt")
    assert "c/config.toml" in await bench.fails("git", action="restore", paths=["c"])
    assert (pit.top / "c/config.toml").is_symlink()


@every_row(
    ("there", "coming"),
    [
        ((), ("x/HEAD", "x/objects/k", "x/refs/k")),
        ((), ("x/deep/Head", "x/deep/commondir")),
        (("x/HEAD",), ("x/objects/k", "x/refs/k")),
        (("x/HEAD", "x/objects/k"), ("x/refs",)),
        (("x/objects/k",), ("x/HEAD", "x/refs")),
    ],
)
async def test_files_that_make_a_repository_together_do_not_come_together(
    template, tmp_path, make_bench, there, coming
):
    pit = Sandpit(tmp_path / "-".join((*there, "and", *coming)).replace("/", "."))
    shutil.copytree(template, pit.top)
    pit.plain("checkout", "-q", ".")
    commit_on(pit, "brings", *coming)
    for name in there:
        (pit.top / name).parent.mkdir(parents=True, exist_ok=True)
        (pit.top / name).write_text("mine")
    bench = type(make_bench())(pit.top, mode="bypass")
    said = await bench.fails("git", action="branch", text="brings")
    assert "git would take a folder for a repository" in said
    assert not any((pit.top / name).exists() for name in coming)
    for name in there:
        (pit.top / name).unlink()
    pit.plain("switch", "-q", "brings")
    shutil.rmtree(pit.top / "x")
    for name in there:
        (pit.top / name).parent.mkdir(parents=True, exist_ok=True)
        (pit.top / name).write_text("mine")
    await bench.fails("git", action="restore", paths=["x"])
    assert not any((pit.top / name).exists() for name in coming)
    bench.workspace.shells.close_watch()


async def test_some_parts_of_a_repository_come_as_any_file_does(pit, make_bench):
    pit.plain("checkout", "-q", ".")
    commit_on(pit, "brings", "x/HEAD", "x/objects/k", "y/refs/k")
    bench = make_bench(mode="bypass")
    await bench.ok("git", action="branch", text="brings")
    shutil.rmtree(pit.top / "x")
    await bench.ok("git", action="restore", paths=["x"])
    assert (pit.top / "x/HEAD").read_text() == "new"


async def test_always_for_making_branches_is_none_for_switching_to_one(pit, make_bench):
    pit.plain("checkout", "-q", ".")
    commit_on(pit, "theirs", "check.sh")
    person = Person(Answer(is_allowed=True, is_for_session=True))
    bench = make_bench(mode="ask", confirm=person)
    for name in ("work", "more", "theirs", "work"):
        await bench.ok("git", action="branch", text=name)
    assert [each.grant for each in person.questions] == ["git(*) branch", "git(*) switch"]


@pytest.mark.slow
async def test_what_is_blocked_or_outside_is_neither_shown_nor_touched(pit, make_bench):
    inner = pit.top / "inner"
    (inner / "secret").mkdir(parents=True)
    for name in ("secret/key", "open"):
        (inner / name).write_text("first\n")
    pit.plain("add", ".")
    pit.plain("commit", "-qm", "third")
    for path in (inner / "secret/key", inner / "open", pit.top / "a.txt"):
        path.write_text("CHANGED\n")
    config = Config()
    safety = replace(config.safety, sandbox_blocked_paths=(str(inner / "secret"),))
    config = replace(config, safety=safety)
    bench = make_bench(config=config)
    bench = type(bench)(inner, config=config, mode="bypass")
    assert (await bench.ok("git")).output == "## main\n M open"
    diff = (await bench.ok("git", action="diff")).output
    assert diff.splitlines()[0] == "diff --git a/open b/open"
    assert diff.count("CHANGED") == 1
    await bench.ok("git", action="restore", paths=["."])
    assert (inner / "open").read_text() == "first\n"
    for action in ("diff", "add", "restore", "commit"):
        for path in ("secret/key", "../a.txt", "../.git/config", "/etc/passwd"):
            await bench.fails("git", action=action, paths=[path], text="x")
    pit.plain("branch", "other", "HEAD~1")
    pit.plain("checkout", "-q", ".")
    assert "tools may not write" in await bench.fails("git", action="branch", text="other")
    bench.workspace.shells.close_watch()


async def test_what_changed_while_the_person_thought_is_not_done(pit: Sandpit, make_bench: Any):
    (pit.top / "a.txt").write_text("changed\n")

    async def slow(question: Question) -> Answer:
        (pit.top / "a.txt").write_text("changed again\n")
        return Answer(is_allowed=True)

    bench = make_bench(mode="ask", confirm=slow)
    assert "in the meantime" in await bench.fails("git", action="restore", paths=["a.txt"])
    assert (pit.top / "a.txt").read_text() == "changed again\n"


async def test_what_only_a_person_can_end_is_refused(pit: Sandpit, make_bench: Any):
    (pit.top / "a.txt").write_text("changed\n")
    (pit.top / ".git/MERGE_HEAD").write_text("x")
    bench = make_bench()
    assert (await bench.ok("git")).output.startswith("## main\na merge is under way\n")
    for action in ("add", "commit", "restore"):
        assert "a merge is under way" in await bench.fails(
            "git", action=action, paths=["a.txt"], text="x"
        )
    pit.plain("branch", "other")
    assert "a merge is under way" in await bench.fails("git", action="branch", text="other")


@pytest.mark.slow
async def test_before_the_first_commit(project: Path, make_bench: Any):
    pit = Sandpit(project.parent / "pit")
    pit.top = project
    pit.plain("init", "-q", "-b", "main", "--template=")
    (project / "a.txt").write_text("x\n")
    bench = make_bench()
    assert (await bench.ok("git", action="log")).output == "There is no commit yet."
    assert (await bench.ok("git", action="diff")).output == "New, and not shown: a.txt"
    await bench.ok("git", action="branch", text="first")
    await bench.ok("git", action="commit", paths=["a.txt"], text="begin")
    assert lines_of(pit, "log", "--format=%D %s") == ["HEAD -> first begin"]


async def test_it_is_offered_in_repositories_to_larger_models_only(pit: Sandpit, make_bench: Any):
    def names(bench: Any) -> list[str]:
        return [spec.name for spec in bench.toolbox.specs()]

    (spec,) = [spec for spec in make_bench().toolbox.specs() if spec.name == "git"]
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": msgspec.Raw(spec.parameters),
    }
    sent = msgspec.json.encode({"type": "function", "function": function})
    assert len(sent) < MOST_BYTES
    assert "git" not in names(make_bench(is_short=True))
    shutil.rmtree(pit.top / ".git")
    assert "git" not in names(make_bench())


def add_submodule(pit: Sandpit, name: str, folder: Path | None = None) -> Path:
    """Add the repository to itself as a submodule, and commit that."""
    top = folder or pit.top
    allowed = ("-c", "protocol.file.allow=always")
    origin = pit.top.parent / "origin"
    if not origin.exists():
        shutil.copytree(pit.top, origin)
    pit.plain(*allowed, "submodule", "add", "-q", str(origin), name, folder=top)
    pit.plain("commit", "-qam", f"Add {name}", folder=top)
    return top / name


async def test_changes_in_submodules_are_seen(pit: Sandpit, make_bench: Any):
    bench = make_bench(mode="bypass")
    sub = add_submodule(pit, "libs/sub mod")
    assert (await bench.ok("git")).output == "## main\nno changes"
    assert (await bench.ok("git", action="diff")).output == "No changes."
    await bench.ok("edit_file", path="libs/sub mod/a.txt", old_text="one", new_text="two")
    (sub / "new.txt").write_text("x")
    answered = await bench.ok("git")
    assert answered.output == (
        "## main\n M libs/sub mod/a.txt (in a submodule)\n?? libs/sub mod/new.txt (in a submodule)"
    )
    assert answered.result.summary == "main: 2 changes"
    diff = (await bench.ok("git", action="diff")).output
    assert "+++ b/libs/sub mod/a.txt" in diff
    assert "-one\n+two\n" in diff
    assert diff.endswith("New, and not shown: libs/sub mod/new.txt")
    for paths, count in (
        (["libs"], 2),
        (["libs/sub mod"], 2),
        (["libs/sub mod/new.txt"], 1),
        (["b.txt"], 0),
    ):
        lines = (await bench.ok("git", paths=paths)).output.splitlines()[1:]
        assert sum("in a submodule" in line for line in lines) == count, paths
    for action in ("add", "commit", "restore"):
        said = await bench.fails("git", action=action, paths=["libs/sub mod"], text="x")
        assert "submodule libs/sub mod has changes, and is a repository of its own" in said


async def test_where_submodules_are_more_than_is_read_it_is_said(pit: Sandpit, make_bench: Any):
    add_submodule(pit, "sub")
    with (pit.top / ".gitmodules").open("a") as file:
        file.write(f"#{'x' * 1_000_000}\n")
    said = await make_bench(mode="bypass").fails("git")
    assert "The submodules are not known" in said
    assert ".gitmodules is longer than 1,000,000 bytes" in said


async def test_a_submodule_at_another_commit_and_one_within_a_submodule_are_seen(pit, make_bench):
    bench = make_bench(mode="bypass")
    sub = add_submodule(pit, "sub")
    inner = add_submodule(pit, "inner", sub)
    moved = " M sub (submodule, at another commit)"
    assert (await bench.ok("git")).output == f"## main\n{moved}"
    assert (await bench.ok("git", action="diff")).output == moved
    (inner / "b.txt").unlink()
    said = (await bench.ok("git")).output
    assert said == f"## main\n{moved}\n D sub/inner/b.txt (in a submodule)"
    assert "--- a/sub/inner/b.txt" in (await bench.ok("git", action="diff")).output
    pit.plain("add", "sub")
    pit.plain("commit", "-qm", "Move sub")
    assert "at another commit" not in (await bench.ok("git")).output


async def test_a_submodule_that_is_not_checked_out_is_passed_by(pit: Sandpit, make_bench: Any):
    bench = make_bench(mode="bypass")
    add_submodule(pit, "gone")
    sub = add_submodule(pit, "sub")
    pit.plain("submodule", "deinit", "-f", "gone")
    (sub / "a.txt").write_text("changed\n")
    assert (await bench.ok("git")).output == "## main\n M sub/a.txt (in a submodule)"


async def test_a_submodule_that_cannot_be_looked_at_is_named_and_no_program_of_its_runs(
    pit: Sandpit, make_bench: Any
):
    bench = make_bench(mode="bypass")
    sub = add_submodule(pit, "sub")
    settings = pit.top / ".git/modules/sub/config"
    settings.write_text(
        f'{settings.read_text()}[core]\nfsmonitor = {pit.program}\n[filter "evil"]\nclean = {pit.program}\n'
    )
    (sub / ".gitattributes").write_text("* filter=evil\n")
    (sub / "a.txt").write_text("changed\n")
    pit.forget()
    why = "git failed: fatal: b.txt: clean filter 'evil' failed"
    for more in ("", "[include]\npath = ../evil\n"):
        settings.write_text(f"{settings.read_text()}{more}")
        for action in ("status", "diff"):
            said = (await bench.ok("git", action=action)).output
            assert f"sub (submodule, not looked at: {why}" in said
        why = "the repository's settings include"
    assert not pit.has_run
    outside = pit.top.parent / "origin"
    shutil.rmtree(sub)
    sub.symlink_to(outside)
    (outside / "a.txt").write_text("secret\n")
    assert "secret" not in (await bench.ok("git", action="diff")).output


async def test_a_submodule_shows_no_repository_that_only_its_own_file_names(
    pit: Sandpit, template: Path, make_bench: Any
):
    sub, around = add_submodule(pit, "sub"), pit.top.parent
    shutil.copytree(template / ".git", around / ".git")
    (around / "a.txt").write_text("secret\n")
    pit.plain("commit", "-qam", "secret", folder=around)
    for pointer in ("../../.git", str(around / ".git"), ""):
        (sub / ".git").unlink()
        if pointer:
            (sub / ".git").write_text(f"gitdir: {pointer}\n")
        else:
            (sub / ".git").symlink_to("../../.git")
        for action in ("status", "diff"):
            said = (await make_bench(mode="bypass").ok("git", action=action)).output
            assert "sub (submodule, not looked at: git cannot be used" in said, pointer
            assert "secret" not in said, pointer


async def test_a_rule_that_denies_means_a_folder_however_it_is_spelled(pit, make_bench, project):
    (project / "infra").mkdir()
    (project / "infra/a").write_text("old")
    pit.plain("add", "infra")
    pit.plain("commit", "-qm", "x")
    (project / "infra/a").write_text("new")
    for pattern in ("infra", f"{project}/infra/"):
        config = Config(safety=replace(Config().safety, deny=(f"git({pattern})",)))
        bench = make_bench(config=config)
        answered = await bench.call("git", action="restore", paths=["src/../infra"])
        assert answered.result.is_refused, answered.output
    assert (project / "infra/a").read_text() == "new"


@every_row(
    ("kind", "rules", "is_refused"),
    [
        ("deny", ("run_shell(git commit *)",), True),
        ("deny", ("run_shell(git:*)",), True),
        ("blocked_commands", ("git commit",), True),
        ("deny", ("run_shell(git push *)", "run_shell", "git(b.txt)"), False),
        ("deny", ("*(a.t*)",), True),
        ("deny", ("git(commit *)",), True),
        ("deny", ("git(commit)",), False),  # as `run_shell(git commit)`: no operands
        ("deny", ("run_shell(git add *)",), False),
        ("blocked_commands", ("git push",), False),
    ],
)
async def test_what_denies_a_command_of_git_denies_the_tool_that_does_the_same(
    pit: Sandpit, make_bench: Any, *, kind: str, rules: tuple[str, ...], is_refused: bool
) -> None:
    config = Config(safety=replace(Config().safety, **{kind: rules}))
    bench = make_bench(mode="bypass", config=config)
    (pit.top / "a.txt").write_text(f"{kind} {rules}\n")
    before = lines_of(pit, "rev-parse", "HEAD")
    answered = await bench.call("git", action="commit", text="push", paths=["a.txt"])
    assert answered.result.is_refused is is_refused, answered.output
    assert (lines_of(pit, "rev-parse", "HEAD") == before) is is_refused


async def test_a_commit_of_a_new_file_is_also_the_command_that_adds_it(
    pit: Sandpit, make_bench: Any
) -> None:
    config = Config(safety=replace(Config().safety, deny=("run_shell(git add *)",)))
    bench = make_bench(mode="bypass", config=config)
    (pit.top / "new.txt").write_text("x")
    answered = await bench.call("git", action="commit", text="c", paths=["new.txt"])
    assert answered.result.is_refused, answered.output
    assert not lines_of(pit, "ls-files", "new.txt")


async def test_a_rule_that_asks_about_a_command_of_git_asks_about_the_tool_and_none_allows_it(
    pit: Sandpit, make_bench: Any
) -> None:
    rule = ("run_shell(git commit *)",)
    for mode, kind in (("auto", "ask"), ("ask", "allow")):
        person = Person()
        config = Config(safety=replace(Config().safety, **{kind: rule}))
        bench = make_bench(mode=mode, config=config, confirm=person)
        (pit.top / "a.txt").write_text(f"changed in {mode}\n")
        await bench.ok("git", action="commit", text="x", paths=["a.txt"])
        assert person.asked == ["Commit a.txt"], kind
    assert (await bench.ok("git")).output == "## main\nno changes"
    assert len(person.asked) == 1
