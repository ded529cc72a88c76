"""What the MCP server of a project, plugin or editor sees of the person's files: what its entry names, and nothing around that."""

import os
from collections.abc import Iterable, Iterator, Mapping
from errno import ENAMETOOLONG
from pathlib import Path
from typing import Any

from ybs.config.document import open_regular, visible
from ybs.config.host import MEMORY, Host, worked_in
from ybs.config.paths import KERNEL, SYSTEM, TOOLCHAINS
from ybs.config.review import Item
from ybs.config.tree import is_object
from ybs.config.variables import names_in, project_variables, replace_references
from ybs.trust.reach import opened_by
from ybs.trust.wording import entries_of, words_in


def named_in(words: Iterable[str], host: Host) -> Iterator[Path]:
    """Yield the files and folders that words name by whole paths, as `--folder=/srv/data` does too."""
    return filter(_is_there, _paths_in(words, host))


def _paths_in(words: Iterable[str], host: Host) -> Iterator[Path]:
    for word in words:
        for text in (word, word.partition("=")[2]):
            named = host.with_home(text)
            if named.startswith("/") and named.strip("/") and not _is_kernels(Path(named)):
                yield Path(named)


def _is_kernels(path: Path) -> bool:
    """Return whether a path is one that each sandbox has of its own, such as /dev/stderr; in memory there may be a copy of the project."""
    return any(map(path.is_relative_to, KERNEL)) and not path.is_relative_to(MEMORY)


def programs_in(program: str, host: Host, apart: Iterable[Path]) -> Iterator[Path]:
    """Yield a program, and what its first line has run it; toolchains are seen anyway.

    The first line of one that lies in one of the folders `apart`, of a project or a plugin, could name any folder of the person's.
    """
    is_apart = any(Path(program).is_relative_to(folder) for folder in apart)
    for path in (Path(program), *(() if is_apart else interpreter_of(program))):
        if not any(path.is_relative_to(host.home / name) for name in TOOLCHAINS):
            yield path


def interpreter_of(program: str) -> Iterator[Path]:
    """Yield what runs a script, by its first line."""
    try:
        with open_regular(Path(program)) as file:
            first = file.readline(200)
    except (OSError, ValueError):
        return
    words = first.removeprefix(b"#!").split()
    if first.startswith(b"#!/") and words:
        yield Path(os.fsdecode(words[0]))


def shown_for(path: Path, host: Host) -> Iterator[Path]:
    """Yield what is shown for a path of an entry that is not the person's own: it alone; of Python itself, or a program of Node's packages, what it is installed in. The system is seen anyway."""
    if not any(path.is_relative_to(folder) for folder in SYSTEM):
        yield _prefix_of(path, host) or path


def _prefix_of(path: Path, host: Host) -> Path | None:
    """Return what a program is installed in with its Python or its packages of Node."""
    top = _top_of(path, host)
    is_whole = top and ((top / "pyvenv.cfg").is_file() or (top / "lib/node_modules").is_dir())
    return top if is_whole else python_of(path, host)


def python_of(path: Path, host: Host) -> Path | None:
    """Return what a program of a Python is installed in, with its libraries; no virtual environment, which has none."""
    top = _top_of(path, host)
    return top if top and any(top.glob("lib/python3*/os.py")) else None


def _top_of(path: Path, host: Host) -> Path | None:
    """Return the folder whose `bin` a program lies in; never `~/.local` or what holds it."""
    top = path.parent.parent
    is_above = (host.home / ".local/share").is_relative_to(top)
    return None if path.parent.name != "bin" or is_above else top


def items_of_servers(
    place: str, tree: Mapping[str, Any], host: Host, folder: Path
) -> Iterator[Item]:
    """Say of each server what it is shown outside of the project, also of what may be there only when it starts."""
    for name, server in entries_of(tree, "mcpServers"):
        paths = list(listed_for(server if is_object(server) else {}, host, folder))
        if paths:
            words = ", ".join(dict.fromkeys(_written(path, host) for path in paths))
            yield Item(
                place=place,
                words=visible(f"shows the MCP server {name} of your files: {words}", None),
            )


def listed_for(entry: Mapping[str, Any], host: Host, folder: Path) -> Iterator[Path]:
    """Yield what the question lists of an entry: what its server will be shown outside of the project."""
    for named in _named_by(entry, host, folder):
        for path in dict.fromkeys((named, Path(os.path.realpath(named)))):
            yield from (each for each in shown_for(path, host) if not each.is_relative_to(folder))


def _named_by(entry: Mapping[str, Any], host: Host, folder: Path) -> Iterator[Path]:
    """Yield the paths that a project's entry names as it will be started: `read` and a command with a `/` taken from the project's folder, a bare one from `PATH`."""
    texts = [*words_in(entry.get("command")), *words_in(entry.get("args"))]
    if entry.get("command") and texts:
        texts[0] = _program_at(plain_word(texts[0], host, folder), host, folder)
        yield from filter(_may_come, programs_in(texts[0], host, (folder,)) if texts[0] else ())
        texts = texts[1:]
    yield from filter(_may_come, paths_of(texts, host, folder))
    yield from filter(_may_come, opened(words_in(entry.get("read")), host, folder))


def opened(names: Iterable[str], host: Host, folder: Path) -> list[Path]:
    """Return the paths that `read` or `write` of an entry names, whole and without `..`, no link resolved: the question lists them, and a server is shown them."""
    return [Path(os.path.abspath(host.expand(name, folder))) for name in names]  # noqa: PTH100 - no link is resolved


def paths_of(words: Iterable[str], host: Host, folder: Path) -> Iterator[Path]:
    """Yield the paths that words of a project's entry open to its server, whatever stands in the person's environment when it is started."""
    return _paths_in((plain_word(word, host, folder) for word in words), host)


def plain_word(word: str, host: Host, folder: Path) -> str:
    """Return a word of a project's entry with the home folder and the project's in place of their variables; nothing of one with another variable.

    What that leads to may be another place at each start, and the question lists what is shown at all of them.
    """
    fixed = {"HOME": str(host.home), **project_variables(folder)}
    return replace_references(word, fixed) if fixed.keys() >= set(names_in(word)) else ""


def _program_at(word: str, host: Host, folder: Path) -> str:
    """Return the path that a command means: one with a `/` from the project's folder, another one by `PATH`, but for what lies in the project or another one that is worked in, which `persons_program` never starts."""
    if "/" in word:
        return opened_by(word, str(folder), str(host.home))
    others = {str(folder), *map(str, host.whole_projects(folder)), *worked_in}
    places = (Path(each, word) for each in host.environ.get("PATH", "").split(os.pathsep) if each)
    outside = (each for each in places if not any(map(each.is_relative_to, others)))
    return next((str(each) for each in outside if each.is_file() and os.access(each, os.X_OK)), "")


def _written(path: Path, host: Host) -> str:
    return host.short(str(path)) + ("" if _is_there(path) else " (not there yet)")


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long, or in a folder that may not be searched
        return False


def _may_come(path: Path) -> bool:
    """Return whether a path is there, or can be there later."""
    try:
        path.lstat()
    except OSError as error:
        return error.errno != ENAMETOOLONG
    except ValueError:  # a NUL
        return False
    return True
