"""Start a server's program: it sees the files that its command names, and gets what its entry says and nothing else.

Each path that it names is judged once, as it is named (`_Named`): what is shown around one comes of that, and what is not followed is told.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from ybs.config.document import open_regular
from ybs.config.host import Host, worked_in
from ybs.config.paths import SYSTEM, is_same
from ybs.config.variables import project_variables
from ybs.core.errors import Refused
from ybs.security.firewall.checks import is_random
from ybs.security.launcher import persons_program
from ybs.security.own_programs import (
    Start,
    entering,
    with_git_setting,
)
from ybs.security.paths.steps import led_to, link_words, missed, steps
from ybs.security.sandbox.launch import Access, Launch, Starter
from ybs.security.sandbox.places import lies_in, switched_on
from ybs.security.sandbox.resident import Resident, may_open
from ybs.tools.mcp.settings import BadServer, Server
from ybs.tools.workspace import Workspace
from ybs.trust.reach import opened_by
from ybs.trust.shown import (
    interpreter_of,
    named_in,
    opened,
    paths_of,
    plain_word,
    programs_in,
    python_of,
    shown_for,
)

#: What shows that a folder holds a program with all that it needs.
_TOPS: Final = ("package.json", "pyproject.toml", "pyvenv.cfg", "Cargo.toml", "go.mod", "setup.py")
_SCRIPTS: Final = (".js", ".mjs", ".cjs", ".ts", ".py", ".rb", ".php", ".jar", ".sh")
_MOST_ABOVE = 5
#: What a Python needs of the folder that it is installed in, certificates too: a project may lie there beside.
_OF_PYTHON: Final = ("bin", "lib", "ssl")
_SHORTEST = 2  # parts of a path such as /srv
#: Where packages come from is the person's to say; a login in an address stays with them, and a token in one with their own servers.
_REGISTRIES: Final = (
    *("npm_config_registry", "NPM_CONFIG_REGISTRY", "UV_INDEX_URL", "UV_DEFAULT_INDEX"),
    *("UV_INDEX", "PIP_INDEX_URL", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)
#: What may be a token in an address: what is asked with it, or a part of its path that looks drawn at random.
_MAY_BE_TOKEN = re.compile(r"[A-Za-z0-9]{12,}|[\w-]*[A-Z][\w-]*")
_REGISTRY_LINE = re.compile(r"^\s*registry\s*=\s*(\S+)", re.MULTILINE)


def launch_bare(server: Server, workspace: Workspace, start: Start, program: str) -> Launch:
    """Return what starts a server's program without a sandbox, in the person's own home. Raises BadServer."""
    host, folder = workspace.roots.host, workspace.roots.folder
    plugins = (host.config_folder,)
    if server.is_container and not persons_program(program, environ=host.environ, also=plugins):
        raise BadServer(f"{program} lies in a project or a plugin, and starts no containers")
    command = entering(str(start.folder), (program, *server.args))
    access = Access(declared=with_git_setting({**project_variables(folder), **server.env}))
    return Starter().start(command, start.folder, start.environ, access)


def resident_of(
    server: Server,
    workspace: Workspace,
    start: Start,
    program: str,
    *,
    seen: Sequence[str] = (),
) -> Resident:
    """Return a server's program as one that the sandbox holds; `seen` is what a project's sees of that.

    Raises BadServer for what may not be shown to it.
    """
    host, folder = workspace.roots.host, workspace.roots.folder
    own = [Path(server.root)] if server.root else []
    writable = _paths(server, server.write, workspace, is_written=True)
    is_closed = server.project == "none" and not server.is_own  # but for what was told
    written = [os.path.realpath(path) for path in writable]
    named = list(_named_by(server, workspace, program, written))
    named = [each for each in named if not (is_closed and _is_in(each.path, folder))]
    shown = [path for each in named for path in _shown_for(each, server, host, folder)]
    shown += _paths(server, server.read, workspace)
    shown = [path for path in shown if not any(path.is_relative_to(each) for each in own)]
    is_seen = server.project != "none" and may_open(host, folder)
    if is_closed:
        shown = [path for path in shown if not _is_in(path, folder)]
        shown += [path for each in seen if not _is_link(path := folder / each, host)]
    for path in (*shown, *writable):
        if not may_open(host, path) or (is_closed and _is_in(folder, path)):
            raise BadServer(
                f"it names {host.short(str(path))}, which no sandbox may open; name a folder in it, "
                'or say "sandbox": false for this server'
            )
    anyway = [*own, *switched_on(start.environ), *([folder] if is_seen else [])]
    for each in _not_found(named, shown, host, [*map(str, anyway), *written], written):
        raise BadServer(each.why)
    where = {} if server.project == "none" else project_variables(folder)
    registries = _registries(host, start.environ, is_own=server.is_own)
    return Resident(
        key=key_of(server),
        command=(program, *(host.with_home(word) for word in server.args)),
        project=server.project,
        network=server.network,
        shown=tuple(path for path in shown if not (is_seen and path.is_relative_to(folder))),
        own=tuple(own),
        writable=tuple(writable),
        declared=with_git_setting({**registries, **where, **server.env}),
        start=start,
        is_persons=not server.is_projects,
    )


def alone(resident: Resident, folder: Path) -> Resident:
    """Return the program without what lies in a project or holds it, and without folders to change."""
    shown = tuple(path for path in resident.shown if not _meets(path, folder))
    return replace(resident, project="none", shown=shown, writable=())


def sees(resident: Resident, folder: Path) -> bool:
    """Return whether a program is shown anything of a project."""
    paths = (*resident.shown, *resident.writable)
    return resident.project != "none" or any(_meets(path, folder) for path in paths)


def _meets(path: Path, folder: Path) -> bool:
    return _is_in(path, folder) or _is_in(folder, path)


class _Named(NamedTuple):
    """A path that a command names, with what it is shown something of: the path itself, and what it leads to; `why` says why it is not followed."""

    path: Path
    found: tuple[Path, ...] = ()
    why: str = ""


def _named_by(
    server: Server, workspace: Workspace, program: str, written: Sequence[str]
) -> Iterator[_Named]:
    """Yield what the command and the arguments of a server name; it writes in the folders that are `written`."""
    host, folder = workspace.roots.host, workspace.roots.folder
    words = named_in(server.args, host)
    if server.is_own:
        runs = [Path(program), *interpreter_of(program)]
    else:
        # Who wrote the entry says no more than what stands in it, which the question lists.
        apart = (folder, Path(server.root)) if server.root else (folder,)
        runs = [*programs_in(program, host, apart)]
    if server.is_projects:
        yield from _named_by_project(server, workspace, program, runs, words, written)
    else:
        yield from (_named(path, host, written) for path in (*runs, *words))


def _named_by_project(
    server: Server,
    workspace: Workspace,
    program: str,
    runs: list[Path],
    words: Iterable[Path],
    written: Sequence[str],
) -> Iterator[_Named]:
    """Yield what the entry of a project names: around what a variable or a link leads to nothing is shown, as the question has listed where it led then."""
    host, folder = workspace.roots.host, workspace.roots.folder
    command, *texts = server.written
    plain = {*paths_of(texts, host, folder)}
    if plain_word(command, host, folder):
        plain.update(runs)
    else:
        runs = [Path(program)]
    # The links on the way of what stands on PATH, or in a first line, are the person's.
    persons = [path for path in runs if "/" not in server.command or str(path) != program]
    for path in dict.fromkeys((*runs, *words)):
        if path not in plain:
            yield _Named(path, why=_variable_words(host, path))
        elif path in persons or not _is_link(path, host):
            yield _named(path, host, written)
        elif not led_to(path, written):
            yield _Named(path, why=link_words(host, path))
        elif str(path) == program:  # of what else it does not find, the server says so
            yield _Named(path, why=_not_theirs(host, host.short(str(path)), path))


def _named(path: Path, host: Host, written: Sequence[str] = ()) -> _Named:
    end = led_to(path, written)
    ends = (Path(end),) if end else _needed_behind(path, host, written)
    found = tuple(dict.fromkeys((path, *ends)))
    return _Named(path, found, "" if ends else link_words(host, path))


def _needed_behind(path: Path, host: Host, written: Sequence[str]) -> tuple[Path, ...]:
    """Return what is seen behind a link that `led_to` does not follow: a program of the same project, and the libraries of a Python outside of all.

    Only these: behind another link may lie a document, and beside another program too.
    """
    *links, end = steps(os.path.abspath(path), has_turns=False)  # noqa: PTH100 - no link is resolved
    if not (os.path.isfile(end) and os.access(end, os.X_OK)):  # noqa: PTH113 - a text
        return ()
    folders = worked_in.union(written)
    inner = [link for link in links if any(lies_in(link, each) for each in folders)]
    if projects := [each for each in folders if lies_in(end, each)]:
        is_same = all(any(lies_in(link, each) for each in projects) for link in inner)
        return (Path(end),) if is_same else ()
    top = python_of(Path(end), host)
    if top is None or os.stat(end).st_uid not in (0, os.getuid()):  # noqa: PTH116 - a text
        return ()
    return tuple(top / name for name in _OF_PYTHON if (top / name).is_dir())


def _not_theirs(host: Host, name: str, path: Path) -> str:
    where = host.short(os.path.realpath(path))
    return f"{name} is a link to {where}; a project's file has to name that place"


def _variable_words(host: Host, path: Path) -> str:
    return (
        f"a variable of yours leads it to {host.short(str(path))}, which opens nothing to a project's server; "
        "name that place in its entry, or in one of your own settings"
    )


def _shown_for(named: _Named, server: Server, host: Host, folder: Path) -> Iterator[Path]:
    """Yield what a server sees for a path that its entry names."""
    for path in named.found:
        if server.is_own:
            yield from _around(path, host, folder)
            continue
        for each in shown_for(path, host):
            # An editor asked before it took a repository's.
            yield (_package_of(each, host, folder) if server.is_editors else None) or each


def _not_found(
    named: Iterable[_Named],
    shown: Iterable[Path],
    host: Host,
    seen: Iterable[str],
    written: Sequence[str] = (),
) -> list[_Named]:
    """Return what is named, or shown for that, and would not be found: it is not followed, and leads to nothing that the program sees."""
    ends = {path: led_to(path, written) for path in shown}
    unled = [each for each in named if each.why]
    unled += [_Named(path, why=link_words(host, path)) for path, end in ends.items() if not end]
    there = [*seen, *filter(None, ends.values())]
    lost = missed(host, [each.path for each in unled], there)
    return [each for each in unled if each.path in lost]


def needed_by(command: Sequence[str], host: Host, folder: Path) -> list[Path]:
    """Return what a command of the person's own needs to see: its program with what belongs to it, its interpreter, and what its options name. Raises Refused for what a link of a project leads to."""
    program, *options = command
    found = (Path(program), *named_in(options, host), *interpreter_of(program))
    named = [_named(path, host) for path in found]
    shown = [each for one in named for path in one.found for each in _around(path, host, folder)]
    for each in _not_found(named, shown, host, [str(folder)]):
        raise Refused(each.why)
    return shown


