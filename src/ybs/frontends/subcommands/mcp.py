"""`ybs mcp`: the MCP servers of the settings without a chat."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from ybs.agent.environment import ToolEnvironment
from ybs.config.settings_file import write_settings
from ybs.config.tree import is_object
from ybs.core.errors import ConfigError, ToolError
from ybs.core.wording import plural
from ybs.frontends.headless.advice import advised
from ybs.frontends.headless.output import (
    UsageError,
    agrees,
    tell,
    warn,
    write,
    write_cut,
    write_json,
)
from ybs.security.firewall.vault import own_secrets
from ybs.security.paths.steps import is_led_out, link_words
from ybs.session.settings import environment_of, load_settings, ready_settings
from ybs.tools.mcp.connection import Connection
from ybs.tools.mcp.importing import Unreadable, found_in, known_files
from ybs.tools.mcp.listed import differences
from ybs.tools.mcp.settings import (
    KEY_HEADERS,
    BadServer,
    Server,
    given,
    missing_variables,
    server_of,
)
from ybs.trust.grants import variables_of
from ybs.trust.wording import plain

if TYPE_CHECKING:
    from argparse import Namespace

    from ybs.session.options import Options


_REFUSED = 5
_OFF = "  It stays off, as it is there, in whole or for some of its tools: for yours set `enabled` to true, and name in `tools` those that you want."
#: A key, and what may stand before it in a header.
_KEY = re.compile(r"(?:\w+ )?[\w.+/=~:-]+")


def mcp(arguments: "Namespace", options: "Options") -> int:
    """Run an action of `ybs mcp` and return its exit code. 1: a server does not work, 2: nobody knows it, 5: nobody said yes."""
    words: list[str] = arguments.words
    is_json, is_yes = arguments.format == "json", arguments.yes
    actions: dict[str, Callable[[], int]] = {
        "list": lambda: _list(options, is_json=is_json),
        "add": lambda: _add(arguments, options),
        "add-json": lambda: _add(arguments, options),
        "import": lambda: import_servers(options, words, is_yes=is_yes),
        "remove": lambda: _remove(options, words[0]),
        "test": lambda: _with(options, lambda each: _test(each, words, is_json=is_json)),
        "trust": lambda: _with(options, lambda each: _trust(each, words[0], is_yes=is_yes)),
        "login": lambda: _with(options, lambda each: _login(each, words[0])),
        "logout": lambda: _logout(options, words[0]),
    }
    try:
        return actions[arguments.action]()
    except BadServer as error:
        tell(f"ybs: {' '.join(words[:1])}: {error}")
    except ToolError as error:
        tell(f"ybs: {advised(str(error), error.remedies, separator=' ')}")
    return 1


def _list(options: "Options", *, is_json: bool) -> int:
    loaded = load_settings(options)
    servers = environment_of(options, loaded).mcp
    found = list(servers.connections.values())
    if is_json:
        write_json([data_of(each) for each in found])
    else:
        write_cut([_row(each, has_login=servers.has_login(each.server)) for each in found])
        if not found and not servers.problems:
            tell("There are no MCP servers: ybs mcp add NAME -- COMMAND, or ybs mcp add NAME URL")
    warn((*loaded.warnings, *servers.problems))
    return int(bool(servers.problems))


def _row(each: Connection, *, has_login: bool) -> tuple[str, ...]:
    server = each.server
    known = "" if each.state in ("off", "new") else plural(len(each.offer.tools), "tool")
    facts = ["the project's"] * server.is_projects + ["logged in"] * has_login
    facts += [f"of the plugin {server.plugin}"] * bool(server.plugin)
    state = "off" if each.state == "off" else "on"
    return server.name, state, known, ", ".join(facts), server.shown


def data_of(each: Connection) -> dict[str, Any]:
    """Return a server as JSON, without what its settings hold of secrets."""
    server = each.server
    return {
        "name": server.name,
        "state": each.state,
        "problem": each.problem,
        "transport": server.transport,
        "command": server.shown,
        "source": _source(server),
        "sandbox": server.transport == "stdio" and server.is_held,
        "network": server.network,
        "project": server.project,
        "tools": [tool.name for tool in each.offer.tools],
        "changed": [new.name for _, new in each.reviewed.changed],
        "resources": [resource.uri for resource in each.offer.resources],
        "prompts": [prompt.name for prompt in each.offer.prompts],
    }


def _source(server: Server) -> str:
    if server.is_projects:
        return "project"
    return f"plugin {server.plugin}" if server.plugin else "user"


def _with(options: "Options", work: Callable[[ToolEnvironment], Awaitable[int]]) -> int:
    """Do something that needs servers to run, and end them."""

    async def run(environment: ToolEnvironment) -> int:
        try:
            return await work(environment)
        finally:
            await environment.aclose()

    loaded = ready_settings(options)
    warn(loaded.warnings)
    environment = environment_of(options, loaded)
    for problem in environment.mcp.problems:
        tell(problem)
    return asyncio.run(run(environment))


def _found(environment: ToolEnvironment, name: str) -> Connection:
    """Return the server of that name. Raises UsageError."""
    found = environment.mcp.connections.get(name)
    if found is None:
        raise UsageError(
            f"there is no MCP server {name!r}; ybs mcp list shows those that are there"
        )
    return found


async def _test(environment: ToolEnvironment, names: Sequence[str], is_json: bool) -> int:
    every = [each for each in environment.mcp.connections.values() if each.state != "off"]
    tested = [_found(environment, name) for name in names] or every
    started = monotonic()
    seconds: dict[str, float] = {}

    async def settle(each: Connection) -> None:
        environment.mcp.renew(each.server)
        await each.settled()
        seconds[each.server.name] = round(monotonic() - started, 2)

    await asyncio.gather(*(settle(each) for each in tested))
    if is_json:
        write_json(
            [
                {**data_of(each), "seconds": seconds[each.server.name], "version": each.version}
                for each in tested
            ]
        )
    else:
        for each in tested:
            _write_tested(each, seconds[each.server.name])
    if not tested:
        tell("There are no MCP servers that are switched on.")
    return int(any(each.state != "ready" for each in tested))


def _write_tested(each: Connection, seconds: float) -> None:
    server = each.server
    if each.state != "ready":
        why = f"{server.name} does not run: {each.problem or 'it is switched off'}."
        write(advised(why, each.remedies, separator=" "))
        return
    offer = each.offer
    also = [plural(len(offer.resources), "resource")] * bool(offer.resources)
    also += [plural(len(offer.prompts), "prompt")] * bool(offer.prompts)
    counted = ", ".join([plural(len(offer.tools), "tool"), *also])
    write(f"{server.name}: {counted}, ready after {seconds:g} s; it {given(server.needs)}")
    write_cut([(f"  {tool.name}", tool.description.partition("\n")[0]) for tool in offer.tools])
    for problem in each.unfit:
        tell(f"  not usable: {problem}")
    for old, new in each.reviewed.changed:
        tell(
            f"  {new.name} {'has changed' if old else 'is new and not used'}: ybs mcp trust {server.name} shows how"
        )


async def _trust(environment: ToolEnvironment, name: str, *, is_yes: bool) -> int:
    each = _found(environment, name)
    await each.link()
    if not each.reviewed.changed:
        write(f"{name} describes its tools as it did when you approved it.")
        return 0
    for old, new in each.reviewed.changed:
        write(f"{new.name}:")
        for line in differences(old, new):
            write(f"  {line}")
    if not is_yes and not agrees(f"Use {name} as it is now? [y/N] "):
        tell("Nothing was changed.")
        return _REFUSED
    each.approve()
    write(f"{name} is used as it is now.")
    return 0


async def _login(environment: ToolEnvironment, name: str) -> int:
    await environment.mcp.login(_found(environment, name), _show_address)
    write(f"You are logged in to {name}.")
    return 0


def _logout(options: "Options", name: str) -> int:
    environment = environment_of(options, load_settings(options))
    if not environment.mcp.logout(_found(environment, name).server):
        tell(f"You were not logged in to {name}.")
        return 1
    write(f"The login at {name} is forgotten here; the server itself is not told.")
    return 0


def _show_address(url: str, place: str) -> None:
    write(f"Open this address in your browser, and log in at {place}:")
    write(url)


def _add(arguments: "Namespace", options: "Options") -> int:
    name, entry = arguments.words[0], _entry(arguments, options)
    server = server_of(name, entry)
    if not all(c.isalnum() or c in "-_" for c in name):
        raise BadServer("a name has letters, digits, - and _")
    loaded = load_settings(options)
    if name in loaded.config.mcpServers and not arguments.yes:
        raise BadServer("there is one of that name; remove it first, or add --yes")
    path = write_settings({f"mcpServers.{name}": entry}, options.host.user_config_file)
    write(f"Added {name} to {options.host.short(str(path))}. It {given(server.needs)}.")
    code = _with(options, lambda each: _test(each, [name], is_json=False))
    if code:
        tell(f"{name} stays in your settings all the same; to take it out: ybs mcp remove {name}")
    return code


def _entry(arguments: "Namespace", options: "Options") -> dict[str, Any]:
    """Return what the words of `add` say as an entry of the settings. Raises UsageError."""
    words = [*arguments.words[1:], *arguments.command]
    if not words:
        raise UsageError("something is missing: ybs mcp add NAME URL, or NAME -- COMMAND ARGUMENTS")
    entry: dict[str, Any]
    if words[0].lstrip().startswith("{") or arguments.action == "add-json":
        try:
            entry = msgspec.json.decode(" ".join(words), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise UsageError(f"the entry is not a JSON object: {error}") from error
    elif words[0].startswith(("http://", "https://")):
        entry = {"url": words[0]}
    else:
        entry = {"command": words[0], **({"args": words[1:]} if words[1:] else {})}
    if arguments.env:
        entry["env"] = dict(_pairs(arguments.env, "=", "--env NAME=VALUE"))
    if arguments.header:
        entry["headers"] = dict(_pairs(arguments.header, ":", "--header 'NAME: VALUE'"))
    return {**entry, **_access(arguments, options)}


def _access(arguments: "Namespace", options: "Options") -> dict[str, Any]:
    """Return what the options of `add` give to a server, or take from it."""
    named = [options.host.expand(each, options.folder) for each in arguments.writable]
    for path in named:
        if is_led_out(options.host, path, options.folder):
            raise BadServer(link_words(options.host, path))
    given: dict[str, Any] = {"write": [str(path) for path in named]} if named else {}
    given |= {"project": arguments.project} if arguments.project else {}
    given |= {"network": False} if arguments.no_network else {}
    return given | ({"sandbox": False} if arguments.no_sandbox else {})


def _pairs(texts: Sequence[str], sign: str, usage: str) -> list[tuple[str, str]]:
    pairs = [text.partition(sign) for text in texts]
    if not all(name.strip() and found for name, found, _ in pairs):
        raise UsageError(f"this is not understood: it is written {usage}")
    return [(name.strip(), value.strip()) for name, _, value in pairs]


def _remove(options: "Options", name: str) -> int:
    loaded = load_settings(options)
    environment = environment_of(options, loaded)
    server = _found(environment, name).server
    if server.is_projects:
        raise BadServer("it stands in the project's own file; remove it there")
    if server.plugin:
        raise BadServer(f"it is of the plugin {server.plugin}: ybs plugin remove {server.plugin}")
    write_settings({f"mcpServers.{name}": None}, options.host.user_config_file)
    if name in load_settings(options).config.mcpServers:
        raise ConfigError(
            f"{name} stands in another file than {options.host.user_config_file}: ybs config show --sources"
        )
    environment.mcp.forget(server)
    write(f"Removed {name}, with its home, what you had approved of it, and your login.")
    return 0


__all__ = ["data_of", "mcp"]


class _Found(Struct, frozen=True):
    server: Server
    entry: dict[str, Any]
    place: str


def import_servers(options: "Options", words: Sequence[str], *, is_yes: bool) -> int:
    """Add the servers of the files, or of those that are known, and return the exit code. 1: a file was broken, 5: nobody said yes."""
    loaded = load_settings(options)
    files = [options.folder / word for word in words] or list(known_files(options.host))
    found: dict[str, _Found] = {}
    code = 0
    for file in files:
        code |= not _look(options, file, found, set(loaded.config.mcpServers))
    if not found:
        tell("No MCP servers were found that are not there yet.")
        return code
    mask = environment_of(options, loaded).secrets.firewall.asking().mask
    for name, each in found.items():
        _show(name, each, mask)
    for name, each in found.items():
        if why := missing_variables(each.server, options.host.environ):
            tell(f"{name} will not run yet: {why}.")
    if not is_yes and not agrees(f"Add {plural(len(found), 'server')}? [y/N] "):
        tell("Nothing was added.")
        return _REFUSED
    entries = {f"mcpServers.{name}": each.entry for name, each in found.items()}
    path = write_settings(entries, options.host.user_config_file)
    write(f"Added to {options.host.short(str(path))}. `ybs mcp test` starts each of them once.")
    return code


def _show(name: str, found: _Found, mask: Callable[[str], str]) -> None:
    """Show an entry whole, but for keys: this is what the person says yes to."""
    write(f"{name} ({found.place}): {_shown(found, mask)}")
    write(f"  It {given(found.server.needs)}.")
    for use in variables_of({name: found.entry}):
        write(f"  {use.words}.")
    if not found.server.is_on:
        write(_OFF)


def _shown(found: _Found, mask: Callable[[str], str]) -> str:
    """Return a whole entry, but for keys by their looks, and by their names in variables and headers: one word each, as code and addresses are not."""
    entry = dict(found.entry)
    for part in ("env", "environment", "headers"):
        values: Any = entry.get(part)
        if is_object(values):
            entry[part] = {
                name: "****" if _is_key(name, str(value)) else value
                for name, value in values.items()
            }
    return mask(plain(entry))


def _is_key(name: str, value: str) -> bool:
    is_named = name.lower() in KEY_HEADERS or own_secrets({name.replace("-", "_"): value})
    return bool(is_named and _KEY.fullmatch(value)) and "//" not in value


def _look(options: "Options", file: Path, found: dict[str, _Found], known: set[str]) -> bool:
    """Add what stands in a file and is new, and say what cannot be used; return whether the file could be read."""
    place = options.host.short(str(file))
    try:
        entries = found_in(file, options.folder)
    except Unreadable as error:
        tell(f"{place} cannot be used: {error}.")
        return False
    for name, entry in entries.items():
        if name in known or name in found:
            continue
        try:
            found[name] = _Found(server_of(name, entry), entry, place)
        except BadServer as error:
            tell(f"{name} in {place} is left out: {error}.")
    return True
