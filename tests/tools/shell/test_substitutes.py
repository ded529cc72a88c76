"""What is said where a program was not found, by what is there: without a process."""

from pathlib import Path
from typing import Any

import pytest

from rows import every_row
from ybs.tools.shell import substitutes
from ybs.tools.shell.substitutes import substitute_for


@every_row(
    ("name", "there", "way"),
    [
        ("a.py", "./ python3 python", "python3 a.py"),
        ("a.py", "./ python sh", "python a.py"),
        ("a.py", "./ sh +x", ""),  # there is no Python that it could be run with
        ("a.sh", "./ sh", "sh a.sh"),
        ("a.sh", "./ sh bash #!bash", "bash a.sh"),
        ("a.sh", "./ sh #!bash", ""),
        ("a", "./ bash #!bash", "bash a"),
        ("a", "./ sh +x", "./a"),
        ("a", "./ sh", ""),
        ("a.rb", "./ sh", ""),
    ],
)
def test_a_file_is_run_with_what_is_there(name: str, there: str, way: str):
    assert substitutes._way_to_run(name, there.split()) == way


@every_row(
    ("command", "said", "there", "expected"),
    [
        ("python x", "sh: 1: python: not found", "python3", "[python is not on this machine; python3 is.]"),
        ("python x", "sh: 1: python: not found", "python", ""),
        ("a.sh", "sh: 1: a.sh: not found", "./ sh", "[a.sh is a file here: run it as `sh a.sh`.]"),
        ("a.sh", "sh: 1: a.sh: not found", "sh", ""),  # the file is not there
        ("cd x && a.sh", "sh: 1: a.sh: not found", "./ sh", ""),
        ("make", "sh: 1: a.sh: not found", "./ sh", ""),  # somebody else's words
        ("a.sh", "nothing of that kind", "./ sh", ""),
        ("make", "sh: 1: make: not found", "./ sh", ""),
    ],
)  # fmt: skip
async def test_only_what_is_certain_is_said(
    monkeypatch: pytest.MonkeyPatch, command: str, said: str, there: str, expected: str
):
    probes: list[str] = []

    async def lines_of(probe: str, *_: object, **__: object) -> list[str]:
        probes.append(probe)
        return there.split()

    monkeypatch.setattr(substitutes, "_lines_of", lines_of)
    shells: Any = None
    assert await substitute_for(command, said, Path("/"), shells, read_only=False) == expected
    assert len(probes) == ("not found" in said)
