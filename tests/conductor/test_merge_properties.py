"""For whatever trees and changes: a merge loses nothing, touches nothing else, and does nothing the second time."""

import asyncio
import shutil
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from conductor.copies import Copies
from session.trees import Act, shell_acts, tree, turns
from ybs.conductor.merging import Merged

Tree = dict[str, tuple[str, int, bytes]]
_texts = st.lists(
    st.sampled_from([b"one\n", b"two\n", b"three\n", b"four\n", b"end"]), max_size=12
).map(b"".join)
#: Several lines in one file, so that the lines of both can be merged.
_long = st.builds(Act, st.just("write"), st.sampled_from(("a", "d/a")), content=_texts)
_edits = st.lists(st.one_of(_long, shell_acts), max_size=6)
_others = st.lists(_edits, min_size=2, max_size=3)


class Side(Struct):
    """What one writer left, and what came of it."""

    after: Tree
    merged: Merged


def changed(before: Tree, after: Tree) -> dict[str, bytes]:
    """Return the contents of the files that are new or other ones."""
    return {
        path: content
        for path, (kind, _, content) in after.items()
        if kind == "file" and before.get(path, ("", 0, b""))[::2] != (kind, content)
    }


def stands(content: bytes, base: bytes, result: Tree, path: str, kept: bytes | None) -> bool:
    """Return whether a content is in the result, in a kept version, or line by line in a merged one."""
    if kept == content or (
        path in result and result[path][0] == "file" and result[path][2] == content
    ):
        return True
    lines = set(content.splitlines()) - set(base.splitlines())
    return (
        path in result and result[path][0] == "file" and lines <= set(result[path][2].splitlines())
    )


def shown(path: str) -> str:
    return path.replace("\udcff", r"\xff").replace("\n", r"\x0a")


@pytest.mark.integration
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=turns, mine=_edits, others=_others)
@example(  # below a link of the project, which leads out of it, lies nothing that may be written
    first=[Act(kind="link", path="d", other="/etc/hostname")],
    mine=[],
    others=[[Act(kind="delete", path="d"), Act(kind="write", path="d/a")]],
)
def test_a_merge_loses_nothing(tmp_path, first, mine, others):
    _check(tmp_path, first, mine, others)


@pytest.mark.slow
@pytest.mark.timeout(300)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=turns, mine=_edits, others=_others)
def test_many_merges_lose_nothing(tmp_path, first, mine, others):
    _check(tmp_path, first, mine, others)


def _check(tmp_path: Path, first: list[Act], mine: list[Act], others: list[list[Act]]) -> None:
    project = Path(mkdtemp(dir=tmp_path))
    try:
        asyncio.run(_play(project, first, mine, others))
    finally:
        shutil.rmtree(project, ignore_errors=True)


async def _play(project: Path, first: list[Act], mine: list[Act], others: list[list[Act]]) -> None:
    for act in first:
        act.do(project)
    copies = Copies(project)
    try:
        base = tree(project)
        overlays = [await copies.open(f"agent-{number}") for number in range(len(others))]
        start = tree(overlays[0].folder)
        for act in mine:
            act.do(project)
        own = changed(base, tree(project))
        for overlay, acts in zip(overlays, others, strict=True):
            for act in acts:
                act.do(overlay.folder)
        sides: list[Side] = []
        for overlay in overlays:
            before, after = tree(project), tree(overlay.folder)
            merged = await copies.merge(overlay)
            now = tree(project)
            _check_untouched(before, now, start, after)
            again = await copies.merge(overlay)
            assert tree(project) == now, "a second time nothing happens"
            assert {each.path for each in again.conflicts} == {
                each.path for each in merged.conflicts
            }
            sides.append(Side(after, merged))
        _check_nothing_is_lost(base, own, sides, tree(project))
    finally:
        await copies.aclose()


def _check_untouched(before: Tree, now: Tree, start: Tree, after: Tree) -> None:
    """Check that nothing changed but what the sub-agent changed, and that no folder was made but for that."""
    own = {path for path in start.keys() | after.keys() if start.get(path) != after.get(path)}
    for path in before.keys() | now.keys():
        is_made = path not in before and now[path][0] == "folder"
        if is_made and any(f"{each}/".startswith(f"{path}/") and each in now for each in own):
            continue
        if path not in own:
            assert now.get(path) == before.get(path), path


def _check_nothing_is_lost(
    base: Tree, own: dict[str, bytes], sides: list[Side], result: Tree
) -> None:
    for path, content in own.items():
        old = base.get(path, ("", 0, b""))[2]
        assert stands(content, old, result, path, None), ("the project's own", path, content)
    for side in sides:
        kept = {
            each.path: Path(each.kept).read_bytes()
            for each in side.merged.conflicts
            if each.kept.startswith("/")
        }
        for path, content in changed(base, side.after).items():
            old = base.get(path, ("", 0, b""))[2]
            assert stands(content, old, result, path, kept.get(shown(path))), (path, content)
