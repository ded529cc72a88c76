"""Which paths of a call a rule that denies or asks means, however the rule and the call spell them."""

from functools import cache
from pathlib import Path

import pytest

from hosts import this_host
from rows import every_row
from ybs.config.host import Host
from ybs.security.paths.named_paths import NamedPaths
from ybs.security.paths.roots import Roots

pytestmark = pytest.mark.integration


@pytest.fixture
def work(home: Path) -> Path:
    """Make a project below the home folder, in which `current` leads to `releases/5`."""
    folder = home / "work"
    (folder / "releases/5").mkdir(parents=True)
    (folder / "current").symlink_to("releases/5")
    (folder / "lock").symlink_to("package-lock.json")
    return folder


@cache
def roots_of(folder: Path) -> Roots:
    return Roots(this_host(), folder, ("/",))


def named(folder: Path, *names: str) -> NamedPaths:
    roots = roots_of(folder)
    return NamedPaths(roots, [(name, roots.resolve(name)) for name in names])


@every_row(
    ("pattern", "meant", "free"),
    [
        ("infra", ["infra", "infra/a", "x/../infra/b/c", "./infra"], ["infra2", "src/infra/a"]),
        ("infra/", ["infra", "infra/a/b"], ["infra.md"]),
        ("./infra//", ["infra/a"], ["a"]),
        ("infra/**", ["infra", "infra/a/b"], ["a"]),
        ("infra/*", ["infra/a", "infra"], ["infra/a/b"]),
        ("infra/*/**", ["infra/a", "infra/a/b"], ["a"]),
        ("infra/*/x", ["infra/a/x", "infra/a/x/b"], ["infra/a", "infra/a/b"]),
        ("**/infra", ["infra/a", "src/infra/a/b"], ["src/infrared"]),
        ("{infra,prod}", ["infra/a", "prod/b/c"], ["src/prod"]),
        ("infra*", ["infra", "infra-prod/a/b"], ["src/infra"]),
        ("*.tf", ["a.tf"], ["src/a.tf", "a.tfx"]),
        (".", ["a", "src/b"], ["../a"]),
        ("**", ["a", "../a"], []),
        ("**/work/**", ["work/a", "a/work"], ["a"]),
        ("**/.env", [".env", "src/.env", "../.env"], ["../env"]),
        ("current/**", ["current/a", "releases/5/a", "x/../current/a/b"], ["releases/4/a"]),
        ("releases/**", ["current/a", "current"], ["a"]),
        ("releases/5", ["current/a/b"], ["releases/55"]),
        ("package-lock.json", ["lock", "src/../lock"], ["src/package-lock.json"]),
        ("lock", ["package-lock.json"], ["locks"]),
        ("~/work/infra/**", ["infra/a", "x/../infra/a"], ["a", "../infra/a"]),
        ("~/work/infra", ["infra/a/b"], ["infras/a"]),
        ("~/notes/*.md", ["../notes/a.md"], ["../notes/a/b.md", "notes/a.md"]),
        ("~", ["../a", "infra/b"], []),
        ("INFRA/**", ["infra/a", "Infra/b"], ["a"]),
        ("re\u0301sume\u0301/**", ["r\u00e9sum\u00e9/a"], ["resume/a"]),
        ("my notes/**", ["my\u00a0notes/a"], ["mynotes/a"]),
        ("app/[id]/**", ["app/[id]/a", "app/i/a"], ["app/x/a"]),
        ("a\\[1\\].py", ["a[1].py"], ["a1.py"]),
        ("/", ["a", "../b"], []),
        ("in\0fra", ["infra/a"], ["a"]),
    ],
)
def test_a_pattern_means_a_path_however_one_of_them_spells_it(work: Path, pattern, meant, free):
    for name in meant:
        assert named(work, name).are_meant_by(pattern), name
    for name in free:
        assert not named(work, name).are_meant_by(pattern), name


def test_a_whole_path_means_the_project_also_through_a_link_to_it(work: Path, home: Path):
    (home / "link").symlink_to("work")
    for top in (str(work), f"/{work}", f"{home}/link", "~/link"):
        for pattern in (f"{top}/infra/**", f"{top}/infra"):
            assert named(work, "infra/a").are_meant_by(pattern), pattern
            assert named(work, f"{home}/link/infra/a").are_meant_by(pattern), pattern
            assert not named(work, "a").are_meant_by(pattern), pattern


def test_a_home_folder_that_is_a_link_is_meant_by_its_sign(home: Path, work: Path, tmp_path: Path):
    link = tmp_path / "home-link"
    link.symlink_to(home)
    roots = Roots(Host.of({"HOME": str(link)}), work)
    assert NamedPaths(roots, [("infra/a", work / "infra/a")]).are_meant_by("~/work/infra")


def test_stars_at_the_beginning_count_from_the_folder_that_a_path_lies_in(work: Path, home: Path):
    roots = Roots(this_host(), work)
    roots.add(home / "build/other")
    for name, is_meant in (("a", False), ("build/a", True)):
        path = home / "build/other" / name
        assert NamedPaths(roots, [(str(path), path)]).are_meant_by("**/build/**") is is_meant


def test_a_link_that_leads_out_or_on_is_followed_to_its_end(work: Path, home: Path, tmp_path: Path):
    (work / "on").symlink_to("current")
    (home / "notes").symlink_to(tmp_path)
    assert named(work, "releases/5/a").are_meant_by("on/**")
    assert named(work, "releases/5/gone/a").are_meant_by("current/gone/a")
    assert named(work, str(tmp_path.resolve() / "x/a")).are_meant_by("~/notes/x")
    assert named(work, f"{tmp_path}/a").are_meant_by(f"{tmp_path}/*")
    assert not named(work, f"{tmp_path}/b/a").are_meant_by(f"{tmp_path}/*")


def test_any_of_several_paths_is_enough(work: Path):
    assert named(work, "a", "infra/b").are_meant_by("infra")
    neither = named(work, "a", "b")
    assert [neither.are_meant_by("infra") for _ in "ab"] == [False, False]
    assert not named(work).are_meant_by("**")


def test_the_spellings_are_those_of_the_path_as_named_and_as_used(work: Path):
    whole = ("current/a", f"{work}/current/a", "~/work/current/a")
    used = ("releases/5/a", f"{work}/releases/5/a", "~/work/releases/5/a")
    assert set(named(work, "x/../current/a").spellings) == {*whole, *used}
    assert named(work, "/outside").spellings == ("/outside",)


def test_a_copy_stands_for_the_project(work: Path, tmp_path: Path):
    copy = tmp_path / "copy"
    (copy / "infra").mkdir(parents=True)
    roots = Roots(this_host(), copy, original=Roots(this_host(), work))
    paths = NamedPaths(roots, [("infra/a", copy / "infra/a")])
    assert paths.spellings == ("infra/a", f"{work}/infra/a", "~/work/infra/a")
    for pattern in ("infra", f"{work}/infra/**", "~/work/infra/a"):
        assert paths.are_meant_by(pattern)
    outside = NamedPaths(roots, [("/outside/a", Path("/outside/a"))])
    assert outside.are_meant_by("/outside")


def test_a_name_that_no_model_could_give_is_taken_as_it_is(work: Path):
    assert named(work).are_meant_by("a") is False
    roots = Roots(this_host(), work)
    assert NamedPaths(roots, [("~a/b", work / "~a/b")]).are_meant_by("~a")
