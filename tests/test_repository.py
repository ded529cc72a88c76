"""The repository itself: its verbs, its pinned sets, its pages, and what no file of it may say."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rows import every_row

ROOT = Path(__file__).parent.parent
VERBS = [
    "run",
    "test",
    "check",
    "fix",
    "bench",
    "bench-router",
    "test-integration",
    "test-real",
    "test-slow",
    "test-scale",
    "test-versions",
    "cover",
    "docs",
    "pictures",
    "pictures-web",
    "lock",
    "clean",
]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def files_of_the_repository() -> Iterator[Path]:
    """Yield every file that belongs to it, with or without git."""
    skipped = {"__pycache__", "node_modules", "build", "dist", "htmlcov"}
    for folder, folders, files in os.walk(ROOT):
        hidden = {name for name in folders if name.startswith(".") and name != ".ci"}
        folders[:] = [name for name in folders if name not in skipped | hidden]
        # `.git` is a file in a work tree, and says where the repository lies.
        kept = [each for each in files if each != ".git" and not each.startswith(".coverage")]
        yield from (Path(folder) / name for name in kept)


@pytest.mark.integration
def test_make_lists_every_verb() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.findall(r"make (\S+)  ", done.stdout) == ["help", *VERBS]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert "make test" in (ROOT / "README.md").read_text()
    assert re.search(r"^make test\b", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@every_row("path", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda p: p.stem)
def test_a_pinned_set_has_hashes_and_no_addresses(path: Path) -> None:
    entries = re.split(r"\n(?=\S)", path.read_text().strip())
    assert entries
    for entry in entries:
        assert re.match(r"[\w.-]+==[\w.]+", entry), entry
        assert "--hash=sha256:" in entry, entry
        assert "://" not in entry, entry


@pytest.mark.integration
def test_no_file_names_a_machine_or_a_package_index() -> None:
    machine = ["/tmp" + "/w/", "/work" + "/main", "/work" + "/shared", "/opt" + "/wheels"]
    index = ["pypi" + ".org", "files.python" + "hosted", "registry.npm" + "js"]
    words = [word.encode() for word in machine + index]
    wrong = [
        f"{path.relative_to(ROOT)}: {word.decode()}"
        for path in files_of_the_repository()
        for data in [path.read_bytes()]
        for word in words
        if word in data
    ]
    assert wrong == []


@every_row("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_decisions_are_numbered_without_gaps() -> None:
    pages = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert [page.name[:4] for page in pages] == [f"{n:04}" for n in range(1, len(pages) + 1)]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"# {int(page.name[:4])}. ")
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == [
            "Context",
            "Decision",
            "Consequences",
        ]


def test_the_reading_path_is_a_thousand_lines() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    path = re.findall(r"`(src/ybs/[\w/]+\.py)`", page.split("## Read first")[1].split("\n## ")[0])
    assert len(path) == 7
    assert sum(len((ROOT / name).read_text().splitlines()) for name in path) <= 1_000


def test_the_rules_fit_on_a_page() -> None:
    assert len((ROOT / "AGENTS.md").read_text().splitlines()) < 60
    assert len((ROOT / "README.md").read_text().splitlines()) < 120
