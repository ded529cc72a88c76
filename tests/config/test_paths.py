from pathlib import Path

from rows import every_row
from ybs.config import paths


def test_folders_hang_on_the_home_folder(home: Path):
    assert paths.config_folder() == home / ".config/ybs"
    assert paths.state_folder() == home / ".local/state/ybs"
    assert paths.cache_folder() == home / ".cache/ybs"
    assert paths.sessions_folder() == home / ".config/ybs/sessions"
    assert paths.user_config_file() == home / ".config/ybs/config.json"
    assert paths.home_config_file() == home / ".ybs.json"


def test_xdg_variables_move_the_folders():
    environ = {
        "HOME": "/h",
        "XDG_CONFIG_HOME": "/c",
        "XDG_STATE_HOME": "/s",
        "XDG_CACHE_HOME": "/k",
    }
    assert paths.config_folder(environ) == Path("/c/ybs")
    assert paths.state_folder(environ) == Path("/s/ybs")
    assert paths.cache_folder(environ) == Path("/k/ybs")


def test_relative_xdg_variables_are_ignored():
    assert paths.config_folder({"HOME": "/h", "XDG_CONFIG_HOME": "c"}) == Path("/h/.config/ybs")


def test_ybs_home_is_one_folder_for_all():
    environ = {"HOME": "/h", "XDG_CONFIG_HOME": "/c", "YBS_HOME": "/one"}
    assert paths.config_folder(environ) == Path("/one")
    assert paths.state_folder(environ) == Path("/one/state")
    assert paths.cache_folder(environ) == Path("/one/cache")
    assert paths.sessions_folder(environ) == Path("/one/sessions")


def test_a_relative_ybs_home_is_ignored():
    assert paths.config_folder({"HOME": "/h", "YBS_HOME": "./evil"}) == Path("/h/.config/ybs")


def test_home_is_found_without_the_variable():
    assert paths.home({}).is_absolute()
    assert paths.home({"HOME": "relative"}).is_absolute()


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
    environ = {"HOME": "/h", "YBS_HOME": "/one"}
    assert paths.expand(path, Path("/p"), environ) == Path(expected)
