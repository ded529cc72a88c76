"""Files of ybs's own installation that a project's environment has too, by hard links, are made files of their own."""

import os
import sys
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace

import pytest

from ybs.security.paths import own_files
from ybs.security.paths.own_files import keep_apart

METADATA = "Metadata-Version: 2.3\nName: {}\nVersion: 1\n"


class Installation:
    """Packages as an installer links them out of its cache: `ybs` requires `helper`, and `other` nothing of theirs, nor they it."""

    def __init__(self, site: Path, cache: Path, link: str) -> None:
        self.site, self.cache = site, cache
        for name, needs in (("ybs", "helper[x]>=1; extra == 'y'"), ("helper", "absent"), ("other", "")):  # fmt: skip
            info = f"{name}-1.dist-info"
            required = f"Requires-Dist: {needs}\n" if needs else ""
            files = {f"{name}/__init__.py": "x = 1\n", f"{info}/METADATA": METADATA.format(name) + required}  # fmt: skip
            for path, text in files.items():
                for folder in (site, cache):
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (cache / path).write_text(text)
                if link == "hard":
                    (site / path).hardlink_to(cache / path)
                else:
                    (site / path).symlink_to(cache / path)
            (site / info / "RECORD").write_text("".join(f"{path},,\n" for path in files))

    def shared(self) -> set[str]:
        """Return the packages whose file is the cache's."""
        places = {path.name: path / "__init__.py" for path in self.cache.iterdir()}
        there = {name: place for name, place in places.items() if place.exists()}
        return {
            name for name, place in there.items() if place.samefile(self.site / name / place.name)
        }


