"""Files of ybs's own installation that have a second name: an installer linked them out of its cache into several environments.

https://docs.astral.sh/uv/reference/settings/#link-mode: hard links are uv's default on Linux. Whoever may write the other name, in the
`.venv` of a project, writes ybs. So before tools may work anywhere, ybs, all that it requires, and each module beside it (a package may load one that it does
not require, and a `*.pth` too) become files of their own, once for each installation.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

import msgspec

from ybs.config import private_file
from ybs.core.errors import ConfigError
from ybs.core.lazy import lazy

_NAME = lazy(r"[\w.-]+")
_READ = (".py", ".pyc", ".so", ".pth", "entry_points.txt", "METADATA")
#: Of packages that ybs does not require; libraries for learning machines are larger, and nothing of ybs loads them.
_LARGEST_BYTES = 50_000_000


def keep_apart(stamp: Path, leads_to: Callable[[Path], bool], *, writes: bool = True) -> None:
    """Copy the files of ybs's packages that have other names, where packages have been installed since; `stamp` says when that was done last.

    `leads_to` says of a link that tools may write what it leads to. Never fails: what others own is not ybs's to change, nor a tool's.
    """
    site = Path(msgspec.__file__).parents[1]
    with suppress(OSError, ConfigError):
        facts = site.stat()
        if facts.st_uid != os.getuid() or not (linked := _linked(site)):
            return
        if private_file.read(stamp) == _state(site, linked):
            return
        for path in chain(_files(), _modules(site)):
            with suppress(OSError):
                _keep_apart(path, leads_to)
        if writes:
            private_file.replace(stamp, _state(site, _linked(site)))


def _state(site: Path, linked: Iterable[str]) -> bytes:
    facts, names = site.stat(), " ".join(linked)
    return f"{site} {facts.st_ino} {facts.st_mtime_ns} {names}".encode(errors="surrogateescape")


def _linked(site: Path) -> list[str]:
    """Return the packages that were linked: each has a file METADATA, as it came, which becomes one of its own as all do.

    Somebody may have linked a folder of code without that: those of ybs and msgspec are looked at too, as the time of a start allows.
    """
    packages = (n for n in os.listdir(site) if n.endswith(".dist-info"))  # noqa: PTH208 - texts, at each start
    files = (*(f"{name}/METADATA" for name in packages), "ybs/__init__.py", "msgspec/__init__.py")
    found: list[str] = []
    for name in files:
        try:
            facts = os.lstat(f"{site}/{name}")
        except OSError:
            continue
        if facts.st_nlink > 1 or stat.S_ISLNK(facts.st_mode):
            found.append(name.partition("/")[0])
    return sorted(found)


def _keep_apart(path: Path, leads_to: Callable[[Path], bool]) -> None:
    facts = path.lstat()
    if (stat.S_ISREG(facts.st_mode) and facts.st_nlink > 1) or (
        stat.S_ISLNK(facts.st_mode) and leads_to(path)
    ):
        from shutil import copy2  # once for each installation

        fresh = path.with_name(f".{path.name}.ybs-{os.getpid()}")
        try:
            copy2(path, fresh)  # with its times, by which what was compiled of it counts
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)


def _files() -> Iterator[Path]:
    """Yield the files of ybs, of what it requires, and of packages that bring something for it."""
    from importlib.metadata import PackageNotFoundError, distribution  # once for each installation

    from ybs.config.installed import installed

    names, known = ["ybs", *(each.package for each in installed())], set[str]()
    while names:
        name = names.pop()
        if name in known:
            continue
        known.add(name)
        try:
            found = distribution(name)
        except PackageNotFoundError:  # an extra that is not there
            continue
        names += _names(found.requires or (), with_extras=name == "ybs")
        yield from (Path(str(found.locate_file(each))) for each in found.files or ())


def _modules(site: Path) -> Iterator[Path]:
    """Yield what Python may load or read at its start."""
    for folder, _, names in os.walk(site):
        for path in (Path(folder, each) for each in names if each.endswith(_READ)):
            if path.lstat().st_size <= _LARGEST_BYTES:
                yield path


def _names(required: Iterable[str], *, with_extras: bool) -> Iterator[str]:
    wanted = (each for each in required if with_extras or "extra ==" not in each)
    return (found[0] for found in map(_NAME().match, wanted) if found)
