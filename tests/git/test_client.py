import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from hostile_git import TRAPS, Sandpit, Trap, hook, make_repository, needs_git, template_in
from hosts import this_host
from rows import every_row
from ybs.git import moves as git_moves
from ybs.git.client import Git, StatusLine
from ybs.git.hardening import GitError, overrides
from ybs.git.moves import bring_back, take_back
from ybs.security.paths.repository import Repository

pytestmark = [pytest.mark.integration, needs_git]


@pytest.fixture
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return template_in(tmp_path_factory.getbasetemp())


@pytest.fixture
def pit(template: Path, tmp_path: Path) -> Sandpit:
    pit = Sandpit(tmp_path / "pit")
    shutil.copytree(template, pit.top)
    return pit


def spring(pit: Sandpit, trap: Trap) -> None:
    if trap.attributes:
        (pit.top / ".gitattributes").write_text(trap.attributes + "\n")
    if trap.prepare:
        trap.prepare(pit)
    if trap.settings:
        pit.configure(trap.settings)
    (pit.top / "a.txt").write_text("changed\n")
    pit.forget()


async def do_everything(git: Git) -> None:
    async def attempt(work: object) -> None:
        with suppress(GitError):
            await work  # type: ignore[misc]

    await attempt(git.look())
    await attempt(git.run("diff"))
    await attempt(git.run("diff", "--", "b.txt"))
    await attempt(git.run("log", "HEAD", "--format=%G? %GK %s"))
    await attempt(git.run("log", "--format=%G? %s"))
    await attempt(git.add("a.txt", "sub/a.txt"))
    await attempt(git.add("a.txt"))
    await attempt(git.run("add", "--all"))
    await attempt(git.run("diff", "--cached"))
    await attempt(git.commit("first line\n\nbody"))
    (git.folder / "a.txt").write_text("again\n")
    await attempt(git.commit("paths", "a.txt"))
    await attempt(take_back(git, await git.head()))
    await attempt(bring_back(git, await git.head()))
    await attempt(git_moves.restore(git, ["a.txt"]))


# --- what a repository plants ----------------------------------------------------------------

LINES = [name for name, trap in TRAPS.items() if not trap.prepare and " of an odd " not in name]
LAYOUTS = [name for name, trap in TRAPS.items() if trap.prepare]


async def test_no_program_of_a_repositorys_settings_runs(pit: Sandpit):
    for name in LINES:
        pit.configure(TRAPS[name].settings)
    # A filter stops git at its file, so what differs is shown at another one.
    attributes = "a.txt filter=evil\nb.txt diff=evil merge=evil"
    (pit.top / "b.txt").write_text("changed\n")
    spring(pit, Trap(attributes=attributes, prepare=hook))
    git = Git(this_host().environ, pit.top)
    await do_everything(git)
    assert not pit.has_run
    assert await git.head()  # it is in working order
    assert pit.plain("status").returncode is not None
    assert pit.has_run  # the trap was set


@pytest.mark.parametrize("name", LAYOUTS)
async def test_no_program_runs_of_a_repository_within_or_beside_it(pit: Sandpit, name: str):
    spring(pit, TRAPS[name])
    git = Git(this_host().environ, pit.top)
    for work in (git.look(), git.add("a.txt", "."), git.commit("x", "a.txt"), git.commit("x")):
        with suppress(GitError):
            await work
    assert not pit.has_run
    pit.plain(*TRAPS[name].sprung_by)
    assert pit.has_run


_CLEAN = '[filter "evil"]\nclean = @'


async def test_a_setting_behind_a_very_long_file_runs_nothing(pit: Sandpit):
    pit.configure(f"#{'x' * 99}\n" * 81_000 + _CLEAN)
    await _holds_its_filter(pit)
    pit.configure("".join(f"[long]\nx{number} = {'x' * 900_000}\n" for number in range(10)))
    with pytest.raises(GitError, match="printed more than 8,000,000 bytes"):
        await Git(this_host().environ, pit.top).look()
    assert not pit.has_run


