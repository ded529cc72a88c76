"""Start a server's program: it sees the files that its command names, and gets what its entry says and nothing else."""

import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from ybs.config.document import open_regular
from ybs.config.host import Host
from ybs.config.paths import SYSTEM
from ybs.config.variables import project_variables
from ybs.security.firewall.checks import is_random
from ybs.security.launcher import persons_program
from ybs.security.own_programs import (
    Start,
    entering,
    with_git_setting,
)
from ybs.security.paths.steps import check_ways, led_to, link_words, missed
from ybs.security.sandbox.launch import Access, Launch, Starter
from ybs.security.sandbox.places import lies_in, switched_on
from ybs.security.sandbox.resident import Resident, may_open
from ybs.tools.mcp.settings import BadServer, Server
from ybs.tools.workspace import Workspace
from ybs.trust.reach import opened_by
from ybs.trust.shown import (
    interpreter_of,
    named_in,
    paths_of,
    plain_word,
    programs_in,
    shown_for,
)

#: What shows that a folder holds a program with all that it needs.
_TOPS: Final = ("package.json", "pyproject.toml", "pyvenv.cfg", "Cargo.toml", "go.mod", "setup.py")
_SCRIPTS: Final = (".js", ".mjs", ".cjs", ".ts", ".py", ".rb", ".php", ".jar", ".sh")
_MOST_ABOVE = 5
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
    lead = _leading(server, host, writable)
    apart = _by_variables(server, program, workspace)
    shown = [*_shown_to(server, workspace, program, own, lead, apart)]
    shown += _paths(server, server.read, workspace)
    shown = [path for path in shown if not any(path.is_relative_to(each) for each in own)]
    is_seen = server.project != "none" and may_open(host, folder)
    if is_closed := server.project == "none" and not server.is_own:  # but for what was told
        shown = [path for path in shown if not _is_in(path, folder)]
        shown += [path for each in seen if not _is_link(path := folder / each, host)]
    for path in (*shown, *writable):
        if not may_open(host, path) or (is_closed and _is_in(folder, path)):
            raise BadServer(
                f"it names {host.short(str(path))}, which no sandbox may open; name a folder in it, "
                'or say "sandbox": false for this server'
            )
    anyway = [*own, *switched_on(start.environ), *([folder] if is_seen else [])]
    _check_found({path: lead(path) for path in shown}, writable, apart, anyway, host)
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


def _shown_to(
    server: Server,
    workspace: Workspace,
    program: str,
    own: Sequence[Path],
    lead: Callable[[Path], str],
    apart: Container[Path],
) -> Iterator[Path]:
    """Yield what a server sees for its command and arguments, but for paths that stand `apart`; `own` are the folders of its plugin."""
    host, folder = workspace.roots.host, workspace.roots.folder
    if server.is_own:
        for path in (Path(program), *named_in(server.args, host), *interpreter_of(program)):
            yield from _around(path, host, folder, lead)
        return
    # Who wrote the entry says no more than what stands in it, which the question lists.
    runs = () if Path(program) in apart else programs_in(program, host, (folder, *own))
    named = (path for path in named_in(server.args, host) if path not in apart)
    for path in shown_for((*runs, *named), host, lead):
        # An editor asked before it took a repository's.
        yield (_package_of(path, host, folder) if server.is_editors else None) or path


def _leading(server: Server, host: Host, writable: Sequence[Path]) -> Callable[[Path], str]:
    """Return what says where a path leads, empty where a link on the way is not followed: none in a project or in what the server changes.

    Of an entry of a project none is: the question has listed where it led then.
    """
    if server.is_projects:
        return lambda path: "" if _is_link(path, host) else os.path.realpath(path)
    written = [os.path.realpath(path) for path in writable]
    return lambda path: led_to(path, written)


def _by_variables(server: Server, program: str, workspace: Workspace) -> frozenset[Path]:
    """Return the paths that variables of the person's lead a project's server to, of which the question has listed none."""
    host, folder = workspace.roots.host, workspace.roots.folder
    if not server.is_projects:
        return frozenset()
    command, *args = server.written
    run = () if plain_word(command, host, folder) else (Path(program),)
    return frozenset((*run, *named_in(server.args, host))).difference(paths_of(args, host, folder))


def _check_found(
    ends: Mapping[Path, str],
    writable: Sequence[Path],
    apart: Iterable[Path],
    anyway: Sequence[Path],
    host: Host,
) -> None:
    """Raise BadServer for a path that the entry names and the server would not find."""
    seen = [str(path) for path in anyway]
    unled = [path for path in writable if not led_to(path)]
    for path in (*unled, *missed(host, ends, seen)):
        raise BadServer(link_words(host, path))
    for path in missed(host, {**ends, **dict.fromkeys(apart, "")}, seen):
        raise BadServer(
            f"a variable of yours leads it to {host.short(str(path))}, which opens nothing to a project's server; "
            "name that place in its entry, or in one of your own settings"
        )


def needed_by(command: Sequence[str], host: Host, folder: Path) -> list[Path]:
    """Return what a command of the person's own needs to see: its program with what belongs to it, its interpreter, and what its options name. Raises Refused for what a link of a project leads to."""
    program, *options = command
    found = [Path(program), *named_in(options, host), *interpreter_of(program)]
    shown = [each for path in found for each in _around(path, host, folder, led_to)]
    check_ways(host, shown, (str(folder),))
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


def _around(path: Path, host: Host, project: Path, lead: Callable[[Path], str]) -> Iterator[Path]:
    """Yield what is shown for a path, and for where it leads: a folder or data as it is, a program with the folder of all that belongs to it, but never the project."""
    for each in dict.fromkeys((path, Path(lead(path) or path))):
        if any(lies_in(str(each), folder) for folder in SYSTEM):
            continue
        if each.is_dir() or not _is_program(each):
            yield each
            continue
        # What is in a bin folder has its libraries beside that.
        beside = (each.parents[each.parent.name == "bin"], each.parent)
        near = (up for up in beside if _is_own(up, host, project))
        yield _package_of(each, host, project) or next(near, each)


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
            where = host.short(str(path.resolve()))
            raise BadServer(f"{name} is a link to {where}; a project's file has to name that place")
        if not server.is_own:
            _check_apart(name, path.resolve(), workspace, is_written=is_written)
    return [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100 - no link is resolved


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
    """Return whether a path leads into a folder: by the numbers of files, since names may be spelled in several ways."""
    above = (path, *path.parents) if folder.exists() else ()
    return any(each.exists() and each.samefile(folder) for each in above)


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
