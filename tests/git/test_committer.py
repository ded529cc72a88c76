"""The commits of turns: only what the turn changed, and nothing of anybody else's."""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hostile_git import Sandpit, needs_git, template_in
from hosts import this_host
from rows import every_row
from ybs.config.schema import GitSettings as Settings
from ybs.git import committable
from ybs.git.client import Git
from ybs.git.committable import WorkTreeStatus
from ybs.git.committer import COLUMNS, Commit, Committer, Describe
from ybs.git.consent import CommitWish, Consent
from ybs.git.moves import bring_back, take_back

pytestmark = [pytest.mark.integration, needs_git]


@pytest.fixture
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return template_in(tmp_path_factory.getbasetemp())


@pytest.fixture
def pit(template: Path, tmp_path: Path) -> Sandpit:
    pit = Sandpit(tmp_path / "pit")
    shutil.copytree(template, pit.top)
    return pit


def committer(folder: Path, *, may_write: bool = True, is_on: bool = True) -> Committer:
    return Committer(
        folder,
        Settings(),
        consent=Consent(this_host(), "always" if is_on else "never", may_write=may_write),
        mask=lambda text: text.replace("hunter2", "<secret>"),
    )


def says(words: str) -> Describe:
    return lambda _, __: words


async def turn(
    one: Committer, pit: Sandpit, files: Mapping[str, str | None], words: str = "Do it"
) -> Commit | None:
    """Take a turn that writes these files, or deletes them."""
    await one.begin()
    are_edits = all(text is not None and (pit.top / name).is_file() for name, text in files.items())
    for name, text in files.items():
        path = pit.top / name
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text)
    return await one.after_turn(list(files), says(words), are_edits=are_edits)


def status(pit: Sandpit) -> list[str]:
    return pit.plain("status", "--porcelain", "-uall").stdout.splitlines()


def titles(pit: Sandpit) -> list[str]:
    return pit.plain("log", "--format=%s").stdout.splitlines()


async def test_a_turn_is_committed_and_everybody_elses_work_stays(pit: Sandpit):
    (pit.top / "a.txt").write_text("mine, unstaged\n")
    (pit.top / "staged.txt").write_text("mine, staged\n")
    pit.plain("add", "staged.txt")
    (pit.top / "new.txt").write_text("mine, untracked\n")
    (pit.top / ".gitignore").write_text("*.log\n")
    before = status(pit)
    one = committer(pit.top)
    made = await turn(
        one,
        pit,
        {
            "b.txt": None,
            "a.txt": "both\n",
            "new.txt": "both\n",
            "sub/c é.txt": "ybs\n",
            "x.log": "x",
        },
        "Fix it, the password is hunter2",
    )
    assert made is not None
    assert made.title == "[ybs] Fix it, the password is <secret>"
    assert set(made.paths) == {"b.txt", "sub/c é.txt"}
    first, left = made.notice.splitlines()
    assert first.startswith(
        f"ybs commits what each turn changed: {made.title} ({made.commit[:7]})."
    )
    assert left == "Not committed, because they were changed before this turn: a.txt, new.txt."
    shown = pit.plain("show", "--name-status", "--format=%H", "-z", "HEAD").stdout
    assert shown.split("\0")[0] == made.commit
    assert set(shown.replace("\n", "").split("\0")[1:]) >= {"D", "b.txt", "A", "sub/c é.txt"}
    assert status(pit) == before
    made = await turn(one, pit, {"a.txt": "again\n", "b.txt": "back\n"})
    assert made is not None
    assert made.paths == ("b.txt",)
    assert made.notice == f"Committed: {made.title} ({made.commit[:7]})."  # a.txt was named before