def program_of(server: Server, workspace: Workspace, start: Start) -> str:
    """Return the path of its program: one of the person's PATH, never one of the project by its name alone. Raises BadServer."""
    word = server.command
    if "/" in word:
        path = opened_by(word, str(start.folder), str(workspace.roots.host.home))
        if not os.path.isfile(path):  # noqa: PTH113
            why = "" if word.startswith("/") else start.why
            raise BadServer(f"there is no file {server.command}{why and ': '}{why}")
        return path
    found = persons_program(word, environ=start.environ)
    if found is None:
        raise BadServer(f"{word} is not on your PATH")
    return found


def _around(path: Path, host: Host, project: Path) -> Iterator[Path]:
    """Yield what is shown for a path: a folder or data as it is, a program with the folder of all that belongs to it, but never the project."""
    if any(lies_in(str(path), folder) for folder in SYSTEM):
        return
    if path.is_dir() or not _is_program(path):
        yield path
        return
    # What is in a bin folder has its libraries beside that.
    beside = (path.parents[path.parent.name == "bin"], path.parent)
    near = (up for up in beside if _is_own(up, host, project))
    yield _package_of(path, host, project) or next(near, path)


def _package_of(path: Path, host: Host, project: Path) -> Path | None:
    """Return the folder of the package that a file lies in."""
    if path.is_dir() or not _is_program(path):
        return None
    above = (up for up in path.parents[:_MOST_ABOVE] if _is_own(up, host, project))
    return next((up for up in above if any((up / name).exists() for name in _TOPS)), None)


