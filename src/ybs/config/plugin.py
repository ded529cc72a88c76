"""A plugin that is in force, as data that travels with the settings."""

from pathlib import Path

from msgspec import Struct


class PluginFolder(Struct, frozen=True, kw_only=True):
    """Where the plugin lies, and the files of its commands and its kinds of sub-agents and the folders of its skills, as paths within it."""

    name: str
    folder: Path
    commands: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    skill_folders: tuple[str, ...] = ()
