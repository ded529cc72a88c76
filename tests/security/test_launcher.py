import os
import subprocess
import sys
from pathlib import Path

import pytest

from hosts import host_at
from rows import every_row
from ybs import cli
from ybs.config.host import Host, memory_folder, worked_in
from ybs.security import launcher as programs
from ybs.security.launcher import Launch, persons_program, trusted_program
from ybs.security.paths.steps import is_away
from ybs.security.sandbox.scratch import PrivateFolder


@pytest.fixture(autouse=True)
def no_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", ())


def place(folder: Path, mode: int = 0o755) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    file = folder / "tool"
    file.write_text("#!/bin/sh\n")
    file.chmod(mode)
    return file


def found(project: Path, *folders: str) -> Path | None:
    Host.of({}).work_in(project)
    return trusted_program("tool", environ={"PATH": ":".join(folders)})


def test_a_program_of_path_is_found(project: Path, tmp_path: Path):
    file = place(tmp_path / "bin")
    assert found(project, "/nowhere", "", ".", "bin", str(tmp_path / "bin")) == file
    assert trusted_program("tool", environ={}) is None


def test_a_relative_folder_of_path_is_not_looked_into(project, tmp_path, monkeypatch):
    place(tmp_path / "bin")
    monkeypatch.chdir(tmp_path)
    assert found(project, "bin", "./bin") is None
    assert persons("bin:./bin", project) is None


def test_a_program_of_the_system_may_be_roots(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(programs.os, "getuid", lambda: 4711)
    path = Path("/usr/bin/env")
    assert trusted_program("env", environ={"PATH": "/usr/bin"}) == path.resolve()


def test_s20_a_program_in_the_project_is_not_run(project: Path, tmp_path: Path):
    file = place(project / "bin")
    link = tmp_path / "links/tool"
    link.parent.mkdir()
    link.symlink_to(file)
    assert found(project, "", ".", "bin", str(project / "bin"), str(link.parent)) is None


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o644])
def test_a_program_that_others_can_change_or_nobody_can_run_is_not_run(project, tmp_path, mode):
    place(tmp_path / "bin", mode)
    assert found(project, str(tmp_path / "bin")) is None


def test_a_folder_that_others_can_write_is_passed_over(project: Path, tmp_path: Path):
    place(tmp_path / "bin")
    (tmp_path / "bin").chmod(0o777)
    assert found(project, str(tmp_path / "bin")) is None


def test_what_is_no_file_is_no_program(project: Path, tmp_path: Path):
    (tmp_path / "bin/tool").mkdir(parents=True)
    (tmp_path / "circle").symlink_to("circle")
    assert found(project, str(tmp_path / "bin"), str(tmp_path / "circle")) is None


def test_the_folders_of_the_system_come_first(project, tmp_path, monkeypatch):
    place(tmp_path / "bin")
    file = place(tmp_path / "system")
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", (str(tmp_path / "system"),))
    assert found(project, str(tmp_path / "bin")) == file


def persons(path: str, project: Path) -> str | None:
    Host.of({}).work_in(project)
    return persons_program("tool", environ={"PATH": path})


def test_a_program_that_a_link_of_the_project_chooses_is_not_run(project: Path, tmp_path: Path):
    """What a clone brings, or a command puts there: `bin/wl-copy -> /bin/sh`, and a link to a folder outside."""
    place(tmp_path / "own")
    (project / "bin").mkdir()
    (project / "bin/tool").symlink_to("/bin/sh")
    (project / "way").symlink_to(tmp_path / "own")
    (tmp_path / "bin").mkdir(0o755)
    (tmp_path / "bin/tool").symlink_to(project / "way/tool")
    for folder in (project / "bin", project / "way", tmp_path / "bin"):
        assert found(project, str(folder)) is None, folder
        assert persons(str(folder), project) is None, folder


@pytest.mark.parametrize("name", ["scratch_folder", "residents_folder", "copies_folder", "memory"])
def test_no_program_is_run_where_commands_write(tmp_path: Path, name: str):
    host = Host.of({"HOME": str(tmp_path), "TMPDIR": str(tmp_path / "tmp")})
    host.work_in(tmp_path / "project")
    top = memory_folder() if name == "memory" else getattr(host, name)
    assert not is_away(f"{top}/x/tool", worked_in)
    assert is_away(str(host.state_folder / "start/x"), worked_in)
    assert is_away(f"{top}-of-mine/tool", worked_in)


