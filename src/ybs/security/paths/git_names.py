"""What git takes for a repository: names that mean `.git`, and folders that are laid out as one."""

import os
import re

#: HFS+ and git leave these out of names; see `is_hfs_dotgit` in https://github.com/git/git/blob/master/utf8.c.
_UNSEEN = "[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]"


def plain(name: str) -> str:
    """Return the name as Windows and macOS see it: `.GIT`, `.git.`, `.git ` and `.git::$DATA` are one."""
    seen = name if name.isascii() else re.sub(_UNSEEN, "", name)
    return seen.partition(":")[0].rstrip(" .").casefold()


def means_git(name: str) -> bool:
    """Return whether some system takes the name for `.git`; `git~1` is its short form on Windows."""
    return plain(name) in (".git", "git~1")


def repository_on_the_way(real: str, top: str) -> str:
    """Return the folder between `top` and the path that git would take for a repository once the path is there.

    Git runs programs that a `config` in such a folder names, whatever the folder is called
    (https://git-scm.com/docs/gitrepository-layout). Nothing is returned where there is none.
    """
    folder, _, name = real.rpartition("/")
    while not _is_repository(folder, name.casefold()):
        if folder in (top, ""):
            return ""
        folder, _, name = folder.rpartition("/")
    return folder


def _is_repository(folder: str, coming: str) -> bool:
    def has(name: str) -> bool:
        return name.casefold() == coming or os.path.lexists(f"{folder}/{name}")

    return has("HEAD") and (has("commondir") or (has("objects") and has("refs")))
