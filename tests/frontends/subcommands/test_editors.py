"""`ybs setup editor`: settings are shown, and written so that nothing of the person's is lost."""

import json
from pathlib import Path

import pytest

from hosts import host_at
from ybs.cli import main
from ybs.frontends.subcommands.editors import editors_of, set_up_editors

ENTRY = {"type": "custom", "command": "ybs", "args": ["acp"], "env": {}}


@pytest.fixture(autouse=True)
def argv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["pytest"])
    monkeypatch.setattr("sys.executable", "/nowhere/python")


def test_all_are_shown_and_nothing_is_written(home: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["setup", "editor"]) == 0
    out = capsys.readouterr().out
    for word in ("Zed: ~/.config/zed/settings.json", "~/.jetbrains/acp.json", "codecompanion", "avante", "agent-shell"):  # fmt: skip
        assert word in out
    assert list(home.iterdir()) == []


def test_the_program_that_runs_is_named_by_its_path(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.argv", ["/opt/tools/ybs"])
    assert '"/opt/tools/ybs"' in editors_of(host_at(home))["zed"].settings


def test_those_that_are_not_here_are_left_alone(home: Path, capsys: pytest.CaptureFixture[str]):
    (home / ".jetbrains").mkdir()
    assert set_up_editors(host_at(home), [], writes=True) == 0
    assert json.loads((home / ".jetbrains/acp.json").read_text()) == {
        "agent_servers": {"ybs": {key: ENTRY[key] for key in ("command", "args", "env")}}
    }
    assert [path.name for path in home.iterdir()] == [".jetbrains"]
    assert "Zed has no settings here" in capsys.readouterr().err


def test_what_is_there_stays_and_a_second_time_changes_nothing(home: Path):
    file = home / ".config/zed/settings.json"
    file.parent.mkdir(parents=True)
    kept = home / "dotfiles.json"
    kept.write_text('{"theme": "ä", "agent_servers": {"other": {"command": "x"}}}')
    kept.chmod(0o640)
    file.symlink_to(kept)
    for _ in range(2):
        assert set_up_editors(host_at(home), ["zed"], writes=True) == 0
    assert json.loads(kept.read_text()) == {
        "theme": "ä",
        "agent_servers": {"other": {"command": "x"}, "ybs": ENTRY},
    }
    assert file.is_symlink()
    assert kept.stat().st_mode & 0o777 == 0o640


def test_comments_of_the_person_stay(home: Path):
    file = home / ".config/zed/settings.json"
    file.parent.mkdir(parents=True)
    file.write_text('// mine {\n/* and\nmore */ {\n  // dark\n  "theme": "One",\n}\n')
    assert set_up_editors(host_at(home), ["zed"], writes=True) == 0
    text = file.read_text()
    assert text.startswith('// mine {\n/* and\nmore */ {\n  "agent_servers": {\n    "ybs": {')
    assert text.endswith('},\n  // dark\n  "theme": "One",\n}\n')


@pytest.mark.parametrize(
    "text", ['{\n// mine\n"agent_servers": {}}', "[]", "// nothing", '{"agent_servers": 5}']
)
def test_what_cannot_be_added_to_is_left_as_it_is(home, text, capsys):
    file = home / ".config/zed/settings.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert set_up_editors(host_at(home), ["zed"], writes=True) == 1
    assert file.read_text() == text
    assert "was not changed" in capsys.readouterr().err


def test_neovim_gets_a_file_of_its_own_and_emacs_a_form_at_the_end(home: Path):
    init = home / ".config/emacs/init.el"
    init.parent.mkdir(parents=True)
    init.write_text("(mine)\n")
    for _ in range(2):
        assert set_up_editors(host_at(home), ["neovim", "emacs"], writes=True) == 0
    assert init.read_text().startswith("(mine)\n\n;; ybs in agent-shell")
    assert init.read_text().count("agent-shell-make-agent-config") == 1
    lua = (home / ".config/nvim/after/plugin/ybs.lua").read_text()
    assert 'default = { "ybs", "acp" }' in lua
    assert lua.count("{") == lua.count("}")
    assert init.read_text().count("(") == init.read_text().count(")")


def test_words_that_make_no_sense_are_refused(capsys: pytest.CaptureFixture[str]):
    assert main(["setup", "editor", "notepad"]) == 2
    assert "there is no editor 'notepad'" in capsys.readouterr().err
    assert main(["setup", "--write"]) == 2
    assert "only `ybs setup editor`" in capsys.readouterr().err