def test_nor_where_they_write_when_there_is_no_such_folder(home: Path, tmp_path: Path):
    (home / ".local").write_text("not a folder")
    private = PrivateFolder(host_at(home).scratch_folder)
    assert not is_away(f"{private.temporary}/tool", worked_in)
    private.remove()


def test_a_program_that_somebody_else_may_exchange_by_a_link_is_not_run(
    project: Path, tmp_path: Path
):
    place(tmp_path / "own")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (shared / "way").symlink_to(tmp_path / "own")
    (tmp_path / "bin").mkdir(0o755)
    (tmp_path / "bin/tool").symlink_to(shared / "way/tool")
    assert found(project, str(tmp_path / "bin")) is None


#: How programs of the person's own lie in PATH: links of installers, of alternatives, of profiles, and shims.
LINKED = {
    "uv, pipx": {"bin/tool": "../share/uv/tools/t/bin/tool"},
    "alternatives": {"bin/tool": "{tmp}/etc/alternatives/tool", "etc/alternatives/tool": "../../usr/tool"},
    "nix": {
        "profile": "{tmp}/var/profiles/profile",
        "var/profiles/profile": "profile-2-link",
        "var/profiles/profile-2-link": "{tmp}/store/env",
        "store/env/bin": "{tmp}/store/tool-1/bin",
    },
    "homebrew": {"bin/tool": "../Cellar/tool/1.0/bin/tool", "opt/tool": "../Cellar/tool/1.0"},
    "versions": {"current": "versions/2"},
}  # fmt: skip
FILES = {
    "uv, pipx": "share/uv/tools/t/bin/tool",
    "alternatives": "usr/tool",
    "nix": "store/tool-1/bin/tool",
    "homebrew": "Cellar/tool/1.0/bin/tool",
    "versions": "versions/2/bin/tool",
}
PATHS = {"nix": "profile/bin", "versions": "current/bin"}


@every_row("how", LINKED)
def test_the_persons_programs_may_be_links(project: Path, tmp_path: Path, how: str):
    top = tmp_path / how.partition(",")[0]
    file = place((top / FILES[how]).parent)
    for name, target in LINKED[how].items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).symlink_to(target.format(tmp=top))
    folder = str(top / PATHS.get(how, "bin"))
    assert found(project, folder) == file
    assert persons(folder, project) == f"{folder}/tool"


def test_a_program_that_goes_by_the_name_it_is_called_is_called_by_it(project, tmp_path):
    """A shim of mise or of BusyBox is a link to one program for all names."""
    (tmp_path / "shims").mkdir(0o755)
    (tmp_path / "shims/tool").symlink_to(place(tmp_path / "own").rename(tmp_path / "own/mise"))
    assert found(project, str(tmp_path / "shims")) == tmp_path / "shims/tool"


@pytest.mark.integration
@every_row(
    ("path", "expected"),
    [
        ("{tmp}/bin", "{tmp}/bin/tool"),
        ("{tmp}/plain:{tmp}/folder:{tmp}/gone:{tmp}/bin", "{tmp}/bin/tool"),
        ("{tmp}/plain", None),
        ("{tmp}/folder", None),
        ("{project}/bin", None),
        ("{project}/bin:{tmp}/bin", "{tmp}/bin/tool"),
        ("{tmp}/way", None),  # a link to a folder of the project
        ("{tmp}/links", None),  # holds a link to a program of the project
        ("{project}/links", None),  # a program of the person, but by a link that the project has put there
        ("", None),
    ],
)  # fmt: skip
def test_s20_the_persons_own_program_may_be_anywhere_but_in_the_project(
    project: Path, tmp_path: Path, path: str, expected: str | None
):
    place(project / "bin")
    place(tmp_path / "bin", 0o777)
    place(tmp_path / "plain", 0o644)
    (tmp_path / "folder/tool").mkdir(parents=True, exist_ok=True)
    for link, target in (
        (tmp_path / "way", project / "bin"),
        (tmp_path / "links/tool", project / "bin/tool"),
        (project / "links/tool", tmp_path / "bin/tool"),
    ):
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    names = {"tmp": tmp_path, "project": project}
    wanted = expected and expected.format(**names)
    assert persons(path.format(**names), project) == wanted


@pytest.mark.integration
def test_a_program_that_takes_too_long_to_answer_is_ended():
    with pytest.raises(TimeoutError, match=r"longer than 0\.05 s"):
        programs.ask(Launch(("/bin/sleep", "9"), {}), 0.05)


