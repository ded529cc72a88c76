"""Whatever turns do to the files, undo brings back what was there byte for byte, and redo what came of it."""

import asyncio
import os
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hosts import this_host
from session.trees import IGNORED, Act, shell_acts, tree, turns
from ybs.core.errors import ToolError
from ybs.security.paths.roots import Roots
from ybs.session.undoing import Checkpoints


def _used(act: Act, project: Path) -> str:
    """Return the path that a tool uses: it follows a link that it writes through."""
    named = f"{project}/{act.path}"
    return os.path.realpath(named) if act.kind == "write" else named


async def _turn(
    checkpoints: Checkpoints, project: Path, acts: Sequence[Act], looks: int
) -> list[str]:
    """Play a turn; every so many acts it is looked at what they left."""
    checkpoints.begin()
    for number, act in enumerate(acts, 1):
        if act.is_tool:
            try:
                effect = "write" if act.kind == "write" else "delete"
                await checkpoints.before_change(effect, [_used(act, project)])
            except ToolError:
                continue  # a path that leads out; the tool would refuse it too
        else:
            await checkpoints.before_change("execute", ())
        act.do(project)
        if number % looks == 0:
            await checkpoints.after_change()
    kept = await checkpoints.end()
    return [] if kept is None else [kept.name]


def _play(first: Sequence[Act], plan: Sequence[Sequence[Act]], step: int, looks: int) -> None:
    with tempfile.TemporaryDirectory() as name, patch.object(os, "fsync"):
        project = Path(name).resolve() / "project"
        project.mkdir()
        (project / ".gitignore").write_text(f"{IGNORED}\n")
        (project / IGNORED).write_text("stays\n")
        for act in first:
            act.do(project)
        asyncio.run(_check(project, plan, step, looks))


async def _check(project: Path, plan: Sequence[Sequence[Act]], step: int, looks: int) -> None:
    checkpoints = Checkpoints(Roots(this_host(), project), "session-1", may_write=True)
    trees, names = [tree(project)], list[str]()
    for acts in plan:
        fresh = await _turn(checkpoints, project, acts, looks)
        assert bool(fresh) == (tree(project) != trees[-1])
        if fresh:
            names += fresh
            trees.append(tree(project))
    await _there_and_back(checkpoints, project, names, trees, step)
    checkpoints.close()


async def _there_and_back(
    checkpoints: Checkpoints,
    project: Path,
    names: list[str],
    trees: list[dict[str, tuple[str, int, bytes]]],
    step: int,
) -> None:
    """Undo so many turns at a time until none is left, and redo them in the same way."""
    places = sorted({*range(len(names), 0, -step), 0}, reverse=True)
    pairs = list(pairwise(places))
    for high, low in pairs:
        undone = await checkpoints.undo(names[low:high][::-1])
        assert undone.is_done, undone
        assert tree(project) == trees[low]
    for high, low in reversed(pairs):
        redone = await checkpoints.redo(names[low:high][::-1])
        assert redone.is_done, redone
        assert tree(project) == trees[high]


_firsts = st.lists(shell_acts, max_size=8)
_plans = st.lists(turns, min_size=1, max_size=3)
_steps = st.integers(1, 3)
_looks = st.sampled_from((1, 1, 2, 99))


@pytest.mark.integration
@settings(max_examples=10)
@given(_firsts, _plans, _steps, _looks)
def test_undo_and_redo_give_each_tree_again_byte_for_byte(first, plan, step, looks):
    _play(first, plan, step, looks)


@pytest.mark.slow
@pytest.mark.timeout(300)
@settings(max_examples=30)
@given(_firsts, _plans, _steps, _looks)
def test_undo_and_redo_give_each_tree_again_in_many_more_cases(first, plan, step, looks):
    _play(first, plan, step, looks)
