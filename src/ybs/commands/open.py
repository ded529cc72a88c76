"""Open a session that has the slash commands."""

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ybs.config.installed import installed
from ybs.session.options import Options
from ybs.session.reply import Reply
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.commands.command import SlashCommand


class SlashCommands:
    """The slash commands; their table is loaded with the first one that is typed."""

    #: Those that a model may well point to; loading the table of all takes too long before a first request.
    pointed_to = ("/help", "/undo", "/diff", "/commit", "/compact", "/focus", "/memories")

    def listed(self, session: Session) -> Sequence["SlashCommand"]:
        """Return all of them."""
        return _registry().commands_of(session)

    def runs_beside(self, session: Session, line: str) -> bool:
        """Return whether the line is a command that need not wait for the end of a running turn."""
        return _registry().runs_beside_a_turn(line, session)

    async def run(self, session: Session, line: str) -> Reply:
        """Run a command line; names ignore case."""
        return await _registry().run_command(session, line)

    def resumed(self, session: Session) -> Reply | None:
        """Return what a frontend says and draws first of a session that goes on."""
        from ybs.commands.sessions import resumed_reply  # few do

        return resumed_reply(session, is_fork=session.journal.is_fork)


def _registry() -> ModuleType:
    from ybs.commands import registry  # a prompt needs none

    return registry


def open_session(options: Options) -> Session:
    """Open a session with the slash commands, and with what the packages bring that are installed beside ybs.

    Raises ConfigError for what makes a start impossible.
    """
    if entries := installed():
        from ybs.session.plugins import with_plugins  # few have any

        options = with_plugins(options, entries)
    if any(each.group == "ybs.commands" for each in entries):
        from ybs.commands.table import added  # many do without them

        options = replace(options, warnings=(*options.warnings, *added().warnings))
    return Session(replace(options, commands=SlashCommands()))