def judged(event: str, program: str, project: Path, *more: str, **environ: str) -> bool:
    """Return whether what a library starts passes; the arguments are those of Python's audit events."""
    Host.of({}).work_in(project)
    words = (os.P_WAIT, program) if event == "os.spawn" else (program,)
    try:
        programs.judge_start(event, (*words, [program, *more], None, environ or None))
    except PermissionError:
        return False
    return True


def test_a_program_of_the_project_is_not_what_a_library_starts(project: Path, tmp_path: Path):
    place(project / "bin")
    place(tmp_path / "bin")
    mine, own = f"{tmp_path}/bin", f"{project}/bin"
    for event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.spawn"):
        assert judged(event, f"{mine}/tool", project)
        assert not judged(event, f"{own}/tool", project)
    assert judged("subprocess.Popen", "tool", project, PATH=f"{mine}:{own}")
    assert not judged("subprocess.Popen", "tool", project, PATH=f"{own}:{mine}")
    assert not judged("subprocess.Popen", "tool", project, PATH=f"bin:{mine}")
    assert judged("subprocess.Popen", "nowhere", project, PATH=mine)
    assert not judged("os.posix_spawn", "tool", project, PATH=mine)  # a file of the working folder
    assert not judged("os.system", f"{mine}/tool", project)


@pytest.mark.integration
def test_a_shell_that_a_library_starts_names_no_program_of_the_project(
    project: Path, tmp_path: Path
):
    place(project / "bin")
    place(tmp_path / "bin")
    (project / "text").touch()
    mine, own = f"{tmp_path}/bin", f"{project}/bin"
    for text in ("tool", "true;tool", 'X=1 "tool" a', f"true $({own}/tool)"):
        for event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.spawn"):
            assert not judged(event, "/bin/sh", project, "-c", text, PATH=f"{own}:{mine}"), text
    for text in ("tool", "true", "nowhere", f"cat {project}/text"):
        assert judged("subprocess.Popen", "/bin/sh", project, "-c", text, PATH=f"{mine}:{own}")
    assert judged("subprocess.Popen", "/bin/echo", project, "tool", PATH=own)


def test_what_the_launcher_starts_is_not_judged_again(project: Path):
    place(project / "bin")
    Host.of({}).work_in(project)
    with programs._launching():  # pyright: ignore[reportPrivateUsage]
        cli.judge_start("os.posix_spawn", (f"{project}/bin/tool", [], None))


def test_it_is_judged_by_the_folders_of_all_hosts_of_the_process(project: Path, tmp_path: Path):
    place(tmp_path / "added/bin")
    Host.of({}).work_in(tmp_path / "added")
    with pytest.raises(PermissionError):
        cli.judge_start("os.posix_spawn", (f"{tmp_path}/added/bin/tool", [], None))
    cli.judge_start("os.posix_spawn", (f"{tmp_path}/bin/tool", [], None))


@pytest.mark.integration
@pytest.mark.parametrize("words", [["--print", "hello"], ["models"]])
def test_what_libraries_start_is_judged_from_before_the_session_on(project, words):
    place(project / "bin")
    code = """
import subprocess, sys
import ybs.frontends.subcommands.commands, ybs.frontends.headless.run
program = sys.argv.pop(1)
def start(*_, **__):
    try:
        subprocess.run([program])
    except PermissionError as error:
        print(error)
ybs.frontends.subcommands.commands.run_subcommand = ybs.frontends.headless.run.run_once = start
from ybs.cli import main
main()
"""
    argv = [sys.executable, "-c", code, str(project / "bin/tool"), *words]
    done = subprocess.run(argv, cwd=project, capture_output=True, text=True, check=False)
    assert "it may be a program of the project" in done.stdout, done.stderr


def test_the_program_ybs_is_named_by_its_whole_path(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["bin/ybs"])
    monkeypatch.chdir(tmp_path)
    assert programs.own_program() == f"{tmp_path}/bin/ybs"
    monkeypatch.setattr("sys.argv", ["/x/ybs/__main__.py"])
    monkeypatch.setattr("sys.executable", f"{tmp_path}/python")
    assert programs.own_program() == "ybs"
    (tmp_path / "ybs").touch()
    assert programs.own_program() == f"{tmp_path}/ybs"
    monkeypatch.setattr("sys.executable", "")
    assert programs.own_program() == "ybs"