def _is_program(path: Path) -> bool:
    """Return whether a file is run, and so needs what lies around it; data is shown by itself."""
    return path.suffix in _SCRIPTS or os.access(path, os.X_OK)


def _is_own(folder: Path, host: Host, project: Path) -> bool:
    """Return whether a folder is one of many: not the home folder, `~/.local` or the project, nor one above these or places of ybs's own."""
    others = (host.home / ".local/share", host.home / ".config", project, *host.own_places)
    is_above = any(lies_in(str(each), str(folder)) for each in others)
    return not is_above and len(folder.parts) > _SHORTEST


def _paths(
    server: Server, names: tuple[str, ...], workspace: Workspace, *, is_written: bool = False
) -> list[Path]:
    """Return what `read` or `write` names. Raises BadServer."""
    host, folder = workspace.roots.host, workspace.roots.folder
    paths = [host.expand(name, folder) for name in names]
    for name, path in zip(names, paths, strict=True):
        if not path.exists():
            raise BadServer(f"there is no {name}")
        if server.is_projects and _is_link(path, host):
            raise BadServer(_not_theirs(host, name, path))
        if not server.is_own:
            _check_apart(name, path.resolve(), workspace, is_written=is_written)
        if is_written and not led_to(path):
            raise BadServer(link_words(host, path))
    return opened(names, host, folder)


