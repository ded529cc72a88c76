"""Commands that say where things stand: tools, settings, status, secrets."""

from typing import TYPE_CHECKING

from ybs.commands.custom import forget_custom
from ybs.commands.figures import cost, percent
from ybs.core.messages import Usage
from ybs.core.wording import plural
from ybs.session.reply import Reply, Table, TerminalActions
from ybs.session.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ybs.agent.user_hooks.definitions import Hook
    from ybs.config.tree import ValueOrigin
    from ybs.security.firewall.report import Masked


async def show_tools(session: Session, _argument: str) -> Reply:
    """List the tools that the model has."""
    specs = session.agent.toolbox.specs()
    rows = Table.of((spec.name, spec.description.splitlines()[0]) for spec in specs)
    has = {spec.name for spec in specs}
    missing = [name for name in ("web_search", "web_fetch") if name not in has]
    note = f"Not installed: {' and '.join(missing)}. `ybs tools install web`, then /reload-tools."
    return Reply(tables=(rows,), notes=(f"{len(specs)} tools", *[note] * bool(missing)))


async def reload_tools(session: Session, _argument: str) -> Reply:
    """Look for external tools again, list them, and say what cannot be used."""
    await session.reload_tools()
    forget_custom(session)
    catalogue = session.environment.external_tools
    tools, problems = catalogue.usable, catalogue.problems
    rows = Table.of(
        (each.name, each.description.partition("\n")[0], each.definition.needs.words)
        for each in tools
    )
    notes = [f"{each.shown} cannot be used: {each.why}" for each in problems if each.is_expected]
    places = ", ".join(session.config.tools.search_paths)
    said = plural(len(tools), "external tool") if tools else f"No external tools in {places}"
    environment = session.environment
    count = len(environment.skills.by_name) if environment.has_skills() else 0
    said += f". {plural(count, 'skill')} (/skill)" if count else ""
    return Reply(tables=(rows,) if tools else (), notes=(f"{said}.", *notes))


async def show_config(session: Session, argument: str) -> Reply:
    """Show the settings that differ from the defaults, or those of a name, with their sources; keys are masked."""
    from ybs.config.report import show

    name, _, value = argument.partition(" ")
    rows = [
        row
        for row in show(session.loaded)
        if (f"{row.key}.".startswith(f"{name}.") if name else row.origin.layer != "default")
    ]
    if name and not rows:
        text = f"There is no setting {name}. `ybs config show` lists them."
        return Reply.error(text)
    table = Table.of((row.key, _plain(row.value), place_of(row.origin)) for row in rows)
    if not name:
        note = (
            "Every other setting has its default value. `ybs config show --sources` lists them all."
        )
        return Reply(tables=(table,), notes=(note, *session.warnings))
    wanted = f"{rows[0].key if len(rows) == 1 else 'NAME'} {value.strip() or 'VALUE'}"
    note = f"`ybs config set {wanted}` in a shell changes it from the next session on."
    return Reply(tables=(table,), notes=(note,))


