"""The base class of built-in tools: their workspace, and their prompt from the `.md` file beside them."""

from collections import OrderedDict
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from msgspec import Raw, Struct, json

from ybs.core.errors import ToolError
from ybs.core.ports import Effect
from ybs.core.schema import schema_of
from ybs.security.paths.named_paths import NamedPaths
from ybs.security.paths.names import remark_on_name
from ybs.security.paths.path_text import path_of
from ybs.security.policy.case import Subject
from ybs.tools.workspace import Workspace

Found = TypeVar("Found")
#: So many calls of one tool are remembered until they run.
_MOST_CALLS = 200


@cache
def prompt_of(name: str) -> str:
    """Return the text of `NAME.md` beside this module. Its first line is the short form."""
    return Path(__file__).with_name(f"{name}.md").read_text("utf-8").strip()


def key_of(arguments: type[Struct]) -> str:
    """Return the key of a Struct's schema in `schemas.json`."""
    return f"{arguments.__module__}.{arguments.__name__}"


@cache
def written_schemas() -> dict[str, Raw]:
    """Return the schemas of `schemas.json`, by the Struct and its module. `make docs` writes it, as making them takes a start long."""
    return json.decode(Path(__file__).with_name("schemas.json").read_bytes(), type=dict[str, Raw])


class PerCall(Generic[Found]):
    """What was found out about calls before they run, by their arguments (the very object): what was judged and shown is what is used.

    A turn may have many calls, of which all are judged before the first one runs; of those that never ran the oldest are forgotten.
    """

    def __init__(self) -> None:
        self._found: OrderedDict[int, tuple[object, Found]] = OrderedDict()

    def get(self, arguments: object) -> Found | None:
        """Return what was found out about a call, or None."""
        found = self._found.get(id(arguments))
        return None if found is None else found[1]

    def put(self, arguments: object, found: Found) -> Found:
        """Keep it, and return it."""
        self._found[id(arguments)] = (
            arguments,
            found,
        )  # held, so that no other object has the same id
        if len(self._found) > _MOST_CALLS:
            self._found.popitem(last=False)
        return found

    def pop(self, arguments: object) -> Found | None:
        """Return it, and forget it."""
        found = self._found.pop(id(arguments), None)
        return None if found is None else found[1]


class BuiltInTool:
    """Base of the built-in tools."""

    name: str
    effect: Effect
    #: ybs brings it. No other tool says so, whatever its name.
    is_built_in: ClassVar[bool] = True
    arguments: ClassVar[type[Struct]]
    #: Arguments that the short form for small models leaves out.
    rare: ClassVar[frozenset[str]] = frozenset()
    #: Whether a link stands for what it leads to.
    follows_link: ClassVar[bool] = True

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._resolved: PerCall[tuple[Path, str]] = PerCall()

    @property
    def parameters(self) -> Raw:
        """The JSON Schema of the Struct."""
        return written_schemas().get(key_of(self.arguments)) or schema_of(self.arguments)

    @property
    def description(self) -> str:
        """What the model is told about the tool."""
        return " ".join(prompt_of(self.name).split("\n"))

    @property
    def short_description(self) -> str:
        """What a small model is told."""
        return prompt_of(self.name).partition("\n")[0]

    def subject(self, arguments: Any) -> Subject:
        """Say what the policy judges: by default the path among the arguments.

        Raises ToolError for a path that tools may not touch.
        """
        path, shown = self.target(arguments)
        roots, is_read = self.workspace.roots, self.effect == "read"
        return Subject(
            paths=(shown,),
            named=NamedPaths(roots, ((arguments.path, path),)),
            is_seen=self.workspace.reads.knows(path),
            autorun_part="" if is_read else roots.autorun_part(path, arguments.path),
        )

    def target(self, arguments: Any) -> tuple[Path, str]:
        """Return the path among the arguments, its links resolved unless one is meant itself, and how it is shown.

        For the same arguments (the same object) it is found out once. Raises ToolError.
        """
        if known := self._resolved.get(arguments):
            return known
        roots, is_write = self.workspace.roots, self.effect != "read"
        path = roots.resolve(arguments.path, is_write=is_write, is_link_followed=self.follows_link)
        return self._resolved.put(arguments, (path, roots.show(path)))

    def remark_on(self, arguments: Any) -> str:
        """Return how the file's name is spelled where it is not as in the arguments; mostly nothing."""
        return remark_on_name(path_of(arguments.path), self.target(arguments)[0])


def positive(value: int, name: str, *, at_most: int) -> int:
    """Return the number within bounds. Raises ToolError where it is below 1."""
    if value < 1:
        raise ToolError(f"`{name}` must be 1 or more, not {value}")
    return min(value, at_most)