def _check_apart(name: str, path: Path, workspace: Workspace, *, is_written: bool) -> None:
    """Raise BadServer where an entry that is not the person's own would open more of the project, or change anything outside of it."""
    folder = workspace.roots.folder
    if _meets(path, folder):
        raise BadServer(
            f'{name} lies in the project or holds it: what it has of the project, "project" says (none, read or write)'
        )
    if is_written:
        raise BadServer(
            f"only an entry of your own settings opens {name} to change; the server can keep files in its own home folder"
        )


def _is_in(path: Path, folder: Path) -> bool:
    return any(is_same(each, folder) for each in (path, *path.parents))


def _is_link(path: Path, host: Host) -> bool:
    """Return whether a path, or a folder on the way to it, is a link; the way to the home folder may be one."""
    named, home = os.path.normpath(path), str(host.home)
    if lies_in(named, home):
        named = os.path.realpath(home) + named[len(home) :]
    return (
        os.path.realpath(path) != named
    )  # of the path as it is: `link/..` is not where the link stands


def _registries(host: Host, environ: Mapping[str, str], *, is_own: bool) -> Mapping[str, str]:
    """Return where the person has packages from, without logins, and with a token in an address for their own servers alone."""
    found = {name: environ[name] for name in _REGISTRIES if environ.get(name)}
    try:
        with open_regular(host.home / ".npmrc") as file:
            lines = file.read().decode(errors="replace")
    except OSError:
        lines = ""
    if line := _REGISTRY_LINE.search(lines):
        found.setdefault("npm_config_registry", line[1])
    found = {name: value for name, value in found.items() if "@" not in value}
    return {name: value for name, value in found.items() if is_own or not _may_hold_token(value)}


def _may_hold_token(address: str) -> bool:
    return "?" in address or any(is_random(e.encode()) for e in _MAY_BE_TOKEN.findall(address))


def key_of(server: Server) -> str:
    """Return the name of a server's home, which belongs to what runs: another entry under the name has an empty one."""
    from hashlib import sha256

    plain = re.sub(r"[^A-Za-z0-9_-]", "_", server.name)
    # In homes of before, which had no number, projects may have written.
    parts = (server.name, f"2 {server.said}")
    digests = [sha256(each.encode(errors="surrogateescape")).hexdigest()[:16] for each in parts]
    return "-".join(("mcp", plain, *digests))
