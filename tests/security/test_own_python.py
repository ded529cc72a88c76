"""ybs's own Python begins as a child with the folders of modules that its parent says, and reads nothing by itself."""

import os
import site
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from venv import EnvBuilder

import msgspec
import pytest

import ybs
from rows import every_row
from ybs.config import editables
from ybs.config.host import Host
from ybs.security.launcher import environ_away, python
from ybs.security.paths import own_code

NAME = "ybs.security.own_python"
CODE = (
    "import sys; out = open(sys.argv[1], 'w'); out.write(f'{sys.argv[2:]} {sys.path}'); out.close()"
)
PLANTED = "import os\nos.close(os.open({sprung!r}, os.O_CREAT))\n"


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this process be the program `ybs`."""
    monkeypatch.setattr(own_code, "is_program", lambda: True)


def begun(command: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command's file in this process, as Python would in another one, and return the module."""
    file = next(each for each in command if each.endswith("/own_python.py"))
    monkeypatch.setattr(sys, "argv", command[command.index(file) :])
    for name in ("path", "meta_path"):
        monkeypatch.setattr(sys, name, list(getattr(sys, name)))
    for name in ("prefix", "exec_prefix"):
        monkeypatch.setattr(sys, name, "/of/python/alone")
    for name, value in (("PREFIXES", []), ("USER_SITE", None), ("ENABLE_USER_SITE", None)):
        monkeypatch.setattr(site, name, value)
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    module = import_module(NAME)
    assert module.__file__ == file
    return module


@every_row("how", ["-m", "-c", ""])
@pytest.mark.usefixtures("own")
def test_it_runs_a_module_a_text_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
):
    (tmp_path / "made_module.py").write_text(CODE)
    what = {"-m": "made_module", "-c": CODE, "": str(tmp_path / "made_module.py")}[how]
    folders = [str(tmp_path), *(each for each in sys.path if each.startswith("/"))]
    monkeypatch.setattr(sys, "path", [*folders, "relative", f"{tmp_path}/a\nb"])
    command = python(how, what, str(tmp_path / "out"), "a b", options=("-W", "ignore"))
    assert command[:3] == [sys.executable, "-I", "-S"]
    assert command[command.index("-W") + 1] == "ignore"
    monkeypatch.setattr(sys, "path", [*folders[1:], "/of/an/editable/install"])
    begun(command, monkeypatch)
    assert (tmp_path / "out").read_text() == f"['a b'] {folders}"


