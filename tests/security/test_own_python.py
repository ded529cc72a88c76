"""ybs's own Python begins as a child with the folders of modules that its parent says."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

from rows import every_row
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
    monkeypatch.setattr(sys, "path", [*folders, "relative"])
    assert (
        str(tmp_path) not in python(how, what)[3]
    )  # where another program embeds ybs, its folders are not looked in
    monkeypatch.setattr(own_code, "is_program", lambda: True)
    executable, option, file, *words = python(how, what, str(tmp_path / "out"), "a b")
    assert (executable, option) == (sys.executable, "-P")
    monkeypatch.setattr(sys, "argv", [file, *words])
    monkeypatch.setattr(sys, "path", [*folders[1:], "/of/an/editable/install"])
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    assert import_module(NAME).__file__ == file  # which is run as a program
    assert (tmp_path / "out").read_text() == f"['a b'] {folders}"
