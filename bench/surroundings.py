"""What it costs the first request to know where it is: documents, commits, memories, the project, the map."""

import json
import subprocess
from pathlib import Path

from lab import Lab, Row, interleave, make_project, median

#: A prompt of one's own stands alone: nothing is looked at for it.
ALONE = "You are a coding agent."
DOCUMENTS = {
    "AGENTS.md": "# Rules\n\n" + "Use the project's own words for things, and test first.\n" * 60,
    "CODE.md": "# Layout\n\n" + "src/ holds small modules that do not know each other.\n" * 40,
    "pyproject.toml": "[project]\nname = 'p'\n[tool.pytest.ini_options]\n[tool.ruff]\n",
    "package.json": json.dumps({"scripts": {"test": "vitest", "build": "vite build"}}),
    ".ybs/FOCUS.md": "The modules are to be merged.\n",
    ".ybs/memories/2026-01-02_10-00-00_notes.md": "# Notes\n\nThe tests need a warm cache.\n",
}


def measure(lab: Lab, rounds: int) -> list[Row]:
    alone = lab.folder / "alone.md"
    alone.write_text(ALONE)
    make_known(lab.folder / "known")
    lab.template = "known"

    def told() -> float:
        return lab.ybs("turns0").first_request_seconds

    def untold() -> float:
        options = ("--system-prompt-file", str(alone))
        off = lab.ybs("turns0", *options, YBS_CONTEXT_REPO_MAP_TOKENS="0")
        return off.first_request_seconds

    try:
        runs = interleave(rounds, told=told, untold=untold)
        body = lab.ybs("turns0").requests[0]["body_bytes"]
    finally:
        lab.template = "template"
    with_all, without = median(runs["told"]), median(runs["untold"])
    return [
        Row("first request: all that is known / nothing", with_all / without, "x", 1.05),
        Row("first request with all that is known", with_all * 1000, "ms"),
        Row("first request without", without * 1000, "ms"),
        Row("body of the first request", body, "bytes"),
    ]


def make_known(folder: Path) -> None:
    """Make a project that says much about itself."""
    make_project(folder)
    for name, text in DOCUMENTS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git = ["git", "-C", str(folder), "-c", "user.name=b", "-c", "user.email=b@localhost"]
    for number in range(5):
        words = ["commit", "-q", "--allow-empty", "-m", f"Change number {number}"]
        subprocess.run([*git, *words], check=True)
