from pathlib import Path

import pytest

from rows import every_row
from ybs.config.host import Host
from ybs.core.errors import Refused
from ybs.security.paths.steps import check_ways, is_away, is_led_out, led_to, missed, steps


def test_each_link_on_the_way_counts_also_one_that_goes_up_and_a_circle_ends(tmp_path: Path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/link").symlink_to("../a/b")
    way = [f"{tmp_path}/a/link", str(tmp_path), f"{tmp_path}/a/b"]
    assert list(steps(f"{tmp_path}/a/link")) == way
    assert list(steps(f"{tmp_path}/a/link", has_turns=False)) == [way[0], way[2]]
    (tmp_path / "circle").symlink_to("circle")
    assert set(steps(f"{tmp_path}/circle")) == {f"{tmp_path}/circle"}
    assert list(steps("/../..")) == ["/"]


@every_row(
    ("path", "expected"),
    [
        ("{tmp}/project", False),
        ("{tmp}/project/x", False),
        ("/{tmp}/project/x", False),  # two slashes are one
        ("{tmp}/project2", True),
        ("{tmp}/project/../own", True),  # the folder itself stays where it is
        ("{tmp}/project/sub/../../own", False),
        ("{tmp}/project/out", False),
        ("{tmp}/in", False),
        ("{tmp}/own/gone", True),
        ("own", False),
        ("", False),
        ("{tmp}/a\0b", False),
        ("/", True),
    ],
)
def test_a_path_is_away_if_nobody_in_the_folder_decides_where_it_leads(
    tmp_path: Path, path: str, expected: bool
):
    (tmp_path / "project/sub").mkdir(parents=True, exist_ok=True)
    for link, target in (("project/out", tmp_path / "own"), ("in", tmp_path / "project/sub")):
        (tmp_path / link).unlink(missing_ok=True)
        (tmp_path / link).symlink_to(target)
    assert is_away(path.format(tmp=tmp_path), {f"{tmp_path}/project"}) is expected


@pytest.mark.parametrize("folder", ["/", "/tmp"])
def test_what_lies_in_a_folder_that_is_left_out_of_them_is_away(folder: str):
    assert is_away("/tmp/x/y", {folder}, but={"/tmp/x"})
    assert not is_away("/tmp/y", {folder}, but={"/tmp/x"})


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Return a host whose home holds a project that a session works in, with links in it and beside it."""
    home = (tmp_path / "home").resolve()
    for folder in ("project/lib", "Documents", "notes", ".pyenv/bin"):
        (home / folder).mkdir(parents=True)
    links = {
        "mine": "Documents",
        "project/docs": "../Documents",
        "project/inner": "lib",
        "project/python": "../.pyenv/bin",
        "project/system": "/usr",
        "notes/out": "../Documents",
    }
    for link, target in links.items():
        (home / link).symlink_to(target)
    monkeypatch.setattr("ybs.security.paths.steps.worked_in", {str(home / "project")})
    return Host.of({"HOME": str(home)})


@every_row(
    ("path", "end", "leaves"),
    [
        ("mine", "Documents", False),  # the person's own link
        ("project/lib", "project/lib", False),
        ("project/docs", "", True),
        ("project/docs/diary", "", True),
        ("project/docs/../lib", "project/lib", False),  # by its text, as it is opened
        ("project/inner", "", False),
        ("project/system", "", True),
        ("notes/out", "Documents", False),
        ("gone", "gone", False),
    ],
)
def test_a_link_that_a_project_may_have_put_there_is_not_followed(
    host: Host, path: str, end: str, leaves: bool
):
    home = host.home
    assert led_to(home / path) == (str(home / end) if end else "")
    assert is_led_out(host, home / path, home / "project") is leaves


def test_in_the_home_folder_links_are_the_persons_own_and_no_path_leads_nowhere(host: Host):
    assert not is_led_out(host, host.home / "mine", host.home)
    assert is_led_out(host, host.home / "notes/out", host.home / "notes")
    assert led_to(host.home / "notes/out", [str(host.home / "notes")]) == ""
    assert is_led_out(host, host.home / "a\0b", host.home / "project")


def test_a_link_in_a_repository_leads_out_of_a_folder_in_it_only_to_hidden_places_and_elsewhere(
    host: Host,
):
    """People keep packages that belong together in one repository, with links between them."""
    whole = host.home / "project"
    for folder in (".git/hooks", ".vscode", "pkg/node_modules", "libs/shared"):
        (whole / folder).mkdir(parents=True)
    links = {
        "shared": "libs/shared",
        "pkg/node_modules/shared": "../../libs/shared",
        "pkg/hooks": "../.git/hooks",
        "pkg/editor": "../.vscode",
        "pkg/docs": "../../Documents",
        "docs2": "../Documents",
    }
    for link, target in links.items():
        (whole / link).symlink_to(target)
    led_out = {"pkg/hooks", "pkg/editor", "pkg/docs", "docs2"}
    assert {each for each in links if is_led_out(host, whole / each, whole / "pkg")} == led_out
    assert is_led_out(host, host.home / "project/pkg/docs/x", whole / "pkg")


def test_what_a_program_has_anyway_is_not_missed(host: Host):
    home = host.home
    names = ("docs", "inner", "python", "system", "lib")
    paths = {home / "project" / name: led_to(home / "project" / name) for name in names}
    unled = [path for path, end in paths.items() if not end]
    assert missed(host, unled, [paths[home / "project/lib"]]) == [home / "project/docs"]
    assert missed(host, unled, [str(home)]) == missed(host, []) == []
    check_ways(host, [home / "project/inner"], [str(home / "project")])
    check_ways(host, [home / "project/docs", home / "Documents"])
    said = "~/project/docs leads to ~/Documents by a link that a project may have put there; name that place"
    with pytest.raises(Refused, match=said):
        check_ways(host, [home / "project/docs"])