async def test_a_line_that_would_go_on_in_the_next_file_of_settings_hides_nothing_there(
    pit: Sandpit,
):
    pit.configure("[core]\nrepositoryFormatVersion = 1\n[extensions]\nworktreeConfig = true")
    (pit.top / ".git/config.worktree").write_text(_CLEAN.replace("@", str(pit.program)))
    with (pit.top / ".git/config").open("a") as file:
        file.write("[user]\nname = x\\")
    await _holds_its_filter(pit)


async def test_the_settings_of_each_file_that_git_reads_are_known(pit: Sandpit):
    worktree = pit.top / ".git/config.worktree"
    worktree.write_text("[ybs]\nx = 2\n")
    assert await Git(this_host().environ, pit.top).setting("ybs.x") == ""
    pit.configure("[core]\nrepositoryFormatVersion = 1\n[extensions]\nworktreeConfig = true")
    git = Git(this_host().environ, pit.top)
    assert await git.setting("ybs.x") == "2"
    worktree.write_text("[ybs]\nx = 3\n")
    assert await git.setting("ybs.x") == "3"


async def _holds_its_filter(pit: Sandpit) -> None:
    (pit.top / ".git/info").mkdir(exist_ok=True)
    (pit.top / ".git/info/attributes").write_text("a.txt filter=evil\n")
    (pit.top / "a.txt").write_text("eno\n")
    with pytest.raises(GitError, match="clean filter 'evil' failed"):
        await Git(this_host().environ, pit.top).look()
    assert not pit.has_run
    pit.plain("status")
    assert pit.has_run
    pit.forget()


def test_every_setting_that_is_not_known_to_be_harmless_is_overridden():
    always = overrides(())
    settings = {
        "hook.evil.command": ["hook.evil.command=false"],
        "hook.evil.event": ["hook.evil.event=false"],
        "section.of.a git to come.key": ["section.of.a git to come.key=false"],
        "pager.log": ["pager.log=false"],
        "tar.x.command": ["tar.x.command=false"],
        "merge.é.driver": ["merge.é.driver=false"],
        "filter.LFS.clean": [
            "filter.LFS.clean=false",
            "filter.LFS.process=",
            "filter.LFS.required=true",
        ],
        "filter.e.process": ["filter.e.process=", "filter.e.required=true"],
        "remote.o.vcs": ["remote.o.vcs=false"],
        # What holds anyway is not said twice, and what is harmless may stay.
        "filter.lfs.clean": [],
        "core.fsmonitor": [],
        "remote.o.url": [],
        "url.https://me:word@x/?a=b.insteadof": [],
        "branch.a=b.merge": [],
        "core.abbrev": [],
    }
    for key, expected in settings.items():
        assert overrides([key])[len(always) + 1 :: 2] == expected, key
    both = overrides(["filter.e.required", "filter.e.clean"])[len(always) + 1 :: 2]
    assert both == ["filter.e.required=true", "filter.e.process=", "filter.e.clean=false"]


@every_row("key", ["filter.e=v.clean", "filter.a\nb.clean", "filter.\udcff.clean"])
def test_a_setting_whose_name_cannot_be_given_to_git_is_refused(key: str):
    with pytest.raises(GitError, match="odd name"):
        overrides([key])


async def test_a_file_of_a_filter_is_refused_rather_than_filtered(pit: Sandpit):
    for name in ("filter.clean", "filter.smudge"):
        pit.configure(TRAPS[name].settings)
    (pit.top / ".gitattributes").write_text("a.txt filter=evil\n")
    (pit.top / "a.txt").write_text("eno\n")  # of the same size, so its content must be compared
    git = Git(this_host().environ, pit.top)
    for work in (git.look(), git.run("diff")):
        with pytest.raises(GitError, match="clean filter 'evil' failed"):
            await work
    assert not pit.has_run
    assert pit.plain("status").returncode == 0
    assert pit.has_run


