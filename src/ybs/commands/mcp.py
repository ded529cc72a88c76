"""/mcp: the MCP servers of a session, what they offer, and what the person can do about one. Their prompts as commands."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping

from ybs.commands.advice import advised, told
from ybs.commands.command import Owner, Run, SlashCommand
from ybs.core.errors import ConfigError, ToolError
from ybs.core.events import Noticed
from ybs.core.wording import plural
from ybs.session.reply import Reply, Table
from ybs.session.session import Session
from ybs.tools.mcp.connection import Connection
from ybs.tools.mcp.listed import ServerPrompt, differences, full_name
from ybs.tools.mcp.settings import given

_NONE = "There are no MCP servers. `ybs mcp add` adds one; `ybs help mcp` explains how."
_STATES: Mapping[str, str] = {
    "off": "off",
    "known": "runs when it is needed",
    "new": "not started yet",
    "starting": "starting",
    "ready": "running",
    "lost": "lost, starting again",
    "failed": "does not run",
}
_USAGE = "Usage: /mcp [NAME], or /mcp restart|trust|login|logout NAME"


async def show_servers(session: Session, argument: str) -> Reply:
    """List the servers, or what one of them offers, or do something about one."""
    if not session.environment.has_mcp():
        return Reply(text=_NONE)
    word, _, name = argument.partition(" ")
    servers = session.environment.mcp
    if not argument:
        rows = [_row(each, servers.needs_of(each.server)) for each in servers.connections.values()]
        return Reply(tables=(Table.of(rows),), notes=tuple(servers.problems))
    actions: Mapping[str, Callable[[Session, Connection], Awaitable[Reply]]] = {
        "restart": _restart,
        "trust": _trust,
        "login": _login,
        "logout": _logout,
    }
    each = servers.connections.get(name.strip() if word in actions else argument)
    if each is None:
        return Reply.error(_USAGE)
    try:
        return await actions[word](session, each) if word in actions else _details(session, each)
    except ToolError as error:
        return Reply.error(told(error))


def server_names(session: Session) -> list[str]:
    """Return what the argument of /mcp may be."""
    if not session.environment.has_mcp():
        return []
    return list(session.environment.mcp.connections)


def _row(each: Connection, needs: str) -> tuple[str, ...]:
    tools = plural(len(each.offer.tools), "tool") if each.offer.tools else ""
    changed = [new.name for _, new in each.reviewed.changed]
    words = each.problem if each.state in ("failed", "lost") else ""
    words = words or (f"waits for approval: {', '.join(changed)}" if changed else given(needs))
    return each.server.name, _STATES[each.state], tools, words


def _details(session: Session, each: Connection) -> Reply:
    server, offer = each.server, each.offer
    needs = session.environment.mcp.needs_of(server)
    notes = [f"{server.name}: {_STATES[each.state]}. {server.shown}"]
    notes += [f"It {given(needs)}."]
    if each.problem:
        notes += [advised(f"Why: {each.problem}.", each.remedies, separator=" ")]
    tools = [(full_name(server.name, each.name), _first(each.description)) for each in offer.tools]
    resources = [
        (_first(f"@{server.name}:{each.uri}"), _first(each.name)) for each in offer.resources
    ]
    prompts = [
        (f"/{full_name(server.name, each.name)}", _first(each.description))
        for each in offer.prompts
    ]
    notes += [f"Not usable: {problem}" for problem in each.unfit]
    each.note_shown()
    for old, new in each.reviewed.changed:
        has = "has changed" if old else "is new"
        notes += [f"{new.name} {has} and is not used; /mcp trust {server.name} uses it:"]
        notes += [f"  {line}" for line in differences(old, new)]
    tables = tuple(Table.of(rows) for rows in (tools, resources, prompts) if rows)
    return Reply(text="\n".join(notes[:2]), tables=tables, notes=tuple(notes[2:]))


def _first(text: str) -> str:
    return text.partition("\n")[0]


async def _restart(session: Session, each: Connection) -> Reply:
    await each.aclose()
    await each.settled()
    return _details(session, each)


async def _trust(session: Session, each: Connection) -> Reply:
    await each.link()
    if not each.reviewed.changed:
        return Reply(text=f"{each.server.name} describes its tools as it did when you approved it.")
    if each.shown != each.reviewed.changed:  # nobody approves what they have not seen
        return _details(session, each)
    names = ", ".join(new.name for _, new in each.reviewed.changed)
    try:
        each.approve()
    except (ConfigError, OSError) as error:
        return Reply.error(f"The approval could not be kept: {error}")
    return Reply(text=f"Used as they are now: {names}.")


async def _login(session: Session, each: Connection) -> Reply:
    def show(url: str, place: str) -> None:
        text = f"Open this address in your browser, and log in at {place}:\n{url}"
        session.emit(Noticed(level="info", text=text))

    await session.environment.mcp.login(each, show)
    await each.settled()
    return Reply(text=f"You are logged in to {each.server.name}.")


async def _logout(session: Session, each: Connection) -> Reply:
    name = each.server.name
    try:
        had_login = await asyncio.to_thread(session.environment.mcp.logout, each.server)
    except ConfigError as error:
        return Reply.error(told(error))
    if not had_login:
        return Reply(text=f"You were not logged in to {name}.")
    await each.aclose()
    return Reply(text=f"The login at {name} is forgotten here; the server itself is not told.")


def prompts_of(session: Session) -> Iterator[SlashCommand]:
    """Yield the prompts of the servers as commands, called `mcp__SERVER__PROMPT`."""
    if not session.config.mcpServers or not session.environment.has_mcp():
        return
    for each in session.environment.mcp.connections.values():
        others = Owner.PLUGIN if each.server.root else Owner.PROJECT
        owner = Owner.PERSON if each.server.is_own else others
        for prompt in each.offer.prompts:
            given = [
                argument.name.upper() if argument.is_required else f"[{argument.name.upper()}]"
                for argument in prompt.arguments
            ]
            yield SlashCommand(
                names=(full_name(each.server.name, prompt.name).lower(),),
                arguments=" ".join(given),
                summary=_first(prompt.description) or f"a prompt of {each.server.name}",
                run=_sending(each, prompt),
                waits=True,
                owner=owner,
            )


def _sending(each: Connection, prompt: ServerPrompt) -> Run:
    async def run(session: Session, argument: str) -> Reply:
        given = _arguments(prompt, argument)
        missing = [a.name for a in prompt.arguments if a.is_required and not given.get(a.name)]
        if missing:
            return Reply.error(f"It needs {', '.join(missing)}.")
        try:
            words = await (await each.link()).prompt(prompt.name, given)
        except ToolError as error:
            return Reply.error(str(error))
        return Reply(shared=await session.parts.composer.compose(words, ""))

    return run


def _arguments(prompt: ServerPrompt, text: str) -> dict[str, str]:
    """Return the words as arguments in their order; the last one takes the rest."""
    names = [argument.name for argument in prompt.arguments]
    words = text.split(None, len(names) - 1) if names else []
    return dict(zip(names, words, strict=False))
