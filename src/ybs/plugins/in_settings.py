"""Plugins in the settings of a session: their tools, skills, hooks and MCP servers stand beside the person's own."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from ybs.config.document import visible
from ybs.config.layers import Loaded
from ybs.config.review import PluginFolder
from ybs.config.tree import is_list, is_object
from ybs.config.variables import variables_in
from ybs.core.errors import ConfigError
from ybs.plugins.store import Plugin, PluginStore
from ybs.tools.mcp.settings import BadServer, Server, given, server_of
from ybs.trust.grants import ORIGIN_MARK
from ybs.trust.wording import plain

ROOT: Final = "CLAUDE_PLUGIN_ROOT"
#: What a plugin cannot say of its servers.
_NOT_ITS_OWN: Final = ("sandbox", "replace_default", "elicitation", "cwd")


def _checked(entries: Mapping[str, Any]) -> Iterator[tuple[str, Any, Server | BadServer]]:
    """Yield each server under its whole name, with its entry, or why it cannot be used: what is said before it is added, sessions go by."""
    for name, entry in entries.items():
        try:
            yield name, entry, server_of(name, _placed(entry, Path(f"${{{ROOT}}}")))
        except BadServer as error:
            yield name, entry, error


def server_needs(entries: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each server: its whole entry, and what it is given."""
    for name, entry, server in _checked(entries):
        if isinstance(server, BadServer):
            yield f"ignored: the MCP server {visible(name)}: {server}"
            continue
        yield _line(server, _own(entry))
        for key in _NOT_ITS_OWN:
            if key in entry:
                yield f"ignored: {key} of the MCP server {name}, which a plugin cannot set"


def _line(server: Server, entry: Any) -> str:
    if server.transport == "http":
        line = f"connects to the MCP server {server.name}: {plain(entry)}"
    else:
        line = f"runs the MCP server {server.name}, in the sandbox: {plain(entry)}; it {given(server.needs)}"
    names = [name for name in variables_in(entry) if name != ROOT]
    return f"{line}; it gets your {', '.join(names)}" if names else line


def with_servers(own: Mapping[str, Any], plugins: Sequence[Plugin]) -> dict[str, Any]:
    """Return servers of the settings with those of plugins; one whose name is taken is called `PLUGIN_SERVER`.

    One that `add` ignored is left out, and no name is cut to fit: the whole one is refused where it is too long. What is not the person's
    own comes last, as `project_SERVER` where a plugin has the name: their rules are about names.
    """
    origins = {name: entry.get(ORIGIN_MARK) for name, entry in own.items() if is_object(entry)}
    servers = {name: entry for name, entry in own.items() if not origins.get(name)}
    for plugin in plugins:
        for name, entry, server in _checked(plugin.parts.servers):
            if isinstance(server, Server):
                free = name if name not in servers else f"{plugin.name}_{name}"
                servers.setdefault(free, _placed(entry, plugin.folder))
    for name, entry in own.items():
        if origin := origins.get(name):
            free = name if name not in servers else f"{origin}_{name}"
            servers.setdefault(free, entry)
    return servers


def _own(entry: Any) -> Any:
    """Return an entry without what a plugin cannot say."""
    if not is_object(entry):
        return entry
    return {name: value for name, value in entry.items() if name not in _NOT_ITS_OWN}


def _placed(entry: Any, folder: Path) -> Any:
    """Return an entry for the plugin's folder, marked as the plugin's."""
    if not is_object(entry):
        return entry
    placed: dict[str, Any] = _with_root(_own(entry), str(folder))
    command: Any = placed.get("command")
    if isinstance(command, str) and command.startswith("./"):
        placed["command"] = str(folder / command)
    env: Any = placed.get("env") or {}
    if command and is_object(env):
        placed["env"] = {**env, ROOT: str(folder)}
    return {**placed, ORIGIN_MARK: "plugin", "root": str(folder)}


def _with_root(value: Any, folder: str) -> Any:
    if isinstance(value, str):
        return value.replace(f"${{{ROOT}}}", folder)
    if is_object(value):
        return {name: _with_root(each, folder) for name, each in value.items()}
    return [_with_root(each, folder) for each in value] if is_list(value) else value


def with_added(loaded: Loaded) -> Loaded:
    """Return the settings with what the plugins bring that are enabled and unchanged; of the others, with a warning."""
    try:
        plugins = [each for each in PluginStore(loaded.host).plugins() if each.added.is_enabled]
    except (ConfigError, OSError) as error:
        return replace(loaded, warnings=(*loaded.warnings, f"No plugin is used: {error}"))
    warnings = [
        f"The plugin {each.name} is not used, as {each.problem}; enable it anew to see what it does now."
        for each in plugins
        if each.problem
    ]
    used = [each for each in plugins if each.is_used]
    warnings += [
        f"The MCP server {visible(name)!r} of the plugin {each.name} is not used: {server}."
        for each in used
        for name, _, server in _checked(each.parts.servers)
        if isinstance(server, BadServer)
    ]
    config = loaded.config
    config = replace(
        config,
        hooks=_with_hooks(config.hooks, used),
        mcpServers=with_servers(config.mcpServers, used),
    )
    folders = tuple(
        PluginFolder(
            name=each.name,
            folder=each.folder,
            commands=each.parts.commands,
            agents=each.parts.agents,
            skill_folders=each.parts.skill_folders,
            tools=each.parts.tools,
        )
        for each in used
    )
    return replace(loaded, config=config, plugins=folders, warnings=(*loaded.warnings, *warnings))


def _with_hooks(own: dict[str, Any], plugins: list[Plugin]) -> dict[str, Any]:
    hooks = dict(own)
    for plugin in plugins:
        mark = {ORIGIN_MARK: "plugin", "root": str(plugin.folder)}
        for event, groups in plugin.parts.hooks.items():
            before: Any = hooks.get(event, [])
            marked = [{**group, **mark} if is_object(group) else group for group in groups]
            hooks[event] = [*(before if is_list(before) else [before]), *marked]
    return hooks
