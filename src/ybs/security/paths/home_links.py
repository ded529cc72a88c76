"""What of a project is the person's own, by where it lies: what ybs reads as their words or programs, and what links in their home folder lead to.

People keep their settings in a repository (dotfiles), by links and hard links, or open ybs where they lie. Whoever writes such a file writes
settings of the person's: of ybs, of other agents, of shells and editors.
"""

import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import chain

from ybs.security.paths.path_text import lies_in
from ybs.security.paths.second_names import Identity, identity, named_again

#: Folders of the home folder whose links count, beside those that ybs reads; of the home folder itself hidden names do.
_FOLDERS = (".agents", ".claude", ".codex", ".gemini", ".gnupg", ".ssh", ".vim")
#: The links of programs' settings count at every depth that people keep them at (`~/.config/systemd/user/x.service`).
_SETTINGS, _DEEPEST = ".config", 3
#: So many folders of those that ybs reads are looked into, those near their tops first, and so many of settings.
_MOST_FOLDERS, _MOST_OF_SETTINGS = 500, 200


@lru_cache(64)
def led_into(home: str, places: tuple[str, ...], root: str) -> tuple[str, ...]:
    """Return what of a root, whose links are resolved, lies in the places, or is led to from there and by links of the home folder.

    The first of the places is ybs's own folder, which is closed to tools. A root that lies in one of the others is it as a whole.
    They are looked at once in the life of a process.
    """
    tops = {os.path.realpath(top) for top in _tops(home, places)}
    home, own = os.path.realpath(home), os.path.realpath(places[0])
    folders = (home, *(f"{home}/{name}" for name in _FOLDERS), *_of_settings(home))
    links = (path for folder in folders for path in targets_in(folder, only_hidden=folder == home))
    led = [path for path in links if path != root and lies_in(path, root)]
    several = set(chain.from_iterable(_several_in(folder, home) for folder in folders))
    led += [root] * (root in tops)
    for path in _read_by_ybs(home, places, several):
        if lies_in(path, root) and not lies_in(path, own):
            led.append(path)
        elif lies_in(root, path):
            led.append(root)
    return tuple(dict.fromkeys((*led, *named_again(frozenset(several), [root]))))


def _of_settings(home: str) -> list[str]:
    """Return the folders of programs' settings, those near the top first."""
    found = [f"{home}/{_SETTINGS}"]
    depth = found[0].count("/") + _DEEPEST
    for folder in found:
        if folder.count("/") == depth or len(found) > _MOST_OF_SETTINGS:
            break
        with suppress(OSError), os.scandir(folder) as entries:
            found += [each.path for each in entries if each.is_dir(follow_symlinks=False)]
    return found[:_MOST_OF_SETTINGS]


def _tops(home: str, places: Iterable[str]) -> Iterator[str]:
    """Yield the hidden folders of the home folder in which the places lie, such as `~/.claude`."""
    for place in places:
        above, _, name = place.rpartition("/")[0].rpartition("/")
        if above == home and name.startswith("."):
            yield f"{above}/{name}"


def _read_by_ybs(home: str, places: Iterable[str], several: set[Identity]) -> Iterator[str]:
    """Yield what the places are without links, and what links in them lead to, and those in that; note the files with several names.

    Nobody keeps those in what is hidden there, or installed.
    """
    pending, seen = deque(map(os.path.realpath, places)), {"/", home}
    yield from pending
    while pending and len(seen) < _MOST_FOLDERS:
        folder = pending.popleft()
        if folder in seen:
            continue
        seen.add(folder)
        with suppress(OSError), os.scandir(folder) as entries:  # it may be a file, or missing
            for each in entries:
                if each.is_symlink():
                    if not lies_in(home, target := os.path.realpath(each.path)):
                        yield target
                        pending.append(target)
                elif not each.is_dir():
                    several.update(identity(each.path))
                elif each.name[:1] != "." and each.name != "node_modules":
                    pending.append(each.path)


def _several_in(folder: str, home: str) -> Iterator[Identity]:
    """Yield the files of settings in a folder that have a second name."""
    with suppress(OSError), os.scandir(folder) as entries:
        for each in entries:
            is_setting = each.name.startswith(".") or folder != home
            if is_setting and each.is_file(follow_symlinks=False):
                yield from identity(each.path)


def targets_in(folder: str, *, only_hidden: bool = False) -> Iterator[str]:
    """Yield what the links in a folder lead to, and the folder itself where it is a link."""
    try:
        mode = os.lstat(folder).st_mode  # most of them are not there
        if stat.S_ISLNK(mode):
            yield os.path.realpath(folder)
        elif not stat.S_ISDIR(mode):
            return
        with os.scandir(folder) as entries:
            links = [
                each.path
                for each in entries
                if each.is_symlink() and (each.name.startswith(".") or not only_hidden)
            ]
    except OSError:  # it is not there, or a file
        return
    yield from map(os.path.realpath, links)
