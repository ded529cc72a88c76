"""The sandbox of programs that ybs starts itself; more of it: `tests/git/test_sandbox.py`."""

from types import SimpleNamespace

import pytest

from rows import every_row
from ybs.security.sandbox import confined


@every_row(
    ("platform", "program", "expected"),
    [
        ("linux", "/usr/bin/git", True),
        ("linux", "/opt/git/bin/git", True),
        ("linux", "/home/me/bin/git", False),
        ("darwin", "/usr/bin/git", False),
    ],
)
def test_a_shell_finds_git_in_the_folders_of_the_system(
    monkeypatch: pytest.MonkeyPatch, platform: str, program: str, expected: bool
) -> None:
    monkeypatch.setattr(confined, "sys", SimpleNamespace(platform=platform))
    assert confined.takes_scripts(program) is expected
