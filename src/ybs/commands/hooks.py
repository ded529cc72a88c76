"""/hooks: the commands of the person, of the project and of plugins that run at set moments."""

from typing import TYPE_CHECKING

from ybs.core.wording import plural
from ybs.session.reply import Reply, Table
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.agent.user_hooks.definitions import Hook

#: Whose hook it is, and where it runs.
WHOSE = {
    "own": "yours",
    "project": "the project's, in the sandbox",
    "plugin": "a plugin's, in the sandbox",
}
_NONE = "There are no hooks. They stand in the section hooks of the settings; `ybs help hooks` shows their form."


async def show_hooks(session: Session, _argument: str) -> Reply:
    """List the hooks in force, and say what is wrong with others."""
    from ybs.agent.user_hooks.definitions import read  # many have none

    found = read(session.config.hooks)
    said = f"{plural(len(found.hooks), 'hook')}." if found.hooks else _NONE
    tables = (Table.of(map(cells_of, found.hooks)),) if found.hooks else ()
    return Reply(tables=tables, notes=(said, *found.problems))


def cells_of(hook: "Hook") -> tuple[str, ...]:
    """Return a hook as a row: when, for what, whose, and what is run."""
    meant = f"{hook.matcher or '*'}{f' if {hook.condition}' if hook.condition else ''}"
    return hook.event, meant, WHOSE[hook.source], hook.shown
