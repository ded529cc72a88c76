"""The table of the slash commands: their names, what they do, and how."""

from collections.abc import Callable, Sequence, Set
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ybs.commands.agents import agent_names, show_agents
from ybs.commands.command import SlashCommand
from ybs.commands.conversation import begin_anew, clear, copy, export, leave, retry
from ybs.commands.custom import custom_of, each_once
from ybs.commands.download import download
from ybs.commands.git import change_autocommit, commit
from ybs.commands.learn import ACTIONS, learn
from ybs.commands.mcp import server_names, show_servers
from ybs.commands.memory import memorize, show_memories
from ybs.commands.models import (
    LEVELS,
    MODE_WORDS,
    change_effort,
    change_mode,
    change_model,
    change_profile,
    change_provider,
    profile_names,
)
from ybs.commands.permissions import add_dir, permissions
from ybs.commands.plan import show_plan
from ybs.commands.project import (
    change_incognito,
    change_trust,
    focus,
    init,
    send_to_background,
    share,
    show_jobs,
)
from ybs.commands.reports import (
    change_streaming,
    change_verbosity,
    check_machine,
    reload_tools,
    set_up,
    show_config,
    show_hooks,
    show_secrets,
    show_status,
    show_steps,
    show_tools,
)
from ybs.commands.router import make_attempts, say_bad, say_good, show_router
from ybs.commands.sandbox import change_sandbox, show_ports
from ybs.commands.sessions import fork, rename, resume, save, show_session, show_sessions
from ybs.commands.skills import skill_names, use_skill
from ybs.commands.undo import compact, redo, restore, rewind, show_diff, undo
from ybs.commands.usage import show_context, show_cost
from ybs.config.installed import EntryPoint, installed
from ybs.core.errors import ConfigError
from ybs.session.reply import Reply, Row, Table
from ybs.session.session import Session


class _Added(Struct, frozen=True):
    """The commands of other packages, and a warning for each that cannot be used."""

    commands: Sequence[SlashCommand] = ()
    warnings: Sequence[str] = ()


@cache
def added_beside(own: frozenset[str]) -> _Added:
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
    return _Added(commands, warnings)


def _command(entry: EntryPoint, taken: Set[str]) -> SlashCommand:
    found: Any = entry.load()
    if not isinstance(found, SlashCommand):
        raise entry.problem("it is not a ybs.commands.command.SlashCommand")
    if both := sorted(taken & set(found.names)):
        raise entry.problem(f"there is a command /{both[0]} already")
    return found


def words(*words: str) -> Callable[[Session], Sequence[str]]:
    """Return what offers these words."""
    return lambda _session: words


def modes(_session: Session) -> Sequence[str]:
    """Return the modes, and the one that asks before each edit."""
    return tuple(MODE_WORDS)


def providers(session: Session) -> Sequence[str]:
    """Return the names of the providers."""
    from ybs.providers.registry import provider_names

    return provider_names(session.config)


def models(session: Session) -> Sequence[str]:
    """Return the names that /model offered last."""
    menu = session.offered.get("model")
    lines = [item.line for item in menu.items] if menu else []
    return [line.removeprefix("/model ") for line in lines if line.startswith("/model ")]


def offered_sessions(session: Session) -> Sequence[str]:
    """Return the names that /sessions or /resume offered last."""
    menu = session.offered.get("resume")
    return [item.line.removeprefix("/resume ") for item in menu.items] if menu else []


def jobs(session: Session) -> Sequence[str]:
    """Return how each running job is stopped."""
    return [f"stop {job.name}" for job in session.environment.workspace.shells.jobs.running]


async def show_help(session: Session, argument: str) -> Reply:
    """List the commands in their groups, the other things a line can be, and the frontend's keys; or those with a word."""
    direct = (
        ("!COMMAND", "run a command in the sandbox; the model sees it"),
        ("!!COMMAND", "run it in your own shell; only you see it"),
    )
    custom = tuple(each_once(custom_of(session, COMMANDS)))
    groups = [*zip(TITLES, GROUPS, strict=True), ("From packages", added().commands)]
    groups.append(("Yours and the project's", custom))
    rows = [(title, [(_shown(c), c.summary) for c in group]) for title, group in groups]
    rows.append(("Commands for the shell", [*direct]))
    if word := argument.lower().removeprefix("/"):
        about = ((t, [r for r in of if word in " ".join((t, *r)).lower()]) for t, of in rows)
        tables = tuple(_titled(title, of) for title, of in about if of)
        text = "" if tables else f"No command has to do with {argument}. /help lists them all."
        return Reply(text=text, tables=tables, is_error=not tables)
    notes = ("", "/help WORD lists what has to do with a word, such as /help session.")
    notes += ("", session.frontend_help) if session.frontend_help else ()
    return Reply(tables=tuple(_titled(title, of) for title, of in rows if of), notes=notes)


def _titled(title: str, rows: Sequence[tuple[str, str]]) -> Table:
    table = Table.of(rows)
    return replace(table, rows=(Row((title,)), *table.rows))


