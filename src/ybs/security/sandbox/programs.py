"""Programs of the host that ybs starts for itself, found where no project can have put them."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

#: Never looked for along PATH: the project may have put a folder of its own there.
BUBBLEWRAP = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")
#: Looked through first, whatever PATH says.
SYSTEM_FOLDERS = (
    "/usr/bin",
    "/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/opt/local/bin",
    "/run/current-system/sw/bin",
)


def trusted_program(name: str, *, away_from: Path, environ: Mapping[str, str]) -> Path | None:
    """Return a program's absolute path: of a folder of the system, or of PATH where only its owner may write.

    What lies in the project (`away_from`) is never it. None where there is no such program.
    """
    for folder in _folders(environ):
        found = _safe(folder / name, away_from)
        if found is not None:
            return found
    return None


def persons_program(name: str, *, away_from: Path, environ: Mapping[str, str]) -> str | None:
    """Return the path of a program that the person's own PATH names; what lies in the project is never it."""
    top = away_from.resolve()
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        path = Path(folder, name)
        try:
            is_found = folder.startswith("/") and path.is_file() and os.access(path, os.X_OK)
            if is_found and not any(
                each.resolve().is_relative_to(top) for each in (path.parent, path)
            ):
                return str(path)
        except OSError:  # a folder that cannot be looked into, or no path at all
            continue
    return None


def system_program(paths: Iterable[str]) -> str | None:
    """Return the first of these programs that only root can have put there."""
    return next((path for path in paths if _is_roots(path)), None)


def _is_roots(path: str) -> bool:
    try:
        found = Path(path).stat()
    except OSError:
        return False
    is_program = stat.S_ISREG(found.st_mode) and bool(found.st_mode & 0o111)
    return is_program and found.st_uid == 0 and not found.st_mode & 0o022


def _folders(environ: Mapping[str, str]) -> Iterator[Path]:
    yield from map(Path, SYSTEM_FOLDERS)
    for entry in environ.get("PATH", "").split(os.pathsep):
        if entry.startswith("/"):
            yield Path(entry)


def _safe(path: Path, away_from: Path) -> Path | None:
    try:
        real = path.resolve()
        inside = real.is_relative_to(away_from.resolve())
        is_ours = not inside and all(_is_ours(each) for each in (path.parent, real.parent, real))
        return real if is_ours and real.is_file() and os.access(real, os.X_OK) else None
    except (OSError, RuntimeError, ValueError):  # gone, a circle of links, or no path at all
        return None


def _is_ours(path: Path) -> bool:
    facts = path.stat()
    return facts.st_uid in (0, os.getuid()) and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
