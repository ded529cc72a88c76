"""The built-in tools, in the order in which models see them."""

from collections.abc import Sequence

from ybs.config.schema import BuiltinToolSettings, Config
from ybs.core.ports import Tool
from ybs.security.paths.repository import is_in_repository
from ybs.tools.builtin.delete_file import DeleteFile
from ybs.tools.builtin.edit_file import EditFile
from ybs.tools.builtin.git import GitTool
from ybs.tools.builtin.list_files import ListFiles
from ybs.tools.builtin.read_file import ReadFile
from ybs.tools.builtin.run_shell import RunShell
from ybs.tools.builtin.search_files import SearchFiles
from ybs.tools.builtin.shell_job import ShellJob
from ybs.tools.builtin.write_file import WriteFile
from ybs.tools.workspace import Workspace

#: Every tool that is part of ybs, offered at the moment or not: rules may name them.
NAMES: Sequence[str] = (
    *(
        "read_file",
        "write_file",
        "edit_file",
        "list_files",
        "search_files",
        "run_shell",
        "shell_job",
    ),
    *("delete_file", "git", "repo_map", "memorize", "set_thought", "update_identity", "skill"),
    *("ask_user", "todo", "delegate"),
)
_AS_SHIPPED = BuiltinToolSettings()
#: Tools that the short form for small models goes without.
RARE = frozenset({"shell_job", "git"})


def builtin_tools(
    config: Config, workspace: Workspace, *, is_short: bool = False, keeps_unread: bool = False
) -> list[Tool]:
    """Make the built-in tools that are not switched off.

    `is_short`, for a small model, leaves the rare ones out; `keeps_unread` is for one that reads with these tools.
    """
    settings = config.tools.builtin
    shell = settings.get("run_shell", _AS_SHIPPED)
    tools: list[Tool] = [
        ReadFile(workspace),
        WriteFile(workspace, keeps_unread=keeps_unread),
        EditFile(workspace, checks_syntax=is_short),
        ListFiles(workspace),
        SearchFiles(workspace),
        RunShell(workspace, default_seconds=shell.timeout_seconds),
        *([ShellJob(workspace)] if shell.enabled else []),  # there are no jobs without it
        DeleteFile(workspace),
        *([GitTool(workspace)] if is_in_repository(workspace.roots.folder) else []),
    ]
    return [
        tool for tool in tools if is_enabled(config, tool) and not (is_short and tool.name in RARE)
    ]


def is_enabled(config: Config, tool: Tool) -> bool:
    """Return whether a tool is not switched off."""
    return config.tools.builtin.get(tool.name, _AS_SHIPPED).enabled
