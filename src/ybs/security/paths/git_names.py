"""Recognise repositories: the folder names of version control, and folders that git takes for one."""

import os
import re
from collections.abc import Callable, Container

#: HFS+ and git leave these out of names; see `is_hfs_dotgit` in https://github.com/git/git/blob/master/utf8.c.
_UNSEEN = "[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]"

#: Folders that version control keeps its settings and hooks in. What lies in them is theirs.
REPOSITORIES = frozenset({".git", ".hg", ".jj", ".sl"})
#: What has git take a folder for a repository whatever it is called, and what git runs or obeys in one.
PARTS = frozenset({"HEAD", "commondir", "config", "config.worktree", "hooks", "objects", "refs"})
_MEANT = REPOSITORIES | {"git~1", "hg~1", "jj~1", "sl~1"}


def plain(name: str) -> str:
    """Return the name as Windows and macOS see it: `.GIT`, `.git.`, `.git ` and `.git::$DATA` are one."""
    seen = name if name.isascii() else re.sub(_UNSEEN, "", name)
    return seen.partition(":")[0].rstrip(" .").casefold()


def means_repository(name: str) -> bool:
    """Return whether some system takes the name for one of `REPOSITORIES`; `git~1` is the short form of `.git` on Windows."""
    return plain(name) in _MEANT


def repository_on_the_way(real: str, top: str, coming: Container[str] = ()) -> str:
    """Return the folder between `top` and the path that git would take for a repository once the path is there.

    `coming` are paths that come with it, without regard for case: together they may make one that none makes alone.
    Git runs programs that a `config` in such a folder names, whatever the folder is called
    (https://git-scm.com/docs/gitrepository-layout). Nothing is returned where there is none.
    """
    folder, _, name = real.rpartition("/")
    while not _is_repository(folder, name.casefold(), coming):
        if folder in (top, ""):
            return ""
        folder, _, name = folder.rpartition("/")
    return folder


def _is_repository(folder: str, first: str, coming: Container[str]) -> bool:
    def has(name: str) -> bool:
        path = f"{folder}/{name}"
        return name.casefold() == first or path.casefold() in coming or os.path.lexists(path)

    return is_repository(has)


def is_repository(has: Callable[[str], bool]) -> bool:
    """Return whether git takes a folder for a repository that has entries of these names."""
    return has("HEAD") and (has("commondir") or (has("objects") and has("refs")))
