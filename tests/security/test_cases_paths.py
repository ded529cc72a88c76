"""P01 to P09 and P12 to P15: paths that lead out, through the real tools in a toolbox that may do everything."""

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rows import every_row
from tools.conftest import Bench
from ybs.config.schema import Config

MakeBench = Callable[..., Bench]
#: Every tool that takes a path, with what else it needs.
READING: dict[str, dict[str, Any]] = {
    "read_file": {},
    "search_files": {"pattern": "SECRET"},
    "list_files": {"pattern": "**"},
}
WRITING: dict[str, dict[str, Any]] = {
    "write_file": {"content": "EVIL"},
    "edit_file": {"old_text": "SECRET", "new_text": "EVIL"},
}
ALL = {**READING, **WRITING, "delete_file": {}}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A neighbour of the project whose name begins as the project's does."""
    folder = tmp_path / "project2"
    folder.mkdir()
    (folder / "x").write_text("SECRET\n")
    return folder


@pytest.fixture
def at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A toolbox whose project is the home folder, with a key in it."""
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_ed25519").write_text("SECRET\n")
    monkeypatch.chdir(home)
    return Bench(home)


async def denied(bench: Bench, tool: str, path: str, *, words: str = "") -> None:
    answered = await bench.call(tool, path=path, **ALL[tool])
    assert answered.result.is_error, answered.output
    assert "SECRET" not in answered.output
    assert "SECRET" not in msgspec.json.encode(answered.display).decode()
    assert words in answered.output


@every_row("tool", ALL)
@every_row("path", ["../project2/x", "a/../../project2/x", "/etc/passwd"])
async def test_p01_a_path_outside_is_denied(bench: Bench, outside: Path, tool: str, path: str):
    await denied(bench, tool, path, words="outside the folders that ybs may work in")
    assert (outside / "x").read_text() == "SECRET\n"


@every_row("tool", ALL)
async def test_p02_a_folder_whose_name_begins_alike_is_outside(bench, outside, tool):
    await denied(bench, tool, str(outside / "x"), words="outside the folders that ybs may work in")


@every_row("tool", ALL)
async def test_p03_dots_behind_the_root_lead_out_as_well(bench, project, outside, tool):
    await denied(
        bench,
        tool,
        f"{project}/../{outside.name}/x",
        words="outside the folders that ybs may work in",
    )


@every_row("tool", ALL)
async def test_p04_a_key_in_the_home_folder_is_denied_where_that_is_the_project(
    at_home: Bench, home: Path, tool: str
):
    await denied(at_home, tool, ".ssh/id_ed25519", words="blocked")
    assert (home / ".ssh" / "id_ed25519").read_text() == "SECRET\n"


@pytest.mark.integration
@pytest.mark.parametrize(
    "path",
    [
        *(".netrc", ".npmrc", ".cargo/credentials.toml", ".bash_history", ".mozilla/x"),
        *(".pulumi/credentials.json", ".dbt/profiles.yml", ".ivy2/.credentials", ".bunfig.toml"),
        *(".config/heroku/x", ".local/share/pypoetry/auth.toml", ".julia/servers/x/auth.toml"),
        *(".local/share/jupyter/runtime/x.json", ".config/google-chrome-beta/Default/Cookies"),
    ],
)
async def test_p04_credentials_are_blocked_whatever_the_settings_say(home: Path, path: str):
    config = msgspec.json.decode(b'{"safety": {"sandbox_blocked_paths": []}}', type=Config)
    bench = Bench(home, config=config)
    (home / path).parent.mkdir(exist_ok=True, parents=True)
    (home / path).write_text("SECRET\n")
    await denied(bench, "read_file", str(home / path), words="no setting opens them")
    assert "SECRET" not in (await bench.ok("search_files", pattern="SEC.ET")).output


async def test_p04_a_place_of_credentials_that_is_a_link_is_blocked_where_it_leads(home: Path):
    (home / "dotfiles").mkdir()
    (home / "dotfiles" / "key").write_text("SECRET\n")
    (home / ".gnupg").symlink_to("dotfiles")
    await denied(Bench(home), "read_file", str(home / "dotfiles/key"), words="blocked")


@every_row("tool", ALL)
@every_row("path", [".SSH/id_ed25519", ".ſſh/id_ed25519"])
async def test_p05_a_blocked_path_in_other_letters_is_denied(at_home: Bench, tool: str, path: str):
    await denied(at_home, tool, path, words="blocked")


@pytest.mark.parametrize("tool", [*READING, *WRITING])
@pytest.mark.parametrize("target", ["/etc/passwd", "../project2/x"])
async def test_p06_a_link_to_a_file_outside_is_denied(bench, project, outside, tool, target):
    (project / "link").symlink_to(target)
    await denied(bench, tool, "link", words="outside the folders that ybs may work in")
    assert (outside / "x").read_text() == "SECRET\n"


@pytest.mark.parametrize("tool", ALL)
async def test_p07_nothing_is_reached_through_a_link_to_a_folder_outside(
    bench: Bench, project: Path, outside: Path, tool: str
):
    (project / "out").symlink_to(outside)
    await denied(bench, tool, "out/x", words="outside the folders that ybs may work in")
    await bench.call("write_file", path="out/new/y", content="EVIL")
    assert os.listdir(outside) == ["x"]  # noqa: PTH208 - names
    assert (outside / "x").read_text() == "SECRET\n"


async def test_p08_a_dangling_link_makes_no_file_where_it_leads(bench, project, home):
    (project / "link").symlink_to(home / ".bashrc")
    await denied(bench, "write_file", "link")
    assert not (home / ".bashrc").exists()


@pytest.mark.parametrize("tool", [*WRITING, "read_file", "search_files"])
async def test_p09_a_hard_link_to_a_blocked_file_is_denied(bench, project, home, tool):
    (home / ".aws").mkdir()
    (home / ".aws" / "credentials").write_text("SECRET\n")
    os.link(home / ".aws" / "credentials", project / "innocent.txt")
    await denied(bench, tool, "innocent.txt", words="hard link")
    assert (home / ".aws" / "credentials").read_text() == "SECRET\n"


@pytest.mark.integration
async def test_p09_no_search_tells_what_a_hard_link_to_a_blocked_file_holds(bench, project, home):
    (home / ".aws").mkdir()
    (home / ".aws" / "credentials").write_text("SECRET\n")
    os.link(home / ".aws" / "credentials", project / "innocent.txt")
    (project / "free.txt").write_text("SECRET of mine\n")
    os.link(project / "free.txt", project / "free2.txt")
    answered = await bench.ok("search_files", pattern="SEC.ET")
    assert "innocent" not in answered.output
    assert answered.display["total_matches"] == 2


async def test_p09_a_hard_link_among_free_files_is_read(bench: Bench, project: Path):
    (project / "a").write_text("mine\n")
    os.link(project / "a", project / "b")
    assert "mine" in (await bench.ok("read_file", path="b")).output


@pytest.mark.integration
@every_row("tool", ALL)
@every_row(
    "path",
    [
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd/x",
        "/dev/fd/3",
        "/dev/fd",
    ],
)
async def test_p12_magic_links_are_denied_even_in_a_root_of_everything(tool: str, path: str):
    await denied(Bench(Path("/")), tool, path, words="/proc, /dev and /sys")


async def test_p12_a_link_of_the_project_does_not_lead_there(bench: Bench, project: Path):
    (project / "env").symlink_to("/proc/self/environ")
    await denied(bench, "read_file", "env", words="/proc, /dev and /sys")


@pytest.mark.parametrize("tool", [*WRITING, "read_file", "search_files"])
@pytest.mark.parametrize("kind", ["named pipe", "socket", "device"])
async def test_p13_what_is_no_file_is_refused_without_hanging(bench, project, tool, kind):
    if kind == "named pipe":
        os.mkfifo(project / "x")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("x")
    else:
        try:
            os.mknod(project / "x", stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
        except PermissionError:
            pytest.skip("only root makes devices: reading one is not tried")
    await denied(bench, tool, "x", words=f"a {kind}, not a file")


@pytest.mark.integration
@every_row("tool", ALL)
@every_row(
    ("path", "words"),
    [
        ("a\0b", "a NUL"),
        ("a\nb", r"written as \xNN"),
        ("x" * 5000, "5000 characters"),
        ("~root/x", "not expanded"),
        ("$HOME/x", "not expanded"),
        ("file:///etc/passwd", "an address"),
    ],
)
async def test_p14_what_is_no_path_is_a_clear_error(bench, project, tool, path, words):
    await denied(bench, tool, path, words=words)
    assert os.listdir(project) == []  # noqa: PTH208 - names


@pytest.mark.integration
@pytest.mark.parametrize("name", [b"a\nb", b"caf\xe9", b"\x1b]0;x\x07", b"tab\there", rb"a\x0ab"])
async def test_p14_odd_names_have_one_spelling_in_every_tool(bench, project, name):
    path = project / os.fsdecode(name)
    path.write_text("SECRET\n")
    listed = (await bench.ok("list_files", pattern="**")).output
    assert listed.isprintable()
    shown = listed
    assert (await bench.ok("read_file", path=shown)).output == "1\tSECRET"
    found = (await bench.ok("search_files", pattern="SECRET")).output
    assert found.split("\n")[0] == shown
    await bench.ok("edit_file", path=shown, old_text="SECRET", new_text="mine")
    assert path.read_text() == "mine\n"
    await bench.ok("write_file", path=shown, content="new")
    assert path.read_text() == "new"
    await bench.ok("delete_file", path=shown)
    assert os.listdir(project) == []  # noqa: PTH208 - names


@pytest.mark.integration
async def test_p15_globs_follow_no_link_out(bench: Bench, project: Path, outside: Path):
    (project / "root").symlink_to("/")
    (project / "out").symlink_to(outside)
    (project / "file").symlink_to(outside / "x")
    for pattern in ("**", "**/*", "root/**", "out/*", "*/x", "file"):
        answered = await bench.ok("list_files", pattern=pattern, include_ignored=True)
        assert answered.display["files"] == [], pattern
        assert answered.output.split(" `")[0] == "No files match.", pattern
    answered = await bench.ok("search_files", pattern="SECRET", include_ignored=True)
    assert answered.display["total_matches"] == 0
