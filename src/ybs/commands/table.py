"""The table of the slash commands: their names, what they do, and how."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, get_args

from msgspec import Struct

from ybs.commands.conversation import begin_anew, clear, copy, export, leave
from ybs.commands.diff import show_diff
from ybs.commands.focus import focus
from ybs.commands.git import commit
from ybs.commands.init import init
from ybs.commands.memory import memorize, show_memories
from ybs.commands.models import change_mode, change_model, change_provider
from ybs.commands.permissions import permissions
from ybs.commands.project import (
    change_incognito,
    change_trust,
    send_to_background,
    show_jobs,
)
from ybs.commands.reports import show_config, show_secrets, show_status, show_tools
from ybs.commands.rewind import rewind
from ybs.commands.sessions import (
    fork,
    rename,
    resume,
    save,
    show_session,
    show_sessions,
)
from ybs.commands.undo import compact, redo, restore, undo
from ybs.commands.usage import show_context, show_cost
from ybs.commands.view import change_streaming, change_verbosity
from ybs.config.schema import Mode
from ybs.session.reply import Reply, Table
from ybs.session.session import Session

Run: TypeAlias = Callable[[Session, str], Awaitable[Reply]]


class Command(Struct, frozen=True):
    """One command: its names (the first is shown), its arguments, what it does, and how.

    `waits`: it waits for the end of a running turn, but for one that `shows_bare` and has no argument. `choices`
    lists what its argument may be. `activity` is said while it works, where that may take long.
    """

    names: tuple[str, ...]
    arguments: str
    summary: str
    run: Run
    waits: bool = False
    shows_bare: bool = False
    choices: Callable[[Session], Sequence[str]] | None = None
    activity: str = ""


async def show_help(session: Session, _argument: str) -> Reply:
    """List the commands, the other things a line can be, and the frontend's keys."""
    groups = [Table.of((_shown(each), each.summary) for each in group) for group in GROUPS]
    direct = (
        ("!COMMAND", "run a shell command and tell the model"),
        ("!!COMMAND", "run a shell command for yourself"),
    )
    notes = ("", session.frontend_help) if session.frontend_help else ()
    return Reply(tables=(*groups, Table.of(direct)), notes=notes)


def _shown(command: Command) -> str:
    return f"/{command.names[0]} {command.arguments}".rstrip()


def _words(*words: str) -> Callable[[Session], Sequence[str]]:
    return lambda _session: words


def _modes(_session: Session) -> Sequence[str]:
    return get_args(Mode)


def _providers(session: Session) -> Sequence[str]:
    from ybs.providers.registry import provider_names

    return provider_names(session.config)


def _models(session: Session) -> Sequence[str]:
    """Return the names that /model offered last."""
    menu = session.offered.get("model")
    lines = [item.line for item in menu.items] if menu else []
    return [line.removeprefix("/model ") for line in lines if line.startswith("/model ")]


def _offered_sessions(session: Session) -> Sequence[str]:
    """Return the names that /sessions or /resume offered last."""
    menu = session.offered.get("resume")
    return [item.line.removeprefix("/resume ") for item in menu.items] if menu else []


def _jobs(session: Session) -> Sequence[str]:
    return [f"stop {job.name}" for job in session.environment.workspace.shells.jobs.running]


