"""Settings that stand where nobody reads them."""

from pathlib import Path

from rows import every_row
from ybs.config.layers import unread
from ybs.session.options import Options
from ybs.session.settings import load_settings


def written(folder: Path, name: str, text: str = "{}") -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_a_settings_file_by_habit_is_named_with_the_one_that_is_read(project: Path, home: Path):
    assert load_settings(Options.of(project, {})).warnings == ()
    written(project, ".ybs/config.json")
    written(home, ".ybs/settings.json")
    assert load_settings(Options.of(project, {})).warnings == (
        ".ybs/config.json is not read: the settings of a project are in .ybs.json, as JSON.",
        "~/.ybs/settings.json is not read: your own settings are in ~/.config/ybs/config.json, as JSON.",
    )


@every_row("name", [".ybs.json", ".config/ybs/config.json", ".ybs/AGENT.md", "config.json"])
def test_what_is_read_or_is_something_else_is_not_named(tmp_path: Path, name: str):
    written(tmp_path, name)
    assert unread(tmp_path, tmp_path) == []
    assert unread(tmp_path / "other", tmp_path) == []


def test_the_folder_that_the_person_named_is_read(project, home, monkeypatch):
    monkeypatch.setenv("YBS_HOME", str(home / ".ybs"))
    written(home, ".ybs/config.json", '{"ui": {"color": false}}')
    loaded = load_settings(Options.of(project, {}))
    assert (loaded.warnings, loaded.config.ui.color) == ((), False)


def test_one_warning_for_each_place(tmp_path: Path):
    for name in (".ybs/config.json", ".ybs.toml", "ybs.json"):
        written(tmp_path, name)
    assert len(unread(tmp_path, tmp_path / "home")) == 1
    assert len(unread(tmp_path, tmp_path)) == 1
