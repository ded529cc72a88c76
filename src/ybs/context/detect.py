"""What kind of project a folder is, and its commands, as far as its own files show it.

Nothing is run and nothing imported. What the prompt is told are words of the tables here, and plain names of folders.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from ybs.context.kinds.folder import Budget, Folder, real_path
from ybs.context.kinds.kind import VERBS, Kind
from ybs.context.kinds.native import SIGNS as NATIVE
from ybs.context.kinds.native import makes, native
from ybs.context.kinds.node import SIGNS as NODE
from ybs.context.kinds.node import counts, node
from ybs.context.kinds.python import SIGNS as PYTHON
from ybs.context.kinds.python import python
from ybs.context.kinds.runners import runner_commands
from ybs.context.kinds.table import SIGNS, SUFFIXES, tabled

MAX_LINE_BYTES = 200
#: What the line tells, less and less where there is no room.
_TOLD = (("test", "lint", "types", "build"), ("test", "lint", "build"), ("test", "lint"), ("test",))
#: What a folder must have for a closer look.
_SIGNS = SIGNS.union(PYTHON, NODE, NATIVE)
#: What is left where nothing else says how: a file, a verb and its command.
_LAST = (
    (".pre-commit-config.yaml", "lint", "pre-commit run --all-files"),
    ("MODULE.bazel", "test", "bazel test //..."),
    ("MODULE.bazel", "build", "bazel build //..."),
    ("WORKSPACE", "test", "bazel test //..."),
    ("WORKSPACE", "build", "bazel build //..."),
)


class Part(Struct, frozen=True, kw_only=True):
    """A folder of the project that is built and tested for itself; `folder` is "" for the project's own.

    `commands` has what the project shows for each of VERBS: one, or one for each kind.
    """

    folder: str = ""
    kinds: tuple[Kind, ...] = ()
    commands: dict[str, tuple[str, ...]] = {}

    def told(self, verbs: Sequence[str]) -> str:
        """Write the part down with the commands for these verbs."""
        kinds = ", ".join(kind.label for kind in self.kinds)
        commands = ", ".join(
            f"{verb} " + " and ".join(f'"{command}"' for command in self.commands[verb])
            for verb in verbs
            if verb in self.commands
        )
        return ": ".join(filter(None, (self.folder, kinds, commands)))


class Project(Struct, frozen=True, kw_only=True):
    """A project: its own folder first, then what else in it is one."""

    name: str
    parts: tuple[Part, ...] = ()

    @property
    def line(self) -> str:
        """The project in one line for the prompt, of at most 200 bytes; "" when nothing is known."""
        return next((line for line in self._lines() if len(line.encode()) <= MAX_LINE_BYTES), "")

    def _lines(self) -> Iterator[str]:
        """Say less and less: fewer verbs, then the commands of the first part alone, then fewer parts."""
        if not self.parts:
            return
        for verbs in _TOLD:
            yield self._line(part.told(verbs) for part in self.parts)
        own, *others = self.parts
        for count in range(len(others), -1, -1):
            more = [f"{len(others) - count} more"] if count < len(others) else []
            briefly = (each.told(()) for each in others[:count])
            yield self._line([own.told(("test", "lint")), *briefly, *more])
        yield self._line([own.told(())])

    def _line(self, told: Iterable[str]) -> str:
        return "Project: " + "; ".join(filter(None, told))


def detect(folder: Path) -> Project:
    """Look at the project's files and say what they show. Never raises."""
    top = real_path(str(folder)) or str(folder)
    root = Folder(top, "", Budget(top))
    first = list(root.below())
    own = _part(root, first)
    tool = next((kind.tool for kind in own.kinds if kind.family == "JavaScript"), "")
    parts: list[Part] = []
    for each in first:
        if not each.is_aside:
            second = list(each.below())
            part = _beside(_below(each, second, tool), own)
            parts.append(part)
            parts += [
                _beside(_beside(_below(it, [], tool), part), own)
                for it in second
                if not it.is_aside
            ]
    parts = [part for part in parts if part.kinds]
    kinds = _sure(own.kinds, [root, *first], is_alone=not parts)
    if kinds or own.commands:
        parts.insert(0, Part(kinds=kinds, commands=own.commands))
    return Project(name=folder.name, parts=tuple(parts))


def _below(folder: Folder, below: list[Folder], tool: str) -> Part:
    """Look at a folder of the project; it is a part of its own where it shows more than what it needs."""
    if _SIGNS.isdisjoint(folder.files) and SIGNS.isdisjoint(folder.suffixes):
        return Part()
    part = _part(folder, below, tool)
    return part if part.commands.keys() - {"setup"} else Part()


def _part(folder: Folder, below: list[Folder], tool: str = "") -> Part:
    """Join what each way of looking finds; what the folder's own runners offer comes before what a kind does."""
    looked = (python(folder, below), *tabled(folder, below), node(folder, below, tool))
    kinds = [kind for kind in (*looked, native(folder, below)) if kind is not None]
    if not kinds and not folder.shown and (made := makes(folder, below)):
        kinds = [made]
    commands: dict[str, tuple[str, ...]] = {
        verb: (one,) for verb, one in runner_commands(folder, below).items()
    }
    for verb in VERBS:
        if offered := tuple(kind.commands[verb] for kind in kinds if verb in kind.commands):
            commands.setdefault(verb, offered)
    for sign, verb, command in _LAST:
        if sign in folder.files:
            commands.setdefault(verb, (command,))
    return Part(folder=folder.shown, kinds=tuple(kinds), commands=commands)


def _beside(part: Part, above: Part) -> Part:
    """Leave out what belongs to the project above: members of a workspace, and what its tests reach."""
    reached = {kind.family for kind in above.kinds if kind.is_workspace or "test" in kind.commands}
    reached |= {kind.family for kind in above.kinds if kind.family in ("C", "Terraform")}
    left = tuple(kind for kind in part.kinds if kind.family not in reached)
    return Part(folder=part.folder, kinds=left, commands=part.commands if left else {})


def _sure(kinds: tuple[Kind, ...], folders: list[Folder], *, is_alone: bool) -> tuple[Kind, ...]:
    """Return the kinds of the project's own folder; where no file names one, that of most sources in sight.

    A package.json without any JavaScript holds tools for something else.
    """
    if not is_alone or any(kind.family != "JavaScript" for kind in kinds):
        return kinds
    if kinds and any(counts(folders[0], folders[1:])):
        return kinds
    names: dict[str, int] = {}
    for folder in folders:
        for suffix, count in folder.suffixes.items():
            if name := SUFFIXES.get(suffix):
                names[name] = names.get(name, 0) + count
    if not folders[0].is_top:
        # A folder of anything, such as `/`, is not a project for what lies deep in it.
        own = {SUFFIXES.get(suffix) for suffix in folders[0].suffixes}
        names = {name: count for name, count in names.items() if name in own}
    return (Kind(name=max(names, key=lambda name: names[name])),) if names else kinds
