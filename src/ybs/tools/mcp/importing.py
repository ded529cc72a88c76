"""Servers in the settings of other agents."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ybs.config.host import Host
from ybs.config.tree import is_object

#: Where other agents keep them, from the home folder.
_FILES: Final = (
    ".claude.json",
    ".claude/settings.json",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    ".cursor/mcp.json",
    ".codeium/windsurf/mcp_config.json",
    ".config/Code/User/mcp.json",
    "Library/Application Support/Code/User/mcp.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".config/opencode/opencode.json",
    ".config/zed/settings.json",
    ".continue/config.json",
)
#: What the section is called in them.
_SECTIONS: Final = ("mcpServers", "mcp_servers", "servers", "mcp", "context_servers")
_MOST_BYTES = 20_000_000


def known_files(host: Host) -> Iterator[Path]:
    """Yield the files of other agents that are there."""
    for name in _FILES:
        path = host.home / name
        if path.is_file():
            yield path


def found_in(path: Path) -> Mapping[str, dict[str, Any]]:
    """Return the entries of a file by name; none of one that cannot be read."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return {}
        data = path.read_bytes()
        tree: Any = tomllib.loads(data.decode()) if path.suffix == ".toml" else _json(data)
    except (OSError, ValueError, RecursionError, msgspec.DecodeError):
        return {}
    for name in _SECTIONS:
        section: Any = tree.get(name) if is_object(tree) else None
        inner = section.get("servers", section) if is_object(section) else None
        if is_object(inner):
            entries = {key: _entry(each) for key, each in inner.items() if is_object(each)}
            return {key: each for key, each in entries.items() if each}
    return {}


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry without what ybs reads in another way."""
    command: Any = entry.get("command")
    if is_object(command):  # Zed
        entry = {**entry, "command": command.get("path"), "args": command.get("args", [])}
    wanted = ("type", "command", "args", "env", "environment", "url", "serverUrl", "httpUrl")
    more = ("headers", "enabled", "disabled")
    return {name: entry[name] for name in (*wanted, *more) if entry.get(name) is not None}


def _json(data: bytes) -> Any:
    """Return JSON, with comments at the start of lines left out, as editors allow."""
    lines = data.decode("utf-8", "replace").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("//"))
    return msgspec.json.decode(text)
