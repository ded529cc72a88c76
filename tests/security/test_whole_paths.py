"""What startup files of the person's and their variables name by whole paths in a project is theirs."""

import os
from pathlib import Path

import pytest

from hosts import host_at
from rows import every_row
from ybs.config.host import Host
from ybs.security.paths.persons import named_by_settings
from ybs.security.paths.roots import Roots
from ybs.security.sandbox.protected import protected

pytestmark = pytest.mark.integration

FILES = ("bash/aliases.sh", "bash/more.sh", "vim/map.vim", "two words.sh", "top.sh", "README.md")


@pytest.fixture
def dotfiles(home: Path) -> Path:
    for name in FILES:
        put(home / "dotfiles" / name)
    put(home / "dots/top.sh")
    (home / "linked").symlink_to("dotfiles")
    return (home / "dotfiles").resolve()


def put(file: Path, text: str = "x") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def named(home: Path, root: Path, **variables: str) -> list[str]:
    host = Host.of({**host_at(home).environ, **variables})
    return sorted(os.path.relpath(path, root) for path in named_by_settings(host, str(root)))


@every_row(
    ("file", "text", "found"),
    [
        (".bashrc", ". ~/dotfiles/bash/aliases.sh", "bash/aliases.sh"),
        (".bashrc", "[ -f ~/dotfiles/new ] && . ~/dotfiles/new", "new"),
        (".profile", 'source "$HOME/dotfiles/bash/aliases.sh"; x', "bash/aliases.sh"),
        (".zshrc", 'source "$HOME"/dotfiles/bash/aliases.sh', "bash/aliases.sh"),
        (".zshrc", "source ${HOME}/dotfiles/bash/aliases.sh", "bash/aliases.sh"),
        (".bashrc", "source HOME/dotfiles/bash/../vim/map.vim", "vim/map.vim"),
        (".bash_aliases", "alias a='sh ~/dotfiles/top.sh --quiet'", "top.sh"),
        (".zshrc", 'D=$HOME/dotfiles\nexport B="$D/bash"\n. "${B}/aliases.sh"', "bash/aliases.sh"),
        (".bashrc", '. "$HOME/dotfiles/two words.sh"', "two two words.sh"),
        (".bashrc", ". ~/dotfiles/two\\ words.sh", "two words.sh"),
        (".bashrc", ". \\\n  ~/dotfiles/top.sh", "top.sh"),
        (".config/fish/config.fish", "source ~/dotfiles/top.sh", "top.sh"),
        (".vimrc", "source ~/dotfiles/vim/map.vim", "vim/map.vim"),
        (".tmux.conf", 'run-shell "~/dotfiles/top.sh"', "top.sh"),
        (".emacs", '(load "~/dotfiles/vim/map.vim")', "vim/map.vim"),
        (".gdbinit", "source ~/linked/top.sh", "top.sh"),
        (".bashrc", "for f in ~/dotfiles/bash/*; do . $f; done", "bash"),
        (".bashrc", "for f in ~/dotfiles/{top,none}.sh; do . $f; done", "top.sh two words.sh"),
        (".bashrc", "  source ~/dotfiles/bash/*.sh", "bash"),
        (".bashrc", ". ~/dot*/t*.sh", "top.sh two words.sh"),
        # Folders, comments, what a program works on, other files, and what no word says.
        (".bashrc", "alias d='cd ~/dotfiles'; PATH=~/dotfiles/bash:$PATH", ""),
        (".bashrc", "# . ~/dotfiles/top.sh", ""),
        (".bashrc", "alias l='shellcheck ~/dotfiles/bash/*.sh'", ""),
        (".bashrc", ". /etc/*.sh; . /*; . dotfiles/top.sh; . ./top.sh; cd $X/dotfiles/top.sh", ""),
        (".bashrc", ". ~/other/top.sh; . ~/dotfiles/$1", ""),
        (".bashrc", "HOME=/none", ""),
        (".bash_history", ". ~/dotfiles/top.sh", ""),
        (".claude.json", '{"a": "~/dotfiles/top.sh"}', ""),
        (".zshrc/folder", ". ~/dotfiles/top.sh", ""),
    ],
)
def test_what_startup_files_name_by_whole_paths_is_the_persons(home, dotfiles, file, text, found):
    put(home / file, text.replace(" HOME", f" {home}"))
    try:
        assert " ".join(named(home, dotfiles)) == found
    finally:
        (home / file).unlink()


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({"BASH_ENV": "HOME/dotfiles/bash/aliases.sh"}, "bash/aliases.sh"),
        ({"PYTHONSTARTUP": "HOME/linked/new.py"}, "new.py"),
        ({"LESSOPEN": "|HOME/dotfiles/top.sh %s"}, "top.sh"),
        ({"NODE_OPTIONS": "--require=HOME/dotfiles/top.sh --no-x"}, "top.sh"),
        ({"NODE_OPTIONS": "-rHOME/dotfiles/top.sh"}, "top.sh"),
        ({"RUBYOPT": "-w -r HOME/dotfiles/top.sh"}, "top.sh"),
        ({"_JAVA_OPTIONS": "-javaagent:HOME/dotfiles/top.sh"}, "top.sh"),
        # Folders, and what a shell and npm say.
        ({"PWD": "HOME/dotfiles", "OLDPWD": "HOME/dotfiles/bash", "PATH": "HOME/dotfiles/bash"}, ""),
        ({"_": "HOME/dotfiles/top.sh", "npm_package_json": "HOME/dotfiles/top.sh"}, ""),
        ({"A": "top.sh", "B": "/none/top.sh", "C": "https://a/dotfiles/top.sh"}, ""),
    ],
)  # fmt: skip
def test_what_variables_name_by_whole_paths_is_the_persons(home, dotfiles, variables, found):
    given = {name: value.replace("HOME", str(home)) for name, value in variables.items()}
    assert " ".join(named(home, dotfiles, **given)) == found


