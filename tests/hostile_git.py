"""Repositories whose settings name programs that must not run; each program leaves a mark when it does."""

import atexit
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from msgspec import Struct

GIT = shutil.which("git") or ""
needs_git = pytest.mark.skipif(not GIT, reason="GIT IS NOT INSTALLED: ybs's own git is not tested")


class Trap(Struct, frozen=True):
    """Settings (`@` is the planted program), attributes, and the plain git command that springs the trap."""

    settings: str = ""
    attributes: str = ""
    sprung_by: tuple[str, ...] = ()
    prepare: Callable[["Sandpit"], None] | None = None


class Sandpit:
    """A repository with one commit, a changed file and a staged one; and a place for planted programs."""

    def __init__(self, folder: Path) -> None:
        self.top, self.marks = folder / "repo", folder / "marks"
        self.program = folder / "planted"
        self.marks.mkdir(parents=True)
        self.program.write_text(f"#!/bin/sh\ntouch {self.marks}/$$\n")
        self.program.chmod(0o755)

    @property
    def has_run(self) -> bool:
        """Whether a planted program has been run."""
        return any(self.marks.iterdir())

    def forget(self) -> None:
        """Take the marks away."""
        for mark in self.marks.iterdir():
            mark.unlink()

    def plain(
        self, *words: str, folder: Path | None = None, said: str = "protocol=https\nhost=x\n\n"
    ) -> subprocess.CompletedProcess[str]:
        """Run git as anybody would."""
        environ = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_PAGER_IN_USE": ""}
        environ |= {
            f"GIT_{role}_{part}": "x@y"
            for role in ("AUTHOR", "COMMITTER")
            for part in ("NAME", "EMAIL")
        }
        return subprocess.run(
            [GIT, *words],
            cwd=folder or self.top,
            env=environ,
            input=said,
            capture_output=True,
            text=True,
            check=False,
        )

    def configure(self, text: str) -> None:
        """Add to the repository's settings."""
        with (self.top / ".git/config").open("a") as file:
            file.write(text.replace("@", str(self.program)) + "\n")


def lay_out(top: Path, head: str = "ref: refs/heads/main\n") -> None:
    """Lay out what git takes for a repository, with this HEAD, without any git."""
    for name in ("objects", "refs"):
        (top / ".git" / name).mkdir(parents=True)
    (top / ".git/config").touch()
    (top / ".git/HEAD").write_text(head)


def make_repository(top: Path) -> None:
    """Make a repository with two commits, as a copy: five starts of git take ten times as long."""
    shutil.copytree(_original(), top, symlinks=True)


@cache
def _original() -> Path:
    folder = TemporaryDirectory(prefix="ybs-git-")
    atexit.register(folder.cleanup)
    _make(top := Path(folder.name, "repo"))
    return top


def _make(top: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run([GIT, *words], cwd=top, check=True, capture_output=True)

    top.mkdir(parents=True)
    git("init", "-q", "-b", "main", "--template=")
    (top / "a.txt").write_text("one\n")
    (top / "b.txt").write_text("one\n")
    who = ("-c", "user.name=x", "-c", "user.email=x@y")
    git("add", ".")
    git(*who, "commit", "-qm", "first")
    (top / "b.txt").write_text("two\n")
    git("add", ".")
    git(*who, "commit", "-qm", "second")


@cache
def template_in(base: Path) -> Path:
    """Make a repository once, to be copied."""
    make_repository(base / "git-template")
    return base / "git-template"


def nested_submodule(pit: Sandpit) -> None:
    """Plant a repository within the repository, in the index, whose own settings are hostile."""
    make_repository(pit.top / "sub")
    with (pit.top / "sub/.git/config").open("a") as file:
        file.write(f'[filter "evil"]\nclean = {pit.program}\n[core]\nfsmonitor = {pit.program}\n')
    (pit.top / "sub/.gitattributes").write_text("* filter=evil\n")
    pit.plain("add", "sub")
    pit.forget()
    (pit.top / ".gitmodules").write_text(
        '[submodule "sub"]\npath = sub\nurl = ./sub\nignore = none\n'
    )
    (pit.top / "sub/a.txt").write_text("changed\n")


def hook(pit: Sandpit) -> None:
    """Put the planted program in the place of every hook."""
    (pit.top / ".git/hooks").mkdir(exist_ok=True)
    for name in (
        "pre-commit",
        "post-commit",
        "commit-msg",
        "post-index-change",
        "reference-transaction",
    ):
        shutil.copy(pit.program, pit.top / ".git/hooks" / name)


def include(pit: Sandpit) -> None:
    """Put hostile settings into a file of the work tree that the repository's settings include."""
    (pit.top / "evil.conf").write_text(f"[core]\nfsmonitor = {pit.program}\n[alias]\nx = y\n")


def common_folder(pit: Sandpit) -> None:
    """Plant a file that leads git to settings of another place."""
    shutil.copytree(pit.top / ".git", pit.top / "evil")
    with (pit.top / "evil/config").open("a") as file:
        file.write(f"[core]\nfsmonitor = {pit.program}\n")
    (pit.top / ".git/commondir").write_text("../evil\n")


def bare_layout(pit: Sandpit) -> None:
    """Break the real repository, and lay out a bare one in the folder itself."""
    for name in ("HEAD", "objects", "refs", "config"):
        source = pit.top / ".git" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, pit.top / name)
    (pit.top / ".git/HEAD").unlink()
    with (pit.top / "config").open("a") as file:
        file.write(f"[core]\nbare = false\nworktree = {pit.top}\nfsmonitor = {pit.program}\n")


