"""Files that people write out of habit for settings, and that are not read: which file is read in their place."""

from collections.abc import Collection
from pathlib import Path

from ybs.config.paths import PROJECT_FILE

_IN_PROJECT = (
    *(f".ybs/{name}" for name in ("config.json", "settings.json", "config.toml", "config.yaml")),
    "ybs.json",
    ".ybs.toml",
    ".ybs.yaml",
)
_AT_HOME = (
    *(f".ybs/{name}" for name in ("config.json", "settings.json", "config.toml", "config.yaml")),
    *(f".config/ybs/{name}" for name in ("settings.json", "config.toml", "config.yaml")),
    ".ybs.toml",
    ".ybs.yaml",
)


def unread(project: Path, home: Path, known: Collection[str] = ()) -> list[str]:
    """Return a warning for settings that somebody wrote where nobody reads them: one for the project, one for the home.

    `known` are the files that were read: YBS_HOME may name any folder.
    """
    warnings: list[str] = []
    if project != home and (name := _first(project, _IN_PROJECT, known)):
        warnings.append(
            f"{name} is not read: the settings of a project are in {PROJECT_FILE}, as JSON."
        )
    if name := _first(home, _AT_HOME, known):
        warnings.append(
            f"~/{name} is not read: your own settings are in ~/.config/ybs/config.json, as JSON."
        )
    return warnings


def _first(folder: Path, names: tuple[str, ...], known: Collection[str]) -> str:
    there = (name for name in names if (folder / name).is_file())
    return next((name for name in there if str(folder / name) not in known), "")
