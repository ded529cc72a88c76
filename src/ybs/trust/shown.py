"""What the MCP server of a project, plugin or editor sees of the person's files: what its entry names, and nothing around that."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ybs.config.document import visible
from ybs.config.host import Host
from ybs.config.paths import SYSTEM
from ybs.config.review import Item
from ybs.config.tree import is_object
from ybs.config.variables import PROJECT_VARIABLES, Unset, replace_references
from ybs.trust.wording import words_in


def named_in(words: Iterable[str], host: Host) -> Iterator[Path]:
    """Yield the files and folders that words name by whole paths, as `--folder=/srv/data` does too."""
    for word in words:
        for text in (word, word.partition("=")[2]):
            named = host.with_home(text)
            if named.startswith("/") and named.strip("/") and _is_there(named):
                yield Path(named)


def shown_by(words: Iterable[str], host: Host) -> Iterator[Path]:
    """Yield what is shown for the words of an entry that is not the person's own: each path alone, links resolved too; of Python itself what it is installed in. The system is seen anyway."""
    for named in named_in(words, host):
        for path in dict.fromkeys((named, named.resolve())):
            if not any(path.is_relative_to(folder) for folder in SYSTEM):
                yield _prefix_of(path, host) or path


def _prefix_of(path: Path, host: Host) -> Path | None:
    """Return what the Python that a program is, or runs by, is installed in; never `~/.local` or what holds it."""
    top = path.parent.parent
    if path.parent.name != "bin" or (host.home / ".local/share").is_relative_to(top):
        return None
    is_python = (top / "pyvenv.cfg").is_file() or any(top.glob("lib/python3*/os.py"))
    return top if is_python else None


def items_of_servers(
    place: str, tree: Mapping[str, Any], host: Host, folder: Path
) -> Iterator[Item]:
    """Say of each server what it is shown outside of the project."""
    servers, profiles = tree.get("mcpServers"), tree.get("profiles")
    for name, server in servers.items() if is_object(servers) else ():
        entry = server if is_object(server) else {}
        words = words_in([entry.get(key) for key in ("command", "args")])
        words = [*_filled(words, host, folder), *words_in(entry.get("read"))]
        paths = [path for path in shown_by(words, host) if not path.is_relative_to(folder)]
        if paths:
            named = ", ".join(dict.fromkeys(host.short(str(path)) for path in paths))
            yield Item(
                place=place,
                words=visible(f"shows the MCP server {name} of your files: {named}", None),
            )
    for profile in profiles.values() if is_object(profiles) else ():
        yield from items_of_servers(place, profile if is_object(profile) else {}, host, folder)


def _filled(words: Iterable[str], host: Host, folder: Path) -> Iterator[str]:
    """Yield words with variables filled in, as the server starts with them; none that names a variable which is not set, since it does not."""
    environ = {**host.environ, **dict.fromkeys(PROJECT_VARIABLES, str(folder))}
    for word in words:
        with suppress(Unset):
            yield replace_references(word, environ)


def _is_there(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # too long, or in a folder that may not be searched
        return False