def test_it_knows_what_pythons_own_start_has_found_out_in_its_parent(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(sys, "prefix", "/venv")
    monkeypatch.setattr(sys, "exec_prefix", "/venv/exec")
    for user in ("/home/u/packages", None):
        monkeypatch.setattr(site, "PREFIXES", ["/venv", "/usr"])
        monkeypatch.setattr(site, "USER_SITE", user)
        monkeypatch.setattr(site, "ENABLE_USER_SITE", bool(user))
        with monkeypatch.context() as patch:
            begun(python("-c", ""), patch)
            assert (sys.prefix, sys.exec_prefix) == ("/venv", "/venv/exec")
            assert site.PREFIXES == ["/venv", "/usr"]
            assert (site.USER_SITE, bool(site.ENABLE_USER_SITE)) == (user, bool(user))


def test_it_writes_and_reads_as_its_parent_does(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    assert not {"-B", "pycache_prefix=/home/u/x"} & set(python("-c", ""))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "pycache_prefix", "/home/u/x")
    assert {"-B", "pycache_prefix=/home/u/x"} <= set(python("-c", ""))
    Host.of({}).work_in(project)  # where compiled files may be anybody's
    for folder in (f"{project}/x", "relative"):
        monkeypatch.setattr(sys, "pycache_prefix", folder)
        assert f"pycache_prefix={folder}" not in python("-c", "")
    monkeypatch.setattr(sys, "pycache_prefix", None)
    for mode, given in ((0, []), (1, ["-X", "utf8"])):
        monkeypatch.setattr(sys, "flags", type("Flags", (), {"utf8_mode": mode})())
        assert [each for each in python("-c", "") if each in ("-X", "utf8")] == given


def test_it_finds_ybs_wherever_that_lies_and_nothing_beside_it(monkeypatch: pytest.MonkeyPatch):
    module = begun(python("-c", ""), monkeypatch)
    finder = sys.meta_path[0]
    assert finder.__module__ == module.__name__
    spec: Any = finder.find_spec("ybs", None)  # pyright: ignore[reportAttributeAccessIssue]
    assert spec.origin == ybs.__file__
    for name in ("ybs.core", "json", "nt"):
        assert finder.find_spec(name, None) is None  # pyright: ignore[reportAttributeAccessIssue]


def test_folders_of_editable_installs_are_those_of_the_parent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(own_code, "left_out", ["/p/src", "/q/src"])
    command = python("-c", "")
    monkeypatch.setattr(editables, "left_out", [])
    begun(command, monkeypatch)
    assert editables.left_out == ["/p/src", "/q/src"]


def test_of_a_program_that_embeds_ybs_only_installed_packages_are_looked_in(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    Host.of({}).work_in(project)
    (project / "way").symlink_to(tmp_path)
    own = [str(Path(msgspec.__file__).parents[1]), str(Path(os.__file__).parent)]
    others = [str(tmp_path), f"{tmp_path}/dist-packages"]
    theirs = [str(project), f"{project}/x-packages", f"{project}/way/x-packages"]
    monkeypatch.setattr(sys, "path", [*others, *theirs, *own])

    def looked_in() -> list[str]:
        command = python("-c", "")
        return command[command.index("-c") - 3].split("\n")

    assert looked_in() == [others[1], *own]
    monkeypatch.setattr(own_code, "is_program", lambda: True)
    assert looked_in() == [*others, *own]


@pytest.fixture
def venv(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an environment in which the project is installed as editable, for the children of this process; return its packages."""
    EnvBuilder(symlinks=True, with_pip=False).create(tmp_path / "venv")
    python_folder = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = tmp_path / "venv/lib" / python_folder / "site-packages"
    (project / "src").mkdir()
    (packages / "project.pth").write_text(f"{project}/src\n")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv/bin/python"))
    Host.of({}).work_in(project)
    return packages


def said_by(*words: str, **environ: str) -> str:
    ran = subprocess.run(
        python(*words), env=environ_away(environ), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.integration
@pytest.mark.usefixtures("own")
def test_no_child_loads_what_python_itself_would_from_a_project(
    venv: Path, project: Path, tmp_path: Path
):
    planted = PLANTED.format(sprung=str(tmp_path / "sprung"))
    names = ("sitecustomize/__init__.py", "apport_python_hook.py", "usercustomize.py")
    for name in (*names, "nt/__init__.py", "typing.py"):
        path = project / "src" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(planted)
    added = {"PYTHONPATH": f"{project}/src", "PYTHONHOME": f"{project}/src"}
    assert f"ybs {ybs.__version__}" in said_by("-m", "ybs", "--version", **added)
    assert "pip " in said_by("-m", "pip", "--version", **added)
    assert said_by("-c", "import typing, pathlib; print('fine')", **added) == "fine\n"
    assert not (tmp_path / "sprung").exists()
    subprocess.run([sys.executable, "-c", ""], check=True)
    assert (tmp_path / "sprung").exists()  # by one of the first two


@pytest.mark.integration
@pytest.mark.usefixtures("own")
def test_a_plugin_that_is_installed_as_editable_is_there_in_a_child(
    venv: Path, project: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "src/made_plugin.py").write_text("X = 'the plugin'\n")
    (venv / "made_plugin-1.dist-info").mkdir()
    entry = "[ybs.tools]\nx = made_plugin:X\n"
    (venv / "made_plugin-1.dist-info/entry_points.txt").write_text(entry)
    monkeypatch.setattr(site, "PREFIXES", [str(venv.parents[2])])
    monkeypatch.setattr(own_code, "left_out", [f"{project}/src"])
    code = (
        "from ybs.config.installed import installed\nprint(*(each.load() for each in installed()))"
    )
    assert said_by("-c", code) == "the plugin\n"
