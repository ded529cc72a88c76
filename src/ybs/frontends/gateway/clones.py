"""Projects of chats that are cloned from an address, each once on a machine, or once on a volume that machines share."""

import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import Final
from urllib.parse import quote

from ybs.config.host import Host
from ybs.core.errors import YbsError
from ybs.git.hardening import cloning, cloning_environment
from ybs.security.launcher import ask, persons_program
from ybs.security.sandbox.launch import Launch
from ybs.security.unicode import printable

_SECONDS: Final = 600.0
_MOST_TOLD: Final = 300
_CLONE: Final = ("clone", "--quiet", "--template=", "--no-recurse-submodules")


def clone_of(name: str, host: Host) -> Path:
    """Return the folder of a project that is cloned."""
    return host.home / "ybs-chats" / "clones" / quote(name, safe="")


def cloned(address: str, name: str, host: Host) -> Path:
    """Clone a project, where that has not been done, and return its folder. Raises YbsError and OSError."""
    folder = clone_of(name, host)
    if folder.is_dir():
        return folder
    git = persons_program("git", environ=host.environ)
    if git is None:
        raise YbsError("git, which clones the project, is not on the PATH of the gateway.")
    folder.parent.mkdir(0o700, parents=True, exist_ok=True)
    made = Path(mkdtemp(prefix=".new-", dir=folder.parent))
    try:
        environ = cloning_environment(host.environ, str(host.home))
        words = cloning(git, *_CLONE, "--", address, str(made / "clone"), by_ssh=True)
        code, _, errors = ask(Launch(words, environ), _SECONDS)
        if code:
            why = printable(errors.decode(errors="replace")).strip()[-_MOST_TOLD:]
            raise YbsError(f"The project {name!r} could not be cloned: {why}")
        if not folder.is_dir():  # another machine may have been quicker
            (made / "clone").rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder
