"""Where an undo may write, whatever a checkpoint that somebody edited names."""

import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hosts import this_host
from rows import every_row
from ybs.checkpoints.planning import RestorePlan, RestoreStep, is_ours, joined, overwriting, plan
from ybs.checkpoints.states import ABSENT, MOST_FILE_BYTES, WHY_LARGE, Change, State, digest_of
from ybs.security.paths.roots import Roots


def _file(text: str) -> State:
    return State(kind="file", mode=0o644, size=len(text), digest=digest_of(text.encode()))


def _folder(mode: int = 0o755) -> State:
    return State(kind="folder", mode=mode)


ONE, TWO, THREE, MINE = map(_file, ("1", "2", "3", "mine"))
BIG = State(kind="file", size=MOST_FILE_BYTES + 1, mark="too large")


@every_row(
    "path, expected",
    [
        ("a.txt", True),
        ("gone/below/a.txt", True),
        ("link/a.txt", True),  # the link may be gone when it is done, which looks again
        ("", False),
        ("../a.txt", False),
        ("src/../a.txt", False),
        ("link/../a.txt", False),
        (".git/hooks/pre-commit", False),
        ("link/.git/hooks/pre-commit", False),
        ("link/GIT~1/config", False),
        ("link", True),  # the link itself
        ("secret/a.txt", False),
        ("gone/../../gone/a.txt", False),
    ],
)
def test_an_undo_writes_in_the_project_and_in_no_repository(project, path, expected):
    (project / "src").mkdir(exist_ok=True)
    if not (project / "link").is_symlink():
        (project / "link").symlink_to(project.parent)
    roots = Roots(this_host(), project, blocked=("secret",))
    assert is_ours(roots, f"{project}/{path}".rstrip("/")) is expected


def test_no_folder_of_the_person_itself_is_written_nor_what_lies_beside_it(project: Path):
    (project / "inner").mkdir()
    roots = Roots(this_host(), project, ("./", "inner"))
    paths = ("inner", "inner/a", "../gone/a", "../project2/a")
    ours = [is_ours(roots, os.path.normpath(project / path)) for path in paths]
    assert ours == [False, True, False, False]


@every_row(
    "is_redo, turns, expected",
    [
        # Undone newest first: what the last one left stands there, what the first one found is to.
        (False, [(TWO, THREE), (ONE, TWO)], RestoreStep(expected=THREE, target=ONE)),
        (True, [(ONE, TWO), (TWO, THREE)], RestoreStep(expected=ONE, target=THREE)),
        (
            False,
            [(MINE, THREE), (ONE, TWO)],
            RestoreStep(expected=THREE, target=ONE, is_broken=True),
        ),
        (
            True,
            [(ONE, TWO), (MINE, THREE)],
            RestoreStep(expected=ONE, target=THREE, is_broken=True),
        ),
        (False, [(TWO, THREE), (ONE, BIG)], None),
    ],
)
def test_turns_are_joined_to_one_step_for_a_path(is_redo, turns, expected):
    changes = [{"a": Change(path="a", before=old, after=new)} for old, new in turns]
    expected = expected or RestoreStep(
        expected=THREE, target=ONE, is_broken=True, why_not=WHY_LARGE
    )
    assert joined(changes, is_redo=is_redo) == {"a": expected}


def test_a_step_is_broken_by_one_turn_and_ignored_by_all_of_them():
    plain = Change(path="a", before=ONE, after=TWO)
    later = replace(plain, before=TWO, after=THREE)
    broken, ignored = replace(later, is_broken=True), replace(plain, is_ignored=True)
    step = RestoreStep(expected=THREE, target=ONE)
    undone = [joined([{"a": one}, {"a": ignored}], is_redo=False)["a"] for one in (later, broken)]
    assert undone == [step, replace(step, is_broken=True)]
    assert joined([{"a": ignored}, {"a": broken}], is_redo=True)["a"] == RestoreStep(
        expected=ONE, target=THREE
    )
    hidden = replace(later, is_ignored=True)
    turns = ([ignored], [ignored, hidden], [ignored, later], [plain, hidden])
    are_ignored = [
        joined([{"a": change} for change in each], is_redo=True)["a"].is_ignored for each in turns
    ]
    assert are_ignored == [True, True, False, False]