def file_for_folder(pit: Sandpit) -> None:
    """Put a file that leads elsewhere in the place of the git folder."""
    (pit.top / ".git").rename(pit.top / "evil")
    with (pit.top / "evil/config").open("a") as file:
        file.write(f"[core]\nfsmonitor = {pit.program}\n")
    (pit.top / ".git").write_text("gitdir: evil\n")


def link_for_folder(pit: Sandpit) -> None:
    """Put a link in the place of the git folder."""
    file_for_folder(pit)
    (pit.top / ".git").unlink()
    (pit.top / ".git").symlink_to("evil")


STATUS, DIFF = ("status",), ("diff",)
COMMIT = ("commit", "-aqm", "x")
TRAPS = {
    "core.fsmonitor": Trap("[core]\nfsmonitor = @", sprung_by=STATUS),
    "core.pager": Trap("[core]\npager = @", sprung_by=()),
    "pager.log": Trap("[pager]\nlog = @\nstatus = @\ndiff = @\nshow = @\n"),
    "diff.external": Trap("[diff]\nexternal = @", sprung_by=DIFF),
    "diff driver": Trap('[diff "evil"]\ncommand = @', "* diff=evil", DIFF),
    "textconv": Trap('[diff "evil"]\ntextconv = @', "* diff=evil", DIFF),
    "filter.clean": Trap('[filter "evil"]\nclean = @', "* filter=evil", ("add", ".")),
    "filter.smudge": Trap('[filter "evil"]\nsmudge = @', "* filter=evil", ("checkout", ".")),
    "filter.process": Trap('[filter "evil"]\nprocess = @', "* filter=evil", ("add", ".")),
    "filter of an odd name": Trap('[filter "e =v"]\nclean = @', "* filter=evil"),
    "merge driver": Trap('[merge "evil"]\ndriver = @ %A', "* merge=evil"),
    "hooks": Trap(sprung_by=COMMIT, prepare=hook),
    "core.hooksPath": Trap(
        "[core]\nhooksPath = hooks",
        sprung_by=COMMIT,
        prepare=lambda pit: (
            shutil.copytree(
                pit.program.parent, pit.top / "hooks", ignore=lambda *_: ["repo", "marks"]
            )
            and shutil.copy(pit.program, pit.top / "hooks/pre-commit")
        ),
    ),
    "core.sshCommand": Trap(
        '[core]\nsshCommand = @\n[remote "o"]\nurl = ssh://x/y', sprung_by=("fetch", "o")
    ),
    "ext protocol": Trap(
        '[remote "o"]\nurl = ext::@\n[protocol]\nallow = always', sprung_by=("fetch", "o")
    ),
    "alias": Trap("[alias]\nstatus = !@\nlog = !@\nzz = !@", sprung_by=("zz",)),
    "gpg.program": Trap("[gpg]\nprogram = @\n[commit]\ngpgSign = true", sprung_by=COMMIT),
    "gpg.ssh.program": Trap(
        '[gpg]\nformat = ssh\n[gpg "ssh"]\nprogram = @\n[commit]\ngpgSign = true\n[user]\nsigningKey = a.txt',
        sprung_by=COMMIT,
    ),
    "core.editor": Trap("[core]\neditor = @", sprung_by=("commit", "-a")),
    "include.path": Trap("[include]\npath = ../evil.conf", sprung_by=STATUS, prepare=include),
    "credential.helper": Trap("[credential]\nhelper = @", sprung_by=("credential", "fill")),
    "commondir": Trap(sprung_by=STATUS, prepare=common_folder),
    "bare layout": Trap(sprung_by=STATUS, prepare=bare_layout),
    "gitdir file": Trap(sprung_by=STATUS, prepare=file_for_folder),
    "link to a git folder": Trap(sprung_by=STATUS, prepare=link_for_folder),
    "submodule": Trap(sprung_by=STATUS, prepare=nested_submodule),
    "promisor": Trap(
        "[extensions]\npartialClone = o\n[core]\nrepositoryFormatVersion = 1\n"
        '[remote "o"]\nurl = ssh://x/y\npromisor = true\nuploadpack = @\n[core]\nsshCommand = @'
    ),
}
