"""Links in the person's home folder that lead into a project, as people have who keep their settings in a repository (dotfiles), and hard links to files there.

Whoever writes what such a link leads to writes settings of the person's: of ybs, of other agents, of shells and editors.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import chain

from ybs.config.host import Host
from ybs.security.paths.path_text import lies_in
from ybs.security.paths.second_names import Identity, identity, named_again

#: Folders of the home folder whose links count; of the home folder itself hidden names do.
_FOLDERS = (
    *(".agents", ".claude", ".claude/commands", ".codex", ".config", ".config/fish", ".config/git"),
    *(".config/nvim", ".gemini", ".gnupg", ".ssh", ".vim"),
)


def led_into(host: Host, root: str) -> tuple[str, ...]:
    """Return what links of the person's settings lead to below the root, whose links are resolved.

    They are looked at once in the life of a process.
    """
    return _led_into(os.path.realpath(host.home), str(host.config_folder), root)


@lru_cache(64)
def _led_into(home: str, config: str, root: str) -> tuple[str, ...]:
    folders = (home, *(f"{home}/{name}" for name in _FOLDERS), config)
    found = (path for folder in folders for path in targets_in(folder, only_hidden=folder == home))
    led = [path for path in found if path != root and lies_in(path, root)]
    again = frozenset(chain.from_iterable(_several_in(folder, home) for folder in folders))
    return tuple(dict.fromkeys((*led, *named_again(again, [root]))))


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