def test_where_shells_are_told_to_look_for_their_files_they_count(home, dotfiles):
    put(home / "zsh/.zshrc", ". ~/dotfiles/top.sh")
    assert named(home, dotfiles) == []
    assert named(home, dotfiles, ZDOTDIR=str(home / "zsh")) == ["top.sh"]


def test_links_on_the_way_count_and_a_folder_that_comes_later_does_not(home, dotfiles):
    (dotfiles / "now").symlink_to("bash")
    put(home / ".bashrc", ". ~/dotfiles/now/aliases.sh; OUT=~/dotfiles/out")
    host = host_at(home)
    for found in (["bash/aliases.sh", "now", "out"], ["bash/aliases.sh", "now"]):
        paths = named_by_settings(host, str(dotfiles))
        assert sorted(os.path.relpath(path, dotfiles) for path in paths) == found
        (dotfiles / "out").mkdir(exist_ok=True)


def test_startup_files_are_read_again_when_they_change(home, dotfiles):
    host = host_at(home)
    assert named_by_settings(host, str(dotfiles)) == []
    file = put(home / ".bashrc", ". ~/dotfiles/top.sh")
    assert named_by_settings(host, str(dotfiles)) == [f"{dotfiles}/top.sh"]
    file.write_text(". ~/dotfiles/vim/map.vim")
    assert named_by_settings(host, str(dotfiles)) == [f"{dotfiles}/vim/map.vim"]
    file.chmod(0)
    if os.geteuid():
        assert named_by_settings(host, str(dotfiles)) == []


def test_it_is_read_only_for_commands_and_asked_about(home, dotfiles):
    put(home / ".bashrc", ". ~/dotfiles/top.sh; . ~/dotfiles/new.sh")
    host = host_at(home)
    assert f"{dotfiles}/top.sh" in protected(host, str(dotfiles))
    roots = Roots(host, dotfiles)
    assert roots.autorun_part(dotfiles / "top.sh") == "top.sh"
    assert roots.autorun_part(dotfiles / "new.sh") == "new.sh"
    assert not roots.autorun_part(dotfiles / "README.md")
