"""What a sandbox is told to open, and what it refuses to."""

import os
from pathlib import Path

import pytest

from rows import every_row
from ybs.config.host import Host
from ybs.core.errors import Refused
from ybs.security.sandbox import places as places_module
from ybs.security.sandbox.places import lies_in, see, seen_path, switched_on, system_folders


def test_the_home_folder_and_what_holds_it_are_no_project(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for folder in (home, tmp_path, Path("/")):
        with pytest.raises(Refused, match="home folder"):
            see(Host.of({"HOME": str(home)}), folder)


@every_row("folder", ["/usr", "/etc", "/tmp", "/var", "/proc/self", "/dev/shm", "/sys/kernel", "/run"])  # fmt: skip
def test_folders_of_the_system_are_no_project(folder: str) -> None:
    with pytest.raises(Refused, match="belongs to the system"):
        see(Host.of({"HOME": str(Path("/nonexistent"))}), Path(folder))


def test_programs_are_not_looked_for_where_the_sandbox_has_something_else(project: Path, home: Path) -> None:  # fmt: skip
    (home / ".cargo/bin").mkdir(parents=True)
    (home / "bin").mkdir()
    (home / "env").mkdir()
    (home / "env/pyvenv.cfg").touch()
    (home / "env/bin").mkdir()
    (home / "linked").symlink_to("/usr/bin")
    kept = [f"{project}/.venv/bin", "/usr/bin", f"{home}/.cargo/bin", f"{home}/env/bin", "/opt/x"]
    left = [f"{home}/bin", f"{home}/linked", f"{home}/.local/bin", "/tmp/xfs-1", "/var/tmp/x"]
    environ = {"PATH": ":".join([*left, *kept]), "VIRTUAL_ENV": f"{home}/env"}
    assert seen_path(environ, home, project) == ":".join(kept)


def test_a_link_to_the_home_folder_is_the_home_folder(tmp_path: Path) -> None:
    home, link = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    link.symlink_to(home)
    with pytest.raises(Refused):
        see(Host.of({"HOME": str(home)}), link)


def test_other_folders_are_judged_like_the_project(project: Path, home: Path) -> None:
    for name in ("writable", "readable"):
        with pytest.raises(Refused):
            see(Host.of({"HOME": str(home)}), project, **{name: [home]})


def test_a_project_in_a_blocked_path_is_refused(project: Path, home: Path) -> None:
    with pytest.raises(Refused, match="blocked"):
        see(Host.of({"HOME": str(home)}), project, blocked=[project.parent])


def test_places_are_resolved_and_named_once(project: Path, home: Path, tmp_path: Path) -> None:
    other, link = tmp_path / "other", tmp_path / "link"
    other.mkdir()
    link.symlink_to(other)
    places = see(
        Host.of({"HOME": str(home)}),
        project,
        writable=[other, link],
        readable=[link],
        blocked=["secret", "gone"],
    )
    assert places.writable == (str(project), str(other))
    assert places.readable == (str(other),)
    assert places.hidden == []
    assert places.uid == os.getuid()


def test_blocked_paths_hang_on_the_project_and_ybs_own_are_always_blocked(project, home):
    (project / "secret").mkdir()
    own = home / ".config" / "ybs"
    own.mkdir(parents=True)
    assert see(Host.of({"HOME": str(home)}), project, blocked=["secret"], uid=5).hidden == [
        str(project / "secret")
    ]
    assert str(own) in see(Host.of({"HOME": str(home)}), project).blocked


def test_keys_in_a_folder_that_is_shown_stay_hidden(project: Path, home: Path) -> None:
    (home / ".gem" / "ruby").mkdir(parents=True)
    (home / ".gem" / "credentials").write_text("")
    (home / "all").mkdir()
    assert see(Host.of({"HOME": str(home)}), project, readable=[home / ".gem"]).hidden == [
        str(home / ".gem/credentials")
    ]
    with pytest.raises(Refused, match="blocked"):
        see(Host.of({"HOME": str(home)}), project, readable=[home / ".aws"])


def test_a_blocked_path_counts_from_when_it_is_there_and_never_as_a_link(project, home):
    places = see(Host.of({"HOME": str(home)}), project, blocked=["secret"])
    (project / "secret").symlink_to("/etc")
    assert places.hidden == []
    (project / "secret").unlink()
    (project / "secret").mkdir()
    assert places.hidden == [str(project / "secret")]


def test_a_folder_in_a_writable_one_is_not_opened_by_its_own_path(project, home):
    inner = project / "inner"
    inner.mkdir()
    places = see(
        Host.of({"HOME": str(home)}), project, writable=[inner], readable=[inner, "/usr/share"]
    )
    assert places.tops == [str(project)]
    assert places.seen == ["/usr/share"]
    assert places.roots_in(str(project)) == [str(project), str(inner)]
    inner.rmdir()
    inner.symlink_to("/")
    assert places.roots_in(str(project)) == [str(project)]


def test_only_toolchains_that_are_there_and_not_blocked_are_shown(project, home):
    for name in (".cargo/bin", ".pyenv", ".ssh"):
        (home / name).mkdir(parents=True)
    assert list(see(Host.of({"HOME": str(home)}), project).toolchains) == [
        str(home / ".pyenv"),
        str(home / ".cargo/bin"),
    ]
    places = see(Host.of({"HOME": str(home)}), project, blocked=[home / ".cargo"])
    assert list(places.toolchains) == [str(home / ".pyenv")]


def test_a_toolchain_that_links_into_a_blocked_path_is_not_shown(project: Path, home: Path) -> None:
    (home / ".ssh").mkdir()
    (home / ".pyenv").symlink_to(home / ".ssh")
    assert see(Host.of({"HOME": str(home)}), project, blocked=[home / ".ssh"]).toolchains == {}


def test_a_toolchain_in_a_repository_of_settings_is_shown_until_a_command_puts_a_link_there(
    project: Path, home: Path
) -> None:
    (home / ".local").mkdir()
    (home / ".local/bin").symlink_to(project / "bin")
    (project / "bin").mkdir()
    places = see(Host.of({"HOME": str(home)}), project)
    assert places.toolchains == {f"{home}/.local/bin": f"{project}/bin"}
    (project / "bin").rmdir()
    (project / "bin").symlink_to(home)
    assert places.toolchains == {}


def test_a_folder_that_commands_have_replaced_by_a_link_is_neither_shown_nor_opened(
    project: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private, other = tmp_path / "private", tmp_path / "other"
    for folder in (private, other / "modules", project / "more"):
        folder.mkdir(parents=True)
    host = Host.of({"HOME": str(home)})
    places = see(host, project, writable=[project / "more"], readable=[other / "modules"])
    assert places.seen == [str(other / "modules")]
    for folder in (other / "modules", project / "more"):
        folder.rmdir()
        folder.symlink_to(private)
    assert places.seen == []
    # The next sandbox finds links there from the beginning; another session of this process works in the other folder.
    monkeypatch.setattr("ybs.security.paths.steps.worked_in", {str(other)})
    places = see(host, project, writable=[project / "more"], readable=[other / "modules"])
    assert (places.writable, places.readable) == ((str(project),), ())


def test_a_link_of_the_persons_own_is_followed_to_what_may_be_read(
    project: Path, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "disk").mkdir()
    (home / "docs").symlink_to(tmp_path / "disk")
    places = see(Host.of({"HOME": str(home)}), project, readable=[home / "docs"])
    assert places.seen == [str(tmp_path / "disk")]


@pytest.mark.parametrize("home", ["/usr/sbin", "/tmp", "/nonexistent/of/dev", "/dev"])
def test_a_home_that_is_the_systems_becomes_the_sandboxes_tmp(project: Path, home: str) -> None:
    inner = see(Host.of({"HOME": str(Path(home))}), project).inner_home
    assert inner == ("/tmp" if not home.startswith("/non") else home)


def test_the_home_folder_that_is_the_root_leaves_no_project(project: Path) -> None:
    places = see(Host.of({"HOME": str(Path("/"))}), project)
    assert places.inner_home == "/tmp"


def test_a_folder_of_a_command_lies_in_a_writable_root(project: Path, home: Path) -> None:
    places = see(Host.of({"HOME": str(home)}), project)
    (project / "src").mkdir()
    assert places.check_folder(project / "src") == str(project / "src")
    with pytest.raises(Refused, match="outside the folders"):
        places.check_folder(project.parent)


def test_a_writable_folder_that_is_not_there_is_not_opened(project: Path, home: Path) -> None:
    places = see(Host.of({"HOME": str(home)}), project, writable=[project.parent / "gone"])
    assert places.tops == [str(project)]


def test_links_of_the_system_stay_links_where_they_lead_into_it(tmp_path, monkeypatch):
    usr, far = tmp_path / "usr", tmp_path / "far"
    for folder in (usr / "bin", far):
        folder.mkdir(parents=True)
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "opt").symlink_to(far)
    names = [str(tmp_path / name) for name in ("usr", "bin", "opt", "gone")]
    monkeypatch.setattr(places_module, "SYSTEM", tuple(names))
    assert list(system_folders()) == [(names[0], ""), (names[1], "usr/bin"), (names[2], "")]


def test_folders_are_compared_part_by_part() -> None:
    assert lies_in("/work/x", "/work")
    assert lies_in("/work", "/")
    assert not lies_in("/work2", "/work")


def test_keys_that_the_home_folder_only_links_to_are_hidden_where_they_lie(project, home):
    (project / "config" / "gh").mkdir(parents=True)
    (project / "netrc").write_text("x")
    (home / ".netrc").symlink_to(project / "netrc")
    (home / ".config").symlink_to(project / "config")
    assert set(see(Host.of({"HOME": str(home)}), project).hidden) == {
        f"{project}/netrc",
        f"{project}/config/gh",
    }


def test_keys_that_links_in_closed_folders_lead_to_are_hidden_where_they_lie(project, home):
    for place in (".ssh/config", ".config/gh/hosts.yml", ".config/ybs/keys.json"):
        (home / place).parent.mkdir(parents=True)
        (project / place).parent.mkdir(parents=True)
        (project / place).write_text("x")
        (home / place).symlink_to(project / place)
    (home / ".ssh" / "everything").symlink_to(project)
    hidden = see(Host.of({"HOME": str(home)}), project).hidden
    assert {str(project / ".ssh/config"), str(project / ".config/gh/hosts.yml")} <= set(hidden)
    assert str(project / ".config/ybs/keys.json") in hidden
    assert str(project) not in hidden


def test_keys_in_toolchains_are_hidden_and_of_caches_those_at_the_top(project, home, tmp_path):
    switched, mine = tmp_path / "venv", project / "tool"
    names = (home / ".pyenv/.netrc", home / ".pyenv/sub/.npmrc", home / ".cargo/registry/.netrc",
             home / ".cargo/registry/sub/.npmrc", switched / "etc/.pypirc", mine / ".npmrc")  # fmt: skip
    for name in names:
        name.parent.mkdir(parents=True)
        name.write_text("x")
    places = see(Host.of({"HOME": str(home)}), project, readable=[switched, mine])
    assert sorted(places.hidden) == sorted(map(str, (*names[:3], switched / "etc/.pypirc")))


@every_row("uid", [0, 5, None])
def test_whose_sandbox_it_is_can_be_said(project: Path, home: Path, uid: int | None) -> None:
    expected = os.getuid() if uid is None else uid
    assert see(Host.of({"HOME": str(home)}), project, uid=uid).uid == expected


@pytest.mark.integration
def test_a_link_to_the_project_closes_it_not(project: Path, home: Path) -> None:
    (home / ".netrc").symlink_to(project)
    (home / ".pgpass").symlink_to("/usr")
    assert see(Host.of({"HOME": str(home)}), project).hidden == []


def test_toolchains_that_the_person_switched_on_are_found_by_what_is_in_them(tmp_path):
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "pyvenv.cfg").write_text("")
    (tmp_path / "conda" / "conda-meta").mkdir(parents=True)
    (tmp_path / "papers").mkdir()
    given = {
        "VIRTUAL_ENV": f"{tmp_path}/venv",
        "CONDA_PREFIX": f"{tmp_path}/conda",
        "JAVA_HOME": f"{tmp_path}/papers",
        "GOROOT": "relative",
        "HOME": f"{tmp_path}/venv",
    }
    assert switched_on(given) == [tmp_path / "venv", tmp_path / "conda"]
    assert switched_on({}) == []


