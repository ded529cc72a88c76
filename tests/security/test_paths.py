"""The folders that tools may work in: the P rows of the adversarial list."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hosts import this_host
from rows import every_row
from ybs.core.errors import Refused, ToolError
from ybs.core.remedies import Remedy
from ybs.security.paths.roots import Roots

BLOCKED = ("~/.ssh", "~/.aws", "~/.config")


@pytest.fixture
def roots(project: Path) -> Roots:
    return Roots(this_host(), project, ("./",), BLOCKED)


def refused(roots: Roots, path: str, **how: bool) -> str:
    with pytest.raises(Refused) as caught:
        roots.resolve(path, **how)
    return str(caught.value)


def test_p01_a_path_outside_is_refused_and_its_folder_can_be_added(roots: Roots, project: Path):
    for path, folder in (("../outside", str(project.parent)), ("/etc/passwd", "/etc")):
        with pytest.raises(Refused, match="outside the folders that ybs may work in") as caught:
            roots.resolve(path)
        assert caught.value.remedies == (Remedy("add_folder", folder),)


def test_a_relative_folder_of_the_settings_leaves_the_project_by_no_link(project: Path, home: Path):
    for name in ("documents", "shared"):
        (home / name).mkdir()
    (project / "build").symlink_to(home / "documents")
    (project / "up").symlink_to("..")
    (project / "inside").mkdir()
    (project / "within").symlink_to("inside")
    (project.parent / "beside").mkdir(exist_ok=True)
    names = ("./", "build", f"up/{home.name}/documents", "within", "../beside", "~/shared")
    tops = {project, project / "inside", project.parent / "beside", home / "shared"}
    assert set(Roots(this_host(), project, names).folders) == {each.resolve() for each in tops}


def test_p02_a_folder_whose_name_begins_like_the_root_is_outside(roots: Roots, project: Path):
    twin = project.parent / (project.name + "2")
    twin.mkdir()
    (twin / "x").write_text("x")
    refused(roots, str(twin / "x"))


def test_p03_dots_do_not_lead_to_such_a_twin(roots: Roots, project: Path):
    refused(roots, f"{project}/../{project.name}2/x")


def test_p04_a_blocked_path_is_refused_inside_a_root(home: Path):
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_ed25519").write_text("k")
    roots = Roots(this_host(), home, ("./",), BLOCKED)
    assert "blocked" in refused(roots, ".ssh/id_ed25519")
    assert "blocked" in refused(roots, ".ssh")
    assert roots.resolve(".sshx") == home / ".sshx"


def test_p05_p21_a_blocked_path_is_refused_however_its_name_is_spelled(home: Path):
    roots = Roots(this_host(), home, ("./",), ("~/.ssh", "~/clés"))
    refused(roots, ".SSH/id")
    refused(roots, "cle\u0301s/x")
    refused(roots, "CLÉS/x")


def test_p06_a_link_to_a_file_outside_is_refused(roots: Roots, project: Path):
    (project / "link").symlink_to("/etc/passwd")
    refused(roots, "link")


def test_p07_a_write_through_a_link_to_a_folder_outside_is_refused(roots: Roots, project: Path):
    (project / "out").symlink_to(project.parent)
    refused(roots, "out/x", is_write=True)


def test_p08_a_write_to_a_dangling_link_outside_is_refused(roots: Roots, project: Path, home: Path):
    (project / "link").symlink_to(home / ".bashrc")
    refused(roots, "link", is_write=True)
    assert not (home / ".bashrc").exists()


@every_row(
    "path",
    ["/proc/self/environ", "/proc/self/root/etc/passwd", "/dev/fd/3", "/dev/null", "/sys/kernel"],
)
def test_p12_magic_paths_are_refused_even_when_the_root_is_everything(path: str):
    assert "not a regular file" in refused(Roots(this_host(), Path("/"), ("./",)), path)


def test_p12_a_link_to_a_magic_path_is_refused(project: Path):
    (project / "env").symlink_to("/proc/self/environ")
    refused(Roots(this_host(), Path("/"), ("./",)), str(project / "env"))


@every_row(
    ("path", "words"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("a\0b", "a NUL"),
        (r"a\x00b", "a NUL"),
        ("a\nb", "control character"),
        ("a\x7fb", "control character"),
        ("x" * 5000, "5000 characters"),
        ("~root/x", "not expanded"),
        ("~", "not expanded"),
        ("$HOME/x", "not expanded"),
        ("${HOME}/x", "not expanded"),
        ("$A/x", "not expanded"),
        ("file:///etc/passwd", "an address"),
        ("a\ud800b", "no name can have"),
    ],
)
def test_p14_what_is_no_path_gives_a_clear_error(roots: Roots, path: str, words: str):
    with pytest.raises(ToolError) as caught:
        roots.resolve(path)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 300
    assert not isinstance(caught.value, Refused)


def test_an_error_shows_a_short_path_whole_and_the_beginning_of_a_long_one(roots: Roots):
    with pytest.raises(ToolError, match="'~short' begins with"):
        roots.resolve("~short")
    with pytest.raises(ToolError, match=r"'~xxxx*\.\.\.' is 5000"):
        roots.resolve("~" + "x" * 4999)


@every_row("path", ["./~x", "$5.txt", "a$b", "grün/日本.py", "x:y", "a\u00a0b", "😀"])
def test_unusual_names_are_paths(roots: Roots, project: Path, path: str):
    assert roots.resolve(path) == project / path


@every_row(
    "path",
    [
        ".git/hooks/pre-commit",
        ".git/config",
        ".git",
        ".GIT/config",
        ".git /config",
        ".git./config",
        ".git/../.git/config",
        "git~1/config",
        "sub/.git/config",
    ],
)
def test_p16_p17_p20_git_is_read_only(roots: Roots, path: str):
    assert "read-only" in refused(roots, path, is_write=True)
    roots.resolve(path)


def test_a_git_folder_that_is_a_link_is_read_only_too(roots: Roots, project: Path):
    (project / "real").mkdir()
    (project / ".git").symlink_to("real")
    refused(roots, ".git/config", is_write=True)


@every_row("name", [".gitignore", ".github/x", "git", "a.git"])
def test_names_that_only_look_like_git_are_writable(roots: Roots, project: Path, name: str):
    assert roots.resolve(name, is_write=True) == project / name


def test_p19_the_own_files_of_ybs_are_refused(monkeypatch: pytest.MonkeyPatch, home: Path):
    monkeypatch.setenv("YBS_HOME", str(home / "ybs-files"))
    roots = Roots(this_host(), home, ("./",), ())
    for path in ("ybs-files/config.json", "ybs-files/sessions/x.jsonl", ".ybs.json"):
        refused(roots, path)


def test_p22_a_root_that_is_a_link_is_resolved_once(tmp_path: Path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    link = tmp_path / "link"
    link.symlink_to("one")
    roots = Roots(this_host(), link)
    link.unlink()
    link.symlink_to("two")
    assert roots.folder == tmp_path / "one"
    assert roots.resolve("x") == tmp_path / "one" / "x"
    refused(roots, str(tmp_path / "two" / "x"))


def test_a_link_inside_is_followed_or_left(roots: Roots, project: Path):
    (project / "real").write_text("x")
    (project / "link").symlink_to("real")
    assert roots.resolve("link") == project / "real"
    assert roots.resolve("link", is_link_followed=False) == project / "link"
    assert roots.resolve("sub/..", is_link_followed=False) == project


def test_a_name_is_judged_for_reading_and_its_link_followed_where_nothing_else_is_said(
    roots: Roots, project: Path
):
    (project / ".git").mkdir()
    (project / "link").symlink_to(".git/config")
    assert roots.judge("link") == project.resolve() / ".git/config"


def test_a_refusal_names_the_folder_that_is_allowed(roots: Roots, project: Path):
    assert f"({project})" in refused(roots, "/etc/passwd")


def test_an_added_folder_is_allowed(roots: Roots, tmp_path: Path):
    more = tmp_path / "more"
    refused(roots, str(more / "x"))
    roots.add(more)
    assert roots.resolve(str(more / "x"), is_write=True) == more / "x"
    assert roots.folders == (roots.folder, more)
    assert str(more) in refused(roots, "/etc/passwd")


def test_a_read_only_folder_may_lie_in_a_blocked_one_and_is_not_written(home: Path, project: Path):
    roots = Roots(this_host(), project, ("./",), BLOCKED)
    folder = home / ".config" / "ybs" / "skills"
    roots.add(folder, is_read_only=True)
    assert roots.resolve(str(folder / "a.md")) == folder / "a.md"
    refused(roots, str(folder / "a.md"), is_write=True)


def test_only_the_allowed_part_of_the_project_is_allowed(project: Path):
    roots = Roots(this_host(), project, ("./src",))
    assert roots.resolve("src/x") == project / "src" / "x"
    assert "(src)" in refused(roots, "x")


def test_show_is_relative_inside_the_project_only(roots: Roots, project: Path):
    assert roots.show(project) == "."
    assert roots.show(project / "a" / "b") == "a/b"
    assert roots.show(Path(f"{project}2/a")) == f"{project}2/a"
    assert Roots(this_host(), Path("/")).show(Path("/etc")) == "etc"


@every_row(
    ("path", "part"),
    [
        (".vscode/tasks.json", ".vscode"),
        ("sub/.envrc", ".envrc"),
        (".github/workflows/x.yml", ".github/workflows"),
        (".ybs.json", ".ybs.json"),
        ("Makefile", ""),
        (".github/x.yml", ""),
    ],
)
def test_p18_files_that_run_later_are_named(roots: Roots, project: Path, path: str, part: str):
    assert roots.autorun_part(project / path) == part


def test_where_the_home_folder_is_the_project_what_is_started_from_there_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    (home / "tools").mkdir()
    (home / "tools" / "run").touch(mode=0o755)
    folders = [home, home / "bin", home / "npm" / "bin", Path("/usr/bin")]
    monkeypatch.setenv("PATH", ":".join(map(str, folders)))
    roots = Roots(this_host(), home, ("./",))
    parts = {
        "bin/new": "bin",
        "npm/lib/claude/cli.js": "npm",
        "tools/run": "tools/run",
        ".bashrc": ".bashrc",
        "Library/LaunchAgents/x.plist": "Library",
        "library/Application Support/Code/User/tasks.json": "library",
        "snap/code/current/.config/x": "snap",
        "work/Library/x": "",
        "tools/new": "",
        "notes.txt": "",
    }
    assert {each: roots.autorun_part(home.resolve() / each) for each in parts} == parts
    shared = home.resolve().parent / "shared" / "bin"
    monkeypatch.setenv("PATH", str(shared))
    above = Roots(this_host(), home.parent, ("./",))
    assert above.autorun_part(shared / "new") == "shared"
    assert above.autorun_part(home.resolve() / "bin" / "new") == ""
    inner = Roots(this_host(), home / "tools", ("./",))
    assert not inner.autorun_part(home.resolve() / "tools" / "run")


def test_blocked_paths_inside_a_folder_are_known(home: Path, project: Path):
    roots = Roots(this_host(), home, ("./",), BLOCKED)
    assert roots.holds_blocked(home)
    assert roots.holds_blocked(home / ".ssh" / "deep")
    assert not roots.holds_blocked(project)


@pytest.mark.integration
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(
        st.sampled_from(["..", ".", "a", "link", "out", "", ".git"]), min_size=1, max_size=8
    )
)
def test_whatever_is_resolved_lies_in_the_root(project: Path, parts: list[str]):
    for name, target in (("link", "a"), ("out", "/")):
        if not os.path.lexists(project / name):
            (project / name).symlink_to(target)
    roots = Roots(this_host(), project)
    try:
        path = roots.resolve("/".join(parts) or "x", is_write=True)
    except ToolError:
        return
    assert path.is_relative_to(project)
    assert os.path.realpath(path) == str(path)
    assert ".git" not in path.parts


def test_a_hard_link_is_told_by_what_was_opened(home: Path, project: Path):
    (home / ".ssh").mkdir()
    (home / ".ssh" / "key").write_text("k")
    roots = Roots(this_host(), project, ("./",), BLOCKED)
    os.link(home / ".ssh" / "key", project / "a")
    (project / "b").write_text("mine")
    with roots.held(project / "a") as place, pytest.raises(Refused, match="hard link"):
        place.open(os.O_RDONLY)
    with roots.held(project / "b") as place:
        os.close(place.open(os.O_RDONLY))
    names = ("a", "b", "gone")
    assert [roots.is_blocked_link(f"{project}/{name}") for name in names] == [True, False, False]


def test_a_file_with_several_names_in_a_read_only_folder_is_free(home: Path, project: Path):
    skills = home / ".config" / "ybs" / "skills"
    skills.mkdir(parents=True)
    (skills / "a.md").write_text("x")
    os.link(skills / "a.md", skills / "b.md")
    roots = Roots(this_host(), project, ("./",), BLOCKED)
    roots.add(skills, is_read_only=True)
    with roots.held(skills / "b.md") as place:
        os.close(place.open(os.O_RDONLY))


def test_no_descriptor_stays_open_where_the_judge_says_no(home: Path, project: Path):
    (home / ".netrc").write_text("k")
    os.link(home / ".netrc", project / "a")
    roots = Roots(this_host(), project)
    before = os.listdir("/dev/fd")  # noqa: PTH208 - names
    with roots.held(project / "a") as place, pytest.raises(Refused):
        place.open(os.O_RDONLY)
    assert os.listdir("/dev/fd") == before  # noqa: PTH208 - names


def test_the_top_as_a_root_or_blocked_path_covers_all(project: Path):
    assert Roots(this_host(), project, ("./",), ("/",)).is_blocked("/anything")
    assert Roots(this_host(), Path("/")).resolve("/srv/x", is_write=True) == Path("/srv/x")


def test_a_path_that_changes_while_it_is_resolved_is_refused(roots, monkeypatch):
    def changed(path: str) -> str:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os.path, "realpath", changed)
    assert "changed while" in refused(roots, "a/b")


def test_what_is_resolved_to_a_name_can_be_read_back(roots: Roots, project: Path):
    path = roots.resolve(r"a\x0a\xff\x5cx41")
    assert path == project / "a\n\udcff\\x41"
    assert roots.resolve(roots.show(path)) == path
    assert refused(roots, r"..\x0a/../../x\xff").encode()


@pytest.mark.parametrize("place", ["vault", "deep/vault"])
def test_a_blocked_name_that_becomes_a_link_later_stays_blocked(project: Path, place: str):
    (project / "public").write_text("x")
    (project / place).parent.mkdir(exist_ok=True)
    (project / place).write_text("secret")
    roots = Roots(this_host(), project, ("./",), [place])
    (project / place).unlink()
    (project / place).symlink_to(project / "public")
    for write in (False, True):
        assert "blocked path" in refused(roots, place, is_write=write)
        assert "blocked path" in refused(roots, f"./x/../{place}", is_write=write)
    assert roots.resolve("public") == project / "public"


def test_the_place_of_a_key_that_becomes_a_link_later_stays_blocked(project: Path, home: Path):
    roots = Roots(this_host(), home, ("./",), ())
    refused(roots, ".netrc")
    (home / "public").write_text("x")
    (home / ".netrc").symlink_to("public")
    assert "credentials" in refused(roots, ".netrc")


def test_a_copy_goes_by_what_is_blocked_and_acted_on_later_in_the_original(
    home: Path, tmp_path: Path
):
    project, copy = tmp_path / "project", tmp_path / "copy"
    for folder in (project / "ssh", project / "ed", copy / "ssh", home / ".ssh"):
        folder.mkdir(parents=True)
    (project / "ssh/config").write_text("closed")
    (home / ".ssh/config").symlink_to(project / "ssh/config")
    (project / ".vscode").symlink_to("ed")
    (copy / ".idea").symlink_to("own")
    roots = Roots(this_host(), copy, original=Roots(this_host(), project))
    assert "blocked: credentials" in refused(roots, "ssh/config", is_write=True)
    assert "blocked: credentials" in refused(roots, f"{project}/ssh/config")
    assert roots.is_blocked(str(copy / "ssh/config"))
    assert not roots.is_blocked(str(copy / "ssh/other"))
    assert roots.resolve("ssh/other", is_write=True) == copy / "ssh/other"
    parts = {"ed/tasks.json": ".vscode", "own/x.xml": ".idea", "plain": ""}
    assert {path: roots.autorun_part(copy / path, path) for path in parts} == parts
