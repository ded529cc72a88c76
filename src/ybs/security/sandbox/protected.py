"""Read-only files in the writable folders of a sandboxed program: those that other programs act on by themselves."""

import os
import socket
import stat
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from ybs.config.host import Host
from ybs.security.paths.autorun import NAMES as AUTORUN
from ybs.security.paths.bulk import is_bulk_name
from ybs.security.paths.folder_index import index_of
from ybs.security.paths.git_names import REPOSITORIES
from ybs.security.paths.own_code import code_in
from ybs.security.paths.path_text import above
from ybs.security.paths.persons import run_in_project
from ybs.security.paths.sourced import sourced
from ybs.security.paths.targets import named_in, ways
from ybs.security.sandbox.places import lies_in

GIT = ".git"
#: Names at the top of a project that are held, for the sandbox that goes by names.
NAMES = (*sorted(REPOSITORIES), *sorted(name for name, kind in AUTORUN.items() if kind == "held"))
#: bubblewrap needs a time for each mount that grows with their number: 500 take half a second.
MOST_HELD = 500
#: Words before the name in a line of /proc/net/unix; the kernel's service that lists sockets, and the kind of its answers.
_NAMED, _SOCK_DIAG, _ANSWER = 7, 4, 20
#: Where most of them lie, which no sandbox shows.
_UNSEEN = ("/run/", "/var/run/")


def protected(host: Host, root: str) -> list[str]:
    """Return what a sandboxed program may not change: repositories at any depth, what runs later at the top, ybs's own code.

    What settings of git name in the project, and what links among these lead to, belongs to it.

    Of very many, and where not all folders could be looked at, whole folders stand for what is in them.
    Never a name that is missing: hiding one leaves an empty file behind.
    """
    return [*held(host, root), *held_whole(root)]


def held_whole(root: str) -> list[str]:
    """Return ybs's own code, the repositories at any depth, and folders that could not be looked at."""
    found = index_of(root).look()
    repositories = _folded([*found.repositories, *found.unseen], root, MOST_HELD)
    return [*code_in(root), *ways(repositories, root)]


def held(host: Host, root: str) -> list[str]:
    """Return what runs later at the top, and what settings of git name, with the links and the end of each way there.

    What `.envrc` sources or a hook runs of an environment (`.venv/bin/activate`) is not among them: commands make those anew.
    """
    found = index_of(root).look()
    named = (path for path in named_in(host, root, found) if os.path.lexists(path))
    kept = {*ways(found.held, root), *named}
    folders = {path: path[len(root) + 1 :].split("/")[:-1] for path in kept}
    if made := {path for path, names in folders.items() if any(map(is_bulk_name, names))}:
        run = (*sourced(found.held, root, str(host.home)), *run_in_project(host, root))
        kept -= made.intersection(run)
    return sorted(path for path in kept if kept.isdisjoint(above(path, root)))


def pipes(root: str) -> list[str]:
    """Return what in a folder is neither file nor folder nor link. A mount that is read-only does not keep anybody from writing into it."""
    return index_of(root).look().special


def outer_sockets(root: str) -> list[str]:
    """Return the sockets in a folder at which a program of this machine listens. Those of the session's own jobs are not among them."""
    if not (special := index_of(root).look().special):
        return []
    # A program may have bound its socket by a relative path, or have renamed it since.
    names, nodes = {path.rpartition("/")[2] for path in _bound_sockets()}, _bound_nodes()
    return [path for path in special if path.rpartition("/")[2] in names or _node_of(path) in nodes]


def machine_sockets(folders: Sequence[str]) -> list[str]:
    """Return the sockets bound by their whole path in any of these folders, which a mount that is read-only does not close."""
    named = [path for path in _bound_sockets() if path[:1] == "/" and not path.startswith(_UNSEEN)]
    found = dict.fromkeys(map(os.path.realpath, named))
    return [path for path in found if any(lies_in(path, each) for each in folders) and _node_of(path)]  # fmt: skip


def _bound_sockets() -> list[str]:
    """Return the names that programs of this network have given to their sockets; a line end cuts one off."""
    try:
        bound = Path("/proc/net/unix").read_text(errors="surrogateescape").split("\n")
    except OSError:  # not Linux
        return []
    return [words[7] for line in bound[1:] if len(words := line.split(maxsplit=_NAMED)) > _NAMED]


def _bound_nodes() -> set[int]:
    """Return the numbers of their files, whatever those are called by now; nothing where the kernel does not say."""
    request = struct.pack("=IHHIIBBHIIIII", 40, 20, 0x301, 1, 0, socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, 2, 0, 0)  # fmt: skip
    nodes = set[int]()
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
            kernel.settimeout(1)
            kernel.send(request)
            while True:
                data = kernel.recv(1 << 18)
                while data:
                    length, kind = struct.unpack_from("=IH", data)
                    if kind != _ANSWER:
                        return nodes
                    nodes |= set(_nodes_in(data[32:length]))
                    data = data[(length + 3) & ~3 :]
    except (OSError, AttributeError, struct.error):
        return nodes


def _nodes_in(attributes: bytes) -> Iterator[int]:
    while len(attributes) >= 4:
        length, kind = struct.unpack_from("=HH", attributes)
        if kind == 1:
            yield int(struct.unpack_from("=I", attributes, 4)[0])
        attributes = attributes[max(4, (length + 3) & ~3) :]


def _node_of(path: str) -> int:
    """Return the number of a socket's file as the kernel gives it out, 0 where there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return 0
    return status.st_ino & 0xFFFFFFFF if stat.S_ISSOCK(status.st_mode) else 0


def _folded(paths: list[str], root: str, most: int) -> list[str]:
    """Return the paths; where there are more than `most`, folders stand for what is in them, as few and as deep as can be."""
    every = set(paths)
    kept = sorted(path for path in paths if every.isdisjoint(above(path, root)))
    while (surplus := len(kept) - most) > 0:
        counts = Counter(folder for path in kept for folder in above(path, root))
        enough = [folder for folder, count in counts.items() if count > surplus]  # with the root
        deepest = max(enough, key=lambda folder: (folder.count("/"), counts[folder]))
        chosen = {deepest} if deepest != root else (_fullest(counts, root, surplus) or {root})
        outside = [path for path in kept if chosen.isdisjoint((path, *above(path, root)))]
        kept = sorted((*chosen, *outside))
    return kept


def _fullest(counts: Counter[str], root: str, surplus: int) -> set[str]:
    """Return the fullest folders, as deep as can be in each one at the top, so many that with one more it suffices."""
    found: dict[str, str] = {}
    for folder in counts:
        top = folder.removeprefix(f"{root}/").partition("/")[0]  # empty for the root itself
        others = found.setdefault(top, folder)
        found[top] = max(others, folder, key=lambda each: (counts[each], each.count("/")))
    del found[""]
    chosen: set[str] = set()
    for folder in sorted(found.values(), key=lambda each: -counts[each]):
        if not 1 < counts[folder] <= surplus:
            break
        chosen.add(folder)
        surplus -= counts[folder] - 1
    return chosen
