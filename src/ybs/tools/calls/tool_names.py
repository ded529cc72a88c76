"""Resolve the name of a tool: its own, another spelling, or the name that other agents use."""

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct

from ybs.core.cutting import shortened
from ybs.core.ports import Tool

_LONGEST = 100  # characters of a name that are looked at
_MOST_TOLD = 1_000  # characters of all names together
_MARKS = ("<|", "(")  # what models leave behind a name
_PLACES = ("functions", "function", "tools", "tool", "default_api")  # what they put before it
#: Other agents' names, without `_` and capitals, for tools that do the same thing.
_ALIASES = {
    "read_file": ("cat", "view", "read", "viewfile", "openfile", "readfiles", "getfile"),
    "write_file": ("createfile", "write", "writetofile", "savefile", "overwritefile"),
    "edit_file": ("strreplace", "edit", "replace", "searchreplace", "replaceinfile", "editfiles"),
    "list_files": ("ls", "glob", "listdir", "listdirectory", "findfiles", "globfiles", "dir"),
    "search_files": ("grep", "rg", "ripgrep", "grepsearch", "searchfilecontent", "searchfile"),
    "run_shell": (
        *("bash", "sh", "shell", "exec", "terminal", "runcommand", "executecommand"),
        *("runterminalcmd", "runshellcommand", "execcommand", "runbash", "shellcommand"),
    ),
    "shell_job": ("bashoutput", "shelloutput", "joboutput"),
    "delete_file": ("rm", "removefile", "delete", "deletefiles"),
    "set_thought": ("thought",),  # Yips' tag
}
_MEANT = {alias: name for name, aliases in _ALIASES.items() for alias in aliases}
#: The names by which hooks know tools (`agent/user_hooks`), the usual one first.
HOOK_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "run_shell": ("Bash",),
    "read_file": ("Read", "NotebookRead"),
    "write_file": ("Write",),
    "edit_file": ("Edit", "MultiEdit"),
    "delete_file": (),
    "list_files": ("Glob", "LS"),
    "search_files": ("Grep",),
    "shell_job": ("BashOutput", "KillShell", "KillBash"),
    "web_fetch": ("WebFetch",),
    "web_search": ("WebSearch",),
    "ask_user": ("AskUserQuestion",),
    "todo": ("TodoWrite",),
    "skill": ("Skill",),
    "delegate": ("Task", "Agent"),
}
_HOOKED = {each.casefold(): name for name, names in HOOK_NAMES.items() for each in names}


class FoundTool(Struct, frozen=True):
    """The tool that was meant; `note` says that it has another name, `is_alias` that the name is another agent's."""

    tool: Tool
    note: str = ""
    is_alias: bool = False


def find(name: str, tools: Mapping[str, Tool]) -> FoundTool | None:
    """Return the tool of this name, or the only one that it can mean."""
    if (tool := tools.get(name)) is not None:
        return FoundTool(tool)
    meant, is_alias = _meant(name, tools)
    if not meant:
        return None
    note = f"there is no tool {short(name)!r}; it was taken for {meant}"
    return FoundTool(tools[meant], note, is_alias=is_alias)


def _meant(name: str, tools: Collection[str]) -> tuple[str, bool]:
    """Return the only name that a wrong one can mean, or nothing, and whether it is another agent's name."""
    key = _key(name)
    spelled = [own for own in tools if _key(own) == key]
    if spelled:
        return (spelled[0] if len(spelled) == 1 else "", False)
    meant = _MEANT.get(key, "")
    return (meant if meant in tools else "", True)


def known_by(name: str) -> str:
    """Return the tool of ybs's that hooks or models know by this name, in any case; empty where they know none."""
    return _HOOKED.get(name.casefold()) or _MEANT.get(_key(name), "")


def own_name(name: str, tools: Collection[str]) -> str:
    """Return the name of the tool that a name can only mean; the name itself where there is none."""
    return name if name in tools else _meant(name, tools)[0] or name


def unknown(name: str, tools: Collection[str], meant: Tool | None = None) -> str:
    """Return a text that says that there is no such tool, and which ones come near: `meant`, or those spelled alike."""
    close = [meant.name] if meant is not None else near(name, tools)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    names = ", ".join(tools) or "none"
    return f"There is no tool {short(name)!r}.{hint} The tools are: {shortened(names, _MOST_TOLD)}"


def short(name: str) -> str:
    """Return a wrong name as it is repeated to the model."""
    return shortened(name, _LONGEST)


def near(name: str, known: Collection[str]) -> list[str]:
    """Return the names that a person may have meant by a wrong one: the same in other signs, another agent's, or alike."""
    key = _key(name)
    if spelled := [each for each in known if key in (_key(each), each)]:
        return spelled[:2]
    if (meant := _MEANT.get(key, "")) in known:
        return [meant]
    from difflib import get_close_matches  # only a wrong name needs it

    return get_close_matches(shortened(name, _LONGEST), known, n=2, cutoff=0.5)


def _key(name: str) -> str:
    """Return what is left of a name without case, signs, and what models put around it."""
    name = name.strip()
    for mark in _MARKS:
        name = name.partition(mark)[0]
    if len(name) > _LONGEST:
        return ""
    place, dot, rest = name.partition(".")
    if dot and place.casefold() in _PLACES:
        name = rest
    return "".join(sign for sign in name.casefold() if sign.isalnum())
