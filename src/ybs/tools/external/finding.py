"""Find external tools: programs in the folders of `tools.search_paths`, those of `tools.external`, and those that plugins bring.

What lies in the project counts only where the person trusts the project, and only what that trust is bound to. What a setting names is
the project's where that, or the repository around it, lies on the way: a link that leads out of it makes nothing the person's.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from ybs.config.host import Host
from ybs.config.paths import SIDECAR, sidecar_of
from ybs.config.review import PluginFolder, ProjectFile, Review
from ybs.config.schema import ExternalToolSettings, ToolsSettings
from ybs.config.tool_definition import (
    MOST_OF_CODE,
    Definition,
    Described,
    is_python_tool,
    read_beside,
)
from ybs.core.lazy import lazy
from ybs.security.paths.opening import read_beginning
from ybs.security.paths.roots import Roots
from ybs.tools.calls.tool_names import HOOK_NAMES
from ybs.tools.external.program import Program
from ybs.tools.registry import NAMES

#: A name of many folders: a program in a project's folder of this name need not be a tool.
_COMMON = "tools"
#: Whose the names of tools are; a later one has none that an earlier one may have, as rules know tools by their names.
RANKS: Final = ("your own", "a plugin", "the project")
MOST_FILES = 500  # of a folder
_NOT_TRUSTED = "it lies in the project and is not among the programs that you trust"
_CAME_LATER = "the file that describes it is not among those that you trust"


class ToolCandidate(Struct, frozen=True, kw_only=True):
    """A program that may be a tool. `described` is what the file beside it says, of one of the project or a `plugin` as the person was asked about that; without one it is asked.

    `entry` is that of the settings, where it stands there. `is_expected`: it is meant to be a tool, so what is wrong with it matters.
    `problem` says why it is not run.
    """

    program: Program
    described: Described | None = None
    entry: ExternalToolSettings | None = None
    plugin: str = ""
    is_expected: bool = True
    problem: str = ""

    @property
    def whose(self) -> str:
        """Whose the names of its tools are: "your own", where it is a program of theirs, or one of the project's that their settings name, "a plugin", or "the project"."""
        if self.entry is None and (self.plugin or self.program.is_projects):
            return "a plugin" if self.plugin else "the project"
        return "your own"


def candidates(
    tools: ToolsSettings, roots: Roots, review: Review | None, plugins: Sequence[PluginFolder] = ()
) -> list[ToolCandidate]:
    """Return the programs in their order: the settings first, then folder by folder, by name, then plugins; of one name the person's own stands before a plugin's and that before the project's. Files are looked at."""
    found = (*_candidates(tools, roots, review), *_of_plugins(plugins, roots))
    return sorted(found, key=lambda each: (RANKS.index(each.whose), each.program.is_projects))


def _candidates(
    tools: ToolsSettings, roots: Roots, review: Review | None
) -> Iterator[ToolCandidate]:
    for entry in tools.external:
        if entry.enabled:
            yield _of_entry(entry, roots, review)
    seen = set[Path]()
    for name in tools.search_paths:
        named = roots.host.expand(name, roots.folder)
        real = named.resolve()
        is_projects = _is_projects(named, roots)
        if is_projects and not (review and review.is_trusted and real.is_relative_to(roots.folder)):
            continue
        if real not in seen:
            seen.add(real)
            yield from _in_folder(name, real, roots, review, is_projects=is_projects)


def _of_plugins(plugins: Sequence[PluginFolder], roots: Roots) -> Iterator[ToolCandidate]:
    """Yield what plugins bring as they were agreed to, whatever else lies in their folders."""
    for plugin in plugins:
        for name, described in plugin.tools.items():
            path = plugin.folder / name
            real = path.resolve()
            yield ToolCandidate(
                program=Program(real, str(path), is_python=_is_python(real)),
                described=described,
                plugin=plugin.name,
                problem=_NOT_TRUSTED if _is_projects(path, roots) else "",
            )


def _of_entry(entry: ExternalToolSettings, roots: Roots, review: Review | None) -> ToolCandidate:
    named = roots.host.expand(entry.path, roots.folder)
    path = named.resolve()
    inside = _in_project(path, roots)
    program = Program(
        path,
        entry.path,
        is_python=_is_python(path),
        in_project=inside,
        files=_files(inside, review),
    )
    if _is_projects(named, roots) and not _is_trusted(inside, review):
        return ToolCandidate(program=program, entry=entry, problem=_NOT_TRUSTED)
    described = _shown(inside, review)
    if not inside and (sidecar := sidecar_of(str(path), os.path.isfile)):
        described = read_beside(Path(sidecar), path)
    return ToolCandidate(program=program, described=described, entry=entry)


def _is_trusted(path: str, review: Review | None) -> bool:
    return review is not None and review.is_trusted and path in review.files


def _shown(path: str, review: Review | None) -> Described | None:
    """Return what the question about trust showed of a program of the project that a file beside it describes."""
    return review.described.get(path) if review is not None and review.is_trusted else None


