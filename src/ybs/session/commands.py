"""The slash commands, once for all front doors. A command answers with plain text and never asks the model."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias, get_args

from msgspec import Struct

from ybs.config.schema import Mode
from ybs.core.errors import YbsError
from ybs.security.incognito import WRITES_NOTHING
from ybs.session.session import Reply, Session

if TYPE_CHECKING:
    from ybs.config.tree import Origin

NO_TRUST = "This project was not trusted."
FOR_ONE_RUN = "`ybs --trust` lets the project's files count in one run."
Run: TypeAlias = Callable[[Session, str], Awaitable[Reply]]


class Command(Struct, frozen=True):
    """One command: its names (the first is shown), its arguments, what it does, and how."""

    names: tuple[str, ...]
    arguments: str
    summary: str
    run: Run


def is_command(line: str) -> bool:
    """Tell whether the line is a command; a path such as `/etc/hosts` at the start is not one."""
    word = line.split(maxsplit=1)[0] if line.strip() else ""
    return word.startswith("/") and "/" not in word[1:]


async def run_command(session: Session, line: str) -> Reply:
    """Run a command line; names ignore case."""
    word, _, argument = line.strip().partition(" ")
    command = COMMANDS.get(word[1:].lower())
    if command is None:
        return unknown(word)
    try:
        return await command.run(session, argument.strip())
    except YbsError as error:
        return Reply(text=str(error), is_error=True)


def unknown(word: str) -> Reply:
    """Name the commands that are spelled most alike."""
    from difflib import get_close_matches  # only after a typing error

    near = get_close_matches(word[1:].lower(), COMMANDS, n=3)
    hint = f"Did you mean {' or '.join('/' + name for name in near)}? " if near else ""
    return Reply(text=f"Unknown command: {word}. {hint}/help lists them all.", is_error=True)


async def show_help(_session: Session, _argument: str) -> Reply:
    """List the commands and the other things a line can be."""
    rows = [(" ".join(("/" + c.names[0], c.arguments)).strip(), c.summary) for c in LISTED]
    rows += [("!COMMAND", "run a shell command and show its output to the model")]
    width = max(len(left) for left, _ in rows)
    return Reply(text="\n".join(f"  {left:<{width}}  {right}" for left, right in rows))


async def show_tools(session: Session, _argument: str) -> Reply:
    """List the tools that the model has."""
    specs = session.rooms.toolbox.specs()
    width = max((len(spec.name) for spec in specs), default=0)
    lines = [f"  {spec.name:<{width}}  {spec.description.splitlines()[0]}" for spec in specs]
    return Reply(text="\n".join([*lines, f"{len(specs)} tools"]))


async def change_provider(session: Session, argument: str) -> Reply:
    """Show the providers, or switch: `list`, `current`, or NAME [MODEL]."""
    name, _, model = argument.partition(" ")
    match name:
        case "" | "current":
            return Reply(text=f"{session.rooms.provider} {session.rooms.model.name}")
        case "list":
            return Reply(text="\n".join(session.rooms.list_providers()))
        case _:
            return await switch(session, provider=name, model=model.strip() or None)


async def change_model(session: Session, argument: str) -> Reply:
    """Show the model, or choose another one of the same provider."""
    if not argument:
        return Reply(text=f"{session.rooms.provider} {session.rooms.model.name}")
    return await switch(session, provider=None, model=argument)


async def switch(session: Session, *, provider: str | None, model: str | None) -> Reply:
    """Use another model from now on. The conversation stays; say so when it no longer fits."""
    await session.switch_model(provider=provider, model=model)
    status = session.status()
    text = f"Now using {status.provider} {status.model}."
    tokens = session.estimated_tokens()
    if tokens > status.window:
        text += (
            f"\nThe conversation (about {tokens:,} tokens) does not fit its window of "
            f"{status.window:,}. /clear starts afresh."
        )
    return Reply(text=text)


async def change_mode(session: Session, argument: str) -> Reply:
    """Show or choose what is allowed without asking."""
    modes = get_args(Mode)
    for mode in modes:
        if argument == mode:
            session.mode = mode
            return Reply(text=f"Mode: {mode}")
    if argument:
        return Reply(text=f"No mode {argument!r}. Modes: {', '.join(modes)}", is_error=True)
    return Reply(text=f"Mode: {session.mode}   (modes: {', '.join(modes)})")


async def show_config(session: Session, _argument: str) -> Reply:
    """Show the settings that differ from the defaults, with their sources; keys are masked."""
    from ybs.config.report import show

    rows = [row for row in show(session.loaded) if row.origin.layer != "default"]
    lines = [f"  {row.key} = {row.value}   ({place_of(row.origin)})" for row in rows]
    note = "Everything else has its default. `ybs config show --sources` lists all."
    return Reply(text="\n".join([*lines, note, *session.warnings]))


def place_of(origin: "Origin") -> str:
    """Say where a value comes from: the kind of place, and which one where there are several."""
    return " ".join(dict.fromkeys((origin.layer, origin.source)))


async def show_status(session: Session, _argument: str) -> Reply:
    """Show model, mode, sandbox, context and usage."""
    status = session.status()
    usage = status.usage
    cost = f", ${usage.cost_usd:.4f}" if usage.cost_usd else ""
    return Reply(
        text=f"  model    {status.provider} {status.model}\n"
        f"  mode     {status.mode}, {status.sandbox}{', incognito' if status.incognito else ''}\n"
        f"  folder   {status.folder} {status.branch}\n"
        f"  context  {status.context_tokens:,} of {status.window:,} tokens\n"
        f"  used     {usage.input_tokens:,} in, {usage.output_tokens:,} out{cost}"
    )


async def show_secrets(session: Session, argument: str) -> Reply:
    """List what was masked, kind and place, never the value; or take one of them for no secret."""
    firewall = session.rooms.secrets.firewall
    action, _, name = argument.partition(" ")
    match action.lower():
        case "":
            return Reply(text=firewall.report.text())
        case "allow" if name.strip():
            placeholder = f"[ybs:secret:{name.strip().removeprefix('[ybs:secret:').rstrip(']')}]"
            if firewall.vault.value(placeholder) is None:
                return Reply(text=f"There is no {placeholder} here.", is_error=True)
            firewall.allow(placeholder)
            return Reply(text=f"{placeholder} is sent as it is from now on.")
        case _:
            return Reply(text="Usage: /secrets, or /secrets allow KIND#N", is_error=True)


async def show_jobs(session: Session, argument: str) -> Reply:
    """List the commands that run in the background, or stop one."""
    jobs = session.rooms.workspace.shells.jobs
    action, _, name = argument.partition(" ")
    match action.lower():
        case "" | "list":
            return Reply(text=jobs.listing())
        case "stop" if name.strip():
            job = jobs.find(name)
            await job.stop()
            return Reply(text=job.line)
        case _:
            return Reply(text="Usage: /jobs, or /jobs stop ID", is_error=True)


async def change_trust(session: Session, argument: str) -> Reply:
    """Show what the project's own files want, trust exactly that, or take it back: from the next start on."""
    from ybs.config.trust import give, revoke

    review = session.loaded.review
    if argument.lower() == "revoke":
        was = revoke(session.rooms.folder)
        return Reply(text="No longer trusted, from the next start on." if was else NO_TRUST)
    if review is None:
        return Reply(text="This project wants nothing that needs trust.")
    match argument.lower():
        case "" | "show":
            from ybs.config.trust_words import lines_of

            state = "Trusted." if review.is_trusted else "Not trusted: all of this is ignored."
            return Reply(text="\n".join([*lines_of(review), state]))
        case "give" if not session.rooms.incognito.may_write:
            return Reply(text=f"Not trusted: {WRITES_NOTHING}. {FOR_ONE_RUN}", is_error=True)
        case "give":
            if not review.is_trusted:
                give(review)
            return Reply(text="Trusted as it is now; it counts from the next start on.")
        case _:
            return Reply(text="Usage: /trust, /trust give or /trust revoke", is_error=True)


