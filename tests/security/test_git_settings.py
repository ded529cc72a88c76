"""What the person's own git settings name in a project: held by the sandbox, asked about by file tools."""

import os
import pwd
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from hosts import this_host
from rows import every_row
from ybs.security.paths.git_settings import commands, remotes_of
from ybs.security.paths.persons import named_by_settings
from ybs.security.paths.roots import Roots
from ybs.security.sandbox.protected import protected

pytestmark = pytest.mark.integration


@pytest.fixture
def repository(project: Path) -> Path:
    subprocess.run(["git", "init", "-q", "."], cwd=project, check=True)
    return project


def config(folder: Path, *settings: str, file: str = "--local") -> None:
    key, value = settings
    subprocess.run(["git", "config", file, key, value], cwd=folder, check=True)


def named(project: Path) -> list[str]:
    return [os.path.relpath(path, project) for path in named_by_settings(this_host(), str(project))]


def test_a_repository_as_git_makes_it_names_nothing(repository: Path):
    assert named(repository) == []


@every_row(
    ("key", "value", "expected"),
    [
        ("core.hooksPath", "tools/hooks", "tools/hooks"),
        ("core.hooksPath", "./hooks with space", "hooks with space"),
        ("include.path", "../shared.gitconfig", "shared.gitconfig"),
        ("includeIf.gitdir:/x/.path", "../shared.gitconfig", "shared.gitconfig"),
        ("init.templateDir", "templates", "templates"),
        ("filter.a.clean", "python3 ./run.py --x", "run.py"),
        ("diff.a.textconv", '"./run.py" %f', "run.py"),
        ("alias.a", "!./run.py; true", "run.py"),
        ("core.fsmonitor", "run.py", "run.py"),
        ("remote.o.receivepack", "sh run.py", "run.py"),
        ("gpg.ssh.defaultKeyCommand", "./run.py", "run.py"),
        ("submodule.x.update", "!./run.py", "run.py"),
        ("tar.x.command", "./run.py -c", "run.py"),
        ("pager.log", "./run.py", "run.py"),
        ("hook.x.command", "./run.py", "run.py"),
        ("kind.of.a.git.to.come", "./run.py", "run.py"),
    ],
)
def test_each_setting_that_runs_something_of_the_project_is_read(repository, key, value, expected):
    (repository / "run.py").write_text("x")
    config(repository, key, value)
    assert named(repository) == [expected]
    assert Roots(this_host(), repository).autorun_part(repository / expected / "x") == expected
    subprocess.run(["git", "config", "--unset", key], cwd=repository, check=True)
    assert named(repository) == []


@every_row(
    ("key", "value", "expected"),
    [
        ("alias.st", "!$HOME/project/run.py", "run.py"),
        ("alias.st", '!"${HOME}"/project/run.py --short', "run.py"),
        ("alias.st", "!~/project/run.py", "run.py"),
        ("alias.st", "!(~/project/run.py)", "run.py"),
        ("alias.st", "!~me/project/run.py", "run.py"),
        ("alias.st", "!$PLACE/run.py", "run.py"),
        ("alias.st", "!${PLACE}/made-later.py", "made-later.py"),
        ("alias.st", "!env BASH_ENV=~/project/run.py bash -c true", "run.py"),
        ("alias.st", "!python3 -c 'exec(open(\"HOME/project/run.py\").read())'", "run.py"),
        ("alias.st", "!cd ~/project/tools && python3 -m deep.run", "tools/deep/run.py"),
        ("alias.st", "!cd tools && ./more.sh", "tools/more.sh"),
        ("alias.st", "!cd ~ && ./project/run.py", "run.py"),
        ("alias.st", "!cd; sh linked/tools/more.sh", "tools/more.sh"),
        ("alias.st", "!(./run.py)", "run.py"),
        ("alias.st", "!$(git rev-parse --show-toplevel)/run.py", "run.py"),
        ("alias.st", "!cd ${GIT_PREFIX:-.} && $(git root)/run.py", "run.py"),
        ("core.sshCommand", "ssh -o ProxyCommand=~/project/run.py", "run.py"),
        ("core.sshCommand", "ssh -FHOME/project/run.py", "run.py"),
        ("core.editor", "vim -uHOME/project/run.py", "run.py"),
        ("core.pager", "LESSOPEN='|HOME/project/run.py %s' less", "run.py"),
        ("credential.helper", "!$HOME/project/run.py", "run.py"),
        ("filter.a.clean", "~/linked/run.py %f", "run.py"),
        ("core.hooksPath", "~me/project/tools", "tools"),
        # What other commands say, and what a project happens to have.
        ("alias.lg", "log --pretty=format:'%C(yellow)%h %ad [%cn]%Creset %s' --date=short", ""),
        ("alias.di", "!d() { git diff HEAD~$1 > ~/project/out; }; git diff . || clear; d", ""),
        ("alias.x", "!sh -c 'git diff $1 -- tools/$2' -; vim *.py", ""),
        ("alias.x", "!git -c core.pager=less -c deep.run=x log", ""),
        ("core.editor", "'unfinished ~/project", ""),
        ("credential.helper", "/usr/lib/helper", ""),
    ],
)
def test_what_a_command_names_in_any_spelling_is_the_persons(
    repository, home, monkeypatch, key, value, expected
):
    def who(_: str) -> object:
        return SimpleNamespace(pw_dir=str(home))

    monkeypatch.setattr(pwd, "getpwnam", who)
    monkeypatch.setenv("PLACE", str(repository))
    for link in ("project", "linked"):
        (home / link).is_symlink() or (home / link).symlink_to(repository)
    for name in ("run.py", "tools/more.sh", "tools/deep/run.py", "core/__init__.py"):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text("x")
    config(repository, key, re.sub(r"(?<![${])HOME", str(home), value), file="--global")
    assert " ".join(named(repository)) == expected
    subprocess.run(["git", "config", "--global", "--unset", key], cwd=repository, check=True)