def test_a_blocked_place_is_not_hidden_where_a_folder_on_the_way_became_a_link(project, home):
    (project / "deep" / "vault").mkdir(parents=True)
    places = see(Host.of({"HOME": str(home)}), project, blocked=["deep/vault"])
    assert places.hidden == [f"{project}/deep/vault"]
    (project / "deep").rename(project / "other")
    (project / "deep").symlink_to("other")
    assert places.hidden == []


def make_worktree(main: Path, work: Path, *, back: str = "") -> Path:
    """Lay out a worktree as git does: a pointer in it, and the way back in the repository."""
    folder = main / "worktrees" / "w"
    for each in (folder, main / "objects", main / "refs", main / "private", work):
        each.mkdir(parents=True, exist_ok=True)
    for name in ("HEAD", "worktrees/w/HEAD"):
        (main / name).write_text("ref: refs/heads/main\n")
    (main / "config").write_text("[core]\n")
    (folder / "commondir").write_text("../..\n")
    (folder / "gitdir").write_text(f"{back or work / '.git'}\n")
    (work / ".git").write_text(f"gitdir: {folder}\n")
    return folder


def shown(project: Path, home: Path) -> list[str]:
    return list(see(Host.of({"HOME": str(home)}), project).readable)


@pytest.mark.parametrize("name", [".git", "repo.git", ".bare"])
def test_a_worktree_shows_what_git_reads_of_its_repository(project, home, tmp_path, name: str):
    main = tmp_path / "main" / name
    make_worktree(main, project)
    (main / "logs").symlink_to(main / "private")
    names = ("HEAD", "config", "objects", "refs", "worktrees")
    assert shown(project, home) == [f"{main}/{each}" for each in names]


