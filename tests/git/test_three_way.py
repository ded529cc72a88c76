"""Two versions of a text become one, by git's own merge, without a repository."""

import os
from pathlib import Path

import pytest

from rows import every_row
from ybs.git.hardening import GitError
from ybs.git.three_way import merged_text

pytestmark = pytest.mark.integration
BASE = b"one\ntwo\nthree\nfour\nfive\n"


@every_row(
    "ours, theirs, result",
    [
        (BASE.replace(b"one", b"ONE"), BASE.replace(b"five", b"FIVE"), b"ONE\ntwo\nthree\nfour\nFIVE\n"),
        (BASE.replace(b"one", b"1"), BASE.replace(b"one", b"I"), None),
        (BASE + b"six", BASE, BASE + b"six"),
        (BASE.replace(b"one\n", b"one\r\n"), BASE.replace(b"five", b"\xff"), b"one\r\ntwo\nthree\nfour\n\xff\n"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("has_sandbox", [True, False])
async def test_lines_that_only_one_changed_are_merged(
    ours: bytes, theirs: bytes, result: bytes | None, *, has_sandbox: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "own"
    folder.mkdir(exist_ok=True)
    given = (os.environ, folder, ours, BASE, theirs)
    assert await merged_text(*given, has_sandbox=has_sandbox) == result
    assert not any((folder / name).exists() for name in ("ours", "base", "theirs"))


async def test_what_is_not_text_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="255"):
        await merged_text(os.environ, tmp_path, b"\0a", BASE, b"\0b")
    assert not (tmp_path / "ours").exists()
