"""What AGENTS.md, CONTRIBUTING.md and docs/architecture.md say of files is true: each that they name is there."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE = re.compile(
    r"[\w./-]*\w\.(?:py|md|toml|txt)\b|[\w-]+(?:/[\w-]+)*/(?=[\s`),.;]|$)", re.MULTILINE
)


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


def test_the_reading_path_is_as_long_as_is_said():
    files = (
        "core/agent",
        "core/ports",
        "core/events",
        "providers/wire/ollama",
        "tools/builtin/write_file",
        "guards/recovery",
    )
    paths = [
        ROOT / "src" / "ybs" / f"{each}.py" for each in (*files, "agent/build", "session/parts")
    ]
    count = sum(len(path.read_text().splitlines()) for path in paths)
    for page in ("CONTRIBUTING.md", "docs/architecture.md"):
        (said,) = re.findall(r"bout ([\d,]+) lines", (ROOT / page).read_text())
        assert abs(int(said.replace(",", "")) - count) < 150, (page, count)
