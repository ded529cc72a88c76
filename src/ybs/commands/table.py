"""The table of the slash commands: their names, what they do, and how."""

from collections.abc import Sequence, Set
from functools import cache, partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ybs.commands.agents import agent_names, show_agents
from ybs.commands.command import Choices, Run, SlashCommand
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
    show_plan,
)
from ybs.commands.permissions import add_dir, permissions
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
                commands.append(_loaded(entry, taken))
            except ConfigError as error:
                warnings.append(f"{error}; ybs goes on without it")
    return _Added(commands, warnings)


def _loaded(entry: EntryPoint, taken: Set[str]) -> SlashCommand:
    found: Any = entry.load()
    if not isinstance(found, SlashCommand):
        raise entry.problem("it is not a ybs.commands.command.SlashCommand")
    if both := sorted(taken & set(found.names)):
        raise entry.problem(f"there is a command /{both[0]} already")
    return found


def words(*words: str) -> Choices:
    """Return what offers these words."""
    return lambda _session: words


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
    custom = tuple(each_once(custom_of(session, named())))
    groups = {**GROUPS, "From packages": added().commands, "Yours and the project's": custom}
    rows = [(title, [(_shown(c), c.summary) for c in group]) for title, group in groups.items()]
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


def _command(
    names: str, arguments: str, summary: str, run: Run, choices: Choices | str = "", **how: Any
) -> SlashCommand:
    """Return a command by its names with blanks between; choices that are a text have bars between."""
    found = words(*choices.split("|")) if choices and isinstance(choices, str) else choices or None
    return SlashCommand(tuple(names.split()), arguments, summary, run, choices=found, **how)


