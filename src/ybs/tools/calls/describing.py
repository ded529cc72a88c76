"""Describe a call by its name and arguments alone: its effect, a title, and its files."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

from msgspec.structs import replace

from ybs.core.cutting import first_words
from ybs.core.decoding import object_in
from ybs.core.errors import ToolError
from ybs.core.events import ToolStarted
from ybs.core.ports import Toolbox
from ybs.security.paths.path_text import path_of
from ybs.security.paths.roots import Roots
from ybs.security.unicode import unabridged
from ybs.tools.calls.tool_names import own_name

_VERBS: Final = {
    "read_file": "Read",
    "write_file": "Write",
    "edit_file": "Edit",
    "delete_file": "Delete",
    "list_files": "List",
    "search_files": "Search",
    "run_shell": "Run",
    "shell_job": "Job",
    "git": "Git",
    "ask_user": "Ask",
    "delegate": "Delegate",
}
#: The tools whose `path` or `paths` are files of the project.
_NAMING_FILES: Final = frozenset(
    ("read_file", "write_file", "edit_file", "delete_file", "list_files", "search_files", "git")
)
#: The argument that says best what a call is about, the first that is there.
SUBJECTS: Final = (
    *("command", "pattern", "query", "path", "url", "name", "question", "id", "job_id"),
)
_LONGEST_TITLE = 200  # columns


def described(event: ToolStarted, toolbox: Toolbox, roots: Roots) -> ToolStarted:
    """Return the event of a call of the toolbox with everything that is said of it."""
    name, arguments = event.name, bytes(event.arguments)
    if name not in _VERBS:
        name = own_name(name, [spec.name for spec in toolbox.specs()])
    effect = effect_of(event.name, [toolbox])
    paths = tuple(dict.fromkeys(_paths_in(arguments, roots))) if name in _NAMING_FILES else ()
    return replace(event, effect=effect, title=title_of(name, arguments), paths=paths)


def effect_of(name: str, toolboxes: Iterable[Toolbox]) -> str:
    """Return the effect of the tool that a call of this name means; empty where there is none.

    Toolboxes with an `effect_of` of their own know those of tools that they do not offer, too.
    """
    for toolbox in toolboxes:
        known: Callable[[str], str] | None = getattr(toolbox, "effect_of", None)
        if known is not None and (effect := known(name)):
            return effect
        effects = {spec.name: spec.effect for spec in toolbox.specs()}
        if effect := effects.get(own_name(name, effects)):
            return effect
    return ""


def title_of(name: str, arguments: bytes) -> str:
    """Return a line for people that says which call it is, such as `Run git status`."""
    verb = _VERBS.get(name) or one_line(name)
    return first_words(f"{verb} {subject(arguments)}", _LONGEST_TITLE)


def subject(arguments: bytes) -> str:
    """Return in a few words what a call is about, from its arguments (JSON)."""
    given = object_in(arguments) or {}
    if isinstance(action := given.get("action"), str) and action:
        return one_line(" ".join([action, *_texts_in(given, ("paths", "path", "text", "id"))]))
    for key in SUBJECTS:
        if isinstance(value := given.get(key), str) and value:
            if key in ("id", "job_id") and value.isdecimal():
                return ""  # the result names it better
            text = f'"{value}"' if key in ("pattern", "query") else value
            place = given.get("path") if key in ("pattern", "query") else None
            return one_line(f"{text} in {place}" if isinstance(place, str) else text)
    return ""


def one_line(text: str) -> str:
    """Make the text one printable line."""
    return " ".join(unabridged(text).split())


def _texts_in(given: dict[str, Any], keys: Sequence[str]) -> Iterator[str]:
    """Yield the texts that stand there under these names, those of lists as well."""
    for key in keys:
        value = given.get(key)
        for each in cast("list[object]", value) if isinstance(value, list) else [value]:
            if isinstance(each, str) and each:
                yield each


def _paths_in(arguments: bytes, roots: Roots) -> Iterator[str]:
    """Yield the files that are named, as `roots` shows them. Nothing is looked at: a link stands for itself."""
    for text in _texts_in(object_in(arguments) or {}, ("path", "paths")):
        try:
            path = os.path.normpath(roots.folder / path_of(text))
        except ToolError:
            continue  # the call will say so
        yield roots.show(Path(path))