@pytest.fixture(params=["hard", "symbolic"])
def installation(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Installation:
    made = Installation(tmp_path / "site", tmp_path / "cache", request.param)
    found = SimpleNamespace(__file__=str(made.site / "msgspec/__init__.py"))
    monkeypatch.setattr(own_files, "msgspec", found)
    monkeypatch.setattr(sys, "path", [str(made.site), *sys.path])
    return made


def test_they_get_other_names_no_more_and_stay_what_they_are(installation, tmp_path: Path):
    file = installation.site / "helper/__init__.py"
    os.utime(file, ns=(1, 1_000_000_001))
    keep_apart(tmp_path / "stamp", lambda _: True)
    assert installation.shared() == set()
    assert (file.read_text(), file.stat().st_mtime_ns) == ("x = 1\n", 1_000_000_001)
    (installation.cache / "helper/__init__.py").write_text("evil = 1\n")
    assert file.read_text() == "x = 1\n"
    assert sorted(path.name for path in file.parent.iterdir()) == ["__init__.py"]


def test_it_is_done_once_for_each_installation(installation, tmp_path: Path, monkeypatch):
    stamp = tmp_path / "stamp"
    stays = (installation.site / "ybs/__init__.py").is_symlink()  # to where no tool may write
    keep_apart(stamp, lambda _: False, writes=False)
    assert not stamp.exists()
    keep_apart(stamp, lambda _: False)
    assert stamp.exists() is stays
    looked = list[int]()
    monkeypatch.setattr(own_files, "_files", lambda: looked.append(1) or ())
    keep_apart(stamp, lambda _: False)
    assert not looked
    metadata = installation.site / "new-1.dist-info/METADATA"
    metadata.parent.mkdir()
    metadata.touch()
    (tmp_path / "cached").hardlink_to(metadata)
    keep_apart(stamp, lambda _: False)
    assert looked


def test_a_copy_by_links_that_somebody_makes_later_has_no_file_in_common(
    installation, tmp_path: Path
):
    keep_apart(tmp_path / "stamp", lambda _: True)
    copytree(installation.site, tmp_path / "copy", copy_function=os.link)
    keep_apart(tmp_path / "stamp", lambda _: True)
    for name in ("ybs/__init__.py", "other-1.dist-info/METADATA"):
        assert not (tmp_path / "copy" / name).samefile(installation.site / name)


@pytest.mark.parametrize("name", ["ybs", "msgspec"])
def test_a_copy_by_links_of_a_package_alone_has_no_file_in_common(installation, tmp_path, name):
    package = installation.site / name
    package.mkdir(exist_ok=True)
    (package / "__init__.py").touch()
    keep_apart(tmp_path / "stamp", lambda _: True)
    (package / "finder.py").write_text("x = 1\n")
    copytree(package, tmp_path / f"project/vendor/{name}", copy_function=os.link)
    keep_apart(tmp_path / "stamp", lambda _: True)
    for file in ("__init__.py", "finder.py"):
        assert not (package / file).samefile(tmp_path / f"project/vendor/{name}" / file)


def test_links_to_where_no_tool_may_write_stay(installation, tmp_path: Path):
    keep_apart(tmp_path / "stamp", lambda _: False)
    is_link = (installation.site / "ybs/__init__.py").is_symlink()
    assert installation.shared() == ({"ybs", "helper", "other"} if is_link else set())


def test_what_cannot_be_changed_stays_and_stops_nothing(installation, tmp_path: Path, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("shutil.copy2", fail)
    keep_apart(tmp_path / "stamp", lambda _: True)
    assert installation.shared() == {"ybs", "helper", "other"}
    monkeypatch.undo()
    monkeypatch.setattr(own_files, "msgspec", SimpleNamespace(__file__=str(tmp_path / "no/m/x")))
    keep_apart(tmp_path / "stamp", lambda _: True)


def test_an_installation_of_copies_is_left_alone(tmp_path: Path, monkeypatch):
    (tmp_path / "site/a-1.dist-info").mkdir(parents=True)
    (tmp_path / "site/b-1.dist-info").mkdir()
    (tmp_path / "site/b-1.dist-info/METADATA").touch()
    (tmp_path / "site/c.py").touch()
    found = SimpleNamespace(__file__=str(tmp_path / "site/msgspec/__init__.py"))
    monkeypatch.setattr(own_files, "msgspec", found)
    keep_apart(tmp_path / "stamp", lambda _: True)
    assert not (tmp_path / "stamp").exists()


def test_what_has_no_metadata_and_what_is_required_twice_is_passed_over(
    installation, tmp_path: Path
):
    (installation.site / "a-1.dist-info").mkdir()
    (installation.site / "a.py").touch()
    (installation.site / "helper-1.dist-info/METADATA").unlink()
    (installation.site / "helper-1.dist-info/METADATA").write_text(
        f"{METADATA.format('helper')}Requires-Dist: ybs\nRequires-Dist: helper\n"
    )
    keep_apart(tmp_path / "stamp", lambda _: True)
    assert installation.shared() == set()


def test_what_python_runs_at_each_start_is_made_a_file_of_its_own_too(installation, tmp_path: Path):
    declared = installation.site / "other-1.dist-info/entry_points.txt"
    compiled = installation.site / "other/__pycache__/other.pyc"
    compiled.parent.mkdir()
    for path in (declared, compiled):
        (installation.cache / path.name).write_text("")
        path.hardlink_to(installation.cache / path.name)
    for name in ("sitecustomize.py", "hook.pth", "named.py"):
        (installation.cache / name).write_text("import os; __import__('other').x")
        (installation.site / name).hardlink_to(installation.cache / name)
    keep_apart(tmp_path / "stamp", lambda _: True)
    counts = {each.name: each.stat().st_nlink for each in installation.site.glob("*.p*")}
    assert counts == {"sitecustomize.py": 1, "hook.pth": 1, "named.py": 1}
    assert (declared.stat().st_nlink, compiled.stat().st_nlink) == (1, 1)


def test_of_what_is_not_required_only_modules_that_may_be_loaded_become_files_of_their_own(
    installation, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(own_files, "_LARGEST_BYTES", 1_000)
    for name, size in (("small.so", 10), ("large.so", 1_001), ("data.bin", 10)):
        (installation.cache / "other" / name).write_bytes(bytes(size))
        (installation.site / "other" / name).hardlink_to(installation.cache / "other" / name)
    keep_apart(tmp_path / "stamp", lambda _: True)
    counts = {each.name: each.stat().st_nlink for each in (installation.site / "other").iterdir()}
    assert counts == {"__init__.py": 1, "small.so": 1, "large.so": 2, "data.bin": 2}
