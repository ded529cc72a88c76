from pathlib import Path

import pytest

from rows import every_row
from ybs.security.paths.steps import is_away, steps


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
