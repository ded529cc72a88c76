"""What of a project is the person's own, by where it lies: what ybs reads as their words or programs, and what links in their home folder lead to.

People keep their settings in a repository (dotfiles), by links and hard links, or open ybs where they lie. Whoever writes such a file writes
settings of the person's: of ybs, of other agents, of shells and editors.
"""

import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import chain, islice

from msgspec import Struct

from ybs.config.paths import TOOLCHAINS
from ybs.security.paths.bulk import has_bulk_mark, is_bulk_name
from ybs.security.paths.git_names import REPOSITORIES, is_repository
from ybs.security.paths.path_text import lies_in
from ybs.security.paths.second_names import Identity, identity, named_again

#: Links count so far below each hidden folder of the home folder (`~/.config/a/b/c/link`), second names so far below the home folder and
#: one folder deeper among settings (`~/.config/systemd/user/x.service`).
_DEEPEST, _DEEPEST_NAMES, _SETTINGS = 3, 2, ".config"
#: So many hidden folders are looked into, and so many of those that ybs reads, those near their tops first.
_MOST_FOLDERS = 500
#: Where there are more hidden folders, a root that so many of their links lead into is one in which the person keeps settings.
_FEWEST = 3


class _Found(Struct):
    """What was found in folders: links with what they lead to, and files with several names. `is_part` is whether there are more folders."""

    links: dict[str, str] = {}
    several: set[Identity] = set()
    is_part: bool = False


@lru_cache(64)
def led_into(home: str, path: str, places: tuple[str, ...], root: str) -> tuple[str, ...]:
    """Return what of a root, whose links are resolved, lies in the places, or is led to from there and by links of the home folder.

    The first of the places is ybs's own folder, which is closed to tools. A root that lies in one of the others, or is a hidden folder of
    the home folder or one of settings, is it as a whole, and so is one that links lead into where there are too many folders to look at.
    They are looked at once in the life of a process. In the folders of `PATH` (`path`) lie programs, which the person starts on purpose.
    """
    home, own = os.path.realpath(home), os.path.realpath(places[0])
    hidden, read, is_home = hidden_in(home, path), read_by_ybs(home, places), lies_in(home, root)
    ends = (*map(os.path.realpath, places), *read.links.values())
    inside = [end for end in ends if lies_in(end, root) and not lies_in(end, own)]
    linked = [
        end
        for link, end in hidden.links.items()
        if end != root and lies_in(end, root) and (is_home or not lies_in(link, root))
    ]
    is_part = bool((linked or inside) and read.is_part)
    is_part |= hidden.is_part and len(set(linked)) >= _FEWEST
    is_within = any(lies_in(root, end) for end in ends)
    linked += [root] * (_is_top(root, home, hidden) or is_within or (is_part and not is_home))
    several = frozenset(hidden.several | read.several)
    return tuple(dict.fromkeys((*inside, *linked, *named_again(several, [root]))))


def _is_top(root: str, home: str, hidden: _Found) -> bool:
    """Return whether a root is a hidden folder of the home folder or one of a program's settings, or a link there leads to it."""
    settings = f"{home}/{_SETTINGS}"
    above, _, name = root.rpartition("/")
    if (above == home and name.startswith(".")) or above == os.path.realpath(settings):
        return True
    tops = (link for link, end in hidden.links.items() if end == root)
    return any(link.rpartition("/")[0] in (home, settings) for link in tops)


@lru_cache(8)
def hidden_in(home: str, path: str) -> _Found:
    """Look into the hidden folders of a home folder: into none of what is installed, and no further into caches, builds and repositories."""
    settings, installed = f"{home}/{_SETTINGS}", {f"{home}/{name}" for name in TOOLCHAINS}
    installed.update(os.path.realpath(each) for each in path.split(os.pathsep) if each[:1] == "/")
    found, pending = _Found(), [home]
    for folder in islice(pending, _MOST_FOLDERS + 1):  # it grows meanwhile
        depth = folder.count("/") - home.count("/")
        entries = [each for each in _entries(folder) if depth or each.name.startswith(".")]
        links = [each.path for each in entries if each.is_symlink()]
        found.links |= {
            link: os.path.realpath(link) for link in links if not depth or _leaves(link)
        }
        if depth <= _DEEPEST_NAMES + lies_in(folder, settings):
            files = (each.path for each in entries if each.is_file(follow_symlinks=False))
            found.several.update(chain.from_iterable(map(identity, files)))
        if depth <= _DEEPEST and _leads_on(folder, entries):
            inner = [settings] * (settings in links)
            inner += (
                each.path
                for each in entries
                if each.is_dir(follow_symlinks=False)
                and each.path not in installed
                and not (depth and _is_left_out(each.name))
            )
            pending += sorted(inner, key=settings.__ne__)
    found.is_part = len(pending) > _MOST_FOLDERS + 1
    return found


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """Return what lies in a folder; nothing of one that is a file, missing, or closed."""
    with suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _leaves(link: str) -> bool:
    """Return whether a link may lead to something else than what lies beside it or deeper."""
    to = ""
    with suppress(OSError):  # it may be gone
        to = os.readlink(link)  # noqa: PTH115 - a text
    return to.startswith("/") or ".." in to


def _leads_on(folder: str, entries: list[os.DirEntry[str]]) -> bool:
    """Return whether the folders in a hidden folder may hold settings."""
    names = {each.name for each in entries}
    is_other = has_bulk_mark(names) or is_repository(names.__contains__)
    return not is_other and not _is_left_out(folder.rpartition("/")[2])


def _is_left_out(name: str) -> bool:
    return name in REPOSITORIES or is_bulk_name(name)


@lru_cache(8)
def read_by_ybs(home: str, places: tuple[str, ...]) -> _Found:
    """Look into the places, what links in them lead to, and links in that, at any depth.

    Nobody keeps files with several names in what is hidden there, or installed.
    """
    found, pending, seen = _Found(), deque(map(os.path.realpath, places)), {"/", home}
    while pending and len(seen) < _MOST_FOLDERS:
        folder = pending.popleft()
        if folder in seen:
            continue
        seen.add(folder)
        for each in _entries(folder):
            if each.is_symlink():
                if not lies_in(home, target := os.path.realpath(each.path)):
                    found.links[each.path] = target
                    pending.append(target)
            elif not each.is_dir():
                found.several.update(identity(each.path))
            elif each.name[:1] != "." and each.name != "node_modules":
                pending.append(each.path)
    found.is_part = bool(pending)
    return found


def targets_in(folder: str) -> Iterator[str]:
    """Yield what the links in a folder lead to, and the folder itself where it is a link."""
    try:
        mode = os.lstat(folder).st_mode  # most of them are not there
        if stat.S_ISLNK(mode):
            yield os.path.realpath(folder)
        elif not stat.S_ISDIR(mode):
            return
        with os.scandir(folder) as entries:
            links = [each.path for each in entries if each.is_symlink()]
    except OSError:  # it is not there, or a file
        return
    yield from map(os.path.realpath, links)
