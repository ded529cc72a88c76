"""Settings that people keep in a repository (dotfiles): links of the home folder lead into the project."""

import os
from pathlib import Path

import pytest

from hosts import this_host
from ybs.core.errors import Refused
from ybs.security.paths import home_links
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


def linked(home: Path, link: str, target: Path) -> None:
    (home / link).parent.mkdir(parents=True, exist_ok=True)
    (home / link).symlink_to(target)


def forget() -> None:
    home_links.led_into.cache_clear()
    home_links.hidden_in.cache_clear()


def named(root: Path) -> list[str]:
    root = root.resolve()
    return [os.path.relpath(path, root) for path in named_by_settings(this_host(), str(root))]


@pytest.mark.parametrize(
    ("link", "counts"),
    [
        (".bashrc.d/aliases.sh", True),
        (".emacs.d/init.el", True),
        (".vim/plugin/x.vim", True),
        (".oh-my-zsh/custom/plugins/mine/x.zsh", True),
        (".local/share/systemd/user/x.service", True),
        (".config/a/b/c/x", True),
        (".cargo/config.toml", True),
        (".cache/x", True),
        # Too deep, what is installed or kept again, repositories, and what is not hidden.
        (".config/a/b/c/d/x", False),
        (".cache/deep/x", False),
        (".marked/deep/x", False),
        (".nvm/alias/x", False),
        (".local/bin/x", False),
        (".npm-global/bin/x", False),
        (".dotfiles.git/refs/x", False),
        (".other/.git/modules/x", False),
        ("bin/x", False),
    ],
)
def test_links_in_hidden_folders_count_so_deep_as_settings_lie(home: Path, project: Path, link, counts, monkeypatch):  # fmt: skip
    linked(home, link, project / "sub/kept")
    for name in (".marked/CACHEDIR.TAG", ".dotfiles.git/HEAD", ".dotfiles.git/objects/x"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
    (home / ".dotfiles.git/refs").mkdir(exist_ok=True)
    monkeypatch.setenv("PATH", f"{home}/.npm-global/bin:/usr/bin")
    assert named(project) == (["sub/kept"] if counts else [])


def test_settings_may_be_a_link_themselves(home: Path, project: Path):
    linked(home, ".config", home / "dotfiles/config")
    linked(home, "dotfiles/config/systemd/user/x.service", project / "kept")
    (home / "dotfiles/config/nvim").mkdir()
    assert named(project) == ["kept"]
    assert "config" in named(home / "dotfiles")
    assert named(home / "dotfiles/config/nvim") == ["."]


def test_links_of_a_project_in_a_hidden_folder_to_its_own_files_are_its_own(home: Path):
    root = home / ".codex/worktrees/a"
    linked(home, ".codex/worktrees/a/docs/AGENTS.md", root / "README.md")
    linked(home, ".codex/worktrees/a/CLAUDE.md", Path("README.md"))
    assert named(root) == []
    linked(home, ".profile", root / "profile")
    forget()
    assert named(root) == ["profile"]


def test_where_there_are_more_folders_what_several_links_lead_into_is_the_persons(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(home_links, "_MOST_FOLDERS", 50)
    for number in range(40):
        (home / f".config/{number:03}/a").mkdir(parents=True)
    assert named(project) == []
    forget()
    linked(home, ".config/039/link", project / "kept")
    linked(home, ".zshrc", home / "zshrc")
    (home / "elsewhere").mkdir()
    assert named(project) == ["kept"], "one link is no place for settings"
    forget()
    linked(home, ".config/038/link", project / "second")
    linked(home, ".third", project / "third")
    assert sorted(named(project)) == [".", "kept", "second", "third"]
    assert named(home / "elsewhere") == []
    assert "zshrc" in named(home)
    assert "." not in named(home)


@pytest.mark.parametrize("link", [".ssh/config", ".aws/credentials", ".netrc", ".config/ybs/keys.json"])  # fmt: skip
def test_keys_that_they_lead_to_are_closed(home: Path, project: Path, link: str):
    (project / "kept").write_text("a key")
    (home / link).parent.mkdir(parents=True, exist_ok=True)
    (home / link).symlink_to(project / "kept")
    (home / ".pgpass").write_text("a key, too")
    roots = Roots(this_host(), project.resolve())
    with pytest.raises(Refused, match=r"blocked|kept in that place|closed"):
        roots.resolve("kept")
    assert str(project.resolve() / "kept") in roots.blocked_in(str(project.resolve()))
    (project / "other").touch()
    assert roots.resolve("other") == project.resolve() / "other"