@pytest.mark.slow
async def test_nothing_is_committed_where_that_would_be_wrong(
    pit: Sandpit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    wrong: list[str] = []
    head = titles(pit)

    async def attempt(name: str, one: Committer, words: str = "") -> None:
        files = {"a.txt": f"{name}\n"}
        first, second = await turn(one, pit, files), await turn(one, pit, {"b.txt": f"{name}\n"})
        notice = first.notice if first else ""
        if words not in notice or bool(words) != bool(notice) or (first and first.commit):
            wrong.append(f"{name}: {first}")
        if second is not None:  # once is enough
            wrong.append(f"{name} again: {second}")
        if titles(pit) != head:
            wrong.append(f"{name}: there is a commit")
        pit.plain("checkout", "--", "a.txt", "b.txt")

    await attempt("incognito", committer(pit.top, may_write=False))
    await attempt("switched off", committer(pit.top, is_on=False))
    await attempt("no repository", committer(tmp_path))
    git_folder = pit.top / ".git"
    for mark, words in {
        "MERGE_HEAD": "a merge is under way",
        "CHERRY_PICK_HEAD": "a cherry-pick",
        "REVERT_HEAD": "a revert",
        "BISECT_LOG": "a bisection",
        "rebase-merge": "a rebase",
    }.items():
        (git_folder / mark).write_text(titles(pit)[0])
        await attempt(mark, committer(pit.top), words)
        (git_folder / mark).unlink()
    (git_folder / "index.lock").touch()
    await attempt("locked", committer(pit.top), "index.lock")
    (git_folder / "index.lock").unlink()
    branch = (git_folder / "HEAD").read_text()
    (git_folder / "HEAD").write_text(pit.plain("rev-parse", "HEAD").stdout)
    await attempt("detached", committer(pit.top), "HEAD is on no branch")
    (git_folder / "HEAD").write_text(branch)
    with monkeypatch.context() as other:
        other.setattr("os.getuid", lambda: 12345)
        await attempt("somebody else's", committer(pit.top))
    with monkeypatch.context() as at_home:
        at_home.setenv("HOME", str(pit.top))
        (pit.top / "below").mkdir()
        one = committer(pit.top / "below")
        await one.begin()
        (pit.top / "below/new").write_text("x")
        assert await one.after_turn(["new"], says("x")) is None
        shutil.rmtree(pit.top / "below")
    with monkeypatch.context() as slow:
        slow.setattr("ybs.git.committer._SECONDS", 0.0)
        await attempt("slow", committer(pit.top), "longer than 0 s")
    one = committer(pit.top)
    (pit.top / "b.txt").write_text("<<<<<<<")
    blob = pit.plain("rev-parse", "HEAD:b.txt").stdout.strip()
    pit.plain("update-index", "--force-remove", "b.txt")
    entries = "".join(f"100644 {blob} {stage}\tb.txt\n" for stage in (1, 2, 3))
    pit.plain("update-index", "--index-info", said=entries)
    made = await turn(one, pit, {"a.txt": "x\n"})
    assert made is not None
    assert made.notice == "Not committed: there are conflicts."
    pit.plain("reset", "-q", "--hard")
    pit.configure("[core]\nbare = true")
    one = committer(pit.top)
    assert await turn(one, pit, {"a.txt": "bare\n"}) is None
    assert not wrong


async def test_what_is_not_this_repositorys_is_left_out(pit: Sandpit):
    (pit.top / "inner/.git").mkdir(parents=True)
    (pit.top / ".gitattributes").write_text("*.bin filter=lfs\n")
    one = committer(pit.top)
    made = await turn(
        one,
        pit,
        {"x.bin": "x", "inner/a.txt": "x", "a.txt": "x", "../outside": "x", "b.txt": "two\n"},
    )
    assert made is not None
    assert made.paths == ("a.txt",)
    assert made.notice.splitlines()[1:] == [
        "Not committed, because they lie in a repository of their own: inner/a.txt.",
        "Not committed, because they go through a filter, such as LFS: x.bin.",
    ]


@pytest.mark.slow
async def test_nothing_is_committed_into_a_repository_that_only_a_file_of_the_project_names(pit):
    project = Sandpit(pit.top / "project")
    project.top.mkdir()
    (project.top / ".git").write_text("gitdir: ../.git\n")
    before = titles(pit)
    one = committer(project.top)
    assert await turn(one, project, {"bin/tool": "x\n"}) is None
    assert (titles(pit), one.would_ask) == (before, False)


async def test_the_first_commit_of_all_from_a_folder_within(tmp_path: Path, home: Path):
    (home / ".config/git").mkdir(parents=True)
    (home / ".config/git/ignore").write_text("*.private\n")
    pit = Sandpit(tmp_path / "pit")
    (pit.top / "project/deep").mkdir(parents=True)
    pit.plain("init", "-q", "-b", "main", "--template=")
    one = committer(pit.top / "project")
    await one.begin()
    for name in ("one", "two.private"):
        (pit.top / "project/deep" / name).write_text("x")
    made = await one.after_turn(["deep/one", pit.top / "project/deep/two.private"], says("Add one"))
    assert made is not None
    assert (made.paths, made.title) == (("project/deep/one",), "[ybs] Add one")
    assert pit.plain("log", "--format=%an <%ae> %s").stdout == "ybs <ybs@localhost> [ybs] Add one\n"
    assert await one.set_back(take_back, made.commit) == "added"  # a branch needs a commit
    assert pit.plain("ls-files").stdout == ""
    assert await one.set_back(bring_back, made.commit) == "moved"
    assert pit.plain("ls-files").stdout == "project/deep/one\n"
    # A file takes the place of a folder, and a folder that of a file.
    await one.begin()
    shutil.rmtree(pit.top / "project/deep")
    (pit.top / "project/deep").write_text("a file now")
    made = await one.after_turn(["deep/one", "deep"], says("swap"))
    assert made is not None
    assert pit.plain("ls-files").stdout == "project/deep\n"
    await one.begin()
    (pit.top / "project/deep").unlink()
    (pit.top / "project/deep").mkdir()
    (pit.top / "project/deep/two").write_text("x")
    assert await one.after_turn(["deep/two"], says("swap back")) is not None
    assert pit.plain("ls-files").stdout == "project/deep/two\n"


async def test_without_a_look_before_the_change_nothing_is_committed(pit: Sandpit):
    one = committer(pit.top)
    (pit.top / "a.txt").write_text("x")
    assert await one.after_turn(["a.txt"], says("x")) is None
    await one.begin()
    assert await one.after_turn([], says("x")) is None
    assert await one.after_turn(["a.txt"], says("x")) is None  # that look was of another turn


@every_row(
    "words, message",
    [
        ("Fix it", "[ybs] Fix it"),
        ("Fix\tit \n\n", "[ybs] Fix    it"),
        ("Fix it\r\n\r\n- and that", "[ybs] Fix it\n\n- and that"),
        ("\x1b]0;x\x07Fix \u202eit\x00\ud800", "[ybs] ]0;xFix it"),
    ],
)
async def test_a_message_is_what_is_said_of_the_committed_paths(
    pit: Sandpit, words: str, message: str
):
    asked: list[object] = []

    def describe(paths: Sequence[object], columns: int) -> str:
        asked.extend((*paths, columns))
        return words

    one = committer(pit.top)
    (pit.top / "mine.txt").write_text("1")
    await one.begin()
    for name in ("a.txt", "mine.txt"):
        (pit.top / name).write_text(f"{words!r}")
    made = await one.after_turn(["a.txt", pit.top / "mine.txt"], describe)
    assert made is not None
    assert asked == ["a.txt", COLUMNS - len("[ybs] ")]
    assert pit.plain("log", "-1", "--format=%B").stdout.rstrip("\n") == message


async def test_new_files_that_hold_keys_by_their_name_are_left_out(pit: Sandpit):
    names = [".env", ".env.local", "deploy/id_ed25519", "tls.PEM", ".netrc", ".npmrc", "prod.env"]
    names += ["aws/credentials", "kubeconfig", "x.ppk", "service-account-1.json", "id_ed25519_sk"]
    fine = [".env.example", "environment", "id_rsa.pub", "example.env", "credentials.py"]
    one = committer(pit.top)
    made = await turn(one, pit, dict.fromkeys((*names, *fine), "x\n"))
    assert made is not None
    assert sorted(made.paths) == sorted(fine)
    assert "such files hold keys and passwords: .env" in made.notice
    pit.plain("add", "--force", ".env")
    pit.plain("commit", "-qm", "theirs")
    made = await turn(one, pit, {".env": "y\n"})
    assert made is not None, "the person has it in the repository"
    assert made.paths == (".env",)


async def test_a_repository_that_a_command_made_is_left_alone(tmp_path: Path, template: Path):
    pit = Sandpit(tmp_path / "late")
    pit.top.mkdir()
    one = committer(pit.top)
    assert await turn(one, pit, {"a.txt": "x\n"}) is None
    shutil.copytree(template, pit.top, dirs_exist_ok=True)
    assert await turn(one, pit, {"a.txt": "y\n"}) is None
    assert await turn(committer(pit.top), pit, {"a.txt": "z\n"}) is not None


async def test_a_log_that_is_a_link_takes_no_line(pit: Sandpit, tmp_path: Path):
    profile = tmp_path / ".bashrc"
    profile.write_text("# mine\n")
    (pit.top / ".git/logs/HEAD").unlink()
    (pit.top / ".git/logs/HEAD").symlink_to(profile)
    made = await turn(committer(pit.top), pit, {"c.txt": "x\n"})
    assert made is not None
    assert made.commit == ""
    assert "logs/HEAD is a link" in made.notice
    assert profile.read_text() == "# mine\n"


async def test_a_change_that_comes_while_git_looks_waits_for_it_and_git_looks_once(
    pit: Sandpit, monkeypatch: pytest.MonkeyPatch
):
    looked, has_begun, may_see = list[bool](), asyncio.Event(), asyncio.Event()

    async def look(git: Git) -> WorkTreeStatus:
        looked.append(True)
        has_begun.set()
        await may_see.wait()
        return await committable.look(git)

    monkeypatch.setattr("ybs.git.committer.look", look)
    one = committer(pit.top)
    first, second = asyncio.ensure_future(one.begin()), asyncio.ensure_future(one.begin())
    await has_begun.wait()
    for _ in range(20):
        await asyncio.sleep(0)
    assert not second.done()
    may_see.set()
    await asyncio.gather(first, second)
    await one.begin()
    assert looked == [True]


async def test_a_commit_takes_few_runs_of_git_where_nothing_is_staged(
    pit: Sandpit, monkeypatch: pytest.MonkeyPatch
):
    ran: list[str] = []
    run = Git.run

    async def counted(git: Git, command: str, *words: str, **rest: Any) -> bytes:
        ran.append(command)
        return await run(git, command, *words, **rest)

    script = Git._run_script

    async def together(git: Git, *words: Any) -> bytes:
        ran.append("together")
        return await script(git, *words)

    monkeypatch.setattr(Git, "run", counted)
    monkeypatch.setattr(Git, "_run_script", together)
    one = committer(pit.top)
    made = await turn(one, pit, {"a.txt": "new\n", "fresh.txt": "new\n"})
    assert made is not None
    assert ran == ["status", "status", "together"]
    assert pit.plain("show", "--name-only", "--format=", made.commit).stdout.split() == [
        "a.txt",
        "fresh.txt",
    ]
    assert status(pit) == []
    ran.clear()
    edited = await turn(one, pit, {"a.txt": "newer\n", "b.txt": "newer\n"})
    assert edited is not None
    assert edited.paths == ("a.txt", "b.txt")
    assert ran == ["status", "together"]  # where files are edited alone, both is done in one run
    assert (status(pit), titles(pit)[0]) == ([], edited.title)
    ran.clear()
    await one.begin()
    for name in ("a.txt", "b.txt"):  # the second one is somebody else's
        (pit.top / name).write_text("newest\n")
    mine = await one.after_turn(["a.txt"], says("Do it"), are_edits=True)
    assert mine is not None
    assert mine.paths == ("a.txt",)
    assert ran == [
        "status",
        "together",
        "status",
        "together",
    ]  # it looked otherwise, so it is sorted out
    assert status(pit) == [" M b.txt"]
    ran.clear()
    dirty = await turn(one, pit, {"a.txt": "new again\n"})
    assert dirty is not None
    assert (dirty.paths, ran, status(pit)) == (("a.txt",), ["status", "together"], [" M b.txt"])
    pit.plain("commit", "-aqm", "theirs")
    ran.clear()
    with monkeypatch.context() as patch:
        patch.setattr(Git, "_can_script", lambda _git: False)
        assert await turn(one, pit, {"b.txt": "new\n"})
    assert ran == ["status", "status", "update-index", "write-tree", "commit-tree", "update-ref"]
    assert status(pit) == []
    for name in ("staged.txt", ".gitmodules"):  # a submodule may be staged, which no look shows
        (pit.top / name).touch()
        pit.plain("add", name)
        ran.clear()
        made = await turn(one, pit, {"a.txt": f"{name}\n"})
        assert made is not None
        assert made.paths == ("a.txt",)
        assert "read-tree" in ran
        pit.plain("commit", "-qm", "mine")
        assert pit.plain("show", "--name-only", "--format=").stdout.split() == [name]


async def test_a_filter_is_seen_where_its_attributes_are_not_in_the_work_tree(pit: Sandpit):
    (pit.top / ".gitattributes").write_text("*.bin filter=secret\n")
    pit.plain("add", ".gitattributes")
    pit.plain("commit", "-qm", "filter")
    (pit.top / ".gitattributes").unlink()
    made = await turn(committer(pit.top), pit, {"x.bin": "x"})
    assert made is not None
    assert "go through a filter" in made.notice
    pit.plain("update-index", "--skip-worktree", ".gitattributes")
    pit.plain("config", "core.sparseCheckout", "true")
    made = await turn(committer(pit.top), pit, {"y.bin": "y"})
    assert made is not None
    assert "go through a filter" in made.notice
    assert titles(pit)[0] == "filter"


async def test_a_commit_says_once_what_git_itself_would_have_done(pit: Sandpit):
    pit.configure("[commit]\n\tgpgSign = true")
    hook = pit.top / ".git/hooks/post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    one = committer(pit.top)
    made = await turn(one, pit, {"a.txt": "1\n"})
    assert made is not None
    assert made.notice.splitlines()[1:] == [
        "The commit is not signed, although commit.gpgSign is set. "
        "Without post-commit: ybs's own git starts no hook."
    ]
    made = await turn(one, pit, {"c.txt": "1\n"})
    assert made is not None
    assert "\n" not in made.notice


async def test_nobody_is_asked_about_a_turn_that_left_all_as_it_was(pit: Sandpit):
    asked = list[CommitWish]()

    async def ask(wish: CommitWish) -> bool:
        asked.append(wish)
        return True

    consent = Consent(this_host(), "ask", ask=ask)
    one = Committer(pit.top, Settings(), consent=consent)
    before, head = (pit.top / "a.txt").read_text(), titles(pit)
    await one.begin()
    (pit.top / "a.txt").write_text("new\n")
    (pit.top / "a.txt").write_text(before)
    assert await one.after_turn(["a.txt"], says("Do it"), are_edits=True) is None
    assert (asked, titles(pit)) == ([], head)
    made = await turn(one, pit, {"a.txt": "new\n"})
    assert made is not None
    assert made.commit
    assert len(asked) == 1
    await one.begin()  # agreed to: what the model has committed itself is not committed once more
    (pit.top / "a.txt").write_text("newer\n")
    pit.plain("commit", "-qam", "by the model")
    again = await one.after_turn(["a.txt"], says("Do it"), are_edits=True)
    assert again is None or not again.commit
    assert titles(pit)[0] == "by the model"


async def test_who_was_never_asked_about_commits_is_told_of_none_that_is_missing(pit: Sandpit):
    async def ask(_wish: CommitWish) -> bool:
        return True

    one = Committer(pit.top, Settings(), consent=Consent(this_host(), "ask", ask=ask))
    (pit.top / "a.txt").write_text("mine, unstaged\n")
    assert await turn(one, pit, {"a.txt": "both\n"}) is None
    made = await turn(one, pit, {"b.txt": "ybs\n"})
    assert made is not None
    assert made.commit
    left = await turn(one, pit, {"a.txt": "both again\n"})
    assert left is not None
    assert left.notice == "Not committed, because they were changed before this turn: a.txt."
