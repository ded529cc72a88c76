"""docs/security.md and docs/attacks.md: written anew from their source, each case found by a heading, each link led somewhere."""

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from rows import every_row

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!https?:)([\w./-]*)(?:#([\w-]+))?\)")
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
#: What a bullet has beside its words: the tests that hold it, and where its links lead.
REFERENCES = re.compile(r"`(?:tests|src)/[^`]+`|\]\([^)]*\)")


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return {f"{name}.md": import_module(f"{name}_page") for name in ("security", "attacks")}


def anchors_of(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    titles = (title for _, title in HEADING.findall(page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@every_row("name", ["security.md", "attacks.md"])
def test_the_page_on_disk_is_the_one_that_is_made(pages: dict[str, ModuleType], name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == pages[name].page()


@every_row("name", ["security.md", "attacks.md"])
def test_each_link_leads_to_a_page_and_a_heading_of_it(name: str) -> None:
    page = ROOT / "docs" / name
    for file, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / file if file else page
        assert target.is_file(), file
        assert not anchor or anchor in anchors_of(target), f"{file}#{anchor}"


def test_a_file_that_a_page_names_and_that_is_not_there_is_an_error(
    pages: dict[str, ModuleType],
) -> None:
    with pytest.raises(FileNotFoundError, match="no_such_test"):
        pages["security.md"].with_files_there("held by `tests/no_such_test.py`")


def test_each_section_says_a_rule_and_each_bullet_is_short(pages: dict[str, ModuleType]) -> None:
    sections = re.split(r"^## ", pages["security.md"].page(), flags=re.MULTILINE)[1:]
    for section in sections:
        title, _, rest = section.partition("\n\n")
        assert rest[0].isalpha(), title
        for bullet in re.findall(r"^- (.*(?:\n  .*)*)", rest, re.MULTILINE):
            assert len(REFERENCES.sub("", bullet).split()) <= 55, bullet


def test_no_line_of_the_source_is_long(pages: dict[str, ModuleType]) -> None:
    for module in pages.values():
        lines = Path(str(module.__file__)).read_text(encoding="utf-8").splitlines()
        prose = [line for line in lines if not line.startswith("|")]
        assert [line for line in prose if len(line) > 160] == []
