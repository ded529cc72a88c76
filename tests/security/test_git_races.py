"""A job of the model's exchanges a folder with a link to the home folder while ybs's own git works on the tree."""

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hostile_git import GIT, Sandpit, make_repository, needs_git
from hosts import this_host
from security.swapping import SANDBOXES, job
from ybs.config.schema import GitSettings as Settings
from ybs.core.ports import Answer, Question
from ybs.git.committer import Committer
from ybs.git.consent import Consent
from ybs.security.sandbox.choice import Backend
from ybs.security.sandbox.confined import SandboxMachine

pytestmark = [
    pytest.mark.integration,
    needs_git,
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
]
BIG = b"x" * 20_000_000
MINE, EVIL = "mine\n", "evil\n"


async def yes(question: Question) -> Answer:
    del question
    return Answer(is_allowed=True)


#: Each kind has its slow runs; the quick suite plays the one that most people have.
KINDS = ["bubblewrap", pytest.param("landlock", marks=pytest.mark.slow)]


@pytest.fixture(params=KINDS)
def sandbox(
    request: pytest.FixtureRequest, pit: Sandpit, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Backend:
    """The sandbox of the model's commands, and the same kind for ybs's own git."""
    monkeypatch.setattr(SandboxMachine, "has_bubblewrap", request.param == "bubblewrap")
    return SANDBOXES[request.param](pit.top, home)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(exist_ok=True)
    (folder / ".bashrc").write_text(MINE)
    (folder / "credentials").write_text("SECRET OF THE HOME\n")
    return folder


@pytest.fixture
def pit(project: Path, tmp_path: Path) -> Sandpit:
    """A repository whose branch `other` has a large file and one that would land in a home folder."""
    pit = Sandpit(tmp_path / "pit")
    pit.top = project
    project.rmdir()
    shutil.copytree(_template(tmp_path.parent), project, symlinks=True)
    pit.plain("update-index", "-q", "--refresh")  # the copies have times of their own
    return pit


@cache
def _template(base: Path) -> Path:
    """Make the repository once, to be copied: the large file takes long to pack."""
    pit = Sandpit(base / "git-races-template")
    project = pit.top
    make_repository(project)
    (project / "src").mkdir()
    (project / "src/kept").write_text("kept\n")
    assert not pit.plain("add", ".").returncode
    pit.plain("commit", "-q", "-m", "third")
    pit.plain("switch", "-q", "-c", "other")
    (project / "src/d").mkdir()
    (project / "src/d/+big").write_bytes(BIG)
    (project / "src/d/.bashrc").write_text(EVIL)
    (project / "src/d/credentials").write_text("none\n")
    pit.plain("add", ".")
    pit.plain("commit", "-q", "-m", "other")
    assert pit.plain("rev-parse", "other").returncode == 0
    return project


def check(home: Path, said: str = "") -> None:
    assert (home / ".bashrc").read_text() == MINE
    assert sorted(path.name for path in home.iterdir()) == [".bashrc", "credentials"]
    assert "SECRET" not in said


@pytest.fixture
def d(request: pytest.FixtureRequest, pit: Sandpit, home: Path) -> Path:
    """The folder that is exchanged with a link to the home folder beside it."""
    if request.function.__name__.startswith("test_a_switch"):
        pit.plain("switch", "-q", "main")
        (pit.top / "src/d").mkdir()
    (pit.top / "src/link").symlink_to(home)
    return pit.top / "src/d"


async def test_a_switch_writes_nothing_outside(pit, home, d, sandbox, make_bench):
    bench = make_bench(mode="auto", confirm=yes)
    with job(sandbox, pit.top, d, pit.top / "src/link", d / "+big") as running:
        said = (await bench.call("git", action="branch", text="other")).output
        assert running.stdout is not None
        assert running.stdout.readline() == b"0\n", "it was swapped"
    check(home, said)


async def test_putting_files_back_writes_nothing_outside(pit, home, d, sandbox, make_bench):
    for name in ("+big", ".bashrc", "credentials"):
        (d / name).write_text("changed\n")
    bench = make_bench(mode="auto", confirm=yes)
    with job(sandbox, pit.top, d, pit.top / "src/link", d / "+big") as running:
        answered = await bench.call("git", action="restore", paths=["src/d"])
        assert running.stdout is not None
        assert running.stdout.readline() == b"0\n", "it was swapped"
    check(home, answered.output)


ROUNDS = [1, pytest.param(4, marks=[pytest.mark.slow, pytest.mark.timeout(300)])]


@pytest.mark.parametrize("rounds", ROUNDS)
async def test_a_diff_and_what_is_staged_or_committed_hold_nothing_from_outside(
    pit: Sandpit, home: Path, d: Path, sandbox: Backend, make_bench: Any, rounds: int
) -> None:
    pit.plain("rm", "-q", "src/d/+big")
    pit.plain("commit", "-q", "-m", "small")
    (d / "credentials").write_text("changed\n")
    bench, said = make_bench(mode="auto", confirm=yes), ""
    committer = Committer(
        pit.top,
        Settings(),
        consent=Consent(this_host(), "always"),
        sandbox=bench.workspace.git_sandbox,
    )
    with job(sandbox, pit.top, d, pit.top / "src/link"):
        for number in range(rounds):
            said += (await bench.call("git", action="diff")).output
            said += (await bench.call("git", action="add", paths=["src"])).output
            await committer.begin()
            (pit.top / "src/kept").write_text(f"{number}\n")
            await committer.after_turn(
                ["src/kept", "src/d/credentials", "src/d/new"], lambda _, __: "go on"
            )
    check(home, said + pit.plain("log", "-p", "--all", "--", "src").stdout)
    check(home, pit.plain("diff", "--cached").stdout)
    assert b"SECRET" not in objects_of(pit)


def objects_of(pit: Sandpit) -> bytes:
    """Return all that the repository holds, also what nothing names."""
    words = [GIT, "cat-file", "--batch", "--batch-all-objects"]
    return subprocess.run(words, cwd=pit.top, capture_output=True, check=True).stdout
