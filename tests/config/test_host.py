import os
from pathlib import Path

from hosts import this_host
from rows import every_row
from ybs.config.host import Host


def test_folders_hang_on_the_home_folder(home: Path):
    host = this_host()
    assert host.home == home
    assert host.config_folder == home / ".config/ybs"
    assert host.state_folder == home / ".local/state/ybs"
    assert host.cache_folder == home / ".cache/ybs"
    assert host.sessions_folder == home / ".config/ybs/sessions"
    assert host.user_config_file == home / ".config/ybs/config.json"
    assert host.home_config_file == home / ".ybs.json"


def test_xdg_variables_move_the_folders():
    host = Host.of(
        {"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "/k"}
    )
    assert host.config_folder == Path("/c/ybs")
    assert host.state_folder == Path("/s/ybs")
    assert host.cache_folder == Path("/k/ybs")


def test_relative_xdg_variables_are_ignored():
    host = Host.of({"HOME": "/h", "XDG_CONFIG_HOME": "c"})
    assert host.config_folder == Path("/h/.config/ybs")


def test_ybs_home_is_one_folder_for_all():
    host = Host.of({"HOME": "/h", "XDG_CONFIG_HOME": "/c", "YBS_HOME": "/one"})
    assert host.config_folder == Path("/one")
    assert host.state_folder == Path("/one/state")
    assert host.cache_folder == Path("/one/cache")
    assert host.sessions_folder == Path("/one/sessions")


def test_a_relative_ybs_home_is_ignored():
    host = Host.of({"HOME": "/h", "YBS_HOME": "./evil"})
    assert host.config_folder == Path("/h/.config/ybs")


@every_row("environ", [{}, {"HOME": "relative"}])
def test_without_the_variable_the_home_folder_is_that_of_the_account(environ: dict[str, str]):
    import pwd

    assert Host.of(environ).home == Path(pwd.getpwuid(os.getuid()).pw_dir)


def test_an_account_without_an_entry_has_no_home_folder(monkeypatch):
    def missing(_uid: int):
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", missing)
    assert Host.of({}).home == Path("/nonexistent")


def test_a_host_stays_as_it_was_made():
    environ = {"HOME": "/h"}
    host = Host.of(environ)
    environ["HOME"] = "/other"
    assert (host.home, host.environ["HOME"]) == (Path("/h"), "/h")


def test_a_host_does_not_show_its_environment():
    assert repr(Host.of({"HOME": "/h", "OPENAI_API_KEY": "k" * 20})) == "Host(home='/h')"


@every_row(
    ("path", "expected"),
    [
        ("src", "/p/src"),
        ("./", "/p"),
        ("../other", "/p/../other"),
        ("/abs", "/abs"),
        ("~", "/h"),
        ("~/.ssh", "/h/.ssh"),
        ("~/.config", "/h/.config"),
        ("~/.config/ybs/sessions", "/one/sessions"),
        ("~other/x", "/p/~other/x"),
    ],
)
def test_expand_makes_a_path_absolute(path: str, expected: str):
    host = Host.of({"HOME": "/h", "YBS_HOME": "/one"})
    assert host.expand(path, Path("/p")) == Path(expected)


@every_row(
    ("name", "expected"),
    [("~", "/h"), ("~/a/", "/h/a/"), ("~other/a", "~other/a"), ("a~", "a~"), ("/a", "/a")],
)
def test_with_home_puts_the_home_folder_before_a_name(name: str, expected: str):
    assert Host.of({"HOME": "/h"}).with_home(name) == expected


@every_row(("path", "expected"), [("/h", "~"), ("/h/a", "~/a"), ("/hh", "/hh"), ("/p", "/p")])
def test_short_writes_the_home_folder_as_a_tilde(path: str, expected: str):
    assert Host.of({"HOME": "/h"}).short(path) == expected
