"""ybs's own Python begins as a child with the folders of modules that its parent says."""

import os
import site
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

import ybs
from rows import every_row
from ybs.config import editables
from ybs.security.launcher import python
from ybs.security.paths import own_code

NAME = "ybs.security.own_python"
CODE = (
    "import sys; out = open(sys.argv[1], 'w'); out.write(f'{sys.argv[2:]} {sys.path}'); out.close()"
)


@every_row("how", ["-m", "-c", ""])
def test_it_runs_a_module_a_text_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
):
    (tmp_path / "made_module.py").write_text(CODE)
    what = {"-m": "made_module", "-c": CODE, "": str(tmp_path / "made_module.py")}[how]
    folders = [str(tmp_path), *(each for each in sys.path if each.startswith("/"))]
    monkeypatch.setattr(sys, "path", folders)
    # Where another program embeds ybs, its folders are not looked in, and never those that are worked in.
    assert str(tmp_path) not in said(python(how, what)).path
    code = [*own_code.module_folders(), str(tmp_path)]
    monkeypatch.setattr(own_code, "module_folders", lambda: code)
    if how == "-m":  # what `site` finds for a user, and an editable install
        monkeypatch.setattr(site, "ENABLE_USER_SITE", True)
        monkeypatch.setattr(site, "USER_SITE", "/home/u/packages")
        monkeypatch.setattr(own_code, "editable_folders", lambda: ["/of/x"])
    words = python(how, what, str(tmp_path / "out"), "a b")
    assert words[:3] == [sys.executable, "-I", "-S"]
    file = next(each for each in words if each.endswith("own_python.py"))
    given = words[words.index(file) :]
    path = given[1].split("\n")
    assert str(tmp_path) in path
    monkeypatch.setattr(sys, "argv", given)
    for name in ("prefix", "exec_prefix"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(sys, "path", [*folders[1:], "/of/an/editable/install"])
    monkeypatch.setattr(site, "PREFIXES", [*site.PREFIXES])
    for name in ("USER_SITE", "ENABLE_USER_SITE"):
        monkeypatch.setattr(site, name, getattr(site, name))
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    left_out = [*editables.left_out]
    monkeypatch.setattr(editables, "left_out", left_out)
    assert import_module(NAME).__file__ == file  # which is run as a program
    assert sys.meta_path[0].find_spec("ybs").origin == ybs.__file__
    assert sys.meta_path[0].find_spec("json") is None
    assert ("/of/x" in left_out) is (how == "-m")
    assert (tmp_path / "out").read_text() == f"['a b'] {path}"


def test_what_site_found_and_folders_of_editable_installs_are_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Without `site` Python itself would not know them."""
    monkeypatch.setattr(site, "ENABLE_USER_SITE", True)
    monkeypatch.setattr(site, "USER_SITE", "/home/u/packages")
    monkeypatch.setattr(own_code, "editable_folders", lambda: [str(tmp_path / "src")])
    code = "import sys, site; from ybs.config.editables import left_out; print(sys.prefix, site.USER_SITE, site.PREFIXES, left_out)"
    words = python("-c", code)
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd="/")
    wanted = f"{sys.prefix} /home/u/packages {site.PREFIXES} ['{tmp_path}/src']\n"
    assert done.stdout == wanted


@pytest.mark.integration
@every_row("name", ["sitecustomize.py", "sitecustomize/__init__.py", "nt/__init__.py", "json.py"])
def test_nothing_that_python_looks_for_by_itself_is_taken_from_a_project(tmp_path: Path, name: str):
    place = tmp_path / name
    place.parent.mkdir(exist_ok=True)
    place.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    environ = {"PYTHONPATH": str(tmp_path), "PYTHONSTARTUP": str(place), "PATH": os.defpath}
    words = python("-c", "import json, pathlib, ybs; print(ybs.__file__)")
    done = subprocess.run(
        words, capture_output=True, text=True, check=True, cwd=tmp_path, env=environ
    )
    assert done.stdout.strip() == ybs.__file__
    assert not (tmp_path / "ran").exists()


def said(words: list[str]) -> SimpleNamespace:
    """Return what a command of `python` hands on: the folders of modules."""
    file = next(each for each in words if each.endswith("own_python.py"))
    return SimpleNamespace(path=words[words.index(file) + 1].split("\n"))
