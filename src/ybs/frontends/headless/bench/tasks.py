"""The tasks, as they stand in `tasks.toml`, and the project that each of them is about."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from ybs.core.errors import YbsError

Half: TypeAlias = Literal["tuning", "held"]
GUIDE: Final = "AGENTS.md"


class Many(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Files that are made by the hundred: `{n}` in path and text is the number of each, from 1."""

    path: str
    text: str
    count: int

    def files(self) -> dict[str, str]:
        """Return the files. The texts hold braces of their own, so only `{n}` is replaced in them."""
        numbers = range(1, self.count + 1)
        return {self.path.format(n=n): self.text.replace("{n}", str(n)) for n in numbers}


class Task(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task: the project, the words, and what must be true afterwards. Everything else must be as it was.

    `answer` are regular expressions that all occur in the answer, whatever the case; the answer to an impossible task
    has to say no. `after` are the texts of files afterwards, `like` regular expressions that fit the whole of them,
    `gone` files that are no longer there. `has_guide`: there is an AGENTS.md of 2 KB.
    """

    name: str
    kind: str
    half: Half
    words: str
    files: dict[str, str]
    many: Many | None = None
    has_guide: bool = False
    answer: tuple[str, ...] = ()
    after: dict[str, str] = {}
    like: dict[str, str] = {}
    gone: tuple[str, ...] = ()

    @property
    def changed(self) -> set[str]:
        """The paths that may differ afterwards."""
        return {*self.after, *self.like, *self.gone}


class _Page(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `tasks.toml` holds."""

    guide: str
    task: tuple[Task, ...]


def load_tasks(half: Half | None = None, names: Sequence[str] = ()) -> list[Task]:
    """Return the tasks of one half or of both, or those with these names. Raises YbsError for an unknown name."""
    known = {task.name: task for task in _page().task}
    if unknown := [name for name in names if name not in known]:
        raise YbsError(f"There is no task {unknown[0]!r}. The tasks are: {', '.join(known)}.")
    chosen = [known[name] for name in dict.fromkeys(names)] or list(known.values())
    return [task for task in chosen if half is None or task.half == half]


def write_project(task: Task, folder: Path) -> None:
    """Write the files of a task into an empty folder."""
    made = task.many.files() if task.many else {}
    guide = {GUIDE: _page().guide.lstrip("\n")} if task.has_guide else {}
    for name, text in {**made, **guide, **task.files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def _page() -> _Page:
    data = Path(__file__).with_name("tasks.toml").read_bytes()
    return msgspec.toml.decode(data, type=_Page)
