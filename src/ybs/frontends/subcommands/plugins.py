"""`ybs plugin`: the plugins that were added, and what one would do before it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ybs.frontends.headless.output import agrees, tell, write, write_json, write_table
from ybs.plugins.cloning import STARTS, clone
from ybs.plugins.content import BadPlugin, PluginFiles, read_folder
from ybs.plugins.needs import needs_of
from ybs.plugins.parts import Parts, named_plugins, parts_of, plugin_in
from ybs.plugins.store import Plugin, PluginStore
from ybs.security.unicode import printable

if TYPE_CHECKING:
    from argparse import Namespace

    from ybs.session.options import Options

_REFUSED = 5


def plugins(arguments: "Namespace", options: "Options") -> int:
    """Run an action of `ybs plugin` and return its exit code. 1: it cannot be done, 5: nobody said yes."""
    store = PluginStore(options.host)
    words: list[str] = arguments.words
    try:
        match arguments.action:
            case "add":
                return _add(store, options, words[0], "".join(words[1:]), is_yes=arguments.yes)
            case "remove":
                store.remove(store.find(words[0]))
                write(f"Removed the plugin {words[0]}.")
            case "enable":
                return _enable(store, words[0], is_yes=arguments.yes)
            case "disable":
                store.disable(store.find(words[0]))
                write(f"The plugin {words[0]} is not used any more; it stays in {store.folder}.")
            case "show":
                _show(store.find(words[0]))
            case _:
                _list(store, is_json=arguments.format == "json")
    except BadPlugin as error:
        tell(f"ybs: {' '.join(words[:1]) or 'the plugins'}: {error}")
        return 1
    except OSError as error:
        tell(f"ybs: {words[0] if words else store.folder}: {error.strerror or error}")
        return 1
    return 0


def _list(store: PluginStore, *, is_json: bool) -> None:
    found = list(store.plugins())
    if is_json:
        write_json([_data(plugin) for plugin in found])
        return
    write_table([_row(plugin) for plugin in found])
    for plugin in found:
        if plugin.problem:
            tell(f"{plugin.name}: {plugin.problem}")
    if not found:
        tell("No plugin was added yet: ybs plugin add FOLDER or https://ADDRESS")


def _row(plugin: Plugin) -> tuple[str, ...]:
    state = "changed" if plugin.problem else "on" if plugin.is_used else "off"
    return plugin.name, state, plugin.parts.version, plugin.parts.description, plugin.added.source


def _data(plugin: Plugin) -> dict[str, Any]:
    return {
        "name": plugin.name,
        "used": plugin.is_used,
        "problem": plugin.problem,
        "source": plugin.added.source,
        "sha256": plugin.added.digest,
        "folder": str(plugin.folder),
        "parts": plugin.parts,
    }


def _show(plugin: Plugin) -> None:
    write(f"{plugin.name} {plugin.parts.version}".rstrip())
    write(f"from {plugin.added.source}, SHA-256 {plugin.added.digest}")
    for line in needs_of(read_folder(plugin.folder), plugin.parts):
        write(f"- {printable(line)}")
    if plugin.problem:
        tell(f"It is not used, as {plugin.problem}.")


def _add(store: PluginStore, options: "Options", source: str, inner: str, *, is_yes: bool) -> int:
    content, shown = _fetched(source, options)
    name = _name_of(inner or source)
    if inner:
        content, shown = plugin_in(content, inner), f"{shown} {inner}"
    parts = parts_of(content, name)
    if parts.is_empty:
        raise BadPlugin(_several(content) if not inner else "nothing in it is known to ybs")
    if not _is_agreed(content, parts, shown, is_yes=is_yes):
        return _REFUSED
    folder = store.add(content, parts, shown)
    write(f"Added the plugin {parts.name} to {folder}. Sessions have it from their start on.")
    return 0


def _enable(store: PluginStore, name: str, *, is_yes: bool) -> int:
    plugin = store.find(name)
    content = read_folder(plugin.folder)
    is_known = content.digest == plugin.added.digest
    parts = parts_of(content, name)
    if not is_known and not _is_agreed(content, parts, plugin.added.source, is_yes=is_yes):
        return _REFUSED
    store.enable(plugin)
    write(f"The plugin {name} is used from the next session on.")
    return 0


def _fetched(source: str, options: "Options") -> tuple[PluginFiles, str]:
    """Return the files of a source, and how the source is kept. Raises BadPlugin and OSError."""
    if source.startswith(STARTS):
        return clone(source, options.host.environ), source
    if "://" in source or source.startswith("git@"):
        raise BadPlugin("only addresses with https:// and file:// are fetched")
    path = options.host.expand(source, Path.cwd())
    if path.is_dir():
        return read_folder(path), str(path)
    raise BadPlugin("there is no such folder; an archive has to be unpacked first")


def _name_of(source: str) -> str:
    """Return the name that a source suggests."""
    last = Path(source.rstrip("/")).name
    return last.removesuffix(".git").partition(".")[0]


def _several(content: PluginFiles) -> str:
    """Return which plugins a collection holds, where there is none at its top."""
    names = [name or folder for name, folder in named_plugins(content)]
    if not names:
        return "nothing in it is known to ybs; a plugin within it is added by: ybs plugin add SOURCE FOLDER"
    return f"it holds several; add one by its name behind the address: {', '.join(names)}"


def _is_agreed(content: PluginFiles, parts: Parts, source: str, *, is_yes: bool) -> bool:
    tell(f"The plugin {parts.name} {parts.version}".rstrip() + f", from {printable(source)}:")
    for line in needs_of(content, parts):
        tell(f"- {printable(line)}")
    refusal = "no terminal to ask; --yes adds it without asking"
    if is_yes or agrees("Trust all of this and use it? [y/N] ", refusal):
        return True
    tell("Nothing was changed.")
    return False