def _shown(command: SlashCommand) -> str:
    return f"/{command.names[0]} {command.arguments}".rstrip()


_ON_OFF = words("on", "off")
#: Of the groups, in the order of /help.
TITLES = (
    *("Model and permissions", "Conversation", "Saved sessions", "What it does and takes"),
    *("What the model knows", "Git, tools and settings", "Screen"),
)
GROUPS = (
    (
        SlashCommand(
            names=("model",),
            arguments="[NAME]",
            summary="choose the model",
            run=change_model,
            waits=True,
            shows_bare=True,
            choices=models,
        ),
        SlashCommand(
            names=("provider",),
            arguments="[NAME [MODEL]]",
            summary="choose the provider; the conversation stays",
            run=change_provider,
            waits=True,
            shows_bare=True,
            choices=providers,
        ),
        SlashCommand(
            names=("effort",),
            arguments="[LEVEL]",
            summary="choose how hard the model thinks",
            run=change_effort,
            waits=True,
            shows_bare=True,
            choices=words("auto", *LEVELS),
        ),
        SlashCommand(
            names=("profile",),
            arguments="[NAME]",
            summary="choose a named set of settings",
            run=change_profile,
            waits=True,
            shows_bare=True,
            choices=profile_names,
        ),
        SlashCommand(("router",), "", "show how the router picks models", show_router),
        SlashCommand(("good",), "", "tell the router that the last answer was good", say_good),
        SlashCommand(("bad",), "", "tell the router that the last answer was bad", say_bad),
        SlashCommand(
            names=("best",),
            arguments="[N] TASK",
            summary="have several models try a task",
            run=make_attempts,
            waits=True,
        ),
        SlashCommand(("download",), "[NAME]", "download a model, and use it", download, waits=True),
        SlashCommand(
            names=("mode",),
            arguments="[NAME]",
            summary="choose what ybs may do without asking",
            run=change_mode,
            choices=modes,
        ),
        SlashCommand(
            names=("plan",),
            arguments="[go|keep]",
            summary="show the plan, or go ahead with it",
            run=show_plan,
            waits=True,
            shows_bare=True,
            choices=words("go", "go auto", "keep"),
        ),
        SlashCommand(("todo", "todos"), "", "show the steps that the model has noted", show_steps),
        SlashCommand(
            names=("add-dir",),
            arguments="[FOLDER]",
            summary="work in one more folder, or list them",
            run=add_dir,
            waits=True,
            shows_bare=True,
        ),
        SlashCommand(
            names=("permissions",),
            arguments="[allow RULE]",
            summary="show and change what needs no question",
            run=permissions,
            choices=words("allow", "deny", "remove"),
        ),
        SlashCommand(
            names=("sandbox",),
            arguments="[CHANGE]",
            summary="show or change how commands are sandboxed",
            run=change_sandbox,
            choices=words("on", "off", "network on", "network off", "write"),
        ),
    ),
    (
        SlashCommand(("new",), "", "start a new session", begin_anew, waits=True),
        SlashCommand(
            ("clear",), "", "start the conversation over in this session", clear, waits=True
        ),
        SlashCommand(
            names=("rewind",),
            arguments="[N [WHAT]]",
            summary="go back to an earlier prompt",
            run=rewind,
            waits=True,
            shows_bare=True,
        ),
        SlashCommand(
            names=("undo",),
            arguments="[N] [force]",
            summary="undo the last turn and its changes to files",
            run=undo,
            waits=True,
            choices=words("force"),
            activity="undoing",
        ),
        SlashCommand(
            ("redo",),
            "[force]",
            "redo what was undone",
            redo,
            waits=True,
            choices=words("force"),
            activity="redoing",
        ),
        SlashCommand(
            names=("compact",),
            arguments="[WHAT TO KEEP]",
            summary="shorten the conversation with a summary",
            run=compact,
            waits=True,
            activity="compacting",
        ),
        SlashCommand(("restore",), "", "undo the last /compact", restore, waits=True),
        SlashCommand(("retry",), "", "send the last request again", retry, waits=True),
        SlashCommand(
            ("copy",),
            "[N|code]",
            "copy an answer, or its code, to the clipboard",
            copy,
            choices=words("code"),
        ),
        SlashCommand(("export",), "[FILE]", "save the conversation as Markdown or JSON", export),
        SlashCommand(
            names=("incognito",),
            arguments="[off]",
            summary="start a session of which nothing is saved",
            run=change_incognito,
            waits=True,
            choices=words("off"),
        ),
    ),
    (
        SlashCommand(
            ("sessions",),
            "[N|all]",
            "list the saved sessions, and resume one",
            show_sessions,
            choices=words("all"),
        ),
        SlashCommand(
            names=("resume", "load"),
            arguments="[N|NAME [fork]]",
            summary="resume a saved session",
            run=resume,
            waits=True,
            shows_bare=True,
            choices=offered_sessions,
            activity="reading",
        ),
        SlashCommand(("session",), "", "show this session's title, file and age", show_session),
        SlashCommand(("rename",), "[TITLE]", "change the title of this session", rename),
        SlashCommand(("save",), "[NAME]", "save a copy of this session under a name", save),
        SlashCommand(("fork",), "", "continue in a copy of this session", fork, waits=True),
    ),
    (
        SlashCommand(("status",), "", "show the model, mode, sandbox and use so far", show_status),
        SlashCommand(
            ("context",), "", "show what takes up the model's context window", show_context
        ),
        SlashCommand(("cost",), "", "show the tokens and the cost of each turn", show_cost),
        SlashCommand(
            ("diff",),
            "[N|all|undo|redo]",
            "show the changes made to files",
            show_diff,
            choices=words("all", "undo", "redo"),
        ),
        SlashCommand(
            names=("agents",),
            arguments="[stop] [NAME]",
            summary="list the sub-agents, watch one, or stop them",
            run=show_agents,
            choices=agent_names,
        ),
        SlashCommand(
            names=("jobs", "ps"),
            arguments="[stop ID]",
            summary="list the background jobs, or stop one",
            run=show_jobs,
            choices=jobs,
        ),
        SlashCommand(
            names=("background", "bg"),
            arguments="",
            summary="move the running command to the background",
            run=send_to_background,
        ),
        SlashCommand(("ports",), "[PORT]", "show and forward ports of the sandbox", show_ports),
        SlashCommand(
            names=("share",),
            arguments="[WORDS]",
            summary="show the last !! command to the model",
            run=share,
            waits=True,
        ),
    ),
    (
        SlashCommand(
            names=("init",),
            arguments="[WORDS]",
            summary="have the model write AGENTS.md for this project",
            run=init,
            waits=True,
        ),
        SlashCommand(
            names=("focus",),
            arguments="[TEXT|clear]",
            summary="tell the model what you are working on",
            run=focus,
            choices=words("clear"),
        ),
        SlashCommand(("memorize",), "TEXT", "save a note for later sessions", memorize),
        SlashCommand(
            names=("learn",),
            arguments="[ACTION N]",
            summary="show what you ask for again and again",
            run=learn,
            choices=words(*ACTIONS),
        ),
        SlashCommand(
            names=("memories",),
            arguments="[N|WORDS]",
            summary="list, search or delete saved notes",
            run=show_memories,
            choices=words("forget", "undo"),
        ),
    ),
    (
        SlashCommand(
            names=("commit",),
            arguments="[MESSAGE]",
            summary="commit the changes, or propose a message",
            run=commit,
            waits=True,
            activity="looking at the changes",
        ),
        SlashCommand(
            names=("autocommit",),
            arguments="[on|off|ask]",
            summary="choose whether ybs commits by itself",
            run=change_autocommit,
            choices=words("on", "off", "ask"),
        ),
        SlashCommand(("tools",), "", "list the tools that the model can call", show_tools),
        SlashCommand(("hooks",), "", "list the commands that run at set moments", show_hooks),
        SlashCommand(("mcp",), "[NAME]", "list MCP servers", show_servers, choices=server_names),
        SlashCommand(("reload-tools",), "", "find new tools of yours", reload_tools, waits=True),
        SlashCommand(
            names=("skill", "skills"),
            arguments="[NAME [WORDS]]",
            summary="list the skills, or have the model use one",
            run=use_skill,
            waits=True,
            shows_bare=True,
            choices=skill_names,
        ),
        SlashCommand(
            names=("trust",),
            arguments="[give|revoke]",
            summary="show what this project asks for, and trust it",
            run=change_trust,
            choices=words("give", "revoke"),
        ),
        SlashCommand(
            names=("secrets",),
            arguments="[allow NAME]",
            summary="list the secrets that are hidden from the model",
            run=show_secrets,
            choices=words("allow"),
        ),
        SlashCommand(
            names=("config",),
            arguments="[NAME]",
            summary="show the settings and where they come from",
            run=show_config,
        ),
        SlashCommand(
            ("setup",), "", "choose another provider, and save its key", set_up, waits=True
        ),
        SlashCommand(("doctor",), "", "check this machine, and say what to fix", check_machine),
    ),
    (
        SlashCommand(
            ("stream",),
            "[on|off]",
            "show answers as they are written, or complete",
            change_streaming,
            choices=_ON_OFF,
        ),
        SlashCommand(
            ("verbose",),
            "[on|off]",
            "show arguments, outputs and thinking in full",
            change_verbosity,
            choices=_ON_OFF,
        ),
        SlashCommand(("help", "?"), "[WORD]", "list the commands and keys", show_help),
        SlashCommand(("quit", "exit"), "", "leave ybs", leave),
    ),
)
LISTED = tuple(command for group in GROUPS for command in group)
COMMANDS = {name: command for command in LISTED for name in command.names}


def added() -> _Added:
    """Return the commands of the packages that are installed beside ybs."""
    return added_beside(frozenset(COMMANDS))


@cache
def listed() -> Sequence[SlashCommand]:
    """Return all commands in the order of /help."""
    return [*LISTED, *added().commands]


@cache
def named() -> dict[str, SlashCommand]:
    """Return all commands by each of their names."""
    return {name: each for each in listed() for name in each.names}