def test_a_value_is_read_as_git_reads_it_with_quotes_escapes_and_comments(repository: Path):
    written = '[core]\n\thooksPath = "my \\"own\\" # hooks" ; those of the team\n'
    (repository / ".git/config").write_text(written)
    said = subprocess.run(
        ["git", "config", "core.hooksPath"], cwd=repository, capture_output=True, check=True
    )
    assert named(repository) == [said.stdout.decode().strip()] == ['my "own" # hooks']


@every_row(
    ("key", "value"),
    [
        ("user.name", "run.py"),
        ("core.editor", "vim"),
        ("core.hooksPath", "/usr/x"),
        ("blame.ignoreRevsFile", "run.py"),
        ("init.defaultBranch", "run.py"),
        ("remote.o.url", "./run.py"),
        ("safe.directory", "HERE"),
        ("ghq.root", "HERE"),
        ("trace.x", "HERE/.."),
        ("core.bigFileThreshold", "1"),
    ],
)
def test_other_settings_name_nothing(repository: Path, key: str, value: str):
    (repository / "run.py").write_text("x")
    config(repository, key, value.replace("HERE", str(repository)))
    assert named(repository) == []


@pytest.mark.parametrize("place", [".gitconfig", ".config/git/config"])
def test_the_persons_own_files_count(repository: Path, home: Path, place: str):
    file = home / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f'[core]\n\thooksPath = "{repository}/my # hooks" ; mine\n[include]\n\tpath = ~/more\n'
    )
    (home / "more").write_text(
        "[diff]\n\texternal = /usr/bin/x \\\n\t ./run.py\n[core] editor = ./ed.sh\n"
    )
    for name in ("run.py", "ed.sh"):
        (repository / name).write_text("x")
    assert sorted(named(repository)) == ["ed.sh", "my # hooks", "run.py"]


def test_the_persons_own_file_is_where_the_environment_has_it(repository, tmp_path, monkeypatch):
    for folder, hooks in ((tmp_path / "xdg/git", "mine"), (tmp_path / "other/git", "others")):
        folder.mkdir(parents=True)
        (folder / "config").write_text(f"[core]\nhooksPath = {repository}/{hooks}\n")
    for folder, expected in (("xdg", ["mine"]), ("other", ["others"]), ("none", [])):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / folder))
        assert named(repository) == expected


def test_what_variables_of_git_name_counts(repository: Path, monkeypatch: pytest.MonkeyPatch):
    (repository / "run.py").write_text("x")
    monkeypatch.setenv("GIT_SSH_COMMAND", f"{repository}/run.py -x")
    assert named(repository) == ["run.py"]
    monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -i run.py")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(repository / "mine"))
    assert sorted(named(repository)) == ["mine", "run.py"]


def test_settings_below_the_top_of_a_repository_and_in_work_trees_are_found(repository, tmp_path):
    config(repository, "core.hooksPath", "app/hooks")
    (repository / "app").mkdir()
    assert named_by_settings(this_host(), f"{repository}/app") == [f"{repository}/app/hooks"]
    run = [
        "git",
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@y",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "x",
    ]
    subprocess.run(run, cwd=repository, check=True)
    tree = tmp_path / "tree"
    subprocess.run(["git", "worktree", "add", "-q", tree], cwd=repository, check=True)
    assert named_by_settings(this_host(), str(tree)) == [f"{tree}/app/hooks"]


def test_includes_in_a_circle_end_and_what_cannot_be_read_says_nothing(repository, home):
    (home / ".gitconfig").write_text(f"[include]\npath = {home}/.gitconfig\npath = {repository}\n")
    assert named(repository) == []


def test_a_byte_order_mark_before_settings_is_passed_over_as_git_does(repository, home):
    (home / ".gitconfig").write_text("\ufeff[core]\n\thooksPath = hooks\n", "utf-8")
    run = ["git", "config", "core.hooksPath"]
    said = subprocess.run(run, cwd=repository, capture_output=True, check=True)
    assert named(repository) == [said.stdout.decode().strip()] == ["hooks"]


