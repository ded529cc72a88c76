"""What tells a project's folder from another one that has its path later.

Each record that allows something in a project (trust, rules, consent to commits, homes of its programs) holds this.
"""

import os
import stat
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from ybs.config.host import Host

#: The device and number of a folder, when it was made, and when git began in it.
Place: TypeAlias = str
_SECOND = 1_000_000_000
#: Of statx(2): the working folder, the wish for the time of birth, and where the answer has its mask and that time.
_HERE, _BIRTH = -100, 0x800
_FIELDS = (("=I", 0), ("=q", 0x50), ("=I", 0x58))


def place_of(host: Host, folder: Path) -> str:
    """Return what tells a folder from another one at the same path: its number, when it was made, and when git began in it. Raises OSError."""
    facts = folder.stat()
    return f"{facts.st_dev}:{facts.st_ino}:{made_at(folder)}:{_repository_of(host, folder)[1]}"


def lies_there(host: Host, place: str, folder: Path) -> bool:
    """Return whether the folder that had this `place_of` lies at the path still, and no other one.

    The top of a repository, and its `.git`, are told by when it began, so it may be moved or restored from a backup. Any other folder
    is told by when it was made, or by its number where the file system does not say; where it lies in a repository, it has to be
    the one that it lay in. That a repository begins in it, or is taken away, makes it no other folder.
    """
    try:
        _, number, made, begun = map(int, place.split(":"))
    except ValueError:  # no `place_of` wrote it: nothing is known of that folder
        return False
    top, now = _repository_of(host, folder)
    is_top = folder in (top, top / ".git")
    if now and (begun or not is_top):
        is_cut = not (begun % _SECOND and now % _SECOND)  # many backups know whole seconds only
        if now != begun and not (is_cut and now // _SECOND == begun // _SECOND):
            return False
        if is_top:
            return True
    try:
        now = made_at(folder)
        return now == made if now and made else folder.stat().st_ino == number
    except OSError:
        return False


def _repository_of(host: Host, folder: Path) -> tuple[Path, int]:
    """Return the top of the repository that a folder is or lies in, and when that began, in nanoseconds: git writes its description once, as the `.git` of a worktree; 0 for none, which no repository can say."""
    home = host.home.resolve()
    for each in (folder, *folder.parents):
        if home.is_relative_to(each):
            break
        for name in (".git/description", ".git"):
            with suppress(OSError):
                facts = (each / name).lstat()
                if stat.S_ISREG(facts.st_mode):
                    return each, max(facts.st_mtime_ns, _SECOND)
    return folder, 0


def made_at(folder: Path) -> int:
    """Return when a folder was made, in nanoseconds; 0 where the file system does not say. A number is given again once it is free. Raises OSError."""
    if sys.platform != "linux":
        return int(getattr(folder.stat(), "st_birthtime", 0) * _SECOND)
    import ctypes  # it takes some milliseconds, and most trusted projects are the top of a repository

    facts = ctypes.create_string_buffer(256)  # statx(2)
    statx = getattr(ctypes.CDLL(None), "statx", None)
    if statx is None or statx(_HERE, os.fsencode(folder), 0, _BIRTH, facts):
        return 0
    mask, seconds, nanoseconds = (struct.unpack_from(f, facts, at)[0] for f, at in _FIELDS)
    return seconds * _SECOND + nanoseconds if mask & _BIRTH else 0
