"""Tools, toolboxes, guards and hooks of packages that are installed beside ybs."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from ybs.config.installed import EntryPoint
from ybs.core.errors import ConfigError
from ybs.session.options import Options

#: The groups of entry points, the options that they add to, and what everything in them has to have.
GROUPS: Final = {
    "ybs.tools": ("tools", ("name", "description", "effect", "parameters", "run")),
    "ybs.toolboxes": ("toolboxes", ("open", "aclose", "specs", "is_read_only", "run")),
    "ybs.guards": ("guards", ("before_step", "wants_more")),
    "ybs.hooks": ("hooks", ("before_turn", "before_change", "after_change", "after_turn")),
}


def with_plugins(options: Options, entries: Sequence[EntryPoint]) -> Options:
    """Return the options with what the entry points bring, each made anew; of one that does not work, with a warning.

    An entry point names a class, or a function without arguments, that makes the tool, the toolbox, the guard or the hook.
    """
    added: dict[str, list[Any]] = {option: [] for option, _ in GROUPS.values()}
    warnings: list[str] = []
    for entry in entries:
        if entry.group in GROUPS:
            option, needed = GROUPS[entry.group]
            try:
                added[option].append(_made(entry, needed))
            except ConfigError as error:
                warnings.append(f"{error}; ybs goes on without it")
    several = {option: (*getattr(options, option), *more) for option, more in added.items()}
    return replace(options, warnings=(*options.warnings, *warnings), **several)


def _made(entry: EntryPoint, needed: Sequence[str]) -> Any:
    make = entry.load()
    try:
        made = make()
        lacks = [name for name in needed if not hasattr(made, name)]
    except (Exception, SystemExit) as error:  # somebody else's code: it may do anything
        raise entry.problem(f"{type(error).__name__}: {error}") from error
    if lacks:
        raise entry.problem(f"it has no {', '.join(lacks)}")
    return made