@pytest.mark.parametrize(
    "more",
    [
        f"[alias]\nx = {'a' * 5_001}\n",
        f"#{'x' * 1_000_000}\n",
        f"#{'é' * 500_000}\n",
        "".join(f"[include]\npath = {n}\n" for n in range(600)),
    ],
    ids=["command", "file", "characters", "files"],
)
def test_more_settings_than_are_read_are_not_taken_for_all(repository, home, more):
    file = home / ".gitconfig"
    file.write_text("[core]\neditor = vim\n[alias]\nx = a\n")
    assert ("core.editor", "vim") in commands(this_host(), str(repository))
    assert named(repository) == []
    file.write_text(f"[core]\neditor = vim\n{more}pager = ./run.py\n", "utf-8")
    with pytest.raises(ValueError, match=r"longer than|more than"):
        commands(this_host(), str(repository))
    assert named(repository) == ["."], "any of it may be named"
    assert protected(this_host(), str(repository)) == [str(repository), f"{repository}/.git"]


def test_what_is_there_is_read_only_in_the_sandbox(repository: Path):
    config(repository, "core.hooksPath", "hooks")
    assert protected(this_host(), str(repository)) == [f"{repository}/.git"]
    (repository / "hooks").mkdir()
    assert protected(this_host(), str(repository)) == [f"{repository}/hooks", f"{repository}/.git"]


PLAIN = """[core]
	repositoryformatversion = 0
	filemode # = yes
	fsmonitor = TRUE
[remote "origin"]
	url = https://example.com/x.git
	fetch = +refs/heads/*:refs/remotes/origin/*
	gh-resolved = base
[remote.old]
	url = me@example.com:x.git
[branch "main"] remote = origin
	merge = refs/heads/main ; as ever

[branch "topic"]
	remote = .
	vscode-merge-base = origin/main
"""


def remotes(repository: Path, text: str) -> set[str]:
    file = repository / ".git/config"
    file.write_text(text)
    return remotes_of([file])


def test_the_remotes_of_a_repository_are_those_that_its_settings_name(repository: Path):
    assert remotes(repository, PLAIN) == {"origin", "old"}


@every_row(
    ("added", "said"),
    [
        ("[core] worktree = /", "config has core.worktree"),
        ("[core]sshCommand", "config has core.sshcommand"),
        ("[core] editor = vi", "config has core.editor"),
        ("[core] fsmonitor = ./x", "config has core.fsmonitor"),
        ('[core][protocol "ext"]allow=always', "config has protocol.allow"),
        ('[url "x"] insteadOf = y', "config has url.insteadof"),
        ("[include] path = x", "config has include.path"),
        ("[alias] x = !y", "config has alias.x"),
        ('[remote "x"] vcs = ext', "config has remote.vcs"),
        ('[remote "origin"] gh-resolved = evil/other', "config has remote.gh-resolved"),
        ('[remote "origin"] glab-resolved = head:evil/other', "config has remote.glab-resolved"),
        ('[remote "x"] url = ext::sh x', "config has remote.url"),
        ('[remote "x"] url = e"xt"::sh', "config has remote.url"),
        ('[remote "x"] pushurl = other://x', "config has remote.pushurl"),
        ('[remote "x"] url = -x', "config has remote.url"),
        ('[remote "x"] url = -x:y', "config has remote.url"),
        ('[remote "x"] url = ../x.git', "config has remote.url"),
        ('[remote "x"] url = /srv/x:y.git', "config has remote.url"),
        ('[remote "x"] pushurl = file:///srv/x.git', "config has remote.pushurl"),
        ('[remote "x"] push = :refs/heads/main', "config has remote.push"),
        ('[remote "x"] mirror', "config has remote.mirror"),
        ('[remote "x"] fetch = +refs/heads/*:refs/heads/*', "config has remote.fetch"),
        ('[remote "x"] pruneTags', "config has remote.prunetags"),
        ("[push] default = matching", "config has push.default"),
        ("[pull] rebase = interactive", "config has pull.rebase"),
        ('[branch "x"] rebase = interactive', "config has branch.rebase"),
        ('[branch "x"] mergeOptions = -s x', "config has branch.mergeoptions"),
        ('[branch "x"] remote = https://a/b', "a branch's remote is https://a/b"),
        ("[remote] pushDefault = ../x", "a branch's remote is ../x"),
        ("# a comment \\\n[core]", "more than ybs understands"),
        ("# a comment \\\r\n[core]", "more than ybs understands"),
        ("]", "more than ybs understands"),
        ("x" * 1_000_000, "config is longer than 1,000,000 bytes"),
        ("[hook.x] command = y", "config has hook.command"),
        ("[hook] x.y = z", "more than ybs understands"),
        ("[new] key = 1", "config has new.key"),
    ],
)
def test_another_setting_of_a_repository_is_not_known(repository: Path, added: str, said: str):
    with pytest.raises(ValueError, match=said):
        remotes(repository, f"{PLAIN}{added}\n")


def test_settings_that_are_empty_or_cannot_be_read_are_not_known(repository: Path):
    for text in ("", "# nothing\n"):
        with pytest.raises(ValueError, match="more than ybs understands"):
            remotes(repository, text)
    with pytest.raises(ValueError, match="more than ybs understands"):
        remotes_of([repository / "missing"])