@cache
def _roots(project: Path) -> Roots:
    """Return the roots of one test's project; to make them takes a hundred looks at the disk."""
    return Roots(this_host(), project, blocked=("secret",))


def _planned(
    project: Path, steps: dict[str, RestoreStep], found: dict[str, State], **options: Any
) -> RestorePlan:
    """Plan steps at relative paths; what is not said to be found is not there. Return a plan with relative paths."""
    top = f"{project}/"

    def look_at(path: str) -> State:
        return found.get(path.removeprefix(top), ABSENT)

    made = plan(
        _roots(project),
        {top + path: replace(step) for path, step in steps.items()},
        look_at,
        **{"force": False, "is_resumed": False, **options},
    )
    return RestorePlan(
        steps={path.removeprefix(top): step for path, step in made.steps.items()},
        conflicts=[path.removeprefix(top) for path in made.conflicts],
        unkept=[path.removeprefix(top) for path in made.unkept],
        left=[path.removeprefix(top) for path in made.left],
    )


def test_a_plan_has_what_can_be_done_and_names_the_rest(project: Path):
    step = RestoreStep(expected=TWO, target=ONE)
    steps = {
        "z": step,
        "done": step,
        "broken": replace(step, is_broken=True),
        "big": replace(step, target=BIG, why_not=WHY_LARGE),
        "changed": step,
        "log": replace(step, is_ignored=True),
        "secret/x": step,
    }
    found = dict.fromkeys(steps, TWO) | {"done": ONE, "changed": MINE, "log": MINE}
    expected = RestorePlan(
        steps={
            path: replace(steps[path], found=found[path])
            for path in ("z", "broken", "changed", "secret/x")
        },
        conflicts=["broken", "changed", "secret/x"],
        unkept=["big"],
        left=["log"],
    )
    assert _planned(project, steps, found) == expected
    forced = _planned(project, steps, found, force=True)
    log = replace(steps["log"], found=MINE)
    assert forced == replace(
        expected, steps=expected.steps | {"log": log}, conflicts=["secret/x"], left=[]
    )


def test_what_an_old_record_has_of_repositories_is_left_and_stops_nothing(project: Path):
    step = RestoreStep(expected=TWO, target=ONE)
    names = (".git/config", ".hg/dirstate", "sub/.jj/x", ".sl", ".HG/x", "hg~1/x")
    steps = {"a": step} | dict.fromkeys(names, step) | {".hg/big": replace(step, why_not=WHY_LARGE)}
    found = dict.fromkeys(steps, MINE) | {"a": TWO}
    made = _planned(project, steps, found)
    assert made == RestorePlan(
        steps={"a": replace(step, found=TWO)}, conflicts=[], unkept=[], left=[]
    )


@every_row(
    "expected, target, found, fits, fits_when_resumed",
    [
        (TWO, ONE, TWO, True, True),
        (TWO, ONE, MINE, False, False),
        (TWO, ONE, ABSENT, False, True),  # it was removed before the other came
        (TWO, ABSENT, MINE, False, False),
        # A folder that goes goes only if it is empty, so its mode does not count.
        (_folder(0o700), ABSENT, _folder(0o755), True, True),
        (TWO, ABSENT, _folder(), False, False),
        # One that stays has its old or its new mode, or for a while the rights to work in it.
        (_folder(0o500), _folder(0o555), _folder(0o500), True, True),
        (_folder(0o500), _folder(0o555), _folder(0o700), True, True),
        (_folder(0o500), _folder(0o555), _folder(0o755), True, True),
        (_folder(0o500), _folder(0o555), _folder(0o750), False, True),
        (TWO, _folder(0o555), _folder(0o755), True, True),
        (TWO, _folder(0o555), _folder(0o700), False, True),
        (_folder(0o500), TWO, _folder(0o700), True, True),
        (_folder(0o500), TWO, _folder(0o750), False, False),
    ],
)
def test_what_is_found_is_what_the_turn_left_or_what_an_undo_that_broke_off_did(
    project: Path, expected: State, target: State, found: State, fits: bool, fits_when_resumed: bool
):
    (project / "a").mkdir(exist_ok=True)
    step = {"a": RestoreStep(expected=expected, target=target)}
    plans = [_planned(project, step, {"a": found}, is_resumed=each) for each in (False, True)]
    conflicts = ([] if fits else ["a"], [] if fits_when_resumed else ["a"])
    assert [each.conflicts for each in plans] == list(conflicts)


