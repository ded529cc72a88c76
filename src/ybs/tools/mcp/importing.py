"""Servers in the settings of other agents, in each one's own form, as entries of ybs's settings."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ybs.config.host import Host
from ybs.config.tree import is_list, is_object

#: Where other agents keep them, from the home folder.
_FILES: Final = (
    ".claude.json",
    ".claude/settings.json",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    ".cursor/mcp.json",
    ".codeium/windsurf/mcp_config.json",
    ".config/Code/User/mcp.json",
    ".config/Code/User/settings.json",
    "Library/Application Support/Code/User/mcp.json",
    "Library/Application Support/Code/User/settings.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".config/opencode/opencode.json",
    ".config/opencode/opencode.jsonc",
    ".config/zed/settings.json",
)
#: What the section is called in them.
_SECTIONS: Final = ("mcpServers", "mcp_servers", "servers", "mcp", "context_servers")
_MOST_BYTES = 20_000_000
_MOST_NAME = 40
#: What is taken as it is.
_SAME: Final = (
    *("type", "command", "args", "env", "environment", "url", "serverUrl", "httpUrl"),
    *("headers", "enabled", "disabled"),
)
#: Texts in JSON, which stay, and the comments and last commas that editors allow.
_COMMENTS = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMAS = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
#: How others write a variable: `${env:NAME}` (Cursor, VS Code, Windsurf), `{env:NAME}` (opencode), `${input:NAME}` (VS Code).
_VARIABLE = re.compile(r"\$?\{env:(\w+)\}")
_INPUT = re.compile(r"\$\{input:([^}]+)\}")
_PLACES: Final = (
    ("${workspaceFolder}", "."),
    ("${workspaceRoot}", "."),
    ("${userHome}", "${HOME}"),
    ("${pathSeparator}", "/"),
    ("${/}", "/"),
)


class Unreadable(Exception):
    """A file that cannot be read; the text says why."""


def known_files(host: Host) -> Iterator[Path]:
    """Yield the files of other agents that are there."""
    for name in _FILES:
        path = host.home / name
        if path.is_file():
            yield path


def found_in(path: Path, project: Path) -> Mapping[str, dict[str, Any]]:
    """Return the entries of a file by name, those that are for one project only where it is this one. Raises Unreadable."""
    tree = _read(path)
    if not is_object(tree):
        raise Unreadable("it is not an object")
    projects: Any = tree.get("projects")  # of Claude Code
    own: Any = projects.get(str(project)) if is_object(projects) else None
    sections = [*_sections(tree), *(_sections(own) if is_object(own) else ())]
    found: dict[str, dict[str, Any]] = {}
    for section in sections:
        for name, entry in section.items():
            if is_object(entry) and (taken := _entry(entry)):
                found[_fit(name)] = taken
    return found


def _sections(tree: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the first section that holds servers."""
    for name in _SECTIONS:
        section: Any = tree.get(name)
        inner: Any = section.get("servers", section) if is_object(section) else None
        if is_object(inner):
            yield inner
            return


def _fit(name: str) -> str:
    """Return a name that a setting may have."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:_MOST_NAME] or "server"


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry in ybs's words; nothing of one that names neither a program nor an address."""
    command: Any = entry.get("command")
    if is_object(command):  # Zed, as it was
        more = {name: command[name] for name in ("args", "env") if name in command}
        entry = {**entry, **more, "command": command.get("path")}
    taken = {name: entry[name] for name in _SAME if entry.get(name) not in (None, {}, [], "")}
    if not any(name in taken for name in ("command", "url", "serverUrl", "httpUrl")):
        return {}
    taken |= _of_codex(entry) | _times(entry) | _oauth(entry)
    if headers := {**taken.get("headers", {}), **_headers(entry)}:
        taken["headers"] = headers
    return {name: _with_variables(value) for name, value in taken.items()}


def _of_codex(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the wanted tools, as Codex, Gemini and Windsurf write them.

    An entry of ybs cannot say "all but": where only what is not wanted is named, the server stays off until the person names tools.
    """
    lists = [*filter(is_list, map(entry.get, ("enabled_tools", "includeTools")))]
    unwanted = [*filter(None, map(entry.get, ("disabled_tools", "excludeTools", "disabledTools")))]
    if lists:
        return {"tools": [tool for tool in lists[0] if not any(tool in each for each in unwanted)]}
    return {"enabled": False} if unwanted else {}


def _times(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return times: Codex has seconds, Gemini and opencode milliseconds."""
    written = (
        ("timeout_seconds", "tool_timeout_sec", 1),
        ("start_seconds", "startup_timeout_sec", 1),
        ("timeout_seconds", "timeout", 1000),
    )
    return {
        ours: value / part
        for ours, theirs, part in written
        if isinstance(value := entry.get(theirs), int | float) and value > 0
    }


def _headers(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the headers of Codex, whose values are names of variables."""
    plain: Any = entry.get("http_headers") or {}
    named: Any = entry.get("env_http_headers") or {}
    headers = {**plain, **{name: f"${{{variable}}}" for name, variable in named.items()}}
    if variable := entry.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    return headers


def _oauth(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return how ybs is known to a server: names of Claude Code and opencode, and its own."""
    own: Any = entry.get("oauth")
    if not is_object(own):
        return {}
    names = (
        *(("client_id", "clientId"), ("client_secret", "clientSecret")),
        *(("scopes", "scope"), ("callback_port", "callbackPort")),
    )
    said = {ours: own.get(ours) or own.get(theirs) for ours, theirs in names}
    kept = {name: value for name, value in said.items() if isinstance(value, str | int) and value}
    return {"oauth": kept} if kept else {}


def _with_variables(value: Any) -> Any:
    """Return a value with variables written as ybs reads them."""
    if is_object(value):
        return {name: _with_variables(each) for name, each in value.items()}
    if is_list(value):
        return [_with_variables(each) for each in value]
    if not isinstance(value, str):
        return value
    for theirs, ours in _PLACES:
        value = value.replace(theirs, ours)
    value = _INPUT.sub(lambda found: f"${{{_name_of(found[1])}}}", value)
    return _VARIABLE.sub(r"${\1}", value)


def _name_of(text: str) -> str:
    """Return the variable that stands for what VS Code asks for."""
    return re.sub(r"\W+", "_", text).upper()


def _read(path: Path) -> Any:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise Unreadable(f"it has more than {_MOST_BYTES // 1_000_000} MB")
        text = path.read_bytes().decode("utf-8-sig")
        return tomllib.loads(text) if path.suffix == ".toml" else _json(text)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error
    except (ValueError, RecursionError, msgspec.DecodeError) as error:
        raise Unreadable(f"it is damaged: {error}") from error


def _json(text: str) -> Any:
    """Return JSON, with the comments and last commas that editors allow left out."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        plain = _COMMENTS.sub(lambda found: found[1] or "", text)
        return msgspec.json.decode(_COMMAS.sub(lambda found: found[1] or "", plain))
