"""`ybs mcp import`: servers from the settings of other agents are shown, and added to the person's own."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ybs.config.settings_file import write_settings
from ybs.core.wording import plural
from ybs.frontends.headless.output import tell, write
from ybs.frontends.headless.tables import write_cut
from ybs.security.gate import ask_line
from ybs.session.settings import environment_of, load_settings
from ybs.tools.mcp.importing import Unreadable, found_in, known_files
from ybs.tools.mcp.settings import BadServer, Server, missing_variables, server_of

if TYPE_CHECKING:
    from ybs.session.options import Options

_REFUSED = 5


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
    mask = environment_of(options, loaded).secrets.firewall.mask
    write_cut([(name, each.place, mask(each.server.shown)) for name, each in found.items()])
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


def agrees(question: str) -> bool:
    """Ask the person on the terminal."""
    try:
        return ask_line(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False
