"""What hooks call the tools and their arguments: the names that Claude Code has, which hooks are written for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct


class _Known(Struct, frozen=True):
    """How hooks know a tool: by its names, the usual one first, and its arguments, ybs's name to theirs."""

    names: tuple[str, ...] = ()
    arguments: Mapping[str, str] = {}


_PATH = {"path": "file_path"}
_EDIT = {**_PATH, "old_text": "old_string", "new_text": "new_string"}
KNOWN: Final = {
    "run_shell": _Known(("Bash",), {"background": "run_in_background"}),
    "read_file": _Known(("Read", "NotebookRead"), _PATH),
    "write_file": _Known(("Write",), _PATH),
    "edit_file": _Known(("Edit", "MultiEdit"), _EDIT),
    "delete_file": _Known((), _PATH),
    "list_files": _Known(("Glob", "LS"), {"max_results": "head_limit"}),
    "search_files": _Known(("Grep",), {"file_pattern": "glob", "max_results": "head_limit"}),
    "shell_job": _Known(("BashOutput", "KillShell", "KillBash"), {"id": "bash_id"}),
    "web_fetch": _Known(("WebFetch",)),
    "web_search": _Known(("WebSearch",)),
    "ask_user": _Known(("AskUserQuestion",)),
    "todo": _Known(("TodoWrite",)),
    "skill": _Known(("Skill",)),
    "delegate": _Known(("Task", "Agent")),
}
_NONE = _Known()
#: What hooks call the kinds of sub-agents that are built in.
_KINDS = {"explore": "Explore", "general": "general-purpose"}
#: Arguments that ybs has in seconds and hooks in thousandths.
_SECONDS = {("run_shell", "timeout")}


def names_of(tool: str) -> tuple[str, ...]:
    """Return all names by which a hook may mean a tool."""
    return (tool, *KNOWN.get(tool, _NONE).names)


def names_of_kind(kind: str) -> tuple[str, ...]:
    """Return all names by which a hook may mean a kind of sub-agents, the one that it is told first."""
    names = (_KINDS.get(kind, kind), kind, kind.rpartition(":")[2])
    return tuple(dict.fromkeys(names)) if kind else ()


def shown_name(tool: str) -> str:
    """Return the name that a hook is told."""
    return next(iter(KNOWN.get(tool, _NONE).names), tool)


def shown_arguments(tool: str, arguments: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the arguments of a call as hooks expect them; paths of files are absolute."""
    known = KNOWN.get(tool, _NONE).arguments
    shown = {known.get(name, name): value for name, value in arguments.items()}
    for name in (name for own, name in _SECONDS if own == tool and name in shown):
        shown[name] = round(shown[name] * 1000)
    if isinstance(path := shown.get("file_path"), str):
        shown["file_path"] = str(folder / path)
    return shown


def own_arguments(tool: str, shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for ybs's tool of those that a hook gave back."""
    known = {theirs: own for own, theirs in KNOWN.get(tool, _NONE).arguments.items()}
    own = {known.get(name, name): value for name, value in shown.items()}
    for name in (name for of, name in _SECONDS if of == tool):
        if isinstance(value := own.get(name), int | float):
            own[name] = max(round(value / 1000), 1)
    return own
