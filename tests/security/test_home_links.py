"""Settings that people keep in a repository (dotfiles): links of the home folder lead into the project."""

from pathlib import Path

import pytest

from hosts import this_host
from ybs.core.errors import Refused
from ybs.security.paths.persons import named_by_settings
from ybs.security.paths.roots import Roots
from ybs.security.sandbox.protected import protected

LINKS = {
    ".claude/settings.json": "claude/settings.json",
    ".zshrc": "shell/zshrc",
    ".config/fish": "fish",
    ".config/tmux/tmux.conf": "tmux.conf",
    ".config/systemd/user/sync.service": "units/sync.service",
    ".config/ybs/commands": "ybs/commands",
    ".gitconfig": "git/config",
}


@pytest.fixture
def dotfiles(home: Path, project: Path) -> Path:
    for link, target in LINKS.items():
        (project / target).parent.mkdir(parents=True, exist_ok=True)
        (project / target).touch()
        (home / link).parent.mkdir(parents=True, exist_ok=True)
        (home / link).symlink_to(project / target)
    (home / "work").symlink_to(project / "shell")  # no settings
    (home / ".elsewhere").symlink_to("/usr")
    return project.resolve()


def test_what_they_lead_to_is_read_only_for_commands_and_asked_about(dotfiles: Path):
    host = this_host()
    found = {str(dotfiles / target) for target in LINKS.values()}
    assert set(named_by_settings(host, str(dotfiles))) == found
    assert found <= set(protected(host, str(dotfiles)))
    roots = Roots(host, dotfiles)
    assert roots.autorun_part(dotfiles / "shell/zshrc") == "shell/zshrc"
    assert roots.autorun_part(dotfiles / "fish") == "fish"
    assert not roots.autorun_part(dotfiles / "shell/other")


def test_of_very_many_folders_of_settings_the_first_are_looked_into(home: Path, project: Path):
    (project / "kept").touch()
    for number in range(300):
        (home / f".config/{number:03}/a/b/c/d").mkdir(parents=True)
    (home / ".config/link").symlink_to(project / "kept")
    (home / ".config/000/a/b/c/d/link").symlink_to(project / "deeper")
    assert named_by_settings(this_host(), str(project.resolve())) == [
        str(project.resolve() / "kept")
    ]


@pytest.mark.parametrize("link", [".ssh/config", ".aws/credentials", ".netrc", ".config/ybs/keys.json"])  # fmt: skip
def test_keys_that_they_lead_to_are_closed(home: Path, project: Path, link: str):
    (project / "kept").write_text("a key")
    (home / link).parent.mkdir(parents=True, exist_ok=True)
    (home / link).symlink_to(project / "kept")
    roots = Roots(this_host(), project.resolve())
    with pytest.raises(Refused, match=r"blocked|kept in that place|closed"):
        roots.resolve("kept")
    assert str(project.resolve() / "kept") in roots.blocked_in(str(project.resolve()))
    (project / "other").touch()
    assert roots.resolve("other") == project.resolve() / "other"
