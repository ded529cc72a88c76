"""Whether a task was solved: by the answer, by what is on disk, and by nothing else having changed."""

import re
from pathlib import Path
from typing import Final, TypeAlias

from ybs.frontends.headless.bench.tasks import Task

#: The files of a project by their paths.
Files: TypeAlias = dict[str, bytes]

_SAYS_NO: Final = r"n['\u2019]t\b|\b(?:no|not|none|nothing|cannot|missing|unable|unknown)\b"
#: What Python leaves behind when it runs something.
_CACHES: Final = "__pycache__"


def read_files(folder: Path) -> Files:
    """Read every file below a folder, links as what they point to; caches of Python are left out."""
    paths = (path for path in folder.rglob("*") if _CACHES not in path.parts)
    return {
        path.relative_to(folder).as_posix(): str(path.readlink()).encode()
        if path.is_symlink()
        else path.read_bytes()
        for path in paths
        if path.is_symlink() or path.is_file()
    }


def problem_of(task: Task, answer: str, before: Files, after: Files) -> str:
    """Return what is wrong with the outcome, in a few words; nothing where the task was solved."""
    names = sorted({*before, *after} - task.changed)
    if strange := [name for name in names if before.get(name) != after.get(name)]:
        return f"it also changed {', '.join(strange[:3])}"
    for name in sorted(task.changed):
        if problem := _problem_of_file(task, name, after.get(name)):
            return problem
    wanted = (_SAYS_NO,) if task.kind == "impossible" else task.answer
    missing = [each for each in wanted if not re.search(each, answer, re.IGNORECASE)]
    return "the answer is wrong" if missing else ""


def _problem_of_file(task: Task, name: str, data: bytes | None) -> str:
    """Return what is wrong with a file; how it ends, with a line break or without, does not matter."""
    if name in task.gone:
        return "" if data is None else f"{name} is still there"
    if data is None:
        return f"{name} is not there"
    text = data.decode("utf-8", "replace").rstrip()
    if name in task.after:
        is_right = text == task.after[name].rstrip()
    else:
        is_right = re.fullmatch(task.like[name], text) is not None
    return "" if is_right else f"{name} is not as it should be"
