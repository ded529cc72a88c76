"""A skip that is not on the list fails CI, and only CI."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rows import every_row
from skips import unexpected

ROOT = Path(__file__).parent.parent
SKIPPING = """
import pytest

def test_skips():
    pytest.skip({reason!r})
"""
SKIPPED_AS_A_WHOLE = """
import pytest

pytest.skip({reason!r}, allow_module_level=True)
"""


def test_reasons_are_compared_with_the_list():
    assert unexpected(["root may read everything", "only root makes devices: x"]) == []
    assert unexpected(["rg is not installed", "b", "b"]) == ["b", "rg is not installed"]


@pytest.mark.slow
@every_row(
    ("text", "reason", "ci", "code"),
    [
        (SKIPPING, "tmux is not installed", "true", 1),
        (SKIPPING, "tmux is not installed", "", 0),
        (SKIPPING, "root may read everything", "true", 0),
        (f"{SKIPPED_AS_A_WHOLE}\n{SKIPPING}", "tmux is not installed", "true", 1),
    ],
)
def test_a_run_in_ci_fails_for_an_unlisted_skip(tmp_path, text, reason, ci, code):
    folder = tmp_path / f"run-{ci}-{code}-{len(text)}"
    folder.mkdir(exist_ok=True)
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (folder / "test_it.py").write_text(text.format(reason=reason))
    environ = {**os.environ, "CI": ci, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(folder)],
        cwd=folder, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert ("not on the list" in done.stdout) == bool(code)
