"""The names of ybs's files in a project, and of the one that counts for everybody on the machine."""

from pathlib import Path

PROJECT_FILE = ".ybs.json"
#: What else a project may have that needs trust; a start looks for these names alone.
PROJECT_SIGNS = (".mcp.json", ".ybs", "tools")
SYSTEM_FILE = Path("/etc/ybs/config.json")
