"""The system prompt: who the model is here, how to work, and where it stands.

It is made once per session and then stays as it is, byte for byte, so that a provider's prompt cache holds.
"""

import sys
from datetime import date
from pathlib import Path

from ybs.context.project import branch_of, clean, top_level


def system_prompt(folder: Path, *, today: date, is_short: bool) -> str:
    """Write the prompt for a session in `folder`; the short form is for small and local models."""
    name = "prompt_short.md" if is_short else "prompt.md"
    text = Path(__file__).with_name(name).read_text(encoding="utf-8").strip()
    return f"{text}\n\n{facts(folder, today=today)}"


def facts(folder: Path, *, today: date) -> str:
    """Say where the model works."""
    branch = branch_of(folder)
    lines = [
        f"Folder: {folder}" + (f" (git, branch {branch})" if branch else ""),
        f"System: {sys.platform}. Today: {today.isoformat()}.",
    ]
    if names := top_level(folder):
        lines.append("Top level: " + ", ".join(names))
    return "\n".join(clean(line) for line in lines)