GOES = RestoreStep(expected=TWO, target=ABSENT)
COMES = RestoreStep(expected=ABSENT, target=ONE)
FOLDER_COMES = RestoreStep(expected=TWO, target=_folder())


@every_row(
    "steps, found, conflicts",
    [
        ({"gone/below/a": COMES}, {}, []),
        ({"file/a": COMES}, {}, ["file/a"]),
        ({"d/a": COMES}, {}, []),
        ({"file": FOLDER_COMES, "file/a": COMES}, {"file": TWO}, []),
        (
            {"d": RestoreStep(expected=_folder(), target=ABSENT), "d/a": COMES},
            {"d": _folder()},
            ["d/a"],
        ),
        ({"file/a": RestoreStep(expected=TWO, target=ABSENT)}, {"file/a": TWO}, []),
    ],
)
def test_all_above_what_is_to_be_there_is_a_folder_then(project, steps, found, conflicts):
    (project / "file").write_text("2")
    (project / "d").mkdir(exist_ok=True)
    assert _planned(project, steps, found).conflicts == conflicts


D, E = _folder(), RestoreStep(expected=_folder(), target=ABSENT)


@every_row(
    "there, steps, conflicts",
    [
        ([], {}, []),
        (["x"], {"d/x": GOES}, []),
        (["x", "mine"], {"d/x": GOES}, ["d"]),
        (["x"], {"d/x": RestoreStep(expected=TWO, target=ONE)}, ["d", "d/x"]),
        (["e/x"], {"d/e": E, "d/e/x": GOES}, []),
        (["e/x", "e/mine"], {"d/e": E, "d/e/x": GOES}, ["d"]),
    ],
)
def test_a_file_takes_the_place_of_a_folder_only_where_all_in_it_goes(
    project: Path, there: list[str], steps: dict[str, RestoreStep], conflicts: list[str]
):
    shutil.rmtree(project / "d", ignore_errors=True)
    (project / "d" / "e").mkdir(parents=True)
    for name in there:
        (project / "d" / name).write_text("2")
    steps = {"d": RestoreStep(expected=D, target=ONE), "d/e": E, **steps}
    found = {path: step.expected for path, step in steps.items()}
    for force in (False, True):
        assert _planned(project, steps, found, force=force).conflicts == conflicts


def test_looking_into_folders_leaves_none_of_them_open(project: Path):
    opened, closed = _Counting(os.open), _Counting(os.close)
    for name in "de":
        (project / name).mkdir()
    steps = {name: RestoreStep(expected=D, target=ONE) for name in "de"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", opened)
        patch.setattr(os, "close", closed)
        assert _planned(project, steps, dict.fromkeys("de", D)).conflicts == []
    assert opened.count == closed.count > 2


class _Counting:
    def __init__(self, real: Callable[..., Any]) -> None:
        self.count, self._real = 0, real

    def __call__(self, *given: Any, **options: Any) -> Any:
        self.count += 1
        return self._real(*given, **options)


def test_a_forced_undo_notes_what_it_overwrites_and_of_one_that_broke_off_what_that_found():
    steps = {
        path: RestoreStep(expected=THREE, target=ONE, found=found)
        for path, found in {
            "plain": MINE,
            "again": ONE,
            "removed": ABSENT,
            "later": TWO,
            "folder": _folder(0o700),
        }.items()
    }
    earlier = {
        path: Change(path=path, before=MINE, after=ONE)
        for path in ("again", "removed", "later", "done")
    }
    earlier["folder"] = Change(path="folder", before=_folder(0o500), after=ONE)
    assert list(overwriting(steps, earlier)) == [
        (path, Change(path=path, before=before, after=ONE))
        for path, before in {
            "again": MINE,
            "done": MINE,
            "folder": _folder(0o500),
            "later": TWO,
            "plain": MINE,
            "removed": MINE,
        }.items()
    ]