async def test_signatures_are_not_looked_at(pit: Sandpit):
    tree = pit.plain("rev-parse", "HEAD^{tree}").stdout.strip()
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n x\n -----END PGP SIGNATURE-----\n"
    who = "x <x@y> 1700000000 +0000"
    text = f"tree {tree}\nauthor {who}\ncommitter {who}\n{signature}\nsigned\n"
    (pit.top / "object").write_text(text)
    commit = pit.plain("hash-object", "-t", "commit", "-w", "object").stdout.strip()
    pit.configure("[gpg]\nprogram = @\n[log]\nshowSignature = true\n")
    with suppress(GitError):
        await Git(this_host().environ, pit.top).run("log", "--format=%G? %s", commit)
    assert not pit.has_run
    pit.plain("show", "-q", commit)
    assert pit.has_run


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAPS)
async def test_no_planted_program_runs(pit: Sandpit, name: str):
    spring(pit, TRAPS[name])
    await do_everything(Git(this_host().environ, pit.top))
    assert not pit.has_run


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, trap in TRAPS.items() if trap.sprung_by])
def test_plain_git_runs_the_planted_program(pit: Sandpit, name: str):
    spring(pit, TRAPS[name])
    done = pit.plain(*TRAPS[name].sprung_by)
    assert pit.has_run, done


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("include.path", "include other files"),
        ("filter of an odd name", "odd name"),
        ("commondir", "commondir"),
        ("link to a git folder", "is a link"),
        ("gitdir file", "neither to a worktree nor to a submodule"),
        ("bare layout", "HEAD"),
    ],
)
async def test_what_cannot_be_made_harmless_is_refused(pit: Sandpit, name: str, words: str):
    spring(pit, TRAPS[name])
    with pytest.raises(GitError, match=words):
        await Git(this_host().environ, pit.top).look()


async def test_s20_a_git_of_the_project_or_of_path_is_not_run(
    pit: Sandpit, monkeypatch: pytest.MonkeyPatch
):
    shutil.copy(pit.program, pit.top / "git")
    monkeypatch.setenv("PATH", f"{pit.top}:.::{os.environ['PATH']}")
    monkeypatch.chdir(pit.top)
    assert await Git(this_host().environ, pit.top).branch() == "main"
    assert not pit.has_run


async def test_e05_variables_of_git_are_not_handed_on(
    pit: Sandpit, monkeypatch: pytest.MonkeyPatch
):
    for name in ("GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "BASH_ENV"):
        monkeypatch.setenv(name, str(pit.program))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(pit.program))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    (pit.top / "a.txt").write_text("changed\n")
    git = Git(this_host().environ, pit.top)
    assert await git.look() == ("main", [StatusLine(" M", "a.txt")])
    assert b"+changed" in await git.run("diff")
    assert not pit.has_run


# --- what it is for --------------------------------------------------------------------------


async def test_it_commits_these_files_and_leaves_the_rest_of_the_index(pit: Sandpit):
    git = Git(this_host().environ, pit.top)
    (pit.top / "a.txt").write_text("new\n")
    (pit.top / "b.txt").write_text("staged\n")
    (pit.top / "c é\n.txt").write_text("fresh\n")
    await git.add("b.txt")
    commit = await git.commit("[ybs] title\n\nbody", "a.txt", "c é\n.txt")
    assert commit == await git.head()
    shown = pit.plain("show", "--name-only", "--format=%an %s|%b", "-z", commit).stdout
    assert shown.split("|")[0] == "ybs [ybs] title"
    assert "a.txt\0c é\n.txt\0" in shown
    assert await git.look() == ("main", [StatusLine("M ", "b.txt")])


async def test_it_commits_a_deletion(pit: Sandpit):
    git = Git(this_host().environ, pit.top)
    (pit.top / "b.txt").unlink()
    await git.commit("gone", "b.txt")
    assert await git.look() == ("main", [])
    assert pit.plain("rev-list", "--count", "HEAD").stdout.strip() == "3"


