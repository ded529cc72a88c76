"""The names of ybs's files in a project, and of the one that counts for everybody on the machine."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

PROJECT_FILE = ".ybs.json"
#: Where ybs reads the person's own words and programs, each folder at any depth: kinds of sub-agents, commands, skills, tools, and the
#: settings of Claude Code, whose hooks count. Their readers take them from here, and so does `security.paths.home_links`, which says what
#: of a project they are or lead to; all of `~/.config/ybs` counts there anyway.
PERSONS_AGENTS = ("~/.config/ybs/agents", "~/.claude/agents")
PERSONS_COMMANDS = ("~/.config/ybs/commands", "~/.claude/commands")
PERSONS_SKILLS = ("~/.config/ybs/skills", "~/.agents/skills", "~/.claude/skills")
PERSONS_TOOLS = ("~/.config/ybs/tools", "~/.ybs/tools")
PERSONS_HOOKS = "~/.claude/settings.json"
PERSONS_PLACES = (
    *("~/.config/ybs", *PERSONS_AGENTS, *PERSONS_COMMANDS),
    *(*PERSONS_SKILLS, *PERSONS_TOOLS, PERSONS_HOOKS),
)
#: The folders of a project that hold skills.
PROJECT_SKILLS = (".ybs/skills", ".agents/skills", ".claude/skills")
#: The folders of a project that hold kinds of sub-agents.
PROJECT_AGENTS = (".ybs/agents", ".claude/agents")
#: What else a project may have that needs trust; a start looks for these names alone.
PROJECT_SIGNS = (
    *(".mcp.json", ".ybs", "tools"),
    *(
        ".claude/agents",
        ".claude/commands",
        ".claude/skills",
        ".agents/skills",
        ".claude/settings.json",
        ".claude/settings.local.json",
    ),
)
SYSTEM_FILE = Path("/etc/ybs/config.json")

#: Programs, libraries and their settings: the same for everybody on the machine.
SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt"),
    *("/nix", "/gnu", "/snap"),
)
#: What the kernel makes up: a sandbox has its own.
KERNEL: Final = ("/proc", "/sys", "/dev")

#: Toolchains of the home folder, which every sandbox shows. Their neighbours hold keys: `.cargo/credentials.toml`, `.m2/settings.xml`,
#: `.gem/credentials`, `.local/share/uv/credentials`.
TOOLCHAINS: Final = (
    *(".pyenv", ".nvm", ".rustup", ".cargo/bin", ".cargo/registry", ".cargo/git", ".rbenv"),
    *(".local/bin", ".local/lib", ".local/share/uv/python", ".local/share/uv/tools"),
    *(".local/share/mise/installs", ".local/share/pnpm", ".local/share/fnm", ".asdf/installs"),
    *(".asdf/shims", ".volta/bin", ".volta/tools", ".bun/bin", ".deno/bin", "go/bin", "go/pkg"),
    *(".sdkman/candidates", ".m2/repository", ".gradle/wrapper", ".dotnet", ".ghcup/bin", ".elan"),
    *(".juliaup", ".gem/ruby", "miniconda3", "anaconda3", "miniforge3"),
)

#: How the file ends that describes a tool beside its program.
SIDECAR: Final = ".tool.json"


def is_same(one: Path, other: Path) -> bool:
    """Return whether two paths lead to one file or folder, however they are spelled; one that is missing is where its links lead."""
    with suppress(ValueError):  # it is no path
        try:
            return one.samefile(other)
        except OSError:
            return os.path.realpath(one) == os.path.realpath(other)
    return False


def sidecar_of(program: str, is_there: Callable[[str], bool]) -> str:
    """Return the file that describes a program: `deploy.sh.tool.json` or, where no program `deploy` is there, `deploy.tool.json`; empty where neither is."""
    if program.endswith(SIDECAR):
        return ""
    if is_there(f"{program}{SIDECAR}"):
        return f"{program}{SIDECAR}"
    folder, slash, name = program.rpartition("/")
    stem = f"{folder}{slash}{name.partition('.')[0] or name}"
    is_meant = stem != program and not is_there(stem) and is_there(f"{stem}{SIDECAR}")
    return f"{stem}{SIDECAR}" if is_meant else ""
