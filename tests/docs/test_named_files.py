"""What AGENTS.md, CONTRIBUTING.md and docs/architecture.md say of files is true: each that they name is there."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE = re.compile(
    r"[\w./-]*\w\.(?:py|md|toml|txt)\b|[\w-]+(?:/[\w-]+)*/(?=[\s`),.;]|$)", re.MULTILINE
)


@pytest.mark.integration
@pytest.mark.parametrize("page", ["AGENTS.md", "CONTRIBUTING.md", "docs/architecture.md"])
def test_every_file_and_folder_that_a_page_names_is_there(page: str):
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = listed.stdout.split()
    there = {*files, *(str(folder) for file in files for folder in Path(file).parents)}
    named = {found.strip("/") for found in FILE.findall((ROOT / page).read_text())}
    assert len(named) > 5
    assert [
        each
        for each in sorted(named)
        if not any(f == each or f.endswith(f"/{each}") for f in there)
    ] == []
