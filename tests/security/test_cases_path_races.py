"""P10 and P11: somebody swaps files and folders for links while tools work; nothing outside is reached."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tools.conftest import Bench
from ybs.core.ports import Answer, Question

#: Puts each of two names in the other's place, in one step, until it is ended (renameat2 with RENAME_EXCHANGE).
_SWAPPER = """
import ctypes, os, sys
swap = ctypes.CDLL(None).renameat2
one, two = (os.fsencode(name) for name in sys.argv[1:])
print(swap(-100, one, -100, two, 2), flush=True)
while True:
    swap(-100, one, -100, two, 2)
"""


@contextmanager
def swapped(name: Path, other: Path) -> Generator[None]:
    """Swap the names again and again, in another process, while the block runs."""
    command = [sys.executable, "-I", "-S", "-c", _SWAPPER, str(name), str(other)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as attacker:
        try:
            assert attacker.stdout is not None
            if attacker.stdout.readline() != b"0\n":
                pytest.skip("this system cannot swap two names in one step: no race is run")
            yield
            assert attacker.poll() is None
        finally:
            attacker.kill()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text("SECRET\n")
    return folder


async def _raced(bench: Bench, path: str, rounds: int) -> str:
    """Use the tools on the path again and again; return all they said."""
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("write_file", {"content": "EVIL\n"}),
        ("read_file", {}),
        ("edit_file", {"old_text": "EVIL", "new_text": "WORSE"}),
        ("search_files", {"pattern": "SECR.T"}),
        ("list_files", {"pattern": "*"}),
        ("delete_file", {}),
    )
    folder = {"list_files": "sub", "search_files": "sub"}
    said: list[str] = []
    while rounds > 0 or not any(one.startswith(("Created", "Overwrote")) for one in said):
        rounds -= 1  # some attempts have to hit the right moment
        for tool, arguments in calls:
            said.append((await bench.call(tool, path=folder.get(tool, path), **arguments)).output)
    return "\n".join(said)


def _check(outside: Path, said: str) -> None:
    assert os.listdir(outside) == ["file"]  # noqa: PTH208 - names
    assert (outside / "file").read_text() == "SECRET\n"
    assert "SECRET" not in said


ROUNDS = [3, pytest.param(60, marks=[pytest.mark.slow, pytest.mark.timeout(300)])]


@pytest.mark.integration
@pytest.mark.parametrize("rounds", ROUNDS)
async def test_p10_a_folder_swapped_for_a_link_leads_no_tool_outside(
    bench: Bench, project: Path, outside: Path, rounds: int
):
    (project / "sub").mkdir()
    (project / "link").symlink_to(outside)
    with swapped(project / "sub", project / "link"):
        said = await _raced(bench, "sub/file", rounds)
    _check(outside, said)


@pytest.mark.integration
@pytest.mark.parametrize("rounds", ROUNDS)
async def test_p11_a_file_swapped_for_a_link_leads_no_tool_outside(bench, project, outside, rounds):
    (project / "sub").mkdir()
    (project / "sub" / "file").write_text("EVIL\n")
    (project / "sub" / "link").symlink_to(outside / "file")
    with swapped(project / "sub" / "file", project / "sub" / "link"):
        said = await _raced(bench, "sub/file", rounds)
    _check(outside, said)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("edit_file", {"old_text": "mine", "new_text": "EVIL"}),
        ("write_file", {"content": "EVIL"}),
        ("delete_file", {}),
    ],
)
async def test_p11_a_file_replaced_by_a_link_after_it_was_shown_is_an_error(
    make_bench: Any, project: Path, outside: Path, tool: str, arguments: dict[str, Any]
):
    (project / "file").write_text("mine\n")

    async def replace(question: Question) -> Answer:
        (project / "file").unlink()
        (project / "file").symlink_to(outside / "file")
        return Answer(is_allowed=True)

    answered = await make_bench(mode="ask", confirm=replace).call(tool, path="file", **arguments)
    assert answered.result.is_error
    assert "changed" in answered.output
    assert (outside / "file").read_text() == "SECRET\n"
    assert (project / "file").is_symlink()


@pytest.mark.parametrize("before", [True, False])
async def test_p11_a_link_in_the_place_of_a_new_file_is_not_followed(
    make_bench: Any, project: Path, outside: Path, *, before: bool
):
    (project / "sub").mkdir()

    async def plant(question: Question) -> Answer:
        if before:
            (project / "sub").rmdir()
            (project / "sub").symlink_to(outside)
        else:
            (project / "sub" / "new").symlink_to(outside / "new")
        return Answer(is_allowed=True)

    bench = make_bench(mode="ask", confirm=plant)
    answered = await bench.call("write_file", path="sub/new", content="EVIL")
    assert answered.result.is_error
    assert "changed" in answered.output
    assert os.listdir(outside) == ["file"]  # noqa: PTH208 - names
