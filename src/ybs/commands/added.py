"""The slash commands of packages that are installed beside ybs (the entry points `ybs.commands`)."""

from collections.abc import Sequence, Set
from functools import cache
from typing import Any

from msgspec import Struct

from ybs.commands.command import SlashCommand
from ybs.config.installed import EntryPoint, installed
from ybs.core.errors import ConfigError


class Added(Struct, frozen=True):
    """The commands of other packages, and a warning for each that cannot be used."""

    commands: Sequence[SlashCommand] = ()
    warnings: Sequence[str] = ()


@cache
def added_beside(own: frozenset[str]) -> Added:
    """Load the commands of other packages, once in a process; `own` are the names that ybs has itself."""
    commands: list[SlashCommand] = []
    warnings: list[str] = []
    for entry in installed():
        if entry.group == "ybs.commands":
            try:
                taken = own.union(name for each in commands for name in each.names)
                commands.append(_command(entry, taken))
            except ConfigError as error:
                warnings.append(f"{error}; ybs goes on without it")
    return Added(commands, warnings)


def _command(entry: EntryPoint, taken: Set[str]) -> SlashCommand:
    found: Any = entry.load()
    if not isinstance(found, SlashCommand):
        raise entry.problem("it is not a ybs.commands.command.SlashCommand")
    if both := sorted(taken & set(found.names)):
        raise entry.problem(f"there is a command /{both[0]} already")
    return found
