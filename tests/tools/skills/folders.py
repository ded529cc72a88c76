"""Skills for tests."""

from pathlib import Path

from trusting import put

OWN = ".config/ybs/skills"


def skill(folder: Path, name: str, body: str = "Do it.", *, description: str = "Does it.", head: str = "") -> Path:  # fmt: skip
    """Write a skill and return its folder."""
    text = f"---\nname: {name}\ndescription: {description}\n{head}---\n{body}\n"
    return put(folder, f"{name}/SKILL.md", text).parent
