"""Hooks that check a commit: they run in the sandbox before it, or there is no commit."""

import shutil
import subprocess
from pathlib import Path

import pytest

from hostile_git import Sandpit, needs_git, template_in
from hosts import this_host
from ybs.config.schema import GitSettings as Settings
from ybs.core.errors import ToolError
from ybs.git.client import Git
from ybs.git.committer import Commit, Committer
from ybs.git.consent import CommitWish, Consent
from ybs.git.hooks import HookFailed, HookRun, digest_of, hooks_folder, hooks_in

pytestmark = [pytest.mark.integration, needs_git]


@pytest.fixture
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return template_in(tmp_path_factory.getbasetemp())


@pytest.fixture
def pit(template: Path, tmp_path: Path) -> Sandpit:
    pit = Sandpit(tmp_path / "pit")
    shutil.copytree(template, pit.top)
    return pit


def hook(pit: Sandpit, name: str, script: str, folder: str = ".git/hooks") -> Path:
    path = pit.top / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


async def run(script: str) -> HookRun:
    """Run a script as it is; that the sandbox holds it is shown elsewhere."""
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False)  # noqa: ASYNC221
    return HookRun(exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr)


async def agreed(_: CommitWish) -> bool:
    return True


async def turn(
    pit: Sandpit, *, agrees: bool = True, has_sandbox: bool = True, runs: object = run
) -> Commit | None:
    one = Committer(
        pit.top,
        Settings(),
        consent=Consent(this_host(), "always", ask=agreed if agrees else None),
        find_runner=lambda: runs if has_sandbox else None,  # type: ignore[arg-type,return-value]
    )
    await one.begin()
    (pit.top / "a.txt").write_text("changed\n")
    (pit.top / "new.txt").write_text("new\n")
    return await one.after_turn(["a.txt", "new.txt"], lambda _, __: "Change a.txt, add new.txt")


def titles(pit: Sandpit) -> list[str]:
    return pit.plain("log", "--format=%s").stdout.splitlines()


def status(pit: Sandpit) -> list[str]:
    return pit.plain("status", "--porcelain", "-uall").stdout.splitlines()


async def test_hooks_see_what_is_to_be_committed_and_may_change_the_message(pit: Sandpit):
    seen = pit.top.parent / "seen"
    hook(pit, "pre-commit", f"git diff --cached --name-status > {seen}; pwd >> {seen}")
    hook(pit, "prepare-commit-msg", 'echo "Ticket: 1" >> "$1"; test "$2" = message')
    hook(pit, "commit-msg", 'grep -q "Ticket" "$1" && echo "Signed: me" >> "$1"; echo noise')
    made = await turn(pit)
    assert made is not None
    assert made.commit
    assert seen.read_text().split() == ["M", "a.txt", "A", "new.txt", str(pit.top)]
    message = pit.plain("log", "-1", "--format=%B").stdout.strip()
    assert message == "[ybs] Change a.txt, add new.txt\nTicket: 1\nSigned: me"
    assert status(pit) == []


@pytest.mark.parametrize("name", ["pre-commit", "commit-msg"])
async def test_a_hook_that_fails_means_no_commit_and_is_quoted(pit: Sandpit, name: str):
    hook(pit, name, "echo 'src/x.py: line too long' >&2; echo out; exit 3")
    before, was = titles(pit), status(pit)
    made = await turn(pit)
    assert made is not None
    assert not made.commit
    assert made.notice.startswith(f"Not committed: the hook {name} failed (exit code 3).")
    assert "src/x.py: line too long" in made.notice
    assert (titles(pit), status(pit)) == (before, [" M a.txt", "?? new.txt", *was])
    again = await turn(pit)
    assert again is None or not again.commit


async def test_where_hooks_may_not_run_there_is_no_commit_and_it_is_said_once(pit: Sandpit):
    ran = pit.top.parent / "ran"
    hook(pit, "pre-commit", f"touch {ran}")
    before = titles(pit)
    unasked = await turn(pit, agrees=False)
    assert unasked is not None
    assert "the repository has hooks (pre-commit), and they run only where" in unasked.notice
    pit.plain("checkout", "-q", "--", ".")
    (pit.top / "new.txt").unlink()
    bare = await turn(pit, has_sandbox=False)
    assert bare is not None
    assert "there is no sandbox to run them in" in bare.notice
    assert not ran.exists()
    assert titles(pit) == before


async def test_a_hook_that_cannot_be_run_or_takes_too_long_means_no_commit(pit: Sandpit):
    hook(pit, "pre-commit", "true")

    async def refused(_: str) -> HookRun:
        raise ToolError("no")

    async def late(_: str) -> HookRun:
        return HookRun(exit_code=None, stdout="", stderr="still at it")

    for runs, words in ((refused, "could not be run: no"), (late, "took too long")):
        made = await turn(pit, runs=runs)
        assert made is not None
        assert words in made.notice
        pit.plain("checkout", "-q", "--", ".")
        (pit.top / "new.txt").unlink()


async def test_hooks_are_found_where_the_settings_say_and_only_those_that_run(pit, home):
    git = Git(this_host().environ, pit.top)
    assert await hooks_folder(git) == pit.top / ".git/hooks"
    (home / ".gitconfig").write_text("[core]\n\thooksPath = ~/hooks\n")
    assert await hooks_folder(Git(this_host().environ, pit.top)) == home / "hooks"
    pit.plain("config", "core.hooksPath", ".husky")
    assert await hooks_folder(Git(this_host().environ, pit.top)) == pit.top / ".husky"
    one = hook(pit, "commit-msg", "true", ".husky")
    other = hook(pit, "pre-commit", "true", ".husky")
    hook(pit, "post-commit", "true", ".husky")
    assert hooks_in(pit.top / ".husky") == [other, one]
    first = digest_of([other, one])
    one.write_text("#!/bin/sh\nfalse\n")
    assert digest_of([other, one]) != first
    one.write_text("# a line of many\n" * 100_000 + "1")
    first = digest_of([other, one])
    one.write_text("# a line of many\n" * 100_000 + "2")
    assert digest_of([other, one]) != first
    other.chmod(0o644)
    assert hooks_in(pit.top / ".husky") == [one]


def test_the_last_byte_of_a_long_hook_counts_and_one_that_is_too_large_is_not_run(tmp_path):
    path, digests = tmp_path / "pre-commit", set[str]()
    for end in (b"one", b"two"):
        path.write_bytes(bytes(1_500_000) + end)
        digests.add(digest_of([path]))
    assert len(digests) == 2
    with path.open("r+b") as file:
        file.truncate(200_000_001)
    with pytest.raises(HookFailed, match="the hook pre-commit has more than 200,000,000 bytes"):
        digest_of([path])
