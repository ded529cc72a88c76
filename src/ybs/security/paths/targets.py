"""What settings of git, links, `PATH` and files such as `.envrc` lead to in a project: something outside acts on it later, whatever it is called.

The file tools ask before they write it. The sandbox holds what is run by itself on this machine, and the look after each
command names what appeared or changed; both have looked at the folders, and hand in what they found.
"""

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache

from ybs.config.host import Host
from ybs.security.paths.folder_index import IndexedPaths, index_of, listed
from ybs.security.paths.git_names import REPOSITORIES
from ybs.security.paths.git_settings import Folders, folders_of, git_around
from ybs.security.paths.path_text import above, lies_in
from ybs.security.paths.persons import named_by_settings
from ybs.security.paths.sourced import sourced
from ybs.security.paths.steps import steps

_OTHERS = REPOSITORIES - {".git"}
#: What git obeys in a repository's own folder (and in `info`), or in the one that it shares with other work trees.
_OWN, _OBEYED = ("config.worktree", "commondir"), ("config", "info/attributes", "hooks")
_LINKS = frozenset({*_OWN, "config", "info", "attributes", "hooks"})
#: Where other systems than git keep settings in their folders.
_OF_OTHERS = ("hgrc", "config", "repo/config.toml")
_SAMPLE = ".sample"
#: A look for one file is not repeated before so many times as long as it took.
_RESTS = 20


def leading_to(host: Host, root: str, path: str, *, is_link: bool = False) -> str:
    """Return the path by which something acts later on a path in the root: a link that leads to it, or itself; nothing for an ordinary one.

    Its own links are resolved; it need not exist. With `is_link` a link is to stand there, and what lies below it may be acted on.
    Where the root holds the whole home folder, no folders are looked through.
    """

    def is_met(acted_on: str) -> bool:
        return lies_in(path, acted_on) or (is_link and lies_in(acted_on, path))

    is_home = lies_in(os.path.realpath(host.home), root)
    found = IndexedPaths() if is_home else index_of(root).look(rests=_RESTS)
    for link in found.links:
        if any(map(is_met, _way(link, root))):
            return link
    named = filter(is_met, named_in(host, root, found))
    return next(named, "") or _program(host, root, path, is_link=is_link)


def named_in(host: Host, root: str, found: IndexedPaths) -> list[str]:
    """Return the paths in the root that settings name, the person's and those of each repository, with what their hooks lead to.

    That is the root itself where it is the person's own as a whole. They need not exist. What lies in the folder of a repository is not among them.
    """
    repositories = dict.fromkeys((git_around(root), *found.repositories))
    gits = {path: folders_of(host, path) for path in repositories if _is_git(path)}
    if f"{root}/HEAD" in repositories:  # it is a bare one itself
        gits[root] = folders_of(host, root)
    named = named_by_settings(host, root, gits)
    ends = {*map(os.path.realpath, found.held)}.difference(found.held, (root,))
    folders = (*named, *(path for path in sorted(ends) if lies_in(path, root)))
    inner = (each for path in folders for each in _led_to_in(path, root))
    obeyed = (each for path, places in gits.items() for each in _obeyed(path, places, root))
    others = (each for path in repositories if path not in gits for each in settings_of(host, path))
    led = (each for path in filter(os.path.islink, others) for each in _way(path, root))
    led_by = sourced(found.held, root, str(host.home))
    run = (path for each in led_by for path in (each, *_way(each, root)))
    paths = dict.fromkeys((*named, *inner, *obeyed, *led, *run))
    here = (path for path in paths if lies_in(path, root))
    below = repositories.keys() - {root}
    return [path for path in here if below.isdisjoint((path, *above(path, root)))]


def settings_of(host: Host, repository: str) -> list[str]:
    """Return the files that version control obeys for a repository, and the folder of its hooks; not all need exist."""
    if not _is_git(repository):
        return [f"{repository}/{name}" for name in _OF_OTHERS]
    folders = folders_of(host, repository)
    own = (f"{folders.own}/{name}" for name in _OWN if name in folders.names)
    return [*own, *(f"{folders.common}/{name}" for name in _OBEYED)]


def _obeyed(git: str, folders: Folders, root: str) -> list[str]:
    """Return what git obeys for a repository, where that lies in a folder of another name, and what its links lead to."""
    common, found = folders.common, list[str]()
    places = [(folders.own, folders.links), (f"{common}/info", listed(f"{common}/info")[1])]
    if common != git:
        found = [f"{folders.own}/{_OWN[0]}", *(f"{common}/{name}" for name in _OBEYED)]
        places.append((common, listed(common)[1]))
    for place, links in places:
        if names := links & _LINKS:
            found += (each for name in names for each in _way(f"{place}/{name}", root))
    if listed(f"{common}/hooks")[1]:
        found += _led_to_in(f"{common}/hooks", root)
    return found


def _is_git(repository: str) -> bool:
    """Return whether a repository of an index is git's, not another system's."""
    return repository.rpartition("/")[2] not in _OTHERS


def hooks_in(folder: str) -> list[str]:
    """Return the paths of the hooks in a folder."""
    return sorted(f"{folder}/{name}" for name in listed(folder)[0] if not name.endswith(_SAMPLE))


def ways(paths: Iterable[str], root: str) -> Iterator[str]:
    """Yield the paths; for one that is or passes a link each link that it leads over and its end, as far as they are there and lie in the root."""
    for path in paths:
        if os.path.realpath(path) != path:
            yield from filter(os.path.lexists, _way(path, root))
        else:
            yield path


def _led_to_in(folder: str, root: str) -> Iterator[str]:
    """Yield what the links in a folder lead to."""
    return (each for name in listed(folder)[1] for each in _way(f"{folder}/{name}", root))


def _way(link: str, root: str) -> Iterator[str]:
    return (step for step in steps(link, has_turns=False) if step != root and lies_in(step, root))


def programs(host: Host, root: str) -> list[str]:
    """Return what lies below the root, in a folder of `PATH`, under the name of a program from elsewhere in `PATH`."""
    inner, outer = _in_path(host, root)
    return [
        f"{folder}/{name}"
        for folder in inner
        for name in {name for names in outer for name in listed(folder)[0] & names}
    ]


def _program(host: Host, root: str, path: str, *, is_link: bool) -> str:
    """Return the name in a folder of `PATH` that is, or leads to, a path below the root, where it is that of a program from elsewhere.

    With `is_link` also a path that holds such a folder.
    """
    inner, outer = _in_path(host, root)
    folder, _, name = path.rpartition("/")
    if folder in inner and any(name in names for names in outer):
        return path
    if is_link and any(lies_in(each, path) for each in inner):
        return path
    return next((each for each in programs(host, root) if path in _way(each, root)), "")


def _in_path(host: Host, root: str) -> tuple[list[str], list[frozenset[str]]]:
    """Return the folders of `PATH` that lie in the root, and the names in each other one."""
    inner, outer = _folders_of(host.environ.get("PATH", ""), root)
    real = [folder for each in inner if lies_in(folder := os.path.realpath(each), root)]
    return real, [listed(each)[0] for each in outer] if real else []


@lru_cache(64)
def _folders_of(path: str, root: str) -> tuple[list[str], list[str]]:
    """Return the folders of `PATH` that the root holds, or anything in it leads to, and the others, which nothing there changes."""
    inner, outer = list[str](), list[str]()
    for each in path.split(os.pathsep):
        folder = os.path.normpath(each if each.startswith("/") else f"{root}/{each}")
        is_inner = any(lies_in(step, root) for step in (folder, *steps(folder)))
        (inner if is_inner else outer).append(folder)
    return inner, outer