async def test_the_first_commit_is_made_by_the_person(tmp_path: Path, home: Path):
    (home / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@x\n")
    top = tmp_path / "fresh"
    make_repository(top)
    shutil.rmtree(top / ".git/refs/heads")
    (top / ".git/refs/heads").mkdir()
    git = Git(this_host().environ, top)
    assert await git.head() == ""
    assert await git.branch() == "main"
    await git.commit("first", "a.txt")
    pit_log = await git.run("log", "--format=%an <%ae> %s")
    assert pit_log == b"Ada <ada@x> first\n"


async def test_ignored_files_and_repositories_within_are_not_added(pit: Sandpit):
    make_repository(pit.top / "sub")
    (pit.top / ".gitignore").write_text("*.log\n")
    (pit.top / "x.log").write_text("x")
    git = Git(this_host().environ, pit.top)
    await git.add(".")
    await git.add()
    assert (await git.look())[1] == [StatusLine("A ", ".gitignore"), StatusLine("??", "sub/")]
    for path in ("sub/a.txt", "../x", "/etc/passwd", ".git/config", "sub"):
        with pytest.raises(GitError, match=r"repository of its own|no path within"):
            await git.add(path)


async def test_a_file_that_a_filter_would_change_is_refused(pit: Sandpit):
    (pit.top / ".gitattributes").write_text("*.bin filter=lfs\n")
    (pit.top / "x.bin").write_text("x")
    with pytest.raises(GitError, match="goes through the filter 'lfs'"):
        await Git(this_host().environ, pit.top).commit("x", "x.bin")
    assert await Git(this_host().environ, pit.top).look("x.bin") == (
        "main",
        [StatusLine("??", "x.bin")],
    )


@every_row("command", ["fetch", "config", "clone", "status --porcelain", "-c", "add", "revert"])
async def test_other_commands_are_refused(pit: Sandpit, command: str):
    with pytest.raises(GitError, match="is not among"):
        await Git(this_host().environ, pit.top).run(command)


@every_row(
    "option",
    [
        "--ext-diff",
        "--textc",
        "--ou=x",
        "--output=x",
        "-Ox",
        "-S",
        "-p",
        "-qp",
        "a\0b",
        "--no-index=\0",
    ],
)
async def test_options_that_run_programs_or_write_are_refused(pit: Sandpit, option: str):
    with pytest.raises(GitError, match="is not among"):
        await Git(this_host().environ, pit.top).run("diff", option)


async def test_outside_a_repository_nothing_is_done(tmp_path: Path):
    git = Git(this_host().environ, tmp_path)
    with pytest.raises(GitError, match="cannot be used in"):
        await git.look()


async def test_without_git_it_says_so(pit: Sandpit, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ybs.git.client.trusted_program", lambda *_, **__: None)
    with pytest.raises(GitError, match="no git on this machine"):
        await Git(this_host().environ, pit.top).look()


async def test_settings_that_vanish_are_an_error(pit: Sandpit, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Repository, "config_files", [Path("/nowhere")])
    with pytest.raises(GitError, match="cannot be used in"):
        await Git(this_host().environ, pit.top).look()


async def test_git_has_a_time_limit_and_a_bound_on_its_output(pit: Sandpit):
    with pytest.raises(GitError, match="longer than"):
        await Git(this_host().environ, pit.top, timeout_seconds=0.0).look()
    (pit.top / "a.txt").write_text("x\n" * 1000)
    with pytest.raises(GitError, match="printed more than 500 bytes"):
        await Git(this_host().environ, pit.top, most_bytes=500).run("diff")


async def test_what_git_cannot_do_is_told_in_its_words(pit: Sandpit):
    with pytest.raises(GitError, match="unknown revision"):
        await Git(this_host().environ, pit.top).run("log", "nothing")
