"""The names of ybs's files in a project, and of the one that counts for everybody on the machine."""

from pathlib import Path

PROJECT_FILE = ".ybs.json"
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
    ),
)
SYSTEM_FILE = Path("/etc/ybs/config.json")
