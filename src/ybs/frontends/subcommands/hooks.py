"""`ybs hooks`: the hooks in force here, and what is wrong with others."""

from typing import TYPE_CHECKING

from ybs.agent.user_hooks.definitions import Hook, read
from ybs.commands.hooks import cells_of
from ybs.frontends.headless.output import tell, warn, write_json
from ybs.frontends.subcommands.tables import write_table
from ybs.session.settings import load_settings

if TYPE_CHECKING:
    from ybs.session.options import Options


def hooks(options: "Options", *, is_json: bool) -> int:
    """Print the hooks; exit code 1 where some cannot be used."""
    loaded = load_settings(options)
    found = read(loaded.config.hooks)
    if is_json:
        write_json({"hooks": [_data(hook) for hook in found.hooks], "problems": found.problems})
    else:
        write_table([cells_of(hook) for hook in found.hooks])
        for problem in found.problems:
            tell(problem)
        if not found.hooks and not found.problems:
            tell("There are no hooks in the settings.")
    warn(loaded.warnings)
    return int(bool(found.problems))


def _data(hook: Hook) -> dict[str, object]:
    return {
        "event": hook.event,
        "matcher": hook.matcher,
        "if": hook.condition,
        "source": hook.source,
        "command": hook.command,
        "timeout": hook.seconds,
        "async": hook.is_async,
    }
