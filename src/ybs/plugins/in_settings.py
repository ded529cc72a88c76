"""Plugins in the settings of a session: their tools, skills, hooks and MCP servers stand beside the person's own."""

from typing import Any

from msgspec.structs import replace

from ybs.config.layers import Loaded
from ybs.config.plugin import PluginFolder
from ybs.config.tree import is_list, is_object
from ybs.core.errors import ConfigError
from ybs.plugins.servers import with_servers
from ybs.plugins.store import Plugin, PluginStore
from ybs.trust.grants import ORIGIN_MARK


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
    config = loaded.config
    tools = tuple(str(each.folder / "tools") for each in used if each.parts.tools)
    config = replace(
        config,
        tools=replace(config.tools, search_paths=(*config.tools.search_paths, *tools)),
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
