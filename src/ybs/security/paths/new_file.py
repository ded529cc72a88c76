"""A new file where the person wants it: whole or not at all, for its owner's eyes, never in another one's place."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ybs.core.errors import Refused, YbsError
from ybs.security.paths.git_names import means_repository, repository_on_the_way
from ybs.security.unicode import printable

if TYPE_CHECKING:
    from ybs.security.paths.roots import Roots

_MODE = 0o600
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def find_place(roots: "Roots", named: str, default: str) -> Path:
    """Return where a new file goes: `named` hangs on the project's folder, and may be a folder or be left out.

    It may lie outside the folders that tools work in, but never where credentials or ybs's own files are.
    Raises YbsError.
    """
    if printable(named) != named or "\n" in named or "\0" in named:
        raise YbsError("That name contains invisible characters. Choose another one.")
    asked = roots.host.expand(named or default, roots.folder)
    try:
        return _checked(roots, asked / default if asked.is_dir() else asked)
    except OSError as error:
        raise YbsError(f"That cannot be the name of a file: {error.strerror or error}.") from error


def _checked(roots: "Roots", asked: Path) -> Path:
    place = Path(os.path.realpath(asked.parent)) / asked.name
    if roots.is_blocked(str(place)) or roots.is_blocked(os.path.realpath(asked)):
        raise Refused(f"{asked} is in a blocked path. Choose another place.")
    if acts_later(roots, asked) or acts_later(roots, place):
        raise Refused(
            f"Other programs would run {asked} or read settings from it. Choose another name."
        )
    if roots.leads_out(asked):
        raise Refused(f"A link of the project leads {asked} out of it. Name the place itself.")
    if os.path.lexists(place):
        raise YbsError(
            f"{asked} exists already, and ybs does not overwrite it. Choose another name."
        )
    if not place.parent.is_dir():
        raise YbsError(f"There is no folder {asked.parent}. Create it first, or choose another.")
    return place


def acts_later(roots: "Roots", place: Path) -> bool:
    """Return whether a program acts on a file of this name, as write_file is not let near it unasked."""
    return (
        any(map(means_repository, place.parts))
        or bool(roots.autorun_part(place))
        or bool(repository_on_the_way(str(place), "/"))
    )


def write_new(roots: "Roots", place: Path, data: bytes) -> None:
    """Write a file that `find_place` gave. Raises YbsError, and then there is none."""
    fresh = f".ybs-{os.urandom(8).hex()}.tmp"
    try:
        with roots.held(place) as held:
            folder = held.folder
            handle = os.open(fresh, _FLAGS, _MODE, dir_fd=folder)
            try:
                with open(handle, "wb") as file:  # noqa: PTH123 - opened by descriptor
                    file.write(data)
                    file.flush()
                    os.fsync(handle)
                # A link fails where a file is; a rename would replace it.
                os.link(fresh, held.name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(fresh, dir_fd=folder)
    except FileExistsError as error:
        raise YbsError(f"{place} exists already, and ybs does not overwrite it.") from error
    except OSError as error:
        raise YbsError(f"{place} cannot be written: {error.strerror or error}.") from error
