"""What other packages offer to ybs, as it is found in the folders of an interpreter."""

from pathlib import Path

import pytest

from rows import every_row
from ybs.config.installed import EntryPoint, installed, site_folders
from ybs.core.errors import ConfigError


def declare(site: Path, package: str, text: str) -> None:
    folder = site / f"{package}-1.0.dist-info"
    folder.mkdir()
    (folder / "entry_points.txt").write_text(text)


def test_what_packages_declare_is_found_in_the_order_of_their_names(tmp_path: Path):
    declare(
        tmp_path, "ybs_b", "[ybs.tools]\n# a comment\nx = b:X\n\n[console_scripts]\nrun = b:main\n"
    )
    declare(
        tmp_path, "ybs_a", "[console_scripts]\nrun=a:main\n[ybs.guards]\n y=a.c:D.e [extra]\n; no\n"
    )
    declare(tmp_path, "ybs", "[ybs.providers]\nollama = ybs.x:Y\n")
    declare(tmp_path, "other", "[console_scripts]\nybs = other:main\n")
    (tmp_path / "none-1.0.dist-info").mkdir()
    (tmp_path / "folder-1.0.dist-info" / "entry_points.txt").mkdir(parents=True)
    found = installed([str(tmp_path / "missing"), str(tmp_path), str(tmp_path)])
    assert found == [
        EntryPoint(package="ybs_a", group="ybs.guards", name="y", value="a.c:D.e [extra]"),
        EntryPoint(package="ybs_b", group="ybs.tools", name="x", value="b:X"),
    ]


def test_the_project_and_the_path_of_modules_are_not_looked_at(project, monkeypatch):
    monkeypatch.syspath_prepend(str(project))
    declare(project, "evil", "[ybs.tools]\nx = evil:X\n")
    assert str(project) not in site_folders()
    assert [each for each in installed() if each.package == "evil"] == []


@every_row(
    "value, expected",
    [("pathlib:Path.home", Path.home), ("pathlib:Path [more]", Path), ("pathlib", None)],
)
def test_an_entry_point_names_a_module_and_what_is_in_it(value: str, expected: object):
    entry = EntryPoint(package="p", group="ybs.tools", name="x", value=value)
    loaded = entry.load()
    assert loaded == expected or (expected is None and loaded.__name__ == "pathlib")


@every_row("value", ["missing_module:X", "pathlib:missing", ":x", "pathlib:Path.missing"])
def test_what_cannot_be_loaded_names_the_package_and_the_part(value: str):
    entry = EntryPoint(package="ybs_p", group="ybs.tools", name="x", value=value)
    with pytest.raises(ConfigError, match=r"The plugin ybs_p does not work: ybs\.tools x"):
        entry.load()
