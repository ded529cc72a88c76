"""Files that the pages for contributors, the other docs and the ADRs name are there, or a note says what became of them."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from rows import every_row

ROOT = Path(__file__).parents[2]
FILE = re.compile(
    r"[\w./-]*\w\.(?:py|md|toml|txt)\b|[\w-]+(?:/[\w-]+)*/(?=[\s`),.;]|$)", re.MULTILINE
)
#: A file of the repository by its whole path, on pages that name files of their readers too.
OWN_FILE = re.compile(r"\b(?:src/ybs|tests|bench|examples)/[\w./-]*\w\.\w+")
#: A file or a module in the text of an ADR.
MODULE = re.compile(r"`([\w./-]+\.py)`")
NOTE = "\nChanged since: "


def there() -> set[str]:
    """Return the files of the repository and the folders that they are in."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = listed.stdout.split()
    return {*files, *(str(folder) for file in files for folder in Path(file).parents)}


def missing(named: Iterable[str], known: set[str]) -> list[str]:
    """Return the names that no file or folder has, nor ends with."""
    return [
        each
        for each in sorted(set(named))
        if not any(f == each or f.endswith(f"/{each}") for f in known)
    ]


@pytest.mark.integration
@every_row("page", ["AGENTS.md", "CONTRIBUTING.md", "docs/architecture.md"])
def test_every_file_and_folder_that_a_page_names_is_there(page: str):
    named = {found.strip("/") for found in FILE.findall((ROOT / page).read_text())}
    assert len(named) > 5
    assert missing(named, there()) == []


@pytest.mark.integration
def test_every_path_in_the_docs_leads_to_a_file():
    known = there()
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    wrong = {page.name: missing(OWN_FILE.findall(page.read_text()), known) for page in pages}
    assert {page: names for page, names in wrong.items() if names} == {}


@pytest.mark.integration
def test_an_adr_that_names_a_module_that_is_gone_says_what_changed_since():
    known = there()
    texts = {page.name: page.read_text() for page in (ROOT / "docs" / "adr").glob("*.md")}
    gone = {name: missing(MODULE.findall(text), known) for name, text in texts.items()}
    assert {name: names for name, names in gone.items() if names and NOTE not in texts[name]} == {}
    assert any(NOTE in text for text in texts.values())
