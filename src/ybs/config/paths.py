"""Where ybs keeps its files: XDG folders, or the one folder that YBS_HOME names.

https://specifications.freedesktop.org/basedir-spec/latest/ (relative values are ignored, as it asks).
"""

import os
from collections.abc import Mapping
from pathlib import Path

PROJECT_FILE = ".ybs.json"
#: What else a project may have that needs trust; a start looks for these names alone.
PROJECT_SIGNS = (".mcp.json", ".ybs", "tools")
SYSTEM_FILE = Path("/etc/ybs/config.json")


def home(environ: Mapping[str, str] | None = None) -> Path:
    """Return the person's home folder."""
    named = (os.environ if environ is None else environ).get("HOME", "")
    return Path(named) if named.startswith("/") else Path(os.path.expanduser("~")).absolute()  # noqa: PTH111 - unlike Path.home() it never raises


def own_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the folder that YBS_HOME names, if it is an absolute one.

    A relative one would depend on the folder that ybs starts in, and so on the project.
    """
    named = (os.environ if environ is None else environ).get("YBS_HOME", "")
    return Path(named) if named.startswith("/") else None


def config_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of the configuration: `~/.config/ybs`."""
    return own_folder(environ) or _xdg("XDG_CONFIG_HOME", ".config", environ)


def state_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of checkpoints and spilled outputs: `~/.local/state/ybs`."""
    own = own_folder(environ)
    return own / "state" if own else _xdg("XDG_STATE_HOME", ".local/state", environ)


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of caches and models: `~/.cache/ybs`."""
    own = own_folder(environ)
    return own / "cache" if own else _xdg("XDG_CACHE_HOME", ".cache", environ)


def user_config_file(environ: Mapping[str, str] | None = None) -> Path:
    """Return the user's configuration file: `~/.config/ybs/config.json`."""
    return config_folder(environ) / "config.json"


def home_config_file(environ: Mapping[str, str] | None = None) -> Path:
    """Return the user's short-hand file: `~/.ybs.json`."""
    return home(environ) / PROJECT_FILE


def sessions_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return where sessions are kept unless `session.storage_path` says otherwise."""
    return config_folder(environ) / "sessions"


def expand(path: str, folder: Path, environ: Mapping[str, str] | None = None) -> Path:
    """Make a path of a setting absolute: `~` is the home folder, the rest hangs on `folder`.

    `~/.config/ybs` stands for the configuration folder wherever XDG_CONFIG_HOME or YBS_HOME put it.
    Links are not resolved.
    """
    parts = Path(path).parts
    if parts[:3] == ("~", ".config", "ybs"):
        return config_folder(environ).joinpath(*parts[3:])
    if parts[:1] == ("~",):
        return home(environ).joinpath(*parts[1:])
    return folder.absolute() / path


def short(path: str) -> str:
    """Write the home folder as `~`."""
    place, own = Path(path), home()
    return "~" if place == own else f"~/{place.relative_to(own)}" if own in place.parents else path


def _xdg(variable: str, fallback: str, environ: Mapping[str, str] | None) -> Path:
    named = (os.environ if environ is None else environ).get(variable, "")
    return (Path(named) if named.startswith("/") else home(environ) / fallback) / "ybs"