_ON_OFF = _words("on", "off")
#: In the order of /help, with a blank line between the groups: the model, the conversation, saved sessions, what it
#: took and did, the project, ybs itself.
GROUPS = (
    (
        Command(
            names=("model",),
            arguments="[NAME]",
            summary="choose the model",
            run=change_model,
            waits=True,
            shows_bare=True,
            choices=_models,
        ),
        Command(
            names=("provider",),
            arguments="[NAME [MODEL]]",
            summary="choose the provider; the conversation stays",
            run=change_provider,
            waits=True,
            shows_bare=True,
            choices=_providers,
        ),
        Command(
            names=("mode",),
            arguments="[NAME]",
            summary="choose what is done without asking",
            run=change_mode,
            choices=_modes,
        ),
        Command(
            names=("permissions",),
            arguments="[allow RULE]",
            summary="show and change what needs no question",
            run=permissions,
            choices=_words("allow", "deny", "remove"),
        ),
    ),
    (
        Command(("new",), "", "begin a new session", begin_anew, waits=True),
        Command(("clear",), "", "forget the conversation", clear, waits=True),
        Command(
            names=("rewind",),
            arguments="[N [WHAT]]",
            summary="go back to before a prompt",
            run=rewind,
            waits=True,
            shows_bare=True,
        ),
        Command(
            names=("undo",),
            arguments="[N] [force]",
            summary="take the last turn back, its files too",
            run=undo,
            waits=True,
            choices=_words("force"),
            activity="taking back",
        ),
        Command(
            ("redo",),
            "[force]",
            "do again what was taken back",
            redo,
            waits=True,
            choices=_words("force"),
            activity="doing again",
        ),
        Command(
            names=("compact",),
            arguments="[WHAT TO KEEP]",
            summary="set older parts of the conversation aside",
            run=compact,
            waits=True,
            activity="compacting",
        ),
        Command(("restore",), "", "bring back what was set aside", restore, waits=True),
        Command(
            ("copy",), "[N|code]", "copy an answer, or the code in it", copy, choices=_words("code")
        ),
        Command(("export",), "[FILE]", "write the conversation into a file", export),
        Command(
            names=("incognito",),
            arguments="[off]",
            summary="begin a session that is written nowhere",
            run=change_incognito,
            waits=True,
            choices=_words("off"),
        ),
    ),
    (
        Command(
            ("sessions",),
            "[N|all]",
            "offer the saved sessions",
            show_sessions,
            choices=_words("all"),
        ),
        Command(
            names=("resume", "load"),
            arguments="[N|NAME [fork]]",
            summary="go on with a saved session",
            run=resume,
            waits=True,
            shows_bare=True,
            choices=_offered_sessions,
            activity="reading",
        ),
        Command(("session",), "", "show what is known of this session", show_session),
        Command(("rename",), "[TITLE]", "give the session another title", rename),
        Command(("save",), "[NAME]", "write a copy under a name of its own", save),
        Command(("fork",), "", "go on in a copy of this session", fork, waits=True),
    ),
    (
        Command(("status",), "", "show where things stand", show_status),
        Command(("context",), "", "show what fills the model's window", show_context),
        Command(("cost",), "", "show what the turns have used", show_cost),
        Command(
            ("diff",), "[N|all]", "show what was changed in files", show_diff, choices=_words("all")
        ),
        Command(
            names=("jobs", "ps"),
            arguments="[stop ID]",
            summary="show what runs in the background, or stop it",
            run=show_jobs,
            choices=_jobs,
        ),
        Command(
            names=("background", "bg"),
            arguments="",
            summary="let the running command go on in the background",
            run=send_to_background,
        ),
    ),
    (
        Command(
            names=("init",),
            arguments="[show]",
            summary="write a first AGENTS.md for the project",
            run=init,
            waits=True,
            choices=_words("show"),
            activity="looking at the project",
        ),
        Command(
            names=("focus",),
            arguments="[TEXT|clear]",
            summary="say what the project is about at the moment",
            run=focus,
            choices=_words("clear"),
        ),
        Command(("memorize",), "TEXT", "keep a note for later sessions", memorize),
        Command(
            names=("memories",),
            arguments="[N|WORDS]",
            summary="show, search or forget what was kept",
            run=show_memories,
            choices=_words("forget", "undo"),
        ),
    ),
    (
        Command(
            names=("commit",),
            arguments="[MESSAGE]",
            summary="commit what changed, or propose a message",
            run=commit,
            waits=True,
            activity="looking at the changes",
        ),
        Command(("tools",), "", "list the tools that the model has", show_tools),
        Command(
            names=("trust",),
            arguments="[give|revoke]",
            summary="show or decide what the project's files may do",
            run=change_trust,
            choices=_words("give", "revoke"),
        ),
        Command(
            names=("secrets",),
            arguments="[allow NAME]",
            summary="show what the model does not get to see",
            run=show_secrets,
            choices=_words("allow"),
        ),
        Command(("config",), "", "show the settings and where they come from", show_config),
    ),
    (
        Command(
            ("stream",), "[on|off]", "show answers as they come", change_streaming, choices=_ON_OFF
        ),
        Command(("verbose",), "[on|off]", "show the work whole", change_verbosity, choices=_ON_OFF),
        Command(("help", "?"), "", "show the commands and keys", show_help),
        Command(("quit", "exit"), "", "leave", leave),
    ),
)
LISTED = tuple(command for group in GROUPS for command in group)
COMMANDS = {name: command for command in LISTED for name in command.names}