def _files(path: str, review: Review | None) -> dict[str, ProjectFile]:
    """Return what a program of the project is run with: the trusted files below its folder, as they were when the trust was looked at."""
    if not path or review is None or not _is_trusted(path, review):
        return {}
    folder = path.rpartition("/")[0]
    return {each: review.files[each] for each in (path, *(review.paths(folder) if folder else ()))}


def _is_projects(named: Path, roots: Roots) -> bool:
    """Return whether the project may have put there what a setting names: it lies in the repository, or on the way there is something that does."""
    host, plain = roots.host, Path(os.path.normpath(named))
    if plain.is_relative_to(host.config_folder) and not named.resolve().is_relative_to(
        roots.folder
    ):
        return False
    tops = (roots.folder, *host.whole_projects(roots.folder))
    way = (each.resolve() for each in (named, plain, *plain.parents))
    return any(each.is_relative_to(top) for each in way for top in tops)


def _in_folder(
    name: str, folder: Path, roots: Roots, review: Review | None, *, is_projects: bool
) -> Iterator[ToolCandidate]:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)[:MOST_FILES]
    except OSError:
        return
    for entry in entries:
        each, path = entry.name, folder / entry.name
        if each.startswith(".") or each.endswith(SIDECAR) or not _is_program(entry):
            continue
        real = path.resolve() if entry.is_symlink() else path
        inside = _in_project(real, roots)
        is_theirs = is_projects or (entry.is_symlink() and _is_projects(path, roots))
        if is_theirs and not _is_trusted(inside, review):
            continue
        if inside.startswith(f"{_COMMON}/") and not (review and review.files[inside].is_executable):
            continue  # it is trusted as something that tools may load, not as a tool
        sidecar = sidecar_of(str(path), os.path.isfile)
        program = Program(
            real, f"{name.rstrip('/')}/{each}", is_python=_is_python(real), in_project=inside,
            files=_files(inside, review),
        )  # fmt: skip
        described = _shown(inside, review)
        if sidecar and not is_projects:
            described = read_beside(Path(sidecar), real)
        yield ToolCandidate(
            program=program,
            described=described,
            problem=_CAME_LATER if sidecar and described is None else "",
            is_expected=bool(sidecar)
            or not is_projects
            or folder.name != _COMMON
            or folder.parent.name == ".ybs",
        )


def _is_program(entry: "os.DirEntry[str]") -> bool:
    """Return whether it can be run, or is Python code that describes a tool."""
    try:
        mode = entry.stat().st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) and (bool(mode & 0o111) or _is_python(Path(entry.path)))


def _is_python(path: Path) -> bool:
    if path.suffix != ".py":
        return False
    try:
        with path.open("rb") as file:
            return is_python_tool(path.name, file.read(MOST_OF_CODE))
    except OSError:
        return False


def _in_project(path: Path, roots: Roots) -> str:
    """Return the path from the project's folder; nothing for one that lies elsewhere."""
    folder = f"{roots.folder}/"
    return str(path).removeprefix(folder) if str(path).startswith(folder) else ""


_MOST_BYTES = 200_000
#: A program tells its name in quotes, Python code also by a function.
_NAME = lazy(rb"""["']([A-Za-z][\w-]{1,63})["']|\bdef ([A-Za-z]\w{0,63})\(""")


def possible_names(
    tools: ToolsSettings, host: Host, folder: Path, plugins: Sequence[PluginFolder] = ()
) -> Iterator[str]:
    """Yield the names of the files in the folders of tools, and those that stand in them; of projects not trusted too."""
    for plugin in plugins:
        for name, described in plugin.tools.items():
            yield from (
                [described.name]
                if isinstance(described, Definition)
                else names_of(str(plugin.folder / name))
            )
    for place in tools.search_paths:
        for file in _files_in(host.expand(place, folder)):
            yield from names_of(file)


def own_names(tools: ToolsSettings, roots: Roots) -> Iterator[str]:
    """Yield the names that are the person's, whether or not their tools are in use: of entries of the settings, of all files in the folders, and what hooks know by more names."""
    yield from (name for name in HOOK_NAMES if name not in NAMES)
    yield from (each.name for each in tools.external)
    for place in tools.search_paths:
        folder = roots.host.expand(place, roots.folder)
        if not _is_projects(folder, roots):
            for file in _files_in(folder):
                yield from _plain_names(file)


def _files_in(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [each.path for each in entries if each.name[:1] != "."][:MOST_FILES]
    except OSError:
        return []


def names_of(file: str) -> Iterator[str]:
    """Yield the names that the tools of a file may have: its own, and those that stand in it."""
    yield from _plain_names(file)
    yield from _names_in(file)


def _plain_names(file: str) -> tuple[str, str]:
    name = Path(file).name.removesuffix(SIDECAR).partition(".")[0]
    return name, name.replace("-", "_")


def _names_in(file: str) -> Iterator[str]:
    try:
        data = read_beginning(os.path.realpath(file), _MOST_BYTES) or b""
    except (OSError, ValueError):
        return
    for match in _NAME().finditer(data):
        yield (match[1] or match[2]).decode()