def test_a_repository_in_the_project_is_not_shown_once_more(project: Path, home: Path) -> None:
    """Or a command could have ybs show what is blocked in the project."""
    make_worktree(project / "main" / ".git", project)
    assert see(Host.of({"HOME": str(home)}), project).seen == []


def test_of_a_repository_around_no_place_of_keys_is_shown(project: Path, home: Path) -> None:
    make_worktree(home / ".ssh" / ".git", project)
    assert shown(project, home) == []
    make_worktree(home / ".git", project)
    assert f"{home}/.git/objects" in shown(project, home)


@every_row("back", ["/somewhere/else/.git", ".git", "../../../project/.git/x"])
def test_a_pointer_that_nothing_answers_shows_nothing(project, home, tmp_path, monkeypatch, back):
    monkeypatch.chdir(project)
    make_worktree(tmp_path / "main" / ".git", project, back=back)
    assert shown(project, home) == []


def test_a_folder_that_is_called_otherwise_than_a_repository_shows_nothing(
    project: Path, home: Path
) -> None:
    make_worktree(project.parent, project)
    assert shown(project, home) == []


def test_a_pointer_to_a_submodule_shows_nothing(project: Path, home: Path, tmp_path: Path) -> None:
    make_worktree(tmp_path / ".git" / "modules" / "project", project)
    (project / ".git").write_text("gitdir: ../.git/modules/project\n")
    assert shown(project, home) == []


@pytest.mark.parametrize("pointer", ["", "gitdir:", "gitdir: ../home/.ssh", "gitdir: /", "nonsense", "gitdir: inside"])  # fmt: skip
def test_a_pointer_to_any_folder_shows_nothing(project: Path, home: Path, pointer: str) -> None:
    (home / ".ssh").mkdir()
    (project / "inside").mkdir()
    (project / ".git").write_text(pointer)
    assert shown(project, home) == []


@pytest.mark.parametrize("missing", ["config", "objects", "refs", "worktrees/w/commondir"])
def test_what_answers_has_to_be_a_repository(project, home, tmp_path, missing: str) -> None:
    main = tmp_path / "main" / ".git"
    make_worktree(main, project)
    (main / missing).rename(main / "other")
    assert shown(project, home) == []


def test_a_pointer_that_is_a_link_or_a_pipe_shows_nothing(project, home, tmp_path) -> None:
    make_worktree(tmp_path / "main" / ".git", project)
    (project / ".git").rename(tmp_path / "pointer")
    (project / ".git").symlink_to(tmp_path / "pointer")
    assert shown(project, home) == []
    (project / ".git").unlink()
    os.mkfifo(project / ".git")
    assert shown(project, home) == []
