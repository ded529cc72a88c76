"""Which built-in tools there are, in the order in which models see them."""

from collections.abc import Sequence

from ybs.config.schema import BuiltinTool, Config
from ybs.core.ports import Tool
from ybs.security.repository import is_in_repository
from ybs.tools.delete_file import DeleteFile
from ybs.tools.edit_file import EditFile
from ybs.tools.git import Git
from ybs.tools.list_files import ListFiles
from ybs.tools.read_file import ReadFile
from ybs.tools.run_shell import RunShell
from ybs.tools.search_files import SearchFiles
from ybs.tools.shell_job import ShellJob
from ybs.tools.workspace import Workspace
from ybs.tools.write_file import WriteFile

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
    *("delete_file", "git", "repo_map", "memorize", "set_thought", "update_identity"),
)
_AS_SHIPPED = BuiltinTool()
#: Tools that the short form for small models goes without.
RARE = frozenset({"delete_file", "shell_job", "git"})


def builtin_tools(config: Config, workspace: Workspace, *, is_short: bool = False) -> list[Tool]:
    """Make the built-in tools that are not switched off; `is_short` leaves the rare ones out."""
    settings = config.tools.builtin
    shell = settings.get("run_shell", _AS_SHIPPED)
    tools: list[Tool] = [
        ReadFile(workspace),
        WriteFile(workspace),
        EditFile(workspace),
        ListFiles(workspace),
        SearchFiles(workspace),
        RunShell(workspace, default_seconds=shell.timeout_seconds),
        *([ShellJob(workspace)] if shell.enabled else []),  # there are no jobs without it
        DeleteFile(workspace),
        *([Git(workspace)] if is_in_repository(workspace.roots.folder) else []),
    ]
    return [
        tool for tool in tools if is_enabled(config, tool) and not (is_short and tool.name in RARE)
    ]


def is_enabled(config: Config, tool: Tool) -> bool:
    """Tell whether a tool is not switched off."""
    return config.tools.builtin.get(tool.name, _AS_SHIPPED).enabled