async def change_incognito(session: Session, argument: str) -> Reply:
    """Begin a new session of which nothing is written down, or with `off` one that is as usual."""
    is_on, jobs = session.status().incognito, session.rooms.workspace.shells.running_jobs
    ended = " What ran in the background was ended." if jobs else ""
    match argument.lower(), is_on:
        case (("" | "on"), False):
            await session.start_anew(is_incognito=True)
            text = "Incognito: a new, empty session, and nothing of it is written down."
            return Reply(text=f"{text} The one before stays as it was.{ended}")
        case "off", True:
            await session.start_anew(is_incognito=False)
            return Reply(text=f"No longer incognito: a new, empty session.{ended}")
        case (("" | "on"), True):
            return Reply(text="This session is incognito. `/incognito off` begins one that is not.")
        case "off", False:
            return Reply(text="This session is not incognito.")
        case _:
            return Reply(text="Usage: /incognito, or /incognito off", is_error=True)


async def clear(session: Session, _argument: str) -> Reply:
    """Forget the conversation."""
    session.clear()
    return Reply(text="The conversation is empty.")


async def leave(_session: Session, _argument: str) -> Reply:
    """Leave ybs."""
    return Reply(text="", wants_quit=True)


LISTED = (
    Command(("help", "?"), "", "show the commands", show_help),
    Command(("tools",), "", "list the tools that the model has", show_tools),
    Command(
        ("provider",), "[list|current|NAME [MODEL]]", "show or change the provider", change_provider
    ),
    Command(("model",), "[NAME]", "show or change the model", change_model),
    Command(("mode",), "[NAME]", "show or change what is allowed without asking", change_mode),
    Command(
        ("config",),
        "",
        "show the settings that are not defaults, and where they come from",
        show_config,
    ),
    Command(("status",), "", "show model, mode, context and usage", show_status),
    Command(
        ("trust",), "[give|revoke]", "show or decide what the project's files may do", change_trust
    ),
    Command(
        ("secrets",),
        "[allow PLACEHOLDER]",
        "show what the model does not get to see, or let it",
        show_secrets,
    ),
    Command(("jobs", "ps"), "[stop ID]", "show or stop what runs in the background", show_jobs),
    Command(
        ("incognito",), "[off]", "begin a new session, nothing of it written down", change_incognito
    ),
    Command(("clear",), "", "forget the conversation", clear),
    Command(("quit", "exit"), "", "leave", leave),
)
COMMANDS = {name: command for command in LISTED for name in command.names}
