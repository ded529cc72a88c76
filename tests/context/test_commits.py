from pathlib import Path

import pytest

from hostile_git import needs_git
from hosts import this_host
from made_history import MadeRepository
from ybs.context.prompt import MOST_COMMITS, MOST_TITLE_CHARS, Section, recent_commits
from ybs.git.titles import ask_titles
from ybs.security.unicode import has_suspects

pytestmark = needs_git

TITLES = [
    b"left out",
    b"\xff not UTF-8 \xe2\x80\xae and turned",
    b"colours \x1b[31mred\x07 \x00".replace(b"\x00", b"") + b"\x9b2J",
    b"long " * 400,
    b"two\nlines\n\nand a body",
    b"plain",
]


def commits_of(folder: Path) -> Section | None:
    titles = ask_titles(this_host(), folder, MOST_COMMITS)
    return recent_commits(titles, timeout_seconds=9) if titles else None


@pytest.mark.integration
def test_the_last_commits_stand_on_one_legible_line_each(project: Path) -> None:
    made = MadeRepository(project)
    made.git("config", "core.abbrev", "40")
    made.commit(*([["a"]] * len(TITLES)), titles=TITLES)
    found = commits_of(project)
    assert found is not None
    assert found.name == "commits"
    lines = found.text.splitlines()
    assert len(lines) == 5
    assert lines[0] == made.git("rev-parse", "HEAD")[:12] + " plain"
    assert lines[1].endswith(" two lines")
    for line in lines:
        name, _, title = line.partition(" ")
        assert name.isalnum(), line
        assert len(name) <= 12, line
        assert 0 < len(title) <= MOST_TITLE_CHARS, line
        assert not has_suspects(line), line
    assert "left out" not in found.text
    assert lines[2].endswith("…")
    assert "\ufffd not UTF-8" in lines[4]


@pytest.mark.integration
def test_without_git_or_commits_nothing_is_said(project: Path, tmp_path: Path) -> None:
    MadeRepository(project)
    assert commits_of(project) is None
    assert commits_of(tmp_path) is None