_waiting = partial(_command, waits=True)
_bare = partial(_command, waits=True, shows_bare=True)
#: By the titles of their groups, in the order of /help.
GROUPS: dict[str, tuple[SlashCommand, ...]] = {
    "Model and permissions": (
        _bare("model", "[NAME]", "choose the model", change_model, models),
        _bare(
            "provider",
            "[NAME [MODEL]]",
            "choose the provider; the conversation stays",
            change_provider,
            providers,
        ),
        _bare(
            "effort",
            "[LEVEL]",
            "choose how hard the model thinks",
            change_effort,
            words("auto", *LEVELS),
        ),
        _bare("profile", "[NAME]", "choose a named set of settings", change_profile, profile_names),
        _command("router", "", "show how the router picks models", show_router),
        _command("good", "", "tell the router that the last answer was good", say_good),
        _command("bad", "", "tell the router that the last answer was bad", say_bad),
        _waiting("best", "[N] TASK", "have several models try a task", make_attempts),
        _waiting("download", "[NAME]", "download a model, and use it", download),
        _command(
            "mode",
            "[NAME]",
            "choose what ybs may do without asking",
            change_mode,
            words(*MODE_WORDS),
        ),
        _bare(
            "plan", "[go|keep]", "show the plan, or go ahead with it", show_plan, "go|go auto|keep"
        ),
        _command("todo todos", "", "show the steps that the model has noted", show_steps),
        _bare("add-dir", "[FOLDER]", "work in one more folder, or list them", add_dir),
        _command(
            "permissions",
            "[allow RULE]",
            "show and change what needs no question",
            permissions,
            "allow|deny|remove",
        ),
        _command(
            "sandbox",
            "[CHANGE]",
            "show or change how commands are sandboxed",
            change_sandbox,
            "on|off|network on|network off|write",
        ),
    ),
    "Conversation": (
        _waiting("new", "", "start a new session", begin_anew),
        _waiting("clear", "", "start the conversation over in this session", clear),
        _bare("rewind", "[N [WHAT]]", "go back to an earlier prompt", rewind),
        _waiting(
            "undo",
            "[N] [force]",
            "undo the last turn and its changes to files",
            undo,
            "force",
            activity="undoing",
        ),
        _waiting("redo", "[force]", "redo what was undone", redo, "force", activity="redoing"),
        _waiting(
            "compact",
            "[WHAT TO KEEP]",
            "shorten the conversation with a summary",
            compact,
            activity="compacting",
        ),
        _waiting("restore", "", "undo the last /compact", restore),
        _waiting("retry", "", "send the last request again", retry),
        _command("copy", "[N|code]", "copy an answer, or its code, to the clipboard", copy, "code"),
        _command("export", "[FILE]", "save the conversation as Markdown or JSON", export),
        _waiting(
            "incognito",
            "[off]",
            "start a session of which nothing is saved",
            change_incognito,
            "off",
        ),
    ),
    "Saved sessions": (
        _command(
            "sessions", "[N|all]", "list the saved sessions, and resume one", show_sessions, "all"
        ),
        _bare(
            "resume load",
            "[N|NAME [fork]]",
            "resume a saved session",
            resume,
            offered_sessions,
            activity="reading",
        ),
        _command("session", "", "show this session's title, file and age", show_session),
        _command("rename", "[TITLE]", "change the title of this session", rename),
        _command("save", "[NAME]", "save a copy of this session under a name", save),
        _waiting("fork", "", "continue in a copy of this session", fork),
    ),
    "What it does and takes": (
        _command("status", "", "show the model, mode, sandbox and use so far", show_status),
        _command("context", "", "show what takes up the model's context window", show_context),
        _command("cost", "", "show the tokens and the cost of each turn", show_cost),
        _command(
            "diff",
            "[N|all|undo|redo]",
            "show the changes made to files",
            show_diff,
            "all|undo|redo",
        ),
        _command(
            "agents",
            "[stop] [NAME]",
            "list the sub-agents, watch one, or stop them",
            show_agents,
            agent_names,
        ),
        _command("jobs ps", "[stop ID]", "list the background jobs, or stop one", show_jobs, jobs),
        _command(
            "background bg", "", "move the running command to the background", send_to_background
        ),
        _command("ports", "[PORT]", "show and forward ports of the sandbox", show_ports),
        _waiting("share", "[WORDS]", "show the last !! command to the model", share),
    ),
    "What the model knows": (
        _waiting("init", "[WORDS]", "have the model write AGENTS.md for this project", init),
        _command("focus", "[TEXT|clear]", "tell the model what you are working on", focus, "clear"),
        _command("memorize", "TEXT", "save a note for later sessions", memorize),
        _command(
            "learn", "[ACTION N]", "show what you ask for again and again", learn, words(*ACTIONS)
        ),
        _command(
            "memories",
            "[N|WORDS]",
            "list, search or delete saved notes",
            show_memories,
            "forget|undo",
        ),
    ),
    "Git, tools and settings": (
        _waiting(
            "commit",
            "[MESSAGE]",
            "commit the changes, or propose a message",
            commit,
            activity="looking at the changes",
        ),
        _command(
            "autocommit",
            "[on|off|ask]",
            "choose whether ybs commits by itself",
            change_autocommit,
            "on|off|ask",
        ),
        _command("tools", "", "list the tools that the model can call", show_tools),
        _command("hooks", "", "list the commands that run at set moments", show_hooks),
        _command("mcp", "[NAME]", "list MCP servers", show_servers, server_names),
        _waiting("reload-tools", "", "find new tools of yours", reload_tools),
        _bare(
            "skill skills",
            "[NAME [WORDS]]",
            "list the skills, or have the model use one",
            use_skill,
            skill_names,
        ),
        _command(
            "trust",
            "[give|revoke]",
            "show what this project asks for, and trust it",
            change_trust,
            "give|revoke",
        ),
        _command(
            "secrets",
            "[allow NAME]",
            "list the secrets that are hidden from the model",
            show_secrets,
            "allow",
        ),
        _command("config", "[NAME]", "show the settings and where they come from", show_config),
        _waiting("setup", "", "choose another provider, and save its key", set_up),
        _command("doctor", "", "check this machine, and say what to fix", check_machine),
    ),
    "Screen": (
        _command(
            "stream",
            "[on|off]",
            "show answers as they are written, or complete",
            change_streaming,
            "on|off",
        ),
        _command(
            "verbose",
            "[on|off]",
            "show arguments, outputs and thinking in full",
            change_verbosity,
            "on|off",
        ),
        _command("help ?", "[WORD]", "list the commands and keys", show_help),
        _command("quit exit", "", "leave ybs", leave),
    ),
}
LISTED = tuple(command for group in GROUPS.values() for command in group)
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
