"""Packages that are installed beside ybs: the entry points in its environment.

`importlib.metadata` would find them too, at the cost of its import and of reading the metadata of every package on
`sys.path`; there may also be folders of a project on that. Here the site folders of the interpreter alone are looked at
(ADR 0027).
"""

import os
import site
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from msgspec import Struct

from ybs.config import editables
from ybs.core.errors import ConfigError

_OWN = "ybs"
#: Stands in every list of entry points that has one for ybs, and in few others.
_MARK = b"[ybs."
_MOST_BYTES = 1_000_000


class EntryPoint(Struct, frozen=True, kw_only=True):
    """Something that a package offers to ybs: `value` is `module:name` of what serves the `group`."""

    package: str
    group: str
    name: str
    value: str

    @property
    def module(self) -> str:
        """The name of the module."""
        return self.value.partition("[")[0].partition(":")[0].strip()

    def load(self) -> Any:
        """Import the module and return what is named in it. Raises ConfigError, whatever goes wrong there."""
        names = self.value.partition("[")[0].partition(":")[2].strip()
        try:
            found: Any = _imported(self.module)
            for name in filter(None, names.split(".")):
                found = getattr(found, name)
        except (Exception, SystemExit) as error:  # somebody else's code: it may do anything
            raise self.problem(f"{type(error).__name__}: {error}") from error
        return found

    def problem(self, what: str) -> ConfigError:
        """Return an error that names the package and what is wrong with this part of it."""
        place = f"{self.group} {self.name} ({self.value})"
        return ConfigError(f"The plugin {self.package} does not work: {place}: {what}")


def _imported(module: str) -> Any:
    """Import a module. Where it lies in an editable install, what it needs is looked for there as well; what is installed as a whole finds nothing there."""
    own = module.partition(".")[0]
    while True:
        try:
            return import_module(module)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            is_beside = missing and own in (missing, *editables.MAPPING)
            if not (is_beside and editables.take_back(missing)):
                raise


def site_folders() -> Sequence[str]:
    """Return the folders in which packages of this interpreter are installed."""
    own = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return [*site.getsitepackages(), *own]


def installed(folders: Sequence[str] | None = None) -> list[EntryPoint]:
    """Return what other packages offer to ybs, in the order of their names; a group is one such as `ybs.tools`."""
    folders = site_folders() if folders is None else folders
    found = {
        (each.package, each.group, each.name): each
        for folder in folders
        for each in _in_folder(folder)
        if each.group.startswith("ybs.")
    }
    return [found[key] for key in sorted(found)]


def _in_folder(folder: str) -> Iterator[EntryPoint]:
    try:
        with os.scandir(folder) as entries:
            names = [each.name for each in entries if each.name.endswith(".dist-info")]
    except OSError:
        return
    for name in names:
        package = name.partition("-")[0]
        text = _read(os.path.join(folder, name, "entry_points.txt"))  # noqa: PTH118 - seventy paths at each start
        if _MARK in text and package != _OWN:
            yield from _parsed(package, text.decode(errors="replace"))


def _read(path: str) -> bytes:
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(number, _MOST_BYTES)
    except OSError:
        return b""
    finally:
        os.close(number)


def _parsed(package: str, text: str) -> Iterator[EntryPoint]:
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield EntryPoint(package=package, group=group, name=name.strip(), value=value.strip())