def _plain(value: object) -> str:
    """Write a value down as a settings file has it, a text without its quotes."""
    return (
        "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )


def place_of(origin: "ValueOrigin") -> str:
    """Return where a value comes from: the kind of place, and which one where there are several."""
    return " ".join(dict.fromkeys((origin.layer, origin.source)))


async def show_status(session: Session, _argument: str) -> Reply:
    """Show where things stand: model, mode, sandbox, place, context, use, jobs and warnings."""
    status, jobs = session.status(), session.environment.workspace.shells.running_jobs
    about = "" if session.counted_tokens else "about "
    share = percent(status.context_tokens, status.window)
    rows = [
        ("model", f"{status.shown_provider} {status.shown_model}"),
        ("window", f"{status.window:,} tokens{', assumed' if status.assumes_window else ''}"),
        ("mode", f"{status.shown_mode}{', incognito' if status.incognito else ''}"),
        ("sandbox", _sandbox_of(session)),
        ("folder", status.folder),
        ("branch", status.branch),
        ("context", f"{about}{status.context_tokens:,} tokens ({share})"),
        ("used", _used(status.usage)),
        ("turns", f"{len(session.turns):,}{', one is running' if session.is_busy else ''}"),
        ("jobs", f"{len(jobs)} in the background (/jobs)" if jobs else ""),
        *(("warning", warning) for warning in session.warnings),
    ]
    if status.incognito:
        rows.insert(3, ("", "nothing about it is saved"))
    return Reply(tables=(Table.of(row for row in rows if row[1]),))


def _sandbox_of(session: Session) -> str:
    """Return which kind of sandbox it is, and why it is not a better one."""
    sandbox = session.environment.sandbox
    if sandbox.state in ("none", "off"):
        kind = sandbox.state
    else:
        kind = f"{sandbox.state}, {sandbox.backend.name}"
    return f"{kind} ({sandbox.backend.why})" if sandbox.backend.why else kind


def _used(usage: Usage) -> str:
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    tokens = f"{usage.input_tokens:,} in{cached}, {usage.output_tokens:,} out"
    return ", ".join(filter(None, (tokens, cost(usage))))


def _masked(rows: "Sequence[Masked]") -> Reply:
    if not rows:
        return Reply(text="No secrets were hidden from the model in this session.")
    cells = (
        (row.placeholder, f"in {row.place or 'a text'}", f"{row.count} times" * (row.count > 1))
        for row in rows
    )
    return Reply(
        text="Hidden from the model, which sees a placeholder instead:", tables=(Table.of(cells),)
    )


async def show_secrets(session: Session, argument: str) -> Reply:
    """List what was masked, kind and place, never the value; or take one of them for no secret."""
    firewall = session.environment.secrets.firewall
    action, _, name = argument.partition(" ")
    match action.lower():
        case "":
            return _masked(firewall.report.rows)
        case "allow" if name.strip():
            placeholder = f"[ybs:secret:{name.strip().removeprefix('[ybs:secret:').rstrip(']')}]"
            if firewall.vault.value(placeholder) is None:
                return Reply.error(f"There is no secret called {placeholder} in this session.")
            firewall.allow(placeholder)
            return Reply(text=f"{placeholder} is sent to the model in clear text from now on.")
        case _:
            return Reply.error("Usage: /secrets, or /secrets allow KIND#N")


async def change_streaming(session: Session, argument: str) -> Reply:
    """Show the answer as it comes, or when it is whole."""
    state = _wanted(argument, session.view.streams)
    if state is None:
        return Reply.error("Usage: /stream, /stream on or /stream off")
    session.view.streams = state
    how = "while they are written" if state else "when they are complete"
    return Reply(text=f"Answers are shown {how}.")


async def change_verbosity(session: Session, argument: str) -> Reply:
    """Show more or less of the work."""
    state = _wanted(argument, session.view.is_verbose)
    if state is None:
        return Reply.error("Usage: /verbose, /verbose on or /verbose off")
    session.view.is_verbose = state
    what = "in full: arguments, outputs, thinking" if state else "shortened"
    return Reply(text=f"The work is shown {what}.")


def _wanted(argument: str, now: bool) -> bool | None:
    """Read `on` or `off`; nothing turns it round. None for what makes no sense."""
    return {"": not now, "on": True, "off": False}.get(argument.lower())


NONE = "The model has noted no steps in this conversation. For long work it keeps a list by itself, and does so when asked."


async def show_steps(session: Session, _argument: str) -> Reply:
    """Show the list as the model keeps it."""
    return Reply(text=session.context.steps or NONE)


async def check_machine(_session: Session, _argument: str) -> Reply:
    """Check this machine, and say how to fix what does not work."""
    return Reply(terminal=TerminalActions(program="doctor"))


async def set_up(_session: Session, _argument: str) -> Reply:
    """Choose the provider and the model, and save a key."""
    return Reply(terminal=TerminalActions(program="setup"))


#: Whose hook it is, and where it runs.
WHOSE = {
    "own": "yours",
    "own-sandboxed": "yours, in the sandbox",
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
