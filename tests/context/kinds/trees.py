"""Small projects for detection, written to the disk from a table."""

from itertools import count
from pathlib import Path

from ybs.context.detect import Project, detect

_numbers = count()


def plant(folder: Path, files: dict[str, str]) -> Path:
    """Write the files; a path may have folders."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def detected(tmp_path: Path, files: dict[str, str]) -> Project:
    """Detect what a fresh folder with these files is."""
    folder = tmp_path / f"project-{next(_numbers)}"
    folder.mkdir()
    return detect(plant(folder, files))


def told(tmp_path: Path, files: dict[str, str]) -> str:
    """Return the project's line without its first word."""
    return detected(tmp_path, files).line.removeprefix("Project: ")


def commands_of(tmp_path: Path, files: dict[str, str]) -> dict[str, str]:
    """Return the commands of the project's own folder."""
    parts = detected(tmp_path, files).parts
    return {verb: " and ".join(each) for verb, each in parts[0].commands.items()} if parts else {}
